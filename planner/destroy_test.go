package planner

import (
	"maps"
	"slices"
	"testing"

	"loom/app/loom"
)

// makers are the operations that make machines: only they may throw one away that they
// made, for a retry of a task.
var makers = []loom.ClusterAction{loom.ClusterCreate, loom.ClusterExpand, loom.ClusterRepair, loom.ClusterResize}

// takers are those whose plans take machines away that were there before.
var takers = []loom.ClusterAction{loom.ClusterDelete, loom.ClusterShrink, loom.ClusterRepair, loom.ClusterResize, loom.Rollback}

// TestNothingDestroysByAccident runs operations of all kinds whose tasks fail in every
// way: a machine from before goes only where the plan says so, and only plans that take
// machines away say so of one; what a retry replaces is what the operation made.
func TestNothingDestroysByAccident(t *testing.T) {
	t.Parallel()
	kinds := map[loom.ClusterAction]int{}
	recreated := map[loom.ClusterAction]int{}
	for seed := range backCases(t) {
		r := newRand(seed, 31)
		change, plan, w := failing(t, r)
		if r.IntN(8) == 0 {
			change.After.Nodes, plan = nil, must(t, Change{Before: change.Before, After: State{Services: change.Before.Services}})
		}
		if r.IntN(8) == 0 {
			change.After = change.Before
			var err error
			if plan, err = Make(loom.ClusterAuthorize, change.Before.Nodes, change.Before.Services, Scope{}); err != nil {
				t.Fatal(err)
			}
			w = newWorld(change.Before)
		}
		kinds[plan.Action]++
		first, planned, made := maps.Clone(w.machines), map[loom.NodeID]bool{}, map[loom.NodeID]bool{}
		for _, task := range plan.Tasks {
			if task.Action == loom.ActionDelete {
				if planned[task.Node] = true; !slices.Contains(takers, plan.Action) {
					t.Fatalf("seed %d: a plan of %s takes a machine away\n%s", seed, plan.Action, Text(plan))
				}
			}
		}
		for _, task := range plan.Tasks {
			var history []loom.AttemptStatus
			for {
				made[task.Node] = made[task.Node] || task.Action == loom.ActionCreate
				result := loom.TaskResult{Status: r.IntN(2), Interrupted: r.IntN(5) == 0}
				if result.Interrupted {
					result.Status = -1
				}
				if task.Action == loom.ActionCreate && r.IntN(2) == 0 {
					result.Result = map[string]any{"providerid": "i-1"}
				}
				d := Decide(DecideInput{Action: task.Action, History: history, Result: result, HasMachine: w.machines[task.Node] != nil, Made: made[task.Node]})
				if d.Verdict == Recreate {
					recreated[plan.Action]++
					if m := w.machines[task.Node]; m != nil && first[task.Node] != nil && m.serial == first[task.Node].serial && !planned[task.Node] {
						t.Fatalf("seed %d: %s of %s destroys a machine from before\n%s", seed, plan.Action, task.Node, Text(plan))
					}
				}
				if d.Verdict != Retry && d.Verdict != Recreate {
					break
				}
				history = append(history, outcomeOf(result))
			}
			if task.Action.OfNode() {
				w.adopts = true
				if err := w.runOnNode(task, change.After, false, r); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		}
		for id, m := range first {
			if now := w.machines[id]; !planned[id] && (now == nil || now.serial != m.serial && plan.Action != loom.Rollback) {
				t.Fatalf("seed %d: %s lost the machine of %s\n%s", seed, plan.Action, id, Text(plan))
			}
		}
	}
	for action, n := range recreated {
		if n > 0 && !slices.Contains(makers, action) && action != loom.Rollback {
			t.Errorf("%s replaces machines", action)
		}
	}
	for _, action := range loom.ClusterActions {
		if kinds[action] == 0 && (action.Steps() != nil || slices.Contains(repairActions, action)) {
			t.Errorf("no %s was tried: %v", action, kinds)
		}
	}
	for _, action := range makers {
		if recreated[action] == 0 {
			t.Errorf("no machine of %s was replaced: %v", action, recreated)
		}
	}
}

func must(t *testing.T, change Change) loom.Plan {
	t.Helper()
	plan, err := MakeChange(change)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestKeysDestroyNothing tries every end of a KEYS and of a REBOOT task with everything else at random,
// and of a CONFIRM where the operation made no machine,
// and plans for clusters of all kinds: there is nothing in them but keys, one task for each
// node that is named.
func TestKeysDestroyNothing(t *testing.T) {
	t.Parallel()
	for seed := range backCases(t) {
		r := newRand(seed, 37)
		in := DecideInput{
			Action: []loom.TaskAction{loom.ActionKeys, loom.ActionReboot, loom.ActionConfirm}[r.IntN(3)], Row: loom.TaskID(r.Uint64() >> 1), HasMachine: r.IntN(2) == 0, Made: r.IntN(2) == 0, MaxAttempts: r.IntN(5),
			Result: loom.TaskResult{Status: r.IntN(300) - 1, Interrupted: r.IntN(4) == 0, Aborted: r.IntN(4) == 0, KeepMachine: r.IntN(2) == 0, RetryAfter: r.IntN(9999)},
		}
		for range r.IntN(4) {
			in.History = append(in.History, []loom.AttemptStatus{loom.AttemptFailed, loom.AttemptInterrupted}[r.IntN(2)])
		}
		if r.IntN(2) == 0 {
			in.Result.Result = map[string]any{"providerid": "i-1"}
		}
		in.Made = in.Made && in.Action != loom.ActionConfirm
		if d := Decide(in); d.Verdict == Recreate || len(d.First) > 0 {
			t.Fatalf("seed %d: %+v leads to %+v", seed, in, d)
		}
		before := randomChange(r).Before
		var named []loom.NodeID
		for _, n := range before.Nodes {
			if r.IntN(2) == 0 {
				named = append(named, n.ID)
			}
		}
		scope := Scope{Nodes: append([]loom.NodeID{}, named...)}
		plan, err := Make(loom.ClusterAuthorize, before.Nodes, before.Services, scope)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range plan.Tasks {
			if task.Action != loom.ActionKeys || task.Service != "" || !slices.Contains(named, task.Node) {
				t.Fatalf("seed %d: the plan is\n%s", seed, Text(plan))
			}
		}
		if len(plan.Tasks) != len(named) || plan.Levels() > 1 {
			t.Fatalf("seed %d: %d nodes were named, and the plan is\n%s", seed, len(named), Text(plan))
		}
	}
}
