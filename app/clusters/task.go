package clusters

import (
	"context"
	"fmt"
	"slices"
	"time"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// Operations lists the operations of a cluster, newest first.
func (u *Clusters) Operations(ctx context.Context, actor loom.Actor, id loom.ClusterID) ([]loom.Operation, error) {
	if err := u.see(ctx, actor, id); err != nil {
		return nil, err
	}
	return store.OperationsByCluster(ctx, u.db, actor.Tenant, id)
}

// Operation reads one operation with its task counts.
func (u *Clusters) Operation(ctx context.Context, actor loom.Actor, ref loom.OperationRef) (loom.Operation, error) {
	if err := u.see(ctx, actor, ref.Cluster); err != nil {
		return loom.Operation{}, err
	}
	op, err := operationOf(ctx, u.kept, actor.Tenant, ref)
	if isNotFound(err) {
		return op, loom.NewError(loom.NotFound, "Cluster %s has no operation %d.", ref.Cluster, ref.Number)
	}
	if err != nil {
		return op, err
	}
	return op, u.wait(ctx, actor.Tenant, &op)
}

// LatestOperations reads the newest operations of listed clusters that the actor may
// see, by cluster, in one query, with the counts of their tasks where counted says so; why
// one waits is left out.
func (u *Clusters) LatestOperations(ctx context.Context, actor loom.Actor, clusters []loom.ClusterSummary, counted bool) (map[loom.ClusterID]loom.Operation, error) {
	if err := actor.May(loom.See, actor.Mine()); err != nil {
		return nil, err
	}
	out := map[loom.ClusterID]loom.Operation{}
	var ids []loom.ClusterID
	for _, c := range clusters {
		if actor.May(loom.See, loom.OwnedBy(c.Owner)) == nil {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) == 0 {
		return out, nil
	}
	operations, err := store.LatestOperations(ctx, u.kept, actor.Tenant, ids, counted)
	for _, op := range operations {
		out[op.Ref.Cluster] = op
	}
	return out, err
}

// seeOperation checks that the actor may read an operation, without counting its
// tasks as Operation does.
func (u *Clusters) seeOperation(ctx context.Context, actor loom.Actor, ref loom.OperationRef) error {
	if err := u.see(ctx, actor, ref.Cluster); err != nil {
		return err
	}
	_, err := u.operationStatus(ctx, actor, ref)
	return err
}

func (u *Clusters) operationStatus(ctx context.Context, actor loom.Actor, ref loom.OperationRef) (loom.OperationStatus, error) {
	status, err := once(ctx, statusRead{actor.Tenant, ref}, func() (loom.OperationStatus, error) {
		return store.OperationStatus(ctx, u.kept, actor.Tenant, ref)
	})
	if isNotFound(err) {
		return "", loom.NewError(loom.NotFound, "Cluster %s has no operation %d.", ref.Cluster, ref.Number)
	}
	return status, err
}

// TaskFilter narrows a list of tasks; empty fields do not filter.
type TaskFilter struct {
	Statuses []loom.TaskStatus
	Node     loom.NodeID
	Service  string
	Action   loom.TaskAction
}

// Tasks lists the tasks of an operation by number. Invalid for a status or
// action that does not exist.
func (u *Clusters) Tasks(ctx context.Context, actor loom.Actor, ref loom.OperationRef, f TaskFilter) ([]loom.Task, error) {
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return nil, err
	}
	var errs []loom.FieldError
	for _, s := range f.Statuses {
		if !slices.Contains(loom.TaskStatuses, s) {
			errs = append(errs, loom.FieldError{Field: "status", Message: fmt.Sprintf("“%.40s” is no status of a task.", s)})
		}
	}
	if f.Action != "" && !f.Action.Valid() {
		errs = append(errs, loom.FieldError{Field: "action", Message: fmt.Sprintf("“%.40s” is no action of a task.", f.Action)})
	}
	errs = append(errs, checkStorable("service", f.Service)...)
	errs = append(errs, checkStorable("node", string(f.Node))...)
	if err := loom.InvalidFields(errs); err != nil {
		return nil, err
	}
	return store.TasksByOperation(ctx, u.db, actor.Tenant, ref, store.TaskFilter{
		Statuses: f.Statuses, Node: f.Node, Service: f.Service, Action: f.Action,
	})
}

// TaskView is a task with its tries and what it waits for.
type TaskView struct {
	loom.Task
	// Attempts are oldest first.
	Attempts []loom.Attempt
	// DependsOn are numbers of tasks, Behind the gates it waits for.
	DependsOn []int
	Behind    []planner.GateDependency
	// Next are numbers of tasks that wait for this one alone or behind gates of
	// which it is a part.
	Next []int
	// Ready is since when it had nothing to wait for but its node and a worker; zero
	// while it has, and in lists.
	Ready time.Time
}

// Task reads one task.
func (u *Clusters) Task(ctx context.Context, actor loom.Actor, ref loom.TaskRef) (TaskView, error) {
	var v TaskView
	if err := u.seeOperation(ctx, actor, ref.Operation); err != nil {
		return v, err
	}
	var err error
	if v.Task, err = store.TaskByRef(ctx, u.db, actor.Tenant, ref); err != nil {
		if isNotFound(err) {
			return v, noTask(ref)
		}
		return v, err
	}
	near, err := store.NeighboursOfTask(ctx, u.db, actor.Tenant, v.Row)
	if err != nil {
		return v, err
	}
	v.DependsOn, v.Behind, v.Next = near.DependsOn, []planner.GateDependency{}, near.Next
	for _, g := range near.Behind {
		v.Behind = append(v.Behind, planner.GateDependency(g))
	}
	if v.Ready, err = store.TaskReady(ctx, u.db, actor.Tenant, v.Row); err != nil {
		return v, err
	}
	v.Attempts, err = store.AttemptsByTask(ctx, u.db, actor.Tenant, v.Row)
	return v, err
}

func noTask(ref loom.TaskRef) error {
	return loom.NewError(loom.NotFound, "Operation %s has no task %d.", ref.Operation, ref.Number)
}

// PlanOf gives the stored plan of an operation as a graph, and each of its tasks
// by number as it is now.
func (u *Clusters) PlanOf(ctx context.Context, actor loom.Actor, ref loom.OperationRef) (loom.Plan, map[int]loom.Task, error) {
	op, err := u.Operation(ctx, actor, ref)
	if err != nil {
		return loom.Plan{}, nil, err
	}
	return store.PlanByOperation(ctx, u.db, actor.Tenant, op)
}

// LogInput picks lines of a task log. Attempt 0 means the newest. After and
// Before are sequence numbers, both exclusive, 0 for none. Tail takes that many
// of the last lines; else Limit (default 1000, at most 5000) of the first after
// After, or, with Before alone, of the last before it.
type LogInput struct {
	Attempt       int
	After, Before int
	Limit, Tail   int
}

// Limits of LogInput.
const (
	defaultLogLimit = 1000
	maxLogLimit     = 5000
)

// Log reads lines of a task's log, in order, and says whether there are more in
// the direction that was read: after the last line, or, for Tail and Before, before
// the first. A task that has not begun has no lines.
func (u *Clusters) Log(ctx context.Context, actor loom.Actor, ref loom.TaskRef, in LogInput) ([]loom.LogLine, bool, error) {
	if err := u.see(ctx, actor, ref.Operation.Cluster); err != nil {
		return nil, false, err
	}
	if in.Attempt < 0 || in.After < 0 || in.Before < 0 || in.Limit < 0 || in.Tail < 0 || in.Limit > maxLogLimit || in.Tail > maxLogLimit {
		return nil, false, loom.InvalidFields([]loom.FieldError{{Field: "limit",
			Message: fmt.Sprintf("Numbers of a log are not negative, and at most %d lines are read at once.", maxLogLimit)}})
	}
	task, err := store.TaskByRef(ctx, u.db, actor.Tenant, ref)
	if isNotFound(err) {
		return nil, false, noTask(ref)
	}
	if err != nil {
		return nil, false, err
	}
	r := store.LogRange{Attempt: in.Attempt, After: in.After, Before: in.Before, Limit: in.Limit}
	if r.Attempt == 0 {
		r.Attempt = task.Attempt
	}
	if r.Limit == 0 {
		r.Limit = defaultLogLimit
	}
	if in.Tail > 0 {
		r.Limit, r.Newest = in.Tail, true
	} else if in.Before > 0 && in.After == 0 {
		r.Newest = true
	}
	return store.LogLines(ctx, u.db, actor.Tenant, task, r)
}
