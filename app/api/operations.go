package api

import (
	"math"
	"net/http"
	"strconv"

	"loom/app/api/wire"
	"loom/app/loom"
	"loom/planner"
)

// operationRef reads the cluster and the operation of a path.
func operationRef(r *http.Request) (loom.OperationRef, error) {
	id, err := clusterID(r)
	if err != nil {
		return loom.OperationRef{}, err
	}
	n, ok := numberIn(r, "n")
	if !ok {
		return loom.OperationRef{}, loom.NewError(loom.NotFound, "Cluster %s has no operation “%.40s”.", id, r.PathValue("n"))
	}
	return loom.OperationRef{Cluster: id, Number: n}, nil
}

// numberIn reads a running number from the path; ok is false for anything that
// none can be.
func numberIn(r *http.Request, name string) (n int, ok bool) {
	value, err := strconv.ParseInt(r.PathValue(name), 10, 32)
	return int(value), err == nil && value > 0
}

// taskRef reads the task of a path.
func taskRef(r *http.Request) (loom.TaskRef, error) {
	ref, err := operationRef(r)
	if err != nil {
		return loom.TaskRef{}, err
	}
	t, ok := numberIn(r, "t")
	if !ok {
		return loom.TaskRef{}, loom.NewError(loom.NotFound, "Operation %s has no task “%.40s”.", ref, r.PathValue("t"))
	}
	return loom.TaskRef{Operation: ref, Number: t}, nil
}

func (a *api) showOperation(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := operationRef(r)
	if err != nil {
		return err
	}
	op, err := a.Clusters.Operation(r.Context(), actor, ref)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewOperation(op))
}

// dependencies gives what each task of a plan waits for, by its number.
func dependencies(plan loom.Plan) map[int]planner.TaskDependencies {
	waits := make(map[int]planner.TaskDependencies, len(plan.Tasks))
	for i, on := range planner.Dependencies(plan) {
		waits[plan.Tasks[i].Number] = on
	}
	return waits
}

func behind(gates []planner.GateDependency) []wire.Behind {
	out := make([]wire.Behind, len(gates))
	for i, g := range gates {
		out[i] = wire.Behind{Service: g.Service, Action: g.Action, Count: g.Count}
	}
	return out
}

func (a *api) showTask(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := taskRef(r)
	if err != nil {
		return err
	}
	v, err := a.Clusters.Task(r.Context(), actor, ref)
	if err != nil {
		return err
	}
	task := wire.NewTask(v.Task, v.DependsOn, behind(v.Behind))
	task.Attempts = wire.NewAttempts(v.Attempts)
	return answer(w, r, task)
}

// listPlans gives the plans of all operations, newest first.
func (a *api) listPlans(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	operations, err := a.Clusters.Operations(r.Context(), actor, id)
	if err != nil {
		return err
	}
	if len(operations) == 0 {
		return loom.NewError(loom.NotFound, "Cluster %s has no plan.", id)
	}
	// Only the plans of the page are read: each is a graph of its own.
	page, err := readPage(r, false)
	if err != nil {
		return err
	}
	part, next, prev, err := cutPage(operations, page, filterOf(r), []order[loom.Operation]{
		{"-number", func(o loom.Operation) string { return byNumber(o.Ref.Number) }},
	})
	if err != nil {
		return err
	}
	linkPages(w, r, next, prev)
	plans := make([]wire.Plan, len(part))
	for i, op := range part {
		plan, tasks, err := a.Clusters.PlanOf(r.Context(), actor, op.Ref)
		if err != nil {
			return err
		}
		plans[i] = wire.NewPlan(op.Ref, plan, tasks)
	}
	return answer(w, r, plans)
}

func (a *api) showPlan(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	if _, err := a.Clusters.Actions(r.Context(), actor, id); err != nil {
		return err // before anything is said about the plan's id
	}
	ref, ok := loom.ParseOperationRef(r.PathValue("planId"))
	switch {
	case !ok:
		return loom.NewError(loom.Invalid, "The id of a plan has the form “%s-001”.", id)
	case ref.Cluster != id:
		return loom.NewError(loom.Invalid, "The plan %s belongs to another cluster.", ref)
	case ref.Number > math.MaxInt32:
		return loom.NewError(loom.NotFound, "Cluster %s has no operation %d.", id, ref.Number)
	}
	plan, tasks, err := a.Clusters.PlanOf(r.Context(), actor, ref)
	if err != nil {
		return err
	}
	return answer(w, r, wire.NewPlan(ref, plan, tasks))
}
