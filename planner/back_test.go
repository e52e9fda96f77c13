package planner

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit/golden"
)

// textOld is Text with the tasks that carry out the definition before.
func textOld(plan loom.Plan) string {
	var old []string
	for _, task := range plan.Tasks {
		if task.Old {
			old = append(old, fmt.Sprint(task.Number))
		}
	}
	return Text(plan) + "old: " + strings.Join(old, ", ") + "\n"
}

// until makes tasks done that come in the order of numbers before the first of an
// action on a node, and lets that one begin.
func until(t *testing.T, plan loom.Plan, node loom.NodeID, action loom.TaskAction) (begun, done func(int) bool) {
	t.Helper()
	i := slices.IndexFunc(plan.Tasks, func(task loom.PlanTask) bool { return task.Node == node && task.Action == action })
	if i < 0 {
		t.Fatalf("there is no %s on node %s\n%s", action, node, Text(plan))
	}
	return func(n int) bool { return n <= i+1 }, func(n int) bool { return n <= i }
}

func TestBackGolden(t *testing.T) {
	t.Parallel()
	list := machines("small", "db", "web", "web", "lb", "lb", "lb")
	resized := slices.Clone(list)
	resized[1], resized[2] = machines("large", "db", "web", "web")[1], machines("large", "db", "web", "web")[2]
	repaired := slices.Clone(list)
	repaired[1].Incarnation = 2
	fewer := slices.Clone(list)
	fewer[2].Services = nil
	state := func(nodes []loom.Node, change ...func(*loom.Service)) State {
		return State{Nodes: nodes, Services: shop(change...)}
	}
	tests := []struct {
		name   string
		change Change
		// The operation ends when this action begins on this node; "" ends it whole.
		node   loom.NodeID
		action loom.TaskAction
	}{
		{"shrink_stop", Change{Before: state(list), After: state(at(list, 0, 1, 3, 4, 5))}, "n3", loom.ActionStop},
		{"shrink_delete", Change{Before: state(list), After: state(at(list, 0, 1, 3, 4, 5))}, "n3", loom.ActionDelete},
		{"shrink", Change{Before: state(list), After: state(at(list, 0, 1, 3, 4, 5))}, "", ""},
		{"remove_stop", Change{Before: state(list), After: state(fewer)}, "n3", loom.ActionStop},
		{"remove_remove", Change{Before: state(list), After: state(fewer)}, "n3", loom.ActionRemove},
		{"add_start", Change{Before: state(fewer), After: state(list)}, "n3", loom.ActionStart},
		{"upgrade_stop", Change{Before: state(list), After: state(list, version(2))}, "n2", loom.ActionStop},
		{"upgrade_install", Change{Before: state(list), After: state(list, version(2))}, "n3", loom.ActionInstall},
		{"upgrade", Change{Before: state(list), After: state(list, version(2))}, "", ""},
		{"resize_create", Change{Before: state(list), After: state(resized)}, "n3", loom.ActionCreate},
		{"resize", Change{Before: state(list), After: state(resized)}, "", ""},
		{"repair_create", Change{Before: state(list), After: state(repaired)}, "n2", loom.ActionCreate},
		{"repair", Change{Before: state(list), After: state(repaired)}, "", ""},
		{"rollback_install", Change{Before: state(list, version(2)), After: state(at(resized, 0, 1, 3, 4, 5))}, "n2", loom.ActionInstall},
		{"nothing", Change{Before: state(list), After: state(resized)}, "n2", loom.ActionDelete},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			plan, err := MakeChange(test.change)
			if err != nil {
				t.Fatal(err)
			}
			all := func(int) bool { return true }
			begun, done := all, all
			if test.node != "" {
				begun, done = until(t, plan, test.node, test.action)
			}
			if test.name == "nothing" {
				begun = done // it was about to begin
			}
			back, err := PlanRollback(RollbackInput{Plan: plan, Begun: begun, Done: done, Before: test.change.Before, After: test.change.After})
			if err != nil {
				t.Fatal(err)
			}
			checkShape(t, back)
			golden.File(t, filepath.Join("testdata", "back_"+test.name+".txt"), textOld(back))
		})
	}
}

// TestBackOfRuntime: what starts and stops changes no layout; a config is taken back by
// configuring and restarting everything.
func TestBackOfRuntime(t *testing.T) {
	t.Parallel()
	list := machines("small", "db", "web", "lb")
	all := func(int) bool { return true }
	before := State{Nodes: list, Services: shop(), Config: map[string]any{"threads": 4}}
	after := before
	after.Config = map[string]any{"threads": 8}
	for _, action := range []loom.ClusterAction{loom.StartServices, loom.StopServices, loom.RestartServices, loom.ClusterConfigure, loom.ClusterConfigureWithRestart} {
		plan, err := Make(action, list, shop(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		same, err := PlanRollback(RollbackInput{Plan: plan, Done: all, Before: before, After: before})
		if err != nil || len(same.Tasks) > 0 {
			t.Errorf("%s without another config gives %v\n%s", action, err, Text(same))
		}
		back, err := PlanRollback(RollbackInput{Plan: plan, Done: all, Before: before, After: after})
		if err != nil {
			t.Fatal(err)
		}
		want, err := Make(loom.ClusterConfigureWithRestart, list, shop(), Scope{})
		if err != nil {
			t.Fatal(err)
		}
		got, rules := closure(len(back.Tasks), taskEdges(back)), closure(len(want.Tasks), taskEdges(want))
		if !reflect.DeepEqual(back.Tasks, want.Tasks) || !reflect.DeepEqual(got, rules) {
			t.Errorf("%s with another config gives\n%s\nwant\n%s", action, Text(back), Text(want))
		}
		untouched, err := PlanRollback(RollbackInput{Plan: plan, Before: before, After: after})
		if err != nil || len(untouched.Tasks) > 0 {
			t.Errorf("%s that did not begin gives %v\n%s", action, err, Text(untouched))
		}
	}
}

func TestBackRefuses(t *testing.T) {
	t.Parallel()
	list := machines("small", "db", "web", "web", "web")
	state := State{Nodes: list, Services: shop()}
	next := State{Nodes: list, Services: shop(version(2))}
	plan, err := MakeChange(Change{Before: state, After: next})
	if err != nil {
		t.Fatal(err)
	}
	all := func(int) bool { return true }
	keeps := shop()
	db := keeps["db"]
	db.Shrink = "refuse"
	keeps["db"] = db
	renumbered := slices.Clone(list)
	renumbered[1].Number = 1010
	three := 3
	for _, test := range []struct {
		name string
		in   RollbackInput
		says string
	}{
		{"minimum", RollbackInput{Plan: plan, Done: all, Before: state, After: next, MinHealthy: &three}, "at least 3"},
		{"batch", RollbackInput{Plan: plan, Done: all, Before: state, After: next, Batch: -1}, "-1"},
		{"unknown node", RollbackInput{Plan: plan, Done: all, Before: State{Nodes: list[2:], Services: shop()}, After: State{Nodes: list[2:], Services: shop(version(2))}}, "n2"},
		{"unknown service", RollbackInput{Plan: plan, Done: all, Before: State{Nodes: machines("small", "db", "db", "db", "db"), Services: shop()},
			After: State{Nodes: machines("small", "db", "db", "db", "db"), Services: shop()}}, "“web”"},
		{"undefined", RollbackInput{Plan: plan, Done: all, Before: State{Nodes: list}, After: next}, "does not define"},
		{"shrink", RollbackInput{Plan: plan, Done: all, Before: State{Nodes: list, Services: keeps}, After: State{Nodes: list, Services: keeps},
			To: State{Nodes: list[1:], Services: keeps}}, "shrink: refuse"},
		{"number", RollbackInput{Plan: plan, Done: all, Before: state, After: next, To: State{Nodes: renumbered, Services: shop()}}, "1010"},
	} {
		if _, err := PlanRollback(test.in); !errors.Is(err, loom.Invalid) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, which should say %q", test.name, err, test.says)
		}
	}
	// An undo is not kept back by a minimum that the operation had.
	if _, err := PlanRollback(RollbackInput{Plan: plan, Done: all, Before: state, After: next, Batch: 10}); err != nil {
		t.Errorf("all at a time: %v", err)
	}
}

// TestBackElsewhere goes to layouts that are neither before nor after the operation.
func TestBackElsewhere(t *testing.T) {
	t.Parallel()
	list := machines("small", "db", "web", "web", "lb")
	state := func(nodes []loom.Node, change ...func(*loom.Service)) State {
		return State{Nodes: nodes, Services: shop(change...)}
	}
	change := Change{Before: state(list, version(2)), After: state(at(list, 0, 1, 3), version(2))}
	plan, err := MakeChange(change)
	if err != nil {
		t.Fatal(err)
	}
	begun, done := until(t, plan, "n3", loom.ActionStop)
	for name, to := range map[string]State{
		"earlier": state(list), "empty": {Nodes: []loom.Node{}}, "onward": change.After, "other": state(at(list, 0, 2), version(2)),
	} {
		back, err := PlanRollback(RollbackInput{Plan: plan, Begun: begun, Done: done, Before: change.Before, After: change.After, To: to})
		if err != nil {
			t.Fatal(err)
		}
		checkShape(t, back)
		golden.File(t, filepath.Join("testdata", "back_to_"+name+".txt"), textOld(back))
	}
}

// TestChangesMarkOld: what stops or removes a definition that is not there after the
// change is marked, and nothing else.
func TestChangesMarkOld(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		change := randomChange(newRand(seed, 9))
		plan, err := MakeChange(change)
		if err != nil {
			t.Fatal(err)
		}
		after := map[string]bool{}
		for _, n := range change.After.Nodes {
			for _, name := range n.Services {
				after[name] = true
			}
		}
		for _, task := range plan.Tasks {
			takes := task.Action == loom.ActionStop || task.Action == loom.ActionDrain || task.Action == loom.ActionRemove
			differs := !after[task.Service] || change.Before.Services[task.Service].Version != change.After.Services[task.Service].Version
			if want := takes && differs; task.Old != want || task.Undo {
				t.Fatalf("seed %d: task %d is old: %v, want %v\n%s", seed, task.Number, task.Old, want, Text(plan))
			}
		}
	}
}
