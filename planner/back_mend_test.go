package planner

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"loom/app/loom"
)

// mended is a state changed as a retry changes it: with newer versions, without some
// services, with another config.
func mended(r *rand.Rand, s State) State {
	to := State{Nodes: slices.Clone(s.Nodes), Services: maps.Clone(s.Services), Config: s.Config}
	if to.Nodes == nil {
		to.Nodes = []loom.Node{}
	}
	for _, name := range slices.Sorted(maps.Keys(to.Services)) {
		d := to.Services[name]
		switch r.IntN(8) {
		case 0, 1, 2:
			renew(&d)
			to.Services[name] = d
		case 3:
			for i := range to.Nodes {
				n := &to.Nodes[i]
				n.Services = slices.DeleteFunc(slices.Clone(n.Services), func(other string) bool { return other == name })
			}
		}
	}
	if r.IntN(3) == 0 {
		to.Config = map[string]any{"threads": r.IntN(100)}
	}
	return to
}

// failing is an operation of any kind, but for a delete, with the world before it.
func failing(t *testing.T, r *rand.Rand) (Change, loom.Plan, *world) {
	t.Helper()
	if r.IntN(3) > 0 {
		for {
			if change, plan := randomOperation(t, r); len(change.After.Nodes) > 0 {
				return change, plan, newWorld(change.Before)
			}
		}
	}
	if r.IntN(3) == 0 {
		change := randomRepair(r)
		return change, must(t, change), newWorld(change.Before)
	}
	change := randomChange(r)
	change.After = change.Before
	change.Action = runtimeActions[r.IntN(len(runtimeActions))]
	plan, err := Make(change.Action, change.Before.Nodes, change.Before.Services, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(change.Before)
	if change.Action == loom.StartServices {
		for _, m := range w.machines {
			for _, s := range m.services {
				s.running = false
			}
		}
	}
	if change.Action == loom.ClusterConfigureWithRestart {
		change.After.Config = map[string]any{"threads": -1}
	}
	return change, plan, w
}

// TestMend lets operations of all kinds fail anywhere, retries them with other versions,
// another config and fewer services, which may fail as well, and goes on until all is as
// the last retry wants it, or back to before the first.
func TestMend(t *testing.T) {
	t.Parallel()
	ways := map[bool]int{}
	for seed := range backCases(t) {
		ways[checkMend(t, seed)]++
	}
	if ways[true] == 0 || ways[false] == 0 {
		t.Errorf("mended and taken back: %v", ways)
	}
}

// FuzzMend mends random operations.
func FuzzMend(f *testing.F) {
	f.Add(uint64(1 << 43))
	f.Add(uint64(69661)) // what was told half is told again before it is started
	f.Add(uint64(42977)) // what a retry is to stop first still runs when it did not get there
	f.Fuzz(func(t *testing.T, seed uint64) { checkMend(t, seed) })
}

// checkMend reports whether the operation got to its end, else it was taken back.
func checkMend(t *testing.T, seed uint64) bool {
	t.Helper()
	r := newRand(seed, 21)
	change, plan, w := failing(t, r)
	w.early, w.adopts = true, true
	first := maps.Clone(w.machines)
	plans, definitions := []loom.Plan{plan}, []map[string]loom.Service{change.Before.Services, change.After.Services}
	destroyed := map[loom.NodeID]bool{}
	fail := func(what string, err any) {
		t.Helper()
		t.Errorf("seed %d: %s: %v", seed, what, err)
		for _, p := range plans {
			t.Errorf("%s", textOld(p))
		}
		t.FailNow()
	}
	note := func(e *execution) {
		for _, task := range e.plan.Tasks {
			if task.Action == loom.ActionDelete && e.begun[task.Number] {
				destroyed[task.Node] = true
			}
		}
	}
	op, err := w.execute(plan, change.After, change.Before.Services, r.IntN(len(plan.Tasks)+1), r)
	if err != nil {
		fail("the operation", err)
	}
	note(op)
	in := RollbackInput{Plan: plan, Begun: op.Begun, Done: op.Done, Before: change.Before, After: change.After}
	meant, end := false, change.After
	for round := 0; ; round++ {
		in.HasMachine, in.Batch = w.has(r), r.IntN(3)
		back := round > 0 && r.IntN(4) == 0
		if in.Mends, in.To = !back, mended(r, in.After); back {
			in.To = State{Nodes: slices.Concat([]loom.Node{}, change.Before.Nodes), Services: change.Before.Services, Config: change.Before.Config}
		}
		next, err := PlanRollback(in)
		if err != nil {
			fail("mending", err)
		}
		checkShape(t, next)
		plans, definitions = append(plans, next), append(definitions, in.To.Services)
		limit := r.IntN(len(next.Tasks) + 1)
		if whole := back || round == 3 || r.IntN(2) == 0; whole {
			limit = len(next.Tasks)
		}
		done, err := w.execute(next, in.To, in.Definitions(), limit, r)
		if err != nil {
			fail("the retry", err)
		}
		note(done)
		if !slices.Contains(done.done[1:], false) {
			meant, end = !back, in.To
			break
		}
		last := in
		in = RollbackInput{Plan: next, Begun: done.Begun, Done: done.Done, Before: last.After, After: last.To, First: &last}
	}
	// What starts, stops and configures services is no part of a layout to go back to.
	if runtime := slices.Contains(runtimeActions, change.Action); change.Action == loom.StopServices && meant || runtime && !meant {
		for id, m := range w.machines {
			for name, s := range m.services {
				d := end.Services[name]
				if n := node(end, id); n == nil || !slices.Contains(n.Services, name) {
					continue
				}
				if meant && s.running && d.Defines(loom.ActionStop) && plansStop(plan, name) {
					fail("it runs", name)
				}
				if s.running = d.Defines(loom.ActionStart); !meant && s.version == d.Version && d.Defines(loom.ActionConfigure) {
					s.configured, s.knows = d.Version, w.view(end, d)
				}
			}
		}
	}
	if diff := w.differs(end, definitions...); diff != "" {
		fail("it is not as it should be", diff)
	}
	for _, n := range change.Before.Nodes {
		if m := w.machines[n.ID]; !destroyed[n.ID] && node(end, n.ID) != nil && (m == nil || m.serial != first[n.ID].serial) {
			fail("a machine from before was lost", n.ID)
		}
	}
	return meant
}

func plansStop(plan loom.Plan, service string) bool {
	return slices.ContainsFunc(plan.Tasks, func(t loom.PlanTask) bool { return t.Service == service && t.Action == loom.ActionStop })
}
