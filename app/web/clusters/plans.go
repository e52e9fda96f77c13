package clusters

import (
	"context"
	"slices"
	"time"

	"loom/app/cache"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/planner/draw"
	"loom/views/ui"
)

const (
	// planFor is for how long a plan is kept, keptTasks how many tasks of all kept plans.
	planFor   = time.Minute
	keptTasks = 40_000
)

// plans keeps plans of large operations that are looked at: a plan does not change
// but by getting more tasks, while a page of it is fetched each second. How the tasks
// stand is read each time.
type plans struct {
	cache.Cache[planKey, keptPlan]
}

// planKey names a plan as long as no tasks are added to it.
type planKey struct {
	operation loom.OperationID
	tasks     int
}

type keptPlan struct {
	plan  loom.Plan
	tasks planTasks
}

// planTasks are the tasks of a plan by number, with their present statuses. The tasks
// are shared by all who look at the plan: copying thousands for each takes longer than
// to draw them.
type planTasks struct {
	tasks    []loom.Task // number 1 first
	statuses []loom.TaskStatus
	again    map[int]bool // those that failed and are tried again
}

func newPlanTasks(plan loom.Plan, tasks map[int]loom.Task) planTasks {
	pt := planTasks{make([]loom.Task, len(plan.Tasks)), make([]loom.TaskStatus, len(plan.Tasks)), map[int]bool{}}
	for i := range plan.Tasks {
		t := tasks[plan.Tasks[i].Number]
		if pt.tasks[i], pt.statuses[i] = t, t.Status; t.Again {
			pt.again[i+1] = true
		}
	}
	return pt
}

// standing are the same tasks with other statuses, of which some are tried again.
func (pt planTasks) standing(statuses map[loom.TaskStatus][]int64, tries []clusters.NextTry) planTasks {
	now := planTasks{pt.tasks, slices.Clone(pt.statuses), map[int]bool{}}
	for status, numbers := range statuses {
		for _, n := range numbers {
			if n > 0 && n <= int64(len(now.statuses)) {
				now.statuses[n-1] = status
			}
		}
	}
	for _, try := range tries {
		now.again[try.Number] = true
	}
	return now
}

// state shows how the task of a number stands.
func (pt planTasks) state(number int) ui.State {
	return ui.TaskStateOf(&loom.Task{Status: pt.status(number), Again: pt.again[number]})
}

// status is that of the task of a number, which the plan has.
func (pt planTasks) status(number int) loom.TaskStatus { return pt.statuses[number-1] }

// task gives the task of a number, which the plan has; its status is that of when the
// plan was read.
func (pt planTasks) task(number int) *loom.Task { return &pt.tasks[number-1] }

// now gives a task with its present status.
func (pt planTasks) now(number int) loom.Task {
	t := pt.tasks[number-1]
	t.Status, t.Again = pt.statuses[number-1], pt.again[number]
	return t
}

// all gives copies of the tasks with their present statuses, by number.
func (pt planTasks) all() []loom.Task {
	all := make([]loom.Task, len(pt.tasks))
	for i := range all {
		all[i] = pt.now(i + 1)
	}
	return all
}

// of gives the plan of an operation that the actor has just read, and its tasks with
// their present statuses. Of a kept plan the rest of a task may be as old as the plan.
func (ps *plans) of(ctx context.Context, clusters *clusters.Clusters, actor loom.Actor, op loom.Operation, now func() time.Time) (loom.Plan, planTasks, error) {
	key := planKey{op.Row, op.Progress().Total}
	if key.tasks <= draw.GroupAbove {
		plan, tasks, err := clusters.PlanOf(ctx, actor, op.Ref)
		return plan, newPlanTasks(plan, tasks), err
	}
	k, err := ps.Get(ctx, key, now, func(ctx context.Context) (keptPlan, error) {
		plan, tasks, err := clusters.PlanOf(ctx, actor, op.Ref)
		return keptPlan{plan, newPlanTasks(plan, tasks)}, err
	})
	if err != nil {
		return k.plan, k.tasks, err
	}
	// How they stand now; who waited for the reading of another may know of more.
	statuses, err := clusters.TaskStatuses(ctx, actor, op.Ref)
	if err != nil {
		return k.plan, k.tasks, err
	}
	tries, err := nextTries(ctx, clusters, actor, op)
	return k.plan, k.tasks.standing(statuses, tries), err
}
