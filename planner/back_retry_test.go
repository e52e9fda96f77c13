package planner

import (
	"cmp"
	"slices"
	"testing"

	"loom/app/loom"
)

// TestBackOfRetry takes back operations that failed and whose retry failed as well: the
// plan and the layouts are those of the first, and what either did counts.
func TestBackOfRetry(t *testing.T) {
	t.Parallel()
	for seed := range backCases(t) / 2 {
		r := newRand(seed, 11)
		change, plan := randomOperation(t, r)
		if len(change.After.Nodes) == 0 {
			continue // what of a cluster is gone is not undone
		}
		w := newWorld(change.Before)
		w.early, w.adopts = true, true
		first, err := w.execute(plan, change.After, change.Before.Services, r.IntN(len(plan.Tasks)+1), r)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		retry, err := PlanRetry(plan, first.Done)
		if err != nil {
			t.Fatal(err)
		}
		second, err := w.execute(retry, change.After, change.Before.Services, r.IntN(len(retry.Tasks)+2), r)
		if err != nil {
			t.Fatalf("seed %d: again: %v\n%s\n%s", seed, err, Text(plan), Text(retry))
		}
		number := retried(plan, first.Done, retry)
		if len(number) != len(retry.Tasks) {
			t.Fatalf("seed %d: %d of %d tasks are found again", seed, len(number), len(retry.Tasks))
		}
		begun := func(n int) bool { return first.Begun(n) || number[n] > 0 && second.Begun(number[n]) }
		done := func(n int) bool { return first.Done(n) || number[n] > 0 && second.Done(number[n]) }
		w.early, w.adopts = false, false
		in := RollbackInput{Plan: plan, Begun: begun, Done: done, HasMachine: w.has(r), Before: change.Before, After: change.After}
		back, err := PlanRollback(in)
		if err != nil {
			t.Fatal(err)
		}
		checkShape(t, back)
		if _, err := w.execute(back, change.Before, in.Definitions(), len(back.Tasks), r); err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s\n%s", seed, err, Text(plan), Text(retry), Text(back))
		}
		if diff := w.differs(change.Before, change.Before.Services, change.After.Services); diff != "" {
			t.Fatalf("seed %d: %s\n%s\n%s\n%s", seed, diff, Text(plan), Text(retry), Text(back))
		}
		for _, task := range back.Tasks {
			if task.Action == loom.ActionDelete && node(change.Before, task.Node) != nil && !slices.ContainsFunc(plan.Tasks, func(of loom.PlanTask) bool {
				return of.Node == task.Node && of.Action == loom.ActionDelete && begun(of.Number)
			}) {
				t.Fatalf("seed %d: a machine from before is deleted\n%s\n%s\n%s", seed, Text(plan), Text(retry), Text(back))
			}
		}
	}
}

// retried finds, for each task of a plan that was not settled, the number that it has
// in the plan that Again made of it.
func retried(plan loom.Plan, settled func(number int) bool, again loom.Plan) map[int]int {
	type kind struct {
		node    loom.NodeID
		service string
		action  loom.TaskAction
		undo    bool
	}
	// What a node has to do twice stays in its order, and levels rise with that.
	list := func(plan loom.Plan, left func(int) bool) map[kind][]loom.PlanTask {
		all := map[kind][]loom.PlanTask{}
		for _, t := range plan.Tasks {
			if left(t.Number) {
				key := kind{t.Node, t.Service, t.Action, t.Undo}
				all[key] = append(all[key], t)
			}
		}
		for _, tasks := range all {
			slices.SortStableFunc(tasks, func(a, b loom.PlanTask) int { return cmp.Compare(a.Level, b.Level) })
		}
		return all
	}
	now := list(again, func(int) bool { return true })
	number := map[int]int{}
	for key, tasks := range list(plan, func(n int) bool { return !settled(n) }) {
		for i, t := range tasks {
			if i < len(now[key]) {
				number[t.Number] = now[key][i].Number
			}
		}
	}
	return number
}
