package planner

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit/golden"
)

func follows(names ...string) func(*loom.Service) {
	return func(s *loom.Service) { s.Follows = names }
}

func version(n int) func(*loom.Service) {
	return func(s *loom.Service) {
		s.Version = n - 1
		renew(s)
	}
}

// renew makes the next version of a service, which has to be put on machines.
func renew(s *loom.Service) {
	s.Version++
	s.DefaultConfig = map[string]any{"version": s.Version}
}

// shop is a load balancer before web servers before a database.
func shop(change ...func(*loom.Service)) map[string]loom.Service {
	return services(
		service("db", "install configure start stop drain"),
		service("web", "install configure start stop remove", append([]func(*loom.Service){runtime("db"), install("db"), version(1)}, change...)...),
		service("lb", "install configure start stop", follows("backend", "web"), runtime("web")))
}

func machines(hardware string, texts ...string) []loom.Node {
	list := nodes(texts...)
	for i := range list {
		list[i].HardwareType, list[i].Incarnation = hardware, 1
		list[i].Hostname = fmt.Sprintf("shop-%d.lab", list[i].Number)
	}
	return list
}

func at(nodes []loom.Node, keep ...int) []loom.Node {
	var list []loom.Node
	for _, i := range keep {
		list = append(list, nodes[i])
	}
	return list
}

func TestMakeChangeGolden(t *testing.T) {
	t.Parallel()
	list := machines("small", "db", "web", "web", "lb", "lb", "lb")
	large := machines("large", "db", "web", "web", "lb", "lb", "lb")
	repaired := slices.Clone(list)
	repaired[1].Incarnation = 2
	resized := slices.Clone(list)
	resized[1], resized[2] = large[1], large[2]
	fewer := slices.Clone(list)
	fewer[2].Services = nil
	state := func(nodes []loom.Node) State { return State{Nodes: nodes, Services: shop()} }
	none := 0
	tests := []struct {
		name   string
		change Change
		action loom.ClusterAction
	}{
		{"expand", Change{Before: state(at(list, 0, 1, 3, 4, 5)), After: state(list)}, loom.ClusterExpand},
		{"shrink", Change{Before: state(list), After: state(at(list, 0, 1, 3, 4, 5))}, loom.ClusterShrink},
		{"shrink_drain", Change{Before: state(list), After: state(at(list, 2, 3))}, loom.ClusterShrink},
		{"remove", Change{Before: state(list), After: state(fewer)}, loom.RemoveServices},
		{"add", Change{Before: state(fewer), After: state(list)}, loom.AddServices},
		{"upgrade", Change{Before: state(list), After: State{Nodes: list, Services: shop(version(2))}}, loom.ClusterUpgrade},
		{"resize", Change{Before: state(list), After: state(resized)}, loom.ClusterResize},
		{"resize_db", Change{Before: state(list), After: state(slices.Concat(large[:1], list[1:])), MinHealthy: &none}, loom.ClusterResize},
		{"repair", Change{Before: state(list), After: state(repaired)}, loom.ClusterRepair},
		{"rollback", Change{Before: State{Nodes: list, Services: shop(version(2))}, After: state(at(resized, 0, 1, 3, 4, 5))}, loom.Rollback},
		{"nothing", Change{Action: loom.Rollback, Before: state(list), After: state(list)}, loom.Rollback},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			plan, err := MakeChange(test.change)
			if err != nil {
				t.Fatal(err)
			}
			checkShape(t, plan)
			if plan.Action != test.action {
				t.Errorf("this is found to be %q, want %q", plan.Action, test.action)
			}
			golden.File(t, filepath.Join("testdata", "change_"+test.name+".txt"), Text(plan))
		})
	}
}

func TestMakeChangeRefuses(t *testing.T) {
	t.Parallel()
	list := machines("small", "db", "web", "web", "web")
	state := func(nodes []loom.Node, services map[string]loom.Service) State {
		return State{Nodes: nodes, Services: services}
	}
	upgraded := Change{Before: state(list, shop()), After: state(list, shop(version(2)))}
	with := func(c Change, change func(*Change)) Change { change(&c); return c }
	three, two := 3, 2
	keeps := shop()
	db := keeps["db"]
	db.Shrink = "refuse"
	keeps["db"] = db
	renumbered := slices.Clone(list)
	renumbered[1].Number = 1010
	taken := slices.Concat(list, []loom.Node{{ID: "new", Number: 1001}})
	circle := services(service("a", "install start stop", runtime("b")), service("b", "install start stop", runtime("a")))
	clash := services(service("a", "start"), service("b", "start", func(s *loom.Service) { s.Dependencies.Conflicts = []string{"a"} }))
	tests := []struct {
		name   string
		change Change
		says   []string
	}{
		{"batch of all", with(upgraded, func(c *Change) { c.Batch = 3 }), []string{"takes down 3 of the 3 nodes with “web”", "leaves 0 up", "at least 1"}},
		{"minimum of all", with(upgraded, func(c *Change) { c.MinHealthy = &three }), []string{"leaves 2 up", "at least 3"}},
		{"minimum and batch", with(upgraded, func(c *Change) { c.MinHealthy, c.Batch = &two, 2 }), []string{"takes down 2 of the 3", "leaves 1 up", "at least 2"}},
		{"negative batch", with(upgraded, func(c *Change) { c.Batch = -1 }), []string{"-1"}},
		{"shrink", Change{Before: state(list, keeps), After: state(list[1:], keeps)}, []string{"Node 1000", "“db”", "shrink: refuse"}},
		{"numbers change", Change{Before: state(list, shop()), After: state(renumbered, shop())}, []string{"1001", "1010"}},
		{"number taken", Change{Before: state(list, shop()), After: state(taken, shop())}, []string{"new", "1001"}},
		{"undefined", Change{Before: state(list, shop()), After: state(machines("", "ghost"), shop())}, []string{"“ghost”"}},
		{"circle", Change{Before: state(machines("", "a"), circle), After: state(machines("", "a", "a b"), circle)}, []string{"a → b → a"}},
		{"conflict", Change{Before: state(machines("", "a"), clash), After: state(machines("", "b"), clash)}, []string{"“b” conflicts with “a”"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := MakeChange(test.change)
			if !errors.Is(err, loom.Invalid) {
				t.Fatalf("got %v", err)
			}
			for _, says := range test.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
		})
	}
	if _, err := MakeChange(with(upgraded, func(c *Change) { c.Batch = 2 })); err != nil {
		t.Errorf("a batch of two of three: %v", err)
	}
}

func TestMakeChangeIsDeterministic(t *testing.T) {
	t.Parallel()
	list := machines("small", "db", "web", "web", "lb", "lb web")
	change := Change{Before: State{Nodes: list[:4], Services: shop()}, After: State{Nodes: slices.Clone(list[1:]), Services: shop(version(2))}}
	first, err := MakeChange(change)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(change.After.Nodes)
	second, err := MakeChange(change)
	if err != nil || Text(first) != Text(second) || DOT(first) != DOT(second) {
		t.Errorf("the order of the input changes the plan (%v):\n%s\n%s", err, Text(first), Text(second))
	}
}

// TestServicesAddedTellFollowers: the same holds for the action with fixed steps.
func TestServicesAddedTellFollowers(t *testing.T) {
	t.Parallel()
	list := machines("small", "db", "web", "lb", "lb", "lb")
	plan, err := Make(loom.AddServices, list, shop(), Scope{Services: []string{"web"}, Nodes: []loom.NodeID{"n2"}})
	if err != nil {
		t.Fatal(err)
	}
	checkShape(t, plan)
	golden.File(t, "testdata/add_followed.txt", Text(plan))
}

// TestFollowersOfRandomAdditions: beside what it would do anyway, an operation that
// adds services configures followers again, each once, after what they follow.
func TestFollowersOfRandomAdditions(t *testing.T) {
	t.Parallel()
	told := 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 7))
		list, defined, _, scope := randomCase(r)
		scope.Early = r.IntN(2) == 0
		plain, err := Make(loom.AddServices, list, defined, scope)
		if err != nil {
			t.Fatal(err)
		}
		names := slices.Sorted(maps.Keys(defined))
		following := maps.Clone(defined)
		for _, name := range names {
			if s := following[name]; r.IntN(2) == 0 {
				s.Follows = []string{names[r.IntN(len(names))]}
				following[name] = s
			}
		}
		plan, err := Make(loom.AddServices, list, following, scope)
		if err != nil {
			t.Fatal(err)
		}
		checkShape(t, plan)
		want, _ := contract(plain)
		planned := func(n loom.Node, service string) bool {
			return (scope.Nodes == nil || slices.Contains(scope.Nodes, n.ID)) && (scope.Services == nil || slices.Contains(scope.Services, service)) &&
				slices.Contains(n.Services, service)
		}
		vertex := map[string]int{}
		for _, task := range plan.Tasks {
			vertex[taskName(task.Node, task.Service, task.Action)] = task.Number
		}
		before := closure(len(plan.Tasks), taskEdges(plan))
		for _, f := range names {
			s := following[f]
			if len(s.Follows) == 0 || !s.Defines(loom.ActionConfigure) || !slices.ContainsFunc(list, func(n loom.Node) bool { return planned(n, s.Follows[0]) }) {
				continue
			}
			for _, n := range list {
				if !slices.Contains(n.Services, f) || planned(n, f) {
					continue
				}
				told++
				name := taskName(n.ID, f, loom.ActionConfigure)
				want[name] = true
				for _, m := range list {
					start := taskName(m.ID, s.Follows[0], loom.ActionStart)
					if planned(m, s.Follows[0]) && vertex[start] > 0 && !before[vertex[start]].has(vertex[name]) {
						t.Fatalf("seed %d: %s does not wait for %s\n%s", seed, name, start, Text(plan))
					}
				}
			}
		}
		if got, _ := contract(plan); !maps.Equal(got, want) || len(plan.Tasks) != len(want) {
			t.Fatalf("seed %d: got tasks\n%v\nwant\n%v", seed, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
	if told < 500 {
		t.Errorf("only %d followers were told: too few to tell", told)
	}
}

// TestChangeIsAsLargeAsItself counts the tasks of one more node at different sizes
// of the cluster.
func TestChangeIsAsLargeAsItself(t *testing.T) {
	t.Parallel()
	for _, size := range []int{50, 500, 5000} {
		list, defined := bigCluster(size + 1)
		plan, err := MakeChange(Change{Before: State{Nodes: list[:size], Services: defined}, After: State{Nodes: list, Services: defined}})
		if err != nil {
			t.Fatal(err)
		}
		checkShape(t, plan)
		if len(plan.Tasks) != 14 || slices.ContainsFunc(plan.Tasks, func(task loom.PlanTask) bool { return task.Node != list[size].ID }) {
			t.Errorf("one node more than %d takes %d tasks, want 14 on the new node", size, len(plan.Tasks))
		}
		region := defined["region"]
		region.Follows = []string{"data"}
		follow := maps.Clone(defined)
		follow["region"] = region
		plan, err = MakeChange(Change{Before: State{Nodes: list[:size], Services: follow}, After: State{Nodes: list, Services: follow}})
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Tasks) != 15 || len(plan.Edges) > 4*len(plan.Tasks) {
			t.Errorf("with one follower there are %d tasks and %d edges, want 15 tasks", len(plan.Tasks), len(plan.Edges))
		}
	}
}

// BenchmarkExpandByOne plans one node more than 5,000.
func BenchmarkExpandByOne(b *testing.B) {
	list, defined := bigCluster(5001)
	change := Change{Before: State{Nodes: list[:5000], Services: defined}, After: State{Nodes: list, Services: defined}}
	b.ReportAllocs()
	for b.Loop() {
		plan, err := MakeChange(change)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(plan.Tasks)), "tasks")
	}
}

// BenchmarkUpgrade rolls through 5,000 nodes, ten at a time.
func BenchmarkUpgrade(b *testing.B) {
	list, defined := bigCluster(5000)
	next := maps.Clone(defined)
	for _, name := range []string{"data", "serve", "manage"} {
		s := next[name]
		renew(&s)
		next[name] = s
	}
	change := Change{Before: State{Nodes: list, Services: defined}, After: State{Nodes: list, Services: next}, Batch: 10}
	b.ReportAllocs()
	for b.Loop() {
		plan, err := MakeChange(change)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(plan.Tasks)), "tasks")
		b.ReportMetric(float64(len(plan.Edges)), "edges")
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	list := machines("small", "db", "web", "web", "lb", "lb")
	after := slices.Clone(list[:4])
	after[1].HardwareType = "large"
	after[3].Services = []string{"lb", "web"}
	after = append(after, loom.Node{ID: "n9", Number: 1009, Hostname: "shop-1009.lab", HardwareType: "small", Incarnation: 1, Services: []string{"web"}})
	change := Change{
		Before: State{Nodes: list, Services: shop(), Config: map[string]any{"a": map[string]any{"b": 1, "c/d": 2}, "x": nil}},
		After:  State{Nodes: after, Services: shop(version(2)), Config: map[string]any{"a": map[string]any{"b": 1, "c/d": 3}}},
	}
	plan, err := MakeChange(change)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Compare(change.Before, change.After, plan)
	if err != nil {
		t.Fatal(err)
	}
	want := Difference{
		Made:     []MachineChange{{1009, "shop-1009.lab", ""}},
		Replaced: []MachineChange{{1001, "shop-1001.lab", "Its hardware type changes from “small” to “large”."}},
		Removed:  []MachineChange{{1004, "shop-1004.lab", ""}},
		Services: []ServiceChange{
			{"n2", 1001, "web", "reinstall", Replaces, "Its machine is replaced."},
			{"n3", 1002, "web", "upgrade", Restarts, "Version 2 takes the place of version 1."},
			{"n4", 1003, "lb", "configure", InPlace, ""},
			{"n4", 1003, "web", "add", InPlace, ""},
		},
		Config: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	fewer := slices.Clone(list)
	fewer[0].Services = nil
	change = Change{Before: State{Nodes: list, Services: shop()}, After: State{Nodes: fewer, Services: shop()}}
	if plan, err = MakeChange(change); err != nil {
		t.Fatal(err)
	}
	got, err = Compare(change.Before, change.After, plan)
	if err != nil || len(got.Services) != 1 || got.Services[0].Because != "“db” has no remove action: its files stay on the machine." {
		t.Errorf("a removal is told as %+v, %v", got.Services, err)
	}
	list, defined := example()
	if plan, err = Make(loom.RestartServices, list, defined, Scope{Services: []string{"db"}}); err != nil {
		t.Fatal(err)
	}
	state := State{Nodes: list, Services: defined}
	got, err = Compare(state, state, plan)
	restart := []ServiceChange{{"n1", 1000, "db", "restart", Restarts, ""}, {"n2", 1001, "app", "start", InPlace, ""}}
	if err != nil || !reflect.DeepEqual(got, Difference{Services: restart}) {
		t.Errorf("a restart is told as %+v, %v", got, err)
	}
}
