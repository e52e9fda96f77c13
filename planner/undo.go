package planner

import (
	"maps"
	"slices"

	"loom/app/loom"
)

// Undo is what an operation does that takes back what it did.
type Undo struct {
	// Plan has the tasks; those that are Old carry out services as After has them, the
	// others as they were before the operation.
	Plan loom.Plan
	// After is the layout that the operation was to lead to.
	After loom.Snapshot
}

// MakeUndo plans what takes back the operation of a lineage, and all that it mends. Its layout after is what its cluster has now; hasMachine is as in
// RollbackInput. Errors: Conflict for an operation of which nobody knows what was before it,
// and those of PlanRollback.
func MakeUndo(l *loom.Lineage, hasMachine func(loom.NodeID) bool) (Undo, error) {
	u := Undo{After: l.After}
	in, before := RollbackInputOf(l), l.Goal
	if before == nil {
		if in.Plan.Action != loom.ClusterCreate {
			return u, loom.NewError(loom.Conflict, "An earlier release began it, which did not keep the layout before it.")
		}
		before = &loom.Snapshot{}
	}
	in.HasMachine = hasMachine
	if l.First != nil {
		in.To = State{Nodes: append([]loom.Node{}, before.Nodes...), Services: before.Services, Config: before.Config}
		// What goes was there at different times.
		u.After.Services = maps.Clone(u.After.Services)
		maps.Copy(u.After.Services, in.Definitions())
	}
	var err error
	if u.Plan, err = PlanRollback(in); err != nil {
		return u, err
	}
	for i := range u.Plan.Tasks {
		t := &u.Plan.Tasks[i]
		// The plan counts from where it starts, the operation from where it started.
		_, was := before.Services[t.Service]
		t.Old, t.Undo = was && !t.Old, true
	}
	return u, nil
}

// WhileUndone returns the layout of a cluster while an operation takes back what it did:
// that before it, with the services that only the operation brought, which are stopped
// and removed yet.
func WhileUndone(before, after loom.Snapshot) loom.Snapshot {
	services := make(map[string]loom.Service, len(before.Services))
	maps.Copy(services, after.Services)
	maps.Copy(services, before.Services)
	before.Services = services
	return before
}

// countIncarnations counts up the incarnation of nodes whose machine was to be replaced and was not:
// their records do so only when the old one is deleted.
func countIncarnations(plan loom.Plan, before, after []loom.Node) []loom.Node {
	type step struct {
		node   loom.NodeID
		action loom.TaskAction
	}
	planned := map[step]bool{}
	for _, t := range plan.Tasks {
		planned[step{t.Node, t.Action}] = true
	}
	nodes := slices.Clone(after)
	for i := range nodes {
		n := &nodes[i]
		was := slices.IndexFunc(before, func(b loom.Node) bool { return b.ID == n.ID && b.Incarnation == n.Incarnation })
		if was >= 0 && planned[step{n.ID, loom.ActionDelete}] && planned[step{n.ID, loom.ActionCreate}] {
			n.Incarnation++
		}
	}
	return nodes
}
