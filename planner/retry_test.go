package planner

import (
	"slices"
	"testing"

	"loom/app/loom"
)

// anew returns a plan as it is stored after the machine of a node was recreated, times
// over: DELETE and CREATE before a task of the node, which waits for the last of them.
// Their numbers come behind all others, and only the new tasks have edges.
func anew(t *testing.T, plan loom.Plan, before int, actions ...loom.TaskAction) loom.Plan {
	t.Helper()
	n, more := len(plan.Tasks), len(actions)
	next := plan
	next.Tasks, next.Edges = slices.Clone(plan.Tasks), nil
	for _, e := range plan.Edges {
		if e.From > n {
			e.From += more
		}
		if e.To > n {
			e.To += more
		}
		next.Edges = append(next.Edges, e)
	}
	held := plan.Tasks[before-1]
	for i, action := range actions {
		next.Tasks = append(next.Tasks, loom.PlanTask{Number: n + 1 + i, Node: held.Node, NodeNumber: held.NodeNumber, Action: action, Level: held.Level, Rank: held.Rank + more - i})
		to := before
		if i+1 < more {
			to = n + 2 + i
		}
		next.Edges = append(next.Edges, loom.Edge{From: n + 1 + i, To: to})
	}
	slices.SortFunc(next.Edges, func(a, b loom.Edge) int { return slices.Compare([]int{a.From, a.To}, []int{b.From, b.To}) })
	return next
}

// chainOf lists the tasks of a node in a plan that leaves no choice of their order.
func chainOf(t *testing.T, plan loom.Plan, id loom.NodeID) []loom.TaskAction {
	t.Helper()
	var chain []loom.TaskAction
	level := 0
	for _, task := range plan.Tasks {
		if task.Node == id {
			if task.Level <= level {
				t.Fatalf("task %d has no order\n%s", task.Number, Text(plan))
			}
			level = task.Level
			chain = append(chain, task.Action)
		}
	}
	return chain
}

// TestAgainWithMachinesMadeAnew retries creates that failed when a machine was being
// made for the second or third time.
func TestAgainWithMachinesMadeAnew(t *testing.T) {
	t.Parallel()
	list := machines("small", "db")
	create, err := Make(loom.ClusterCreate, list, shop(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	const c, f, b, i, g, s, d = loom.ActionCreate, loom.ActionConfirm, loom.ActionBootstrap, loom.ActionInstall, loom.ActionConfigure, loom.ActionStart, loom.ActionDelete
	confirm := slices.IndexFunc(create.Tasks, func(task loom.PlanTask) bool { return task.Action == f }) + 1
	last := len(create.Tasks)
	once := anew(t, create, confirm, d, c)
	twice := anew(t, once, confirm, d, c)
	half := anew(t, create, 1, d)
	for _, test := range []struct {
		name    string
		plan    loom.Plan
		settled []int
		want    []loom.TaskAction
	}{
		{"the second DELETE failed", once, []int{1}, []loom.TaskAction{d, c, f, b, i, g, s}},
		{"the second CREATE failed", once, []int{1, last + 1}, []loom.TaskAction{c, f, b, i, g, s}},
		{"CONFIRM failed at last", once, []int{1, last + 1, last + 2}, []loom.TaskAction{f, b, i, g, s}},
		{"the third CREATE failed", twice, []int{1, last + 1, last + 2, last + 3}, []loom.TaskAction{c, f, b, i, g, s}},
		{"a half-made machine could not be deleted", half, nil, []loom.TaskAction{d, c, f, b, i, g, s}},
		{"a half-made machine was deleted, CREATE failed", half, []int{last + 1}, []loom.TaskAction{c, f, b, i, g, s}},
		{"CREATE failed and left a machine", create, nil, []loom.TaskAction{c, f, b, i, g, s}},
		{"INSTALL was skipped", create, []int{1, 2, 3, 4}, []loom.TaskAction{g, s}},
		{"all is settled", once, []int{1, 2, 3, 4, 5, 6, last + 1, last + 2}, nil},
	} {
		again, err := PlanRetry(test.plan, func(number int) bool { return slices.Contains(test.settled, number) })
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		checkShape(t, again)
		if got := chainOf(t, again, "n1"); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v is left, want %v", test.name, got, test.want)
		}
	}
	// A half-made machine: the retry first looks for one with the node's key, and a
	// failure is followed by DELETE before the next try.
	if d := Decide(DecideInput{Action: c, Result: loom.TaskResult{Status: 1}, HasMachine: true, Made: true}); d.Verdict != Recreate || !slices.Equal(d.First, []loom.TaskAction{loom.ActionDelete}) {
		t.Errorf("a CREATE that failed again gives %+v", d)
	}
}

// TestAgainKeepsOrderAcross: what others wait for is still waited for when the machine
// of one node was recreated.
func TestAgainKeepsOrderAcross(t *testing.T) {
	t.Parallel()
	create, err := Make(loom.ClusterCreate, machines("small", "db", "web"), shop(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	confirm := slices.IndexFunc(create.Tasks, func(task loom.PlanTask) bool { return task.Node == "n1" && task.Action == loom.ActionConfirm }) + 1
	plan := anew(t, create, confirm, loom.ActionDelete, loom.ActionCreate)
	again, err := PlanRetry(plan, func(number int) bool {
		return number <= len(create.Tasks) && create.Tasks[number-1].Level <= 2 && number != confirm
	})
	if err != nil {
		t.Fatal(err)
	}
	checkShape(t, again)
	after := closure(len(again.Tasks), taskEdges(again))
	for _, first := range again.Tasks {
		for _, then := range again.Tasks {
			waits := first.Node == "n1" && first.Service == "" && first.Action != loom.ActionBootstrap && then.Service != ""
			if waits && !after[first.Number].has(then.Number) {
				t.Errorf("%s %s of node %d does not wait for %s\n%s", then.Action, then.Service, then.NodeNumber, first.Action, Text(again))
			}
		}
	}
}

// TestAgainOfAnUndo: Again carries the marks of tasks that undo over.
func TestAgainOfAnUndo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		change := randomChange(newRand(seed, 10))
		plan, err := MakeChange(change)
		if err != nil {
			t.Fatal(err)
		}
		undo, err := PlanRollback(RollbackInput{Plan: plan, Done: func(int) bool { return true }, Before: change.Before, After: change.After})
		if err != nil {
			t.Fatal(err)
		}
		for i := range undo.Tasks {
			undo.Tasks[i].Undo = true
		}
		again, err := PlanRetry(undo, func(int) bool { return false })
		if err != nil || !slices.Equal(again.Tasks, undo.Tasks) {
			t.Fatalf("seed %d: the tasks are not the same again (%v)", seed, err)
		}
	}
}
