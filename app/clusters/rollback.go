package clusters

import (
	"context"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// Rollback leads a cluster at once to the layout, the versions of services and the
// config before an operation, from wherever it is (changes.md 1). Before the create
// there is nothing: rolling that back deletes the cluster. Errors: NotFound; Conflict
// where the state of the cluster does not allow it, for deletes, for operations of
// releases that did not keep the layout, and when nothing would change; Exhausted;
// Invalid with missing provider fields.
func (u *Clusters) Rollback(ctx context.Context, actor loom.Actor, of loom.OperationRef, fields map[string]any) (loom.OperationRef, error) {
	if err := actor.May(loom.Operate, actor.Mine()); err != nil {
		return loom.OperationRef{}, err
	}
	if err := u.seeOperation(ctx, actor, of); err != nil {
		return loom.OperationRef{}, err
	}
	ref, _, err := u.atOnce(ctx, actor, PreviewInput{
		Kind: loom.PreviewRollback, Cluster: of.Cluster, ProviderFields: fields, Change: ChangeInput{Operation: of.Number},
	}, nil)
	return ref, err
}

// draftRollback works out the way back to before an operation.
func (u *Clusters) draftRollback(ctx context.Context, d *liveDraft, cluster loom.Cluster, in ChangeInput) error {
	if in.Operation < 1 {
		return invalid("operation", "Name the operation to roll back by its number.")
	}
	op, err := u.operationOf(ctx, cluster, in.Operation)
	if err != nil {
		return err
	}
	f := &following{Asked: in, Of: in.Operation}
	if f.To, err = u.layoutBefore(ctx, cluster, op); err != nil {
		return err
	}
	if err := u.readPresent(ctx, cluster, f); err != nil {
		return err
	}
	nodes := d.Nodes
	d.Followed = f
	if err := d.policy(in.OnFailure, loom.OnFailureKeep); err != nil {
		return err
	}
	d.Altered = &alteration{Asked: in, Was: planner.State{Nodes: nodes, Services: cluster.Services}, Versions: []store.EntryVersion{}}
	d.Nodes, d.Services = f.To.Nodes, f.To.Services
	if len(f.To.Nodes) > 0 && !sameJSON(cluster.Config, f.To.Config) {
		f.Config, d.Before, d.After = true, cluster.Config, f.To.Config
	}
	if err := f.compute(ctx, u.db, cluster.Owner.Tenant, cluster.ID, loom.PreviewRollback); err != nil {
		return err
	}
	if cluster.Protected && (len(d.leavers()) > 0 || deletes(f.plan)) {
		return isProtected()
	}
	if f.Failed == 0 && len(f.plan.Tasks) == 0 && !f.Config && sameLayout(f.After, f.To) {
		return loom.NewError(loom.Conflict, "The cluster is as it was before operation %d; there is nothing to roll back.", in.Operation)
	}
	return nil
}

// deletes reports whether a plan takes machines away.
func deletes(plan loom.Plan) bool {
	return slices.ContainsFunc(plan.Tasks, func(t loom.PlanTask) bool { return t.Action == loom.ActionDelete })
}

func isProtected() error {
	return loom.NewError(loom.Conflict, "The cluster is protected, and the rollback would delete machines; take the protection off first.")
}

// layoutBefore is the layout before an operation: no node before the create.
func (u *Clusters) layoutBefore(ctx context.Context, cluster loom.Cluster, op loom.Operation) (planner.State, error) {
	switch op.Action {
	case loom.ClusterDelete:
		return planner.State{}, loom.NewError(loom.Conflict, "Operation %d is a delete, which cannot be rolled back: what it took is gone.", op.Ref.Number)
	case loom.ClusterCreate:
		return planner.State{Nodes: []loom.Node{}, Services: map[string]loom.Service{}, Config: cluster.Config}, nil
	}
	for op.Mends || op.Retries { // they go on with it, and go back to before it
		var err error
		if op, err = u.operationOf(ctx, cluster, op.Concerns); err != nil {
			return planner.State{}, err
		}
	}
	before, err := store.SnapshotBefore(ctx, u.db, cluster.Owner.Tenant, op.Ref)
	if err != nil {
		return planner.State{}, err
	}
	if before == nil {
		return planner.State{}, loom.NewError(loom.Conflict,
			"Operation %d was begun by an earlier release, which did not keep the layout before it; it cannot be rolled back.", op.Ref.Number)
	}
	// Nodes that were on their way out then have no place to come back to.
	nodes := slices.DeleteFunc(slices.Clone(before.Nodes), func(n loom.Node) bool { return n.Leaving })
	if nodes == nil {
		nodes = []loom.Node{}
	}
	return planner.State{Nodes: nodes, Services: on(nodes, before.Services), Config: before.Config}, nil
}

// readPresent finds what is there: the newest operation that left things half done,
// what that was to lead to, and the machines.
func (u *Clusters) readPresent(ctx context.Context, cluster loom.Cluster, f *following) error {
	tenant := cluster.Owner.Tenant
	all, err := store.NodesByCluster(ctx, u.db, tenant, cluster.ID)
	if err != nil {
		return err
	}
	failed, err := u.halfDone(ctx, cluster)
	if err != nil {
		return err
	}
	f.After = planner.State{Nodes: []loom.Node{}, Services: cluster.Services, Config: cluster.Config}
	known := make(map[loom.NodeID]bool, len(all))
	for _, n := range all {
		known[n.ID] = true
		if id, _ := n.Results["providerid"].(string); id != "" {
			f.Machines = append(f.Machines, n.ID)
		}
		if !n.Leaving && (failed != nil || n.State != loom.NodeDeleted) {
			n.Results, n.Actions = nil, nil // facts may hold credentials
			f.After.Nodes = append(f.After.Nodes, n)
		}
	}
	for _, n := range f.To.Nodes {
		if !known[n.ID] {
			f.Lost = append(f.Lost, n.ID)
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
		after, err := store.SnapshotAfter(ctx, u.db, tenant, failed.Ref)
		if err != nil || after == nil {
			return err
		}
		f.After = planner.State(*after)
	}
	return nil
}

// halfDone gives the newest operation that began and neither ended well nor was taken
// back, unless a later one has put things right.
func (u *Clusters) halfDone(ctx context.Context, cluster loom.Cluster) (*loom.Operation, error) {
	operations, err := store.OperationsByCluster(ctx, u.db, cluster.Owner.Tenant, cluster.ID)
	if err != nil {
		return nil, err
	}
	for i := range operations {
		op := &operations[i]
		switch {
		case op.Status == loom.OperationComplete:
			return nil, nil
		case op.Status == loom.OperationRolledBack || op.Started.IsZero() || op.Action == loom.ClusterAuthorize:
		default:
			return op, nil
		}
	}
	return nil, nil
}

// computeRollback plans what leads from what is there to where it goes.
func (f *following) computeRollback(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID) error {
	machines := make(map[loom.NodeID]bool, len(f.Machines))
	for _, id := range f.Machines {
		machines[id] = true
	}
	in := planner.BackInput{
		Plan: loom.Plan{Action: loom.Rollback, Gates: []loom.Gate{{}}}, Before: f.After, After: f.After, To: f.To, Batch: 1,
		HasMachine: func(id loom.NodeID) bool { return machines[id] },
	}
	if f.Failed > 0 {
		of, err := f.lineage(ctx, q, tenant, loom.OperationRef{Cluster: cluster, Number: f.Failed})
		if err != nil {
			return err
		}
		failed := planner.InputOf(of)
		failed.To, failed.Batch, failed.HasMachine = in.To, in.Batch, in.HasMachine
		in = failed
	}
	plan, err := planner.Back(in)
	plan.Action = loom.Rollback
	f.plan = plan
	return err
}

// sameLayout reports whether two states have the same nodes, with the same services on
// them in the same versions.
func sameLayout(a, b planner.State) bool {
	return slices.EqualFunc(a.Nodes, b.Nodes, func(x, y loom.Node) bool {
		return x.ID == y.ID && x.HardwareType == y.HardwareType && x.ImageType == y.ImageType && slices.Equal(x.Services, y.Services)
	}) && maps.Equal(versionsOf(on(a.Nodes, a.Services)), versionsOf(on(b.Nodes, b.Services)))
}
