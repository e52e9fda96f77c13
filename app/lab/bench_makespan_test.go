package lab

import (
	"testing"

	"loom/app/loom"
)

// TestSimulation checks the counted clock: nothing is faster than a bound, one worker
// takes as long as all work, and a plan of one chain as long as its path.
func TestSimulation(t *testing.T) {
	t.Parallel()
	const rounding = 1 + 1e-9
	for _, kind := range makespanKinds {
		plan, err := kind.plan(30)
		if err != nil {
			t.Fatal(err)
		}
		for _, workers := range []int{1, 3, 30} {
			s := newSimulation(plan, workers)
			bound, is := s.bound()
			ours, staged := s.run(), s.runStaged()
			if within := s.behind(); within < bound || ours*rounding < within || staged*rounding < bound {
				t.Errorf("%s, %d workers: %.1f by the rule and %.1f in stages, with bounds of %.1f (%s) and %.1f", kind.name, workers, ours, staged, bound, is, within)
			}
			if workers == 1 && ours > bound*rounding {
				t.Errorf("%s with one worker takes %.1f, all work is %.1f", kind.name, ours, bound)
			}
			if workers == 30 && ours > 1.05*bound {
				t.Errorf("%s with a worker for each node takes %.1f, with a bound of %.1f (%s)", kind.name, ours, bound, is)
			}
		}
	}
	chain := loom.Plan{Tasks: []loom.PlanTask{{Number: 1, Node: "a", NodeNumber: 1000, Action: loom.ActionCreate, Level: 1, Rank: 2}, {Number: 2, Node: "b", NodeNumber: 1001, Action: loom.ActionCreate, Level: 2, Rank: 1}},
		Gates: []loom.Gate{{}}, Edges: []loom.Edge{{From: 1, To: 2}, {From: 2, To: 3}}}
	s := newSimulation(chain, 2)
	if path := s.took[1] + s.took[2]; s.run() != path || s.runStaged() != path {
		t.Errorf("a chain of %.1f takes %.1f, in stages %.1f", path, s.run(), s.runStaged())
	}
}
