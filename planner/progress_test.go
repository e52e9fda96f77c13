package planner

import (
	"slices"
	"testing"

	"loom/app/loom"
)

// TestProgressOf: tasks that were taken back are to be done again, also those of the
// operation that was retried, which join the plan.
func TestProgressOf(t *testing.T) {
	t.Parallel()
	task := func(number int, service string, action loom.TaskAction, undo bool) loom.PlanTask {
		return loom.PlanTask{Number: number, Node: "n1", Service: service, Action: action, Undo: undo}
	}
	state := func(status loom.TaskStatus, attempt int) loom.Task {
		return loom.Task{Status: status, Attempt: attempt}
	}
	first := loom.StoredPlan{
		Plan: loom.Plan{Action: loom.AddServices, Tasks: []loom.PlanTask{task(1, "web", loom.ActionInstall, false), task(2, "web", loom.ActionStart, false)},
			Gates: []loom.Gate{{}}, Edges: []loom.Edge{{From: 1, To: 2}, {From: 2, To: 3}}},
		States: map[int]loom.Task{1: state(loom.TaskComplete, 1), 2: state(loom.TaskFailed, 3)},
	}
	retry := loom.StoredPlan{
		Plan: loom.Plan{Action: loom.AddServices, Tasks: []loom.PlanTask{task(1, "web", loom.ActionStart, false), task(2, "web", loom.ActionRemove, true)},
			Gates: []loom.Gate{{}, {}}, Edges: []loom.Edge{{From: 1, To: 3}, {From: 2, To: 4}}},
		States: map[int]loom.Task{1: state(loom.TaskDropped, 0), 2: state(loom.TaskComplete, 1)},
	}
	for _, test := range []struct {
		name        string
		plans       []loom.StoredPlan
		actions     []loom.TaskAction
		begun, done []bool
	}{
		{"none", nil, nil, nil, nil},
		{"one", []loom.StoredPlan{first}, []loom.TaskAction{loom.ActionInstall, loom.ActionStart}, []bool{true, true}, []bool{true, false}},
		{"retried", []loom.StoredPlan{{Plan: retry.Plan, States: map[int]loom.Task{}}, first}, []loom.TaskAction{loom.ActionStart}, []bool{true}, []bool{false}},
		{"taken back", []loom.StoredPlan{retry, first}, []loom.TaskAction{loom.ActionStart, loom.ActionInstall}, []bool{false, false}, []bool{false, false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			course := ProgressOf(test.plans)
			var actions []loom.TaskAction
			var begun, done []bool
			for i, task := range course.Plan.Tasks {
				if task.Number != i+1 || task.Undo {
					t.Errorf("task %d is %+v", i+1, task)
				}
				actions, begun, done = append(actions, task.Action), append(begun, course.Begun(i+1)), append(done, course.Done(i+1))
			}
			if !slices.Equal(actions, test.actions) || !slices.Equal(begun, test.begun) || !slices.Equal(done, test.done) {
				t.Errorf("%v, begun %v, done %v", actions, begun, done)
			}
			for _, e := range course.Plan.Edges {
				if e.From < 1 || e.From >= e.To || e.To > course.Plan.EndVertex() {
					t.Errorf("edge %v of %d vertices", e, course.Plan.EndVertex())
				}
			}
		})
	}
}

func TestWhileUndone(t *testing.T) {
	t.Parallel()
	version := func(n int) loom.Service { return loom.Service{Base: loom.Base{Version: n}} }
	before := loom.Snapshot{Services: map[string]loom.Service{"web": version(1)}, Config: map[string]any{"a": 1}}
	after := loom.Snapshot{Services: map[string]loom.Service{"web": version(2), "lb": version(1)}}
	got := WhileUndone(before, after)
	if len(got.Services) != 2 || got.Services["web"].Version != 1 || got.Config["a"] != 1 || len(before.Services) != 1 {
		t.Errorf("%+v, before it %+v", got, before)
	}
}
