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
	return store.TasksByOperation(ctx, u.q, actor.Tenant, ref, store.TaskFilter{
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
	if v.Task, err = store.TaskByRef(ctx, u.q, actor.Tenant, ref); err != nil {
		if isNotFound(err) {
			return v, noTask(ref)
		}
		return v, err
	}
	near, err := store.NeighboursOfTask(ctx, u.q, actor.Tenant, v.Row)
	if err != nil {
		return v, err
	}
	v.DependsOn, v.Behind, v.Next = near.DependsOn, []planner.GateDependency{}, near.Next
	for _, g := range near.Behind {
		v.Behind = append(v.Behind, planner.GateDependency(g))
	}
	if v.Ready, err = store.TaskReady(ctx, u.q, actor.Tenant, v.Row); err != nil {
		return v, err
	}
	v.Attempts, err = store.AttemptsByTask(ctx, u.q, actor.Tenant, v.Row)
	return v, err
}

func noTask(ref loom.TaskRef) error {
	return loom.NewError(loom.NotFound, "Operation %s has no task %d.", ref.Operation, ref.Number)
}

// TaskListInput asks for a page of tasks, sorted by number or -number; empty fields
// do not filter.
type TaskListInput struct {
	loom.Page
	Statuses []loom.TaskStatus
	// Again adds, to those of the statuses, those that failed and are tried again.
	Again    bool
	Node     loom.NodeID
	Services []string
	Actions  []loom.TaskAction
	// Level is that of a stage, 0 for all.
	Level int
}

// TaskPage lists tasks of an operation with what they wait for; it reads no more of
// the plan than the page. Attempts and Next are left out. Invalid for a wrong sort,
// limit, filter or cursor.
func (u *Clusters) TaskPage(ctx context.Context, actor loom.Actor, ref loom.OperationRef, in TaskListInput) (ListPage[TaskView], error) {
	var none ListPage[TaskView]
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return none, err
	}
	errs := append(unknown("status", in.Statuses, loom.TaskStatuses), unknown("action", in.Actions, loom.TaskActions)...)
	errs = append(errs, checkStorable("service", anyList(in.Services))...)
	errs = append(errs, checkStorable("node", string(in.Node))...)
	if err := loom.InvalidFields(errs); err != nil {
		return none, err
	}
	filter := store.TaskListFilter{Statuses: in.Statuses, Again: in.Again, Node: in.Node, Services: in.Services, Actions: in.Actions, Level: in.Level}
	return pageByNumber(in.Page, fmt.Sprint(ref, filter), []string{"number", "-number"}, func(t TaskView) int { return t.Ref.Number },
		func(r store.NumberRange) ([]TaskView, error) {
			tasks, err := store.TasksInRange(ctx, u.q, actor.Tenant, ref, filter, r)
			views := make([]TaskView, len(tasks))
			for i, t := range tasks {
				views[i] = TaskView{Task: t.Task, DependsOn: t.DependsOn, Behind: make([]planner.GateDependency, len(t.Behind))}
				for j, g := range t.Behind {
					views[i].Behind[j] = planner.GateDependency(g)
				}
			}
			return views, err
		})
}

// TaskGroup counts the tasks of an operation that have the same stage, action,
// service and status.
type TaskGroup = store.TaskGroup

// NodeProgress sums up what an operation does on a node.
type NodeProgress = store.NodeCourse

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

// NodeProgress sums the tasks of an operation up by node, by number. NotFound.
func (u *Clusters) NodeProgress(ctx context.Context, actor loom.Actor, ref loom.OperationRef) ([]NodeProgress, error) {
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return nil, err
	}
	return store.NodeCourses(ctx, u.q, actor.Tenant, ref)
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
	return store.TasksOnNodes(ctx, u.q, actor.Tenant, ref, nodes)
}

// AttemptsOn lists when the tasks of an operation on the named nodes were tried, by number
// of the task, the oldest try first. NotFound for the operation.
func (u *Clusters) AttemptsOn(ctx context.Context, actor loom.Actor, ref loom.OperationRef, nodes []loom.NodeID) (map[int][]loom.Attempt, error) {
	if err := u.seeOperation(ctx, actor, ref); err != nil {
		return nil, err
	}
	return store.AttemptsOnNodes(ctx, u.q, actor.Tenant, ref, nodes)
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
	tenant, err := store.Tenant(ctx, u.q, actor.Tenant)
	if err != nil {
		return Typical{}, err
	}
	t := Typical{workers: tenant.Workers}
	t.byKind, t.byAction, err = store.TypicalDurations(ctx, u.q, actor.Tenant, providerType)
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
// whichever is longer. late says that a task runs much longer than such tasks did, so that
// nobody knows; known is false where nothing of the kind ran before.
func (t *Typical) Remaining(groups []TaskGroup, now time.Time) (d time.Duration, known, late bool) {
	if t.workers < 1 {
		return 0, false, false
	}
	return remaining(groups, t.workers, now, t.of)
}

// latePause is how much longer than twice the usual time a task takes before it is late.
const latePause = 2 * time.Second

// remaining is the sum over stages of the slowest task that is left, or the work that
// is left divided by the workers.
func remaining(groups []TaskGroup, workers int, now time.Time, typical func(g *TaskGroup) (time.Duration, bool)) (left time.Duration, known, late bool) {
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
			runs := now.Sub(g.Started)
			late = late || ok && runs > 2*d+latePause
			d = max(0, d-runs)
		}
		work += d * time.Duration(g.Count)
		if g.Level != level {
			path, stage, level = path+stage, 0, g.Level
		}
		stage = max(stage, d)
	}
	return max(path+stage, work/time.Duration(workers)), known, late
}
