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
			rest[id][""] = []loom.TaskAction{loom.ActionBootstrap, loom.ActionConfirm}[r.IntN(2):]
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
