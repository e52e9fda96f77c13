package planner

import (
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"loom/app/loom"
)

// backCases is how many random operations are taken back; LOOM_BACK_CASES sets another
// number for a long run by hand.
func backCases(t *testing.T) uint64 {
	t.Helper()
	if text := os.Getenv("LOOM_BACK_CASES"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 4000
}

// randomOperation is a change with its plan, of a whole cluster now and then.
func randomOperation(t *testing.T, r *rand.Rand) (Change, loom.Plan) {
	t.Helper()
	change := randomChange(r)
	switch r.IntN(8) {
	case 0:
		change.Before.Nodes = nil
	case 1:
		change.After.Nodes = nil
	}
	for _, state := range []*State{&change.Before, &change.After} {
		state.Services = maps.Clone(state.Services)
		for name, s := range state.Services {
			renew(&s)
			state.Services[name] = s
		}
	}
	plan, err := MakeChange(change)
	if err != nil {
		t.Fatal(err)
	}
	return change, plan
}

// TestBack stops random changes of random clusters anywhere and takes them back: then
// everything is as it was, what was not touched has seen no task, and no machine from
// before is lost unless the change had begun to delete it.
func TestBack(t *testing.T) {
	t.Parallel()
	tasks := 0
	for seed := range backCases(t) {
		tasks += checkBack(t, seed)
	}
	if tasks == 0 {
		t.Error("nothing was taken back")
	}
}

// FuzzBack takes back random operations.
func FuzzBack(f *testing.F) {
	f.Add(uint64(1 << 42))
	f.Fuzz(func(t *testing.T, seed uint64) { checkBack(t, seed) })
}

func checkBack(t *testing.T, seed uint64) int {
	t.Helper()
	r := newRand(seed, 8)
	change, plan := randomOperation(t, r)
	w := newWorld(change.Before)
	first := maps.Clone(w.machines)
	fail := func(what string, err any, plans ...loom.Plan) {
		t.Helper()
		t.Errorf("seed %d: %s: %v\n%s", seed, what, err, Text(plan))
		for _, p := range plans {
			t.Errorf("%s", Text(p))
		}
		t.FailNow()
	}
	w.early = true
	op, err := w.execute(plan, change.After, change.Before.Services, r.IntN(len(plan.Tasks)+3), r)
	if err != nil {
		fail("the operation", err)
	}
	in := RollbackInput{Plan: plan, Begun: op.Begun, Done: op.Done, HasMachine: w.unsure(t, r), Before: change.Before, After: change.After, Batch: r.IntN(3)}
	if r.IntN(2) == 0 {
		in.To = change.Before
		in.To.Nodes = slices.Concat([]loom.Node{}, in.To.Nodes)
	}
	w.early = false
	undo, err := PlanRollback(in)
	if err != nil {
		fail("back", err)
	}
	checkShape(t, undo)
	checkUntouched(t, seed, change, op, undo)
	limit := math.MaxInt
	if r.IntN(2) == 0 {
		limit = r.IntN(len(undo.Tasks) + 2)
	}
	plans := []loom.Plan{undo}
	// a rollback that does not get to its end is taken up by another, and again.
	for range 3 {
		done, err := w.execute(undo, change.Before, in.Definitions(), limit, r)
		if err != nil {
			fail("taking back", err, plans...)
		}
		if !slices.Contains(done.done[1:], false) {
			break
		}
		in = RollbackInput{Plan: undo, Begun: done.Begun, Done: done.Done, HasMachine: w.has(r), Before: change.After, After: change.Before, To: change.Before, Batch: r.IntN(3)}
		if in.To.Nodes == nil {
			in.To.Nodes = []loom.Node{}
		}
		if undo, err = PlanRollback(in); err != nil {
			fail("back again", err, plans...)
		}
		checkShape(t, undo)
		plans = append(plans, undo)
		if limit = r.IntN(len(undo.Tasks) + 2); r.IntN(2) == 0 || len(plans) == 3 {
			limit = math.MaxInt
		}
	}
	if diff := w.differs(change.Before, change.Before.Services, change.After.Services); diff != "" {
		fail("it is not as before", diff, plans...)
	}
	for _, n := range change.Before.Nodes {
		gone := slices.ContainsFunc(plan.Tasks, func(task loom.PlanTask) bool {
			return task.Node == n.ID && task.Action == loom.ActionDelete && op.begun[task.Number]
		})
		if !gone && w.machines[n.ID].serial != first[n.ID].serial {
			fail("a machine from before was lost", n.ID, plans...)
		}
	}
	return len(undo.Tasks)
}

// checkUntouched: a service or machine that the operation did not touch gets no task, but
// for followers of a machine that is another one in the end.
func checkUntouched(t *testing.T, seed uint64, change Change, op *execution, undo loom.Plan) {
	t.Helper()
	touched, machines, made := map[string]bool{}, map[loom.NodeID]bool{}, false
	for _, task := range op.plan.Tasks {
		if op.begun[task.Number] {
			touched[string(task.Node)+"/"+task.Service] = true
			machines[task.Node] = machines[task.Node] || task.Action == loom.ActionCreate || task.Action == loom.ActionDelete
			made = made || task.Action == loom.ActionCreate || task.Action == loom.ActionDelete
		}
	}
	for _, task := range undo.Tasks {
		if node(change.Before, task.Node) == nil || machines[task.Node] {
			continue // it is not from before, or not any more
		}
		place := string(task.Node) + "/" + task.Service
		if touched[place] || task.Service == "" && task.Action == loom.ActionBootstrap {
			continue
		}
		if d := change.Before.Services[task.Service]; made && task.Action == loom.ActionConfigure && len(d.Follows) > 0 {
			continue
		}
		t.Fatalf("seed %d: task %d is on %s, which was not touched\n%s\n%s", seed, task.Number, place, Text(op.plan), Text(undo))
	}
}
