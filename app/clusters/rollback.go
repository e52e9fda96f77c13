package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// draftRollback works out the way back to before an operation.
func draftRollback(ctx context.Context, u *Clusters, r request, c *change) error {
	cluster, in := r.cluster, r.in.Change
	if in.Operation < 1 {
		return invalid("operation", "Name the operation to roll back by its number.")
	}
	op, err := u.operationOf(ctx, cluster, in.Operation)
	if err != nil {
		return err
	}
	f := &followUp{Of: in.Operation}
	before, err := u.layoutBefore(ctx, cluster, op)
	if err != nil {
		return err
	}
	c.After.State = planner.StateOf(before)
	if before.Template != nil && !sameJSON(document(cluster.Template), document(*before.Template)) {
		c.Before.Template, c.After.Template = &cluster.Template, before.Template
	}
	if before.Types != nil && !sameJSON(cluster.Types, *before.Types) {
		c.Types = *before.Types
	}
	if err := u.readPresent(ctx, cluster, f, c.After.Nodes...); err != nil {
		return err
	}
	c.Followed = f
	if err := c.policy(in.OnFailure, loom.OnFailureKeep); err != nil {
		return err
	}
	c.Before.Config = cluster.Config
	c.SetsConfig = len(c.After.Nodes) > 0 && !sameJSON(c.Before.Config, c.After.Config)
	if err := u.makePlan(ctx, cluster.Owner.Tenant, c); err != nil {
		return err
	}
	if cluster.Protected && (len(c.removed()) > 0 || deletes(c.plan)) {
		return isProtected()
	}
	if f.Failed == 0 && len(c.plan.Tasks) == 0 && !c.SetsConfig && c.After.Template == nil && len(c.Types.Hardware)+len(c.Types.Image) == 0 && sameLayout(f.Goal, c.After.State) {
		return &loom.Error{Kind: loom.Conflict, Err: errUpToDate, Message: fmt.Sprintf("The cluster is as it was before operation %d; there is nothing to roll back.", in.Operation)}
	}
	return nil
}

// deletes reports whether a plan takes machines away.
func deletes(plan loom.Plan) bool {
	return slices.ContainsFunc(plan.Tasks, func(t loom.PlanTask) bool { return t.Action == loom.ActionDelete })
}

func isProtected() error {
	return loom.NewError(loom.Conflict, "The cluster is protected, and the rollback would delete machines. Unprotect it first.")
}

// layoutBefore is the layout before an operation: no node before the create.
func (u *Clusters) layoutBefore(ctx context.Context, cluster loom.Cluster, op loom.Operation) (loom.Snapshot, error) {
	switch op.Action {
	case loom.ClusterDelete:
		return loom.Snapshot{}, loom.NewError(loom.Conflict, "Operation %d is a delete, which cannot be rolled back: what it took is gone.", op.Ref.Number)
	case loom.ClusterCreate:
		return loom.Snapshot{Nodes: []loom.Node{}, Services: map[string]loom.Service{}, Config: cluster.Config}, nil
	}
	for op.Mends || op.Retries { // they go on with it, and go back to before it
		var err error
		if op, err = u.operationOf(ctx, cluster, op.Concerns); err != nil {
			return loom.Snapshot{}, err
		}
	}
	before, err := store.SnapshotBefore(ctx, u.q, cluster.Owner.Tenant, op.Ref)
	if err != nil {
		return loom.Snapshot{}, err
	}
	if before == nil {
		return loom.Snapshot{}, loom.NewError(loom.Conflict,
			"Operation %d was begun by an earlier release, which did not keep the layout before it; it cannot be rolled back.", op.Ref.Number)
	}
	// Nodes that were on their way out then have no place to come back to.
	nodes := slices.DeleteFunc(slices.Clone(before.Nodes), func(n loom.Node) bool { return n.Leaving })
	if nodes == nil {
		nodes = []loom.Node{}
	}
	before.Nodes, before.Services = nodes, servicesOn(nodes, before.Services)
	return *before, nil
}

// readPresent finds what is there: the newest operation that left things half done,
// what that was to lead to, and the machines; and nodes after the change without a record.
func (u *Clusters) readPresent(ctx context.Context, cluster loom.Cluster, f *followUp, after ...loom.Node) error {
	tenant := cluster.Owner.Tenant
	all, err := store.NodesByCluster(ctx, u.q, tenant, cluster.ID)
	if err != nil {
		return err
	}
	failed, err := u.halfDone(ctx, cluster)
	if err != nil {
		return err
	}
	f.Goal = planner.State{Nodes: []loom.Node{}, Services: cluster.Services, Config: cluster.Config}
	known := make(map[loom.NodeID]bool, len(all))
	for _, n := range all {
		known[n.ID] = true
		if id, _ := n.Results["providerid"].(string); id != "" {
			f.Machines = append(f.Machines, n.ID)
		}
		if !n.Leaving && (failed != nil || n.State != loom.NodeDeleted) {
			n.Results, n.Actions = nil, nil // facts may hold credentials
			f.Goal.Nodes = append(f.Goal.Nodes, n)
		}
	}
	for _, n := range after {
		if !known[n.ID] {
			f.Unrecorded = append(f.Unrecorded, n.ID)
		}
	}
	if failed == nil {
		return nil
	}
	if failed.Action == loom.ClusterDelete {
		return loom.NewError(loom.Conflict, "Operation %d began to delete the cluster; go on with the delete.", failed.Ref.Number)
	}
	f.Failed = failed.Ref.Number
	if failed.Undone {
		goal, err := store.SnapshotAfter(ctx, u.q, tenant, failed.Ref)
		if err != nil || goal == nil {
			return err
		}
		f.Goal = planner.StateOf(*goal)
	}
	return nil
}

// planRollback plans what leads from what is there to where it goes.
func planRollback(ctx context.Context, u *Clusters, c *change, tenant loom.TenantID) (loom.Plan, error) {
	f := c.Followed
	machines := make(map[loom.NodeID]bool, len(f.Machines))
	for _, id := range f.Machines {
		machines[id] = true
	}
	in := planner.RollbackInput{
		Plan: loom.Plan{Action: loom.Rollback, Gates: []loom.Gate{{}}}, Before: f.Goal, After: f.Goal, To: c.After.State, Batch: 1,
		HasMachine: func(id loom.NodeID) bool { return machines[id] },
	}
	if f.Failed > 0 {
		of, err := f.lineage(ctx, u.q, tenant, loom.OperationRef{Cluster: c.Cluster, Number: f.Failed})
		if err != nil {
			return loom.Plan{}, err
		}
		failed := planner.RollbackInputOf(of)
		failed.To, failed.Batch, failed.HasMachine = in.To, in.Batch, in.HasMachine
		in = failed
	}
	plan, err := planner.PlanRollback(in)
	plan.Action = loom.Rollback
	return plan, err
}

// sameLayout reports whether two states have the same nodes, with the same services on
// them in the same versions.
func sameLayout(a, b planner.State) bool {
	return slices.EqualFunc(a.Nodes, b.Nodes, func(x, y loom.Node) bool {
		return x.ID == y.ID && x.HardwareType == y.HardwareType && x.ImageType == y.ImageType && x.Flavor == y.Flavor && x.Image == y.Image && slices.Equal(x.Services, y.Services)
	}) && maps.Equal(versionsOf(servicesOn(a.Nodes, a.Services)), versionsOf(servicesOn(b.Nodes, b.Services)))
}

func summarizeRollback(v *PreviewView) string {
	what := fmt.Sprintf("Goes back to before operation %d", v.Of)
	for _, part := range []struct {
		n    int
		word string
	}{{v.NodesAdded, "adds"}, {v.NodesReplaced, "replaces"}, {v.NodesRemoved, "removes"}} {
		if part.n > 0 {
			what += ", " + part.word + " " + count(part.n, "node")
		}
	}
	return what
}
