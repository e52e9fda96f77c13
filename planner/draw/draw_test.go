package draw

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/planner"
)

// web plans the create of a load balancer before n back ends, all on a base.
func web(t testing.TB, n int) loom.Plan {
	t.Helper()
	services := map[string]loom.Service{}
	define := func(name string, install, runtime []string, actions ...loom.TaskAction) {
		s := loom.Service{Base: loom.Base{Name: name}}
		s.Dependencies.Install.Requires, s.Dependencies.Runtime.Uses = install, runtime
		s.Provisioner.Actions = map[loom.TaskAction]loom.ServiceAction{}
		for _, a := range actions {
			s.Provisioner.Actions[a] = loom.ServiceAction{Type: "shell"}
		}
		services[name] = s
	}
	define("base", nil, nil, loom.ActionInstall)
	define("nginx", []string{"base"}, nil, loom.ActionInstall, loom.ActionConfigure, loom.ActionStart)
	define("haproxy", []string{"base"}, []string{"nginx"}, loom.ActionInstall, loom.ActionConfigure, loom.ActionInitialize, loom.ActionStart)
	nodes := []loom.Node{{ID: "n0", Number: 1000, Services: []string{"base", "haproxy"}}}
	for i := 1; i <= n; i++ {
		nodes = append(nodes, loom.Node{ID: loom.NodeID(fmt.Sprintf("n%d", i)), Number: 1000 + i, Services: []string{"base", "nginx"}})
	}
	plan, err := planner.Make(loom.ClusterCreate, nodes, services, planner.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// check holds for every picture.
func check(t *testing.T, plan loom.Plan, d Drawing) {
	t.Helper()
	points := map[string][3]int{} // top, bottom, middle
	for i, b := range d.Boxes {
		if b.X < Margin || b.Y < Margin || b.X+BoxWidth+Margin > d.Width || b.Y+BoxHeight+Margin > d.Height {
			t.Fatalf("box %s at %d, %d leaves the picture of %d × %d", b.ID, b.X, b.Y, d.Width, d.Height)
		}
		if (b.Y-Margin)%(BoxHeight+StageGap) != 0 {
			t.Fatalf("box %s is off its row: %d", b.ID, b.Y)
		}
		if i > 0 {
			a := d.Boxes[i-1]
			if a.Y > b.Y || a.Y == b.Y && (b.X-a.X < BoxWidth+RowGap || a.column != b.column) || a.Y < b.Y && a.column >= b.column {
				t.Fatalf("boxes %+v and %+v are out of order or overlap", a, b)
			}
		}
		for _, n := range b.Tasks {
			if task := plan.Tasks[n-1]; task.Level != b.Level || task.Action != b.Action {
				t.Fatalf("box %s stands for %+v", b.ID, task)
			}
		}
		points[b.ID] = [3]int{b.Y, b.Y + BoxHeight, b.X + BoxWidth/2}
	}
	for _, j := range d.Joints {
		points[j.ID] = [3]int{j.Y - JointRadius, j.Y + JointRadius, j.X}
	}
	if len(points) != len(d.Boxes)+len(d.Joints) {
		t.Fatal("an id is given twice")
	}
	for _, e := range d.Edges {
		from, to := points[e.From], points[e.To]
		start, end := fmt.Sprintf("M%d %dC", from[2], from[1]), fmt.Sprintf(" %d %d", to[2], to[0])
		if from[1] >= to[0] || !strings.HasPrefix(e.Path, start) || !strings.HasSuffix(e.Path, end) {
			t.Fatalf("edge %s to %s from %v to %v has path %s", e.From, e.To, from, to, e.Path)
		}
	}
}

// pairs contracts joints: which task comes before which.
func pairs(d Drawing) map[string]bool {
	all := map[string]bool{}
	for _, e := range d.Edges {
		switch {
		case strings.HasPrefix(e.To, "j"):
		case strings.HasPrefix(e.From, "j"):
			for _, f := range d.Edges {
				if f.To == e.From {
					all[f.From+" "+e.To] = true
				}
			}
		default:
			all[e.From+" "+e.To] = true
		}
	}
	return all
}

func planPairs(plan loom.Plan, only func(int) bool) map[string]bool {
	all := map[string]bool{}
	n := len(plan.Tasks)
	add := func(from, to int) {
		if only == nil || only(from) && only(to) {
			all[fmt.Sprintf("t%d t%d", from, to)] = true
		}
	}
	for _, e := range plan.Edges {
		switch {
		case e.From <= n && e.To <= n:
			add(e.From, e.To)
		case e.From > n:
			for _, f := range plan.Edges {
				if f.To == e.From {
					add(f.From, e.To)
				}
			}
		}
	}
	return all
}

// closure returns all pairs of which one comes before the other, directly or not.
func closure(direct map[string]bool) map[string]bool {
	on := map[string][]string{}
	for p := range direct {
		from, to, _ := strings.Cut(p, " ")
		on[from] = append(on[from], to)
	}
	all := map[string]bool{}
	for start := range on {
		queue := []string{start}
		for len(queue) > 0 {
			for _, next := range on[queue[0]] {
				if !all[start+" "+next] {
					all[start+" "+next] = true
					queue = append(queue, next)
				}
			}
			queue = queue[1:]
		}
	}
	return all
}

// checkOrder: a picture shows the order of the plan, and nothing twice.
func checkOrder(t *testing.T, plan loom.Plan, d Drawing, only func(int) bool) {
	t.Helper()
	drawn := pairs(d)
	got, want := closure(drawn), closure(planPairs(plan, only))
	if !maps.Equal(got, want) {
		t.Fatalf("the picture shows the order %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	// A pair through a joint may follow from others: a joint stands for all pairs of
	// its two sides at once. A curve of its own may not.
	for _, e := range d.Edges {
		from, to := e.From, e.To
		if strings.HasPrefix(from, "j") || strings.HasPrefix(to, "j") {
			continue
		}
		for q := range drawn {
			if a, b, _ := strings.Cut(q, " "); a == from && b != to && got[b+" "+to] {
				t.Fatalf("%s → %s is drawn though it follows from %s", from, to, b)
			}
		}
	}
}

func TestDrawTasks(t *testing.T) {
	t.Parallel()
	for n := range 12 {
		plan := web(t, n)
		d := Draw(plan, Options{})
		check(t, plan, d)
		if len(d.Boxes) != len(plan.Tasks) || d.Grouped {
			t.Fatalf("%d boxes for %d tasks, grouped %v", len(d.Boxes), len(plan.Tasks), d.Grouped)
		}
		checkOrder(t, plan, d, nil)
		if !reflect.DeepEqual(d, Draw(plan, Options{})) {
			t.Fatal("the same plan gives another picture")
		}
		checkCritical(t, plan, d)
	}
}

// checkCritical: the critical edges lead, one after the other, through all
// critical tasks.
func checkCritical(t *testing.T, plan loom.Plan, d Drawing) {
	t.Helper()
	next := map[string]string{}
	for _, e := range d.Edges {
		if !e.Critical {
			continue
		}
		if next[e.From] != "" {
			t.Fatalf("the critical path forks at %s", e.From)
		}
		next[e.From] = e.To
	}
	var want []string
	for _, task := range plan.Tasks {
		if task.Critical {
			want = append(want, fmt.Sprintf("t%d", task.Number))
		}
	}
	var got []string
	for at := want[0]; at != ""; at = next[at] {
		if !strings.HasPrefix(at, "j") {
			got = append(got, at)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the critical edges lead over %v, want %v", got, want)
	}
}

func TestJoints(t *testing.T) {
	t.Parallel()
	// base on 11 nodes comes before 11 others: a joint. nginx on 10 nodes comes
	// before haproxy alone, whose START follows from its INITIALIZE: none.
	d := Draw(web(t, 10), Options{})
	// CONFIRM of all nodes before the services of all: another joint.
	if len(d.Joints) != 2 || d.Joints[0].Action != loom.ActionConfirm || d.Joints[1].Service != "base" || d.Joints[1].Action != loom.ActionInstall {
		t.Errorf("got joints %+v", d.Joints)
	}
	if d := Draw(web(t, 1), Options{}); len(d.Joints) != 0 {
		t.Errorf("two tasks before two others give joints %+v", d.Joints)
	}
}

func TestDrawGroups(t *testing.T) {
	t.Parallel()
	plan := web(t, 100)
	d := Draw(plan, Options{})
	check(t, plan, d)
	tasks := 0
	for _, b := range d.Boxes {
		tasks += len(b.Tasks)
		if !b.Group || b.ID != fmt.Sprintf("g%d-%s", b.Level, b.Action) {
			t.Errorf("box %+v is no group", b)
		}
	}
	if !d.Grouped || tasks != len(plan.Tasks) || len(d.Boxes) > 2*plan.Levels() {
		t.Errorf("%d boxes stand for %d of %d tasks, grouped %v", len(d.Boxes), tasks, len(plan.Tasks), d.Grouped)
	}
	if b := d.Boxes[0]; b.Action != loom.ActionCreate || len(b.Tasks) != 101 || !b.Critical {
		t.Errorf("the first box is %+v", b)
	}
	if small := Draw(web(t, 2), Options{Grouping: Always}); !small.Grouped {
		t.Error("a small plan is not grouped when asked to")
	}
	never := Draw(web(t, 40), Options{Grouping: Never})
	check(t, web(t, 40), never)
	if never.Grouped || len(never.Boxes) != len(web(t, 40).Tasks) {
		t.Error("a large plan is grouped when asked not to")
	}
}

// tangle plans a random cluster.
func tangle(t *testing.T, r *rand.Rand) loom.Plan {
	t.Helper()
	services := map[string]loom.Service{}
	var names []string
	for i := range 2 + r.IntN(5) {
		s := loom.Service{Base: loom.Base{Name: fmt.Sprintf("s%d", i)}}
		s.Provisioner.Actions = map[loom.TaskAction]loom.ServiceAction{}
		for _, a := range loom.ClusterCreate.Steps() {
			if !a.OfNode() && r.IntN(3) > 0 {
				s.Provisioner.Actions[a] = loom.ServiceAction{Type: "shell"}
			}
		}
		for _, earlier := range names {
			if r.IntN(3) == 0 {
				s.Dependencies.Install.Uses = append(s.Dependencies.Install.Uses, earlier)
			}
			if r.IntN(3) == 0 {
				s.Dependencies.Runtime.Uses = append(s.Dependencies.Runtime.Uses, earlier)
			}
		}
		names = append(names, s.Name)
		services[s.Name] = s
	}
	var nodes []loom.Node
	for i := range 1 + r.IntN(5) {
		n := loom.Node{ID: loom.NodeID(fmt.Sprintf("n%d", i)), Number: 1000 + i}
		for _, s := range names {
			if r.IntN(2) == 0 {
				n.Services = append(n.Services, s)
			}
		}
		nodes = append(nodes, n)
	}
	plan, err := planner.Make(loom.ClusterCreate, nodes, services, planner.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestDrawRandomPlans(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 7))
		plan := tangle(t, r)
		d := Draw(plan, Options{Grouping: Never})
		check(t, plan, d)
		checkOrder(t, plan, d, nil)
		checkCritical(t, plan, d)
		check(t, plan, Draw(plan, Options{Grouping: Always}))
	}
}

func TestDrawOnly(t *testing.T) {
	t.Parallel()
	plan := web(t, 5)
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		chosen := map[int]bool{}
		for _, task := range plan.Tasks {
			chosen[task.Number] = r.IntN(2) == 0
		}
		only := func(n int) bool { return chosen[n] }
		d := Draw(plan, Options{Only: only})
		check(t, plan, d)
		checkOrder(t, plan, d, only)
	}
	if d := Draw(plan, Options{Only: func(int) bool { return false }}); !reflect.DeepEqual(d, Drawing{}) {
		t.Errorf("nothing to draw gives %+v", d)
	}
}

func TestEmptyPlan(t *testing.T) {
	t.Parallel()
	plan, err := planner.Make(loom.ClusterDelete, nil, nil, planner.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if d := Draw(plan, Options{}); !reflect.DeepEqual(d, Drawing{}) {
		t.Errorf("got %+v", d)
	}
}

func TestSweepsUntangle(t *testing.T) {
	t.Parallel()
	// Two columns joined in the reverse order: all pairs cross until sorted.
	plan := loom.Plan{Gates: []loom.Gate{{}}}
	for i := range 10 {
		plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: i + 1, Level: 1 + i/5, Rank: 2 - i/5, Action: loom.ActionStart})
	}
	for i := range 5 {
		plan.Edges = append(plan.Edges, loom.Edge{From: i + 1, To: 10 - i})
	}
	g := build(plan, Options{})
	g.layer()
	if n := g.crossings(); n != 10 {
		t.Errorf("5 edges in reverse have %d crossings, want 10", n)
	}
	g.reduceCrossings()
	if n := g.crossings(); n != 0 {
		t.Errorf("%d crossings are left", n)
	}
	d := Draw(plan, Options{})
	check(t, plan, d)
	for _, e := range d.Edges {
		var x1, y1, c1, cy1, c2, cy2, x2, y2 int
		if _, err := fmt.Sscanf(e.Path, "M%d %dC%d %d %d %d %d %d", &x1, &y1, &c1, &cy1, &c2, &cy2, &x2, &y2); err != nil || x1 != x2 {
			t.Errorf("edge %s is not straight: %v", e.Path, err)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	small, large := web(b, 19), web(b, 2000)
	b.Run("tasks", func(b *testing.B) {
		for b.Loop() {
			Draw(small, Options{})
		}
	})
	b.Run("grouped", func(b *testing.B) {
		for b.Loop() {
			Draw(large, Options{})
		}
	})
}
