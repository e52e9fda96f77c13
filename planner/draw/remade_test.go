package draw

import (
	"math/rand/v2"
	"slices"
	"testing"

	"loom/app/loom"
)

// remade is a plan whose confirms on some nodes failed: before them come tasks that
// delete the machine and create it again, with the level of the confirm.
func remade(plan loom.Plan, chosen func(node int) bool) loom.Plan {
	var confirms []loom.PlanTask
	for _, task := range plan.Tasks {
		if task.Action == loom.ActionConfirm && chosen(task.NodeNumber) {
			confirms = append(confirms, task)
		}
	}
	old, added := len(plan.Tasks), 2*len(confirms)
	plan.Tasks, plan.Edges = slices.Clone(plan.Tasks), slices.Clone(plan.Edges)
	for i, e := range plan.Edges {
		if e.From > old {
			plan.Edges[i].From += added
		}
		if e.To > old {
			plan.Edges[i].To += added
		}
	}
	for _, confirm := range confirms {
		for _, action := range []loom.TaskAction{loom.ActionDelete, loom.ActionCreate} {
			task := confirm
			task.Number, task.Action, task.Critical = len(plan.Tasks)+1, action, false
			plan.Tasks = append(plan.Tasks, task)
		}
		n := len(plan.Tasks)
		plan.Edges = append(plan.Edges, loom.Edge{From: n - 1, To: n}, loom.Edge{From: n, To: confirm.Number})
	}
	return plan
}

// Machines that are replaced bring tasks with the level of what waits for them.
func TestDrawMachinesMadeAnew(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		plan := remade(web(t, 1+r.IntN(12)), func(int) bool { return r.IntN(2) == 0 })
		d := Draw(plan, Options{Grouping: Never})
		check(t, plan, d)
		checkOrder(t, plan, d, nil)
		for _, by := range []By{ByAction, ByService, ByNode} {
			d := Draw(plan, Options{Grouping: Always, By: by})
			var drawn []int
			for _, b := range d.Boxes {
				drawn = append(drawn, b.Tasks...)
			}
			slices.Sort(drawn)
			if len(drawn) != len(plan.Tasks) || len(slices.Compact(drawn)) != len(plan.Tasks) {
				t.Errorf("boxes stand for %d of %d tasks", len(drawn), len(plan.Tasks))
			}
			if by == ByAction {
				check(t, plan, d)
			}
		}
	}
}
