package clusters

import (
	"context"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

// TaskGroup counts the tasks of an operation that have the same stage, action,
// service and status.
type TaskGroup = store.TaskGroup

// NodeCourse sums up what an operation does on a node.
type NodeCourse = store.NodeCourse

// NodeName names a node that an operation is about.
type NodeName = store.NodeName

// TaskGroups counts the tasks of an operation by what they do and how they stand: a
// short list for a plan of any size. NotFound.
func (u *Clusters) TaskGroups(ctx context.Context, actor loom.Actor, ref loom.OperationRef) ([]TaskGroup, error) {
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return nil, err
	}
	return groupsOf(ctx, u.kept, actor.Tenant, ref)
}

// TaskStatuses reads how the tasks of an operation stand, their numbers by status: far
// less than the tasks. NotFound.
func (u *Clusters) TaskStatuses(ctx context.Context, actor loom.Actor, ref loom.OperationRef) (map[loom.TaskStatus][]int64, error) {
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return nil, err
	}
	return store.TaskStatuses(ctx, u.kept, actor.Tenant, ref)
}

// NodeCourses sums the tasks of an operation up by node, by number. NotFound.
func (u *Clusters) NodeCourses(ctx context.Context, actor loom.Actor, ref loom.OperationRef) ([]NodeCourse, error) {
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return nil, err
	}
	return store.NodeCourses(ctx, u.db, actor.Tenant, ref)
}

// OperationNodes names the nodes that an operation is about, by number: far less work
// than to sum their tasks up. NotFound.
func (u *Clusters) OperationNodes(ctx context.Context, actor loom.Actor, ref loom.OperationRef) ([]NodeName, error) {
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return nil, err
	}
	return store.OperationNodes(ctx, u.kept, actor.Tenant, ref)
}

// TasksOn lists the tasks of an operation on the named nodes, by number. NotFound
// for the operation; a node that it does not touch has none.
func (u *Clusters) TasksOn(ctx context.Context, actor loom.Actor, ref loom.OperationRef, nodes []loom.NodeID) ([]loom.Task, error) {
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return nil, err
	}
	return store.TasksOnNodes(ctx, u.db, actor.Tenant, ref, nodes)
}

// TasksNumbered lists the tasks of an operation with these numbers, by number; what
// does not exist is left out. NotFound for the operation.
func (u *Clusters) TasksNumbered(ctx context.Context, actor loom.Actor, ref loom.OperationRef, numbers []int) ([]loom.Task, error) {
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return nil, err
	}
	return store.TasksNumbered(ctx, u.kept, actor.Tenant, ref, numbers)
}

// Typical is how long the tasks of a tenant usually take on machines of a type of
// provider, and by how many workers.
type Typical struct {
	workers  int
	byKind   map[store.TaskKind]time.Duration
	byAction map[loom.TaskAction]time.Duration
}

// Typical reads how long tasks took before. It looks at many of them: callers keep the
// answer for a while.
func (u *Clusters) Typical(ctx context.Context, actor loom.Actor, providerType string) (Typical, error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return Typical{}, err
	}
	tenant, err := store.Tenant(ctx, u.db, actor.Tenant)
	if err != nil {
		return Typical{}, err
	}
	t := Typical{workers: tenant.Workers}
	t.byKind, t.byAction, err = store.TypicalDurations(ctx, u.db, actor.Tenant, providerType)
	return t, err
}

func (t *Typical) of(g *TaskGroup) (time.Duration, bool) {
	if d, ok := t.byKind[store.TaskKind{Service: g.Service, Action: g.Action}]; ok {
		return d, true
	}
	d, ok := t.byAction[g.Action]
	return d, ok
}

// Remaining estimates how long an operation of these groups still takes: stage after
// stage its slowest task that is left, or all that is left divided by the workers,
// whichever is longer. pause is how long the last of the tasks that are tried again
// still waits for that: what is behind it cannot begin before. False where nothing of
// the kind ran before.
func (t *Typical) Remaining(groups []TaskGroup, now time.Time, pause time.Duration) (time.Duration, bool) {
	if t.workers < 1 {
		return 0, false
	}
	return remaining(groups, t.workers, now, pause, t.of)
}

// remaining is the sum over stages of the slowest task that is left, or the work that
// is left divided by the workers. A task that takes longer than usual counts as nearly
// done.
func remaining(groups []TaskGroup, workers int, now time.Time, pause time.Duration, typical func(g *TaskGroup) (time.Duration, bool)) (time.Duration, bool) {
	known := false
	var work, path, stage time.Duration
	level := 0
	for i := range groups {
		g := &groups[i]
		switch g.Status {
		case loom.TaskBlocked, loom.TaskReady, loom.TaskRunning:
		default:
			continue
		}
		d, ok := typical(g)
		known = known || ok
		if g.Status == loom.TaskRunning && !g.Started.IsZero() {
			d = max(0, d-now.Sub(g.Started))
		}
		work += d * time.Duration(g.Count)
		if g.Level != level {
			path, stage, level = path+stage, 0, g.Level
		}
		stage = max(stage, d)
	}
	return max(max(pause, 0)+path+stage, work/time.Duration(workers)), known
}
