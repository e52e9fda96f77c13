package planner

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"loom/app/loom"
	"loom/app/testkit/golden"
)

// randomRest leaves something to do on some of the nodes that stay as they are.
func randomRest(r *rand.Rand, change Change) RemainingActions {
	rest := RemainingActions{}
	e := newExpected(change)
	for _, id := range e.ids() {
		repaired, resized := e.replaced(id)
		before, after := e.node(change.Before, id), e.node(change.After, id)
		if before == nil || after == nil || repaired || resized || len(e.upgraded(id)) > 0 || r.IntN(2) == 0 {
			continue
		}
		rest[id] = map[string][]loom.TaskAction{}
		if r.IntN(3) == 0 {
			rest[id][""] = []loom.TaskAction{loom.ActionReboot, loom.ActionBootstrap, loom.ActionConfirm}[r.IntN(3):]
		}
		for _, name := range after.Services {
			if slices.Contains(before.Services, name) && r.IntN(2) == 0 {
				rest[id][name] = remainingSteps[r.IntN(len(remainingSteps)):]
			}
		}
	}
	return rest
}

// TestRepairFinishesTheRest: what earlier operations left open on machines that stay is
// done with what is new, in the order of the services.
func TestRepairFinishesTheRest(t *testing.T) {
	t.Parallel()
	list := machines("small", "db", "web", "web", "lb")
	repaired := slices.Clone(list)
	repaired[0].Incarnation = 2
	change := Change{
		Action: loom.ClusterRepair, Before: State{Nodes: list, Services: shop()}, After: State{Nodes: repaired, Services: shop()},
		Remaining: RemainingActions{
			list[1].ID: {"web": {loom.ActionStart}},
			list[2].ID: {"": {loom.ActionBootstrap}, "web": {loom.ActionInstall, loom.ActionConfigure, loom.ActionStart}},
		},
	}
	plan, err := MakeChange(change)
	if err != nil {
		t.Fatal(err)
	}
	checkShape(t, plan)
	golden.File(t, "testdata/change_rest.txt", Text(plan))
	for _, wrong := range []RemainingActions{
		{"nobody": {}},
		{list[0].ID: {"db": {loom.ActionStart}}},
		{list[1].ID: {"lb": {loom.ActionStart}}},
		{list[1].ID: {"ghost": {loom.ActionStart}}},
		{list[1].ID: {"web": {loom.ActionRemove}}},
		{list[1].ID: {"": {loom.ActionCreate}}},
	} {
		change.Remaining = wrong
		if _, err := MakeChange(change); !errors.Is(err, loom.Invalid) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

// randomRepair repairs some nodes of a cluster in one of the ways that keep their machines.
func randomRepair(r *rand.Rand) Change {
	change := randomChange(r)
	change.After, change.Remaining = change.Before, RemainingActions{}
	change.Action = repairActions[r.IntN(len(repairActions))]
	own, steps := []loom.TaskAction(nil), []loom.TaskAction{loom.ActionStop, loom.ActionStart}
	switch change.Action {
	case loom.RepairConfigure:
		own, steps = []loom.TaskAction{loom.ActionBootstrap}, restartSteps
	case loom.RepairReboot:
		own, steps = []loom.TaskAction{loom.ActionReboot, loom.ActionConfirm}, startSteps
	}
	for _, n := range change.Before.Nodes {
		if r.IntN(3) == 0 {
			continue
		}
		change.Remaining[n.ID] = map[string][]loom.TaskAction{"": own}
		for _, name := range n.Services {
			if change.Action == loom.RepairReboot || r.IntN(3) > 0 {
				change.Remaining[n.ID][name] = steps
			}
		}
	}
	return change
}

// TestRepairsKeepMachines: what repairs machines that stay never deletes or creates one, and
// does nothing on nodes and services that it does not name; rolling it back does not either.
func TestRepairsKeepMachines(t *testing.T) {
	t.Parallel()
	for seed := range backCases(t) {
		r := newRand(seed, 41)
		change := randomRepair(r)
		plan := must(t, change)
		checkShape(t, plan)
		w := newWorld(change.Before)
		w.early, w.adopts = true, true
		op, err := w.execute(plan, change.After, change.Before.Services, r.IntN(len(plan.Tasks)+1), r)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, Text(plan))
		}
		undo, err := PlanRollback(RollbackInput{Plan: plan, Begun: op.Begun, Done: op.Done, HasMachine: w.unsure(t, r), Before: change.Before, After: change.After})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, Text(plan))
		}
		for _, p := range []loom.Plan{plan, undo} {
			for _, task := range p.Tasks {
				if task.Action == loom.ActionCreate || task.Action == loom.ActionDelete {
					t.Fatalf("seed %d: %s replaces machines\n%s\n%s", seed, plan.Action, Text(plan), Text(undo))
				}
			}
		}
		for _, task := range plan.Tasks {
			if !slices.Contains(change.Remaining[task.Node][task.Service], task.Action) {
				t.Fatalf("seed %d: nobody asks for task %d\n%s", seed, task.Number, Text(plan))
			}
		}
	}
}
