package solver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"loom/app/loom"
)

// rounds is how often a differential test runs: a slice of it, unless
// LOOM_SOLVER_ROUNDS asks for more.
func rounds(t *testing.T, usual int) int {
	t.Helper()
	if text := os.Getenv("LOOM_SOLVER_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("LOOM_SOLVER_ROUNDS: %v", err)
		}
		return n
	}
	if testing.Short() {
		return usual / 10
	}
	return usual
}

// randomCluster is a cluster of some of the services of a random template: a
// layout of the solver, or nodes thrown together.
func randomCluster(r *rand.Rand, maxNodes int) (Cluster, []string) {
	in := randomInput(r, 5, maxNodes)
	all := in.Services
	here := slices.DeleteFunc(slices.Clone(all), func(string) bool { return r.IntN(2) == 0 })
	if len(here) == 0 {
		here = all[:1]
	}
	c := Cluster{Input: in}
	add := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(here, s) })
	asked := in
	asked.Services = here
	if p, unsat := NewProblem(asked); unsat == nil && r.IntN(5) > 0 {
		if sizes, ok, err := Sizes(context.Background(), p); err == nil && ok {
			p.Machines = min(max(p.Machines, sizes.Min), sizes.Max)
		}
		if l, unsat, err := Solve(context.Background(), p); err == nil && unsat == nil {
			for _, g := range l {
				for range g.Count {
					c.Nodes = append(c.Nodes, Node{NodeLayout: g.NodeLayout})
				}
			}
			r.Shuffle(len(c.Nodes), func(i, j int) { c.Nodes[i], c.Nodes[j] = c.Nodes[j], c.Nodes[i] })
		}
	}
	if len(c.Nodes) == 0 {
		for range 1 + r.IntN(maxNodes) {
			n := Node{NodeLayout: loom.NodeLayout{HardwareType: in.HardwareTypes[r.IntN(len(in.HardwareTypes))].Name, ImageType: in.ImageTypes[r.IntN(len(in.ImageTypes))].Name}}
			for _, s := range here {
				if r.IntN(2) == 0 {
					n.Services = append(n.Services, s)
				}
			}
			if len(n.Services) == 0 {
				n.Services = []string{here[0]}
			}
			c.Nodes = append(c.Nodes, n)
		}
		add = slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(c.services(), s) })
	}
	for i := range c.Nodes {
		c.Nodes[i].ID = fmt.Sprintf("n%02d", i)
	}
	if len(add) > 3 {
		add = add[:3]
	}
	return c, add
}

func bare(nodes []Node) []loom.NodeLayout {
	out := make([]loom.NodeLayout, len(nodes))
	for i, n := range nodes {
		out[i] = n.NodeLayout
		out[i].Services = slices.Clone(n.Services)
	}
	return out
}

// same compares an answer with that of an oracle.
func same(t *testing.T, what string, c Cluster, got Outcome, unsat *loom.Unsat, err error, want []loom.NodeLayout, ok bool) bool {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, toJSON(t, c))
	}
	if ok != (unsat == nil) || ok && !reflect.DeepEqual(bare(got.Nodes), want) {
		t.Fatalf("%s of %s\ngot  %s %+v\nwant %v %s", what, toJSON(t, c), toJSON(t, got.Nodes), unsat, ok, toJSON(t, want))
	}
	if unsat != nil && (len(unsat.Reasons) == 0 || unsat.Headline == "") {
		t.Fatalf("%s of %s: a no without reasons: %+v", what, toJSON(t, c), unsat)
	}
	return ok
}

func TestAddEqualsTheRulesWordByWord(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(21, 1))
	n, yes := rounds(t, 2000), 0
	for range n {
		c, add := randomCluster(r, 5)
		want, ok := addOracle(c.Input, bare(c.Nodes), addOrder(c.Input, add))
		got, unsat, err := Add(context.Background(), c, add)
		if same(t, fmt.Sprint("add ", add), c, got, unsat, err, want, ok) {
			yes++
		}
	}
	t.Logf("%d clusters, %d solvable", n, yes)
	if yes < n/5 || yes > n*19/20 {
		t.Errorf("%d of %d are solvable: the generator says little", yes, n)
	}
}

// A new cluster by an oracle that shares not even Problem: the template is read
// anew.
func TestCreateEqualsTheTemplateReadAnew(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(27, 1))
	n, yes := rounds(t, 2000), 0
	for range n {
		in := randomInput(r, 4, 4)
		if r.IntN(4) == 0 {
			in.Template.Constraints.Size = loom.SizeConstraint{Min: 1 + r.IntN(2), Max: 2 + r.IntN(3)}
		}
		if r.IntN(4) == 0 {
			in.Template.Compatibility.HardwareTypes = []string{"h1", "h2"}
		}
		want, ok := createOracle(in)
		_, l, unsat, err := Create(context.Background(), in)
		var got []loom.NodeLayout
		for _, g := range l {
			for range g.Count {
				got = append(got, g.NodeLayout)
			}
		}
		if err != nil || ok != (unsat == nil) || ok && !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\ngot  %s %+v %v\nwant %v %s", toJSON(t, in), toJSON(t, got), unsat, err, ok, toJSON(t, want))
		}
		if ok {
			yes++
		}
	}
	t.Logf("%d requests, %d solvable", n, yes)
	if yes < n/5 || yes > n*19/20 {
		t.Errorf("%d of %d are solvable: the generator says little", yes, n)
	}
}

func TestExpandEqualsExhaustiveSearch(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(22, 1))
	n, yes := rounds(t, 2000), 0
	for range n {
		c, _ := randomCluster(r, 3)
		p, _, unsat := c.problem(nil, nil, len(c.Nodes)+1)
		if unsat != nil {
			t.Fatal(unsat)
		}
		more := 1 + r.IntN(3)
		want, ok := expandOracle(c.Input, p, bare(c.Nodes), more)
		got, unsat, err := Expand(context.Background(), c, len(c.Nodes)+more)
		if same(t, fmt.Sprint("expand by ", more), c, got, unsat, err, want, ok) {
			yes++
		} else if unsat.Sizes != nil && unsat.Sizes.Min <= len(c.Nodes)+more && len(c.Nodes)+more <= unsat.Sizes.Max {
			t.Fatalf("%s: refused within %v", toJSON(t, c), unsat.Sizes)
		}
	}
	t.Logf("%d clusters, %d solvable", n, yes)
	if yes < n/10 || yes > n*19/20 {
		t.Errorf("%d of %d are solvable: the generator says little", yes, n)
	}
}

func TestShrinkEqualsExhaustiveSearch(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(23, 1))
	n, yes, tried, mended := rounds(t, 3000), 0, 0, 0
	for range n {
		c, _ := randomCluster(r, 7)
		if len(c.Nodes) < 2 {
			continue
		}
		tried++
		optional(r, &c)
		valid := !shrunkBreaks(c.Input, bare(c.Nodes), nil)
		if s := c.services(); r.IntN(4) == 0 {
			service := c.Input.Catalog[s[0]]
			service.Shrink = "refuse"
			c.Input.Catalog[s[0]] = service
		}
		less := 1 + r.IntN(len(c.Nodes)-1)
		gone, ok := shrinkOracle(c.Input, bare(c.Nodes), less)
		var want []loom.NodeLayout
		var ids []string
		for i, node := range bare(c.Nodes) {
			if !slices.Contains(gone, i) {
				want = append(want, node)
			}
		}
		for _, i := range gone {
			ids = append(ids, c.Nodes[i].ID)
		}
		got, unsat, err := Shrink(context.Background(), c, len(c.Nodes)-less)
		if same(t, fmt.Sprint("shrink by ", less), c, got, unsat, err, want, ok) {
			yes++
			if !valid {
				mended++
			}
			if !reflect.DeepEqual(got.Leaving, ids) || len(got.Why) == 0 {
				t.Fatalf("leaving %v, want %v (%v)", got.Leaving, ids, got.Why)
			}
		}
		// Named nodes are checked as they are.
		some := slices.DeleteFunc(slices.Clone(c.Nodes), func(Node) bool { return r.IntN(2) == 0 })
		var named []string
		var at []int
		for _, node := range some {
			named = append(named, node.ID)
			at = append(at, slices.IndexFunc(c.Nodes, func(m Node) bool { return m.ID == node.ID }))
		}
		if len(named) == 0 || len(named) == len(c.Nodes) {
			continue
		}
		_, unsat, err = ShrinkNodes(context.Background(), c, named)
		if err != nil || (unsat == nil) == shrunkBreaks(c.Input, bare(c.Nodes), at) {
			t.Fatalf("take %v of %s: %+v %v", named, toJSON(t, c), unsat, err)
		}
	}
	t.Logf("%d clusters, %d solvable, %d of these invalid before", tried, yes, mended)
	if yes < tried/10 || mended < tried/40 {
		t.Errorf("%d of %d are solvable, %d invalid before: the generator says little", yes, tried, mended)
	}
}

// alterOracle tries every way to put added services on nodes, in no order of
// preference: it knows only whether there is one.
func alterOracle(in Input, nodes []loom.NodeLayout, add []string) bool {
	if len(add) == 0 {
		return !breaks(in, nodes)
	}
	for mask := 1; mask < 1<<len(nodes); mask++ {
		next := slices.Clone(nodes)
		for i := range next {
			if mask&(1<<i) != 0 {
				next[i].Services = append(slices.Clone(next[i].Services), add[0])
			}
		}
		if alterOracle(in, next, add[1:]) {
			return true
		}
	}
	return false
}

func TestRemoveAndReplaceServices(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(24, 1))
	n, yes, emptied := rounds(t, 3000), 0, 0
	for range n {
		c, add := randomCluster(r, 4)
		present := c.services()
		remove := present[:1+r.IntN(len(present))]
		if r.IntN(2) == 0 {
			add = nil
		}
		left := bare(c.Nodes)
		empty := false
		for i := range left {
			left[i].Services = slices.DeleteFunc(left[i].Services, func(s string) bool { return slices.Contains(remove, s) })
			empty = empty || len(left[i].Services) == 0
		}
		want := alterOracle(c.Input, left, add)
		got, unsat, err := Alter(context.Background(), c, add, remove)
		if err != nil || want != (unsat == nil) {
			t.Fatalf("add %v, remove %v of %s\ngot %s %+v %v, want %v", add, remove, toJSON(t, c), toJSON(t, got.Nodes), unsat, err, want)
		}
		if unsat == nil {
			yes++
			if breaks(c.Input, bare(got.Nodes)) {
				t.Fatalf("add %v, remove %v of %s breaks rules: %s", add, remove, toJSON(t, c), toJSON(t, got.Nodes))
			}
		} else if add == nil && empty {
			emptied++
			if unsat.Code != CodeEmptyNode {
				t.Fatalf("remove %v of %s: %+v", remove, toJSON(t, c), unsat)
			}
		}
	}
	t.Logf("%d clusters, %d solvable, %d with empty nodes", n, yes, emptied)
	if yes < n/10 || emptied < n/20 {
		t.Errorf("%d solvable, %d with empty nodes of %d: the generator says little", yes, emptied, n)
	}
}

// checkNodesMinimal checks that the reasons of a "no" for existing nodes clash by
// themselves, and do not without any one of them.
func TestReasonsForNodesAreMinimal(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(25, 1))
	found := 0
	for range rounds(t, 1500) {
		c, add := randomCluster(r, 4)
		if breaks(c.Input, bare(c.Nodes)) || len(add) == 0 {
			continue
		}
		_, unsat, err := Add(context.Background(), c, add)
		if err != nil {
			t.Fatal(err)
		}
		if unsat == nil {
			continue
		}
		found++
		p, nodes, _ := c.problem(add, nil, len(c.Nodes))
		p, _ = columns(p, nodes)
		var keep []rule
		w := words{p: p}
		for _, rule := range rules(p) {
			if slices.ContainsFunc(unsat.Reasons, func(r loom.Reason) bool { return r.ID == w.reason(rule).ID }) {
				keep = append(keep, rule)
			}
		}
		if len(keep) != len(unsat.Reasons) {
			t.Fatalf("reasons %+v are not all rules of %s", unsat.Reasons, toJSON(t, p))
		}
		some := func(keep []rule) bool { return alterOracle(ruled(c.Input, p.restrictTo(keep)), bare(c.Nodes), add) }
		if some(keep) {
			t.Fatalf("add %v to %s\nreasons %+v alone have a layout", add, toJSON(t, c), unsat.Reasons)
		}
		for i := range keep {
			if !some(slices.Delete(slices.Clone(keep), i, i+1)) {
				t.Fatalf("add %v to %s\nreason %d of %+v is not needed", add, toJSON(t, c), i, unsat.Reasons)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d refusals", found)
	}
}

// ruled is an input whose template has the rules of a problem and no others.
func ruled(in Input, p Problem) Input {
	t := loom.Template{Preferences: in.Template.Preferences}
	t.Compatibility = loom.Compatibility{HardwareTypes: p.OnlyHardware, ImageTypes: p.OnlyImages}
	t.Constraints.Services = map[string]loom.ServiceConstraint{}
	for _, s := range p.Services {
		low, high := s.Min, s.Max
		t.Constraints.Services[s.Name] = loom.ServiceConstraint{HardwareTypes: s.HardwareTypes, ImageTypes: s.ImageTypes, Quantities: &loom.Quantities{Min: &low, Max: &high}}
	}
	for _, set := range p.Must {
		t.Constraints.Layout.MustCoexist = append(t.Constraints.Layout.MustCoexist, set.Services)
	}
	for _, set := range p.Cant {
		t.Constraints.Layout.CantCoexist = append(t.Constraints.Layout.CantCoexist, set.Services)
	}
	in.Template = t
	return in
}
