package web

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/planner/draw"
)

const (
	// planFor is for how long a plan is kept, keptTasks how many tasks of all kept plans.
	planFor   = time.Minute
	keptTasks = 40_000
)

// plans keeps plans of large operations that are looked at: a plan does not change
// but by getting more tasks, while a page of it is fetched each second. How the tasks
// stand is read each time. The zero value is ready.
type plans struct {
	mu   sync.Mutex
	kept map[planKey]keptPlan
}

// planKey names a plan as long as no tasks are added to it.
type planKey struct {
	operation loom.OperationID
	tasks     int
}

type keptPlan struct {
	plan  loom.Plan
	tasks map[int]loom.Task
	read  time.Time
}

// of gives the plan of an operation that the actor has just read, and its tasks with
// their present statuses. Of a kept plan the rest of a task may be as old as the plan.
func (ps *plans) of(ctx context.Context, clusters *lifecycle.Clusters, actor loom.Actor, op loom.Operation, now time.Time) (loom.Plan, map[int]loom.Task, error) {
	key := planKey{op.Row, op.Progress().Total}
	if key.tasks <= draw.GroupAbove {
		return clusters.PlanOf(ctx, actor, op.Ref)
	}
	ps.mu.Lock()
	k, there := ps.kept[key]
	ps.mu.Unlock()
	if !there || now.Sub(k.read) > planFor {
		var err error
		if k.plan, k.tasks, err = clusters.PlanOf(ctx, actor, op.Ref); err != nil {
			return k.plan, k.tasks, err
		}
		k.read = now
		ps.keep(key, k)
		return k.plan, k.tasks, nil
	}
	statuses, err := clusters.TaskStatuses(ctx, actor, op.Ref)
	tasks := maps.Clone(k.tasks)
	for number, status := range statuses {
		t := tasks[number]
		t.Status = status
		tasks[number] = t
	}
	return k.plan, tasks, err
}

// keep stores a plan, in place of the oldest while there are too many.
func (ps *plans) keep(key planKey, k keptPlan) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.kept == nil {
		ps.kept = map[planKey]keptPlan{}
	}
	ps.kept[key] = k
	byAge := slices.SortedFunc(maps.Keys(ps.kept), func(a, b planKey) int { return ps.kept[b].read.Compare(ps.kept[a].read) })
	sum := 0
	for _, at := range byAge {
		if sum += at.tasks; sum > keptTasks || k.read.Sub(ps.kept[at].read) > planFor {
			delete(ps.kept, at)
		}
	}
}
