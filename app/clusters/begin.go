package clusters

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// errMoved says that the cluster changed between reading it and locking it.
var errMoved = errors.New("the cluster changed meanwhile")

// maxTries is how often a request at once reads a cluster anew that keeps moving.
const maxTries = 3

func keepsChanging() error {
	return loom.NewError(loom.Conflict, "The cluster keeps changing; try again.")
}

// atOnce drafts and begins an operation in one go, as applying its preview would,
// provided that still, unless nil, holds. It gives the cluster as it was read.
func (u *Clusters) atOnce(ctx context.Context, actor loom.Actor, in PreviewInput, still func(c loom.Cluster) bool) (loom.OperationRef, loom.Cluster, error) {
	var none loom.OperationRef
	verb := "update"
	if in.Kind == loom.PreviewDelete {
		verb = "delete"
	}
	// Reading and planning happen outside the transaction; when the cluster moved
	// before its lock was had, all is read once more.
	for try := 0; ; try++ {
		given := in
		given.ProviderFields = nil // those are taken under the lock, sensitive ones as well
		d, cluster, err := u.draftLive(ctx, actor, given)
		if err != nil || still != nil && !still(cluster) {
			return none, cluster, err
		}
		plan, err := d.plan()
		if err != nil {
			return none, cluster, err
		}
		ref, err := store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.OperationRef, error) {
			if err := d.lockFirst(ctx, tx, actor.Tenant); err != nil {
				return none, err
			}
			return u.begin(ctx, tx, actor, cluster, d, plan, in.ProviderFields, verb)
		})
		var old *stale
		if errors.Is(err, errMoved) || errors.As(err, &old) {
			if try < maxTries {
				continue
			}
			err = keepsChanging()
		}
		return ref, cluster, err
	}
}

// lockFirst queues operations that need more of the tenant's quota of nodes: its
// lock comes before that of the cluster.
func (d *liveDraft) lockFirst(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) error {
	if d.more() == 0 {
		return nil
	}
	_, err := store.LockTenant(ctx, tx, tenant)
	return err
}

// snapshot reads the layout of a cluster, whose lock the caller holds: the nodes
// that have or may have a machine.
func snapshot(ctx context.Context, tx *sqlx.Tx, c loom.Cluster) (*loom.Snapshot, error) {
	nodes, err := store.NodesByCluster(ctx, tx, c.Owner.Tenant, c.ID)
	return &loom.Snapshot{Nodes: living(nodes), Services: c.Services, Config: c.Config}, err
}

// layout is what the cluster, which was as said, is to be.
func (d *liveDraft) layout(was *loom.Snapshot) store.NewLayout {
	switch {
	case d.Followed != nil:
		return d.followedLayout(was)
	case d.Kind == loom.PreviewDelete:
		var l store.NewLayout
		for _, n := range was.Nodes {
			l.Leaving = append(l.Leaving, n.ID)
		}
		return l
	case d.Added != nil:
		return store.NewLayout{Services: d.Services, Changed: d.changedNodes()}
	case d.Altered != nil:
		return d.alteredLayout()
	}
	return store.NewLayout{}
}

// stillTrue returns errMoved, *stale or Exhausted unless the catalog, the numbers of
// nodes and the quota are still what the draft needs. The caller holds the cluster,
// and what lockFirst locks.
func (d *liveDraft) stillTrue(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID) error {
	if versions := d.versions(); len(versions) > 0 {
		now, err := store.NewestVersions(ctx, tx, tenant, versions)
		if err != nil {
			return err
		}
		if differs := compareVersions(versions, now); len(differs) > 0 {
			return &stale{differs}
		}
	}
	if made := d.made(); len(made) > 0 && d.Followed == nil {
		next, err := store.NextNodeNumber(ctx, tx, tenant, cluster)
		if err != nil {
			return err
		}
		if next != made[0].Number {
			return errMoved
		}
	}
	more := d.more()
	if more == 0 {
		return nil
	}
	// A statement of its own: it sees what was committed while the lock was awaited.
	quota, err := store.QuotaUse(ctx, tx, tenant)
	if err != nil {
		return err
	}
	return quota.Check(0, more)
}

// begin starts the operation, under the lock of the cluster. The error is errMoved
// unless the cluster is as it was seen, *stale unless the catalog is.
func (u *Clusters) begin(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, seen loom.Cluster, d *liveDraft, plan loom.Plan, given map[string]any, verb string) (loom.OperationRef, error) {
	var none loom.OperationRef
	cluster, err := store.LockCluster(ctx, tx, actor.Tenant, seen.ID)
	if err := allowed(actor, verbOf(d.Kind), seen.ID, cluster.Owner, err); err != nil {
		return none, err
	}
	// He may have been an administrator when he made a preview of it.
	if f := d.Followed; f != nil && len(f.Asked.Skip) > 0 {
		if err := actor.May(loom.Override, actor.InTenant()); err != nil {
			return none, err
		}
	}
	if err := u.mayBegin(ctx, tx, cluster, d.Kind.Verb()); err != nil {
		return none, err
	}
	if cluster.Revision != seen.Revision {
		return none, errMoved
	}
	if err := d.stillTrue(ctx, tx, actor.Tenant, cluster.ID); err != nil {
		return none, err
	}
	if d.Building != nil {
		if err := d.Building.stillBuilds(ctx, tx, cluster.Provider); err != nil {
			return none, err
		}
	}
	if err := u.takeProviderFields(ctx, tx, actor, &cluster, given); err != nil {
		return none, err
	}
	if err := permitted(ctx, tx, actor.Tenant, cluster.Provider, plan); err != nil {
		return none, err
	}
	if d.setsConfig() {
		if err := store.SetClusterConfig(ctx, tx, actor.Tenant, cluster.ID, d.After); err != nil {
			return none, err
		}
	}
	was, err := snapshot(ctx, tx, cluster)
	if err != nil {
		return none, err
	}
	// Before the plan is stored: a hook that is asked hears what the nodes are to be.
	if err := store.SetLayout(ctx, tx, actor.Tenant, cluster.ID, d.layout(was)); err != nil {
		return none, err
	}
	if cluster.DeleteWanted != "" {
		if err := store.SetDeleteWanted(ctx, tx, actor.Tenant, cluster.ID, ""); err != nil {
			return none, err
		}
	}
	if err := store.SetClusterStatus(ctx, tx, actor.Tenant, cluster.ID, loom.ClusterPending); err != nil {
		return none, err
	}
	request, err := keptRequest((&previewBody{Live: d}).asked(loom.Preview{Kind: d.Kind, Cluster: cluster.ID}))
	if err != nil {
		return none, err
	}
	stored, err := d.stored(ctx, tx, store.NewOperation{
		Tenant: actor.Tenant, Cluster: cluster.ID, Action: d.Action, RequestedBy: actor.User, OnFailure: d.OnFailure, Before: was, Request: request,
	})
	if err != nil {
		return none, err
	}
	op, err := store.InsertPlan(ctx, tx, stored, plan)
	if err != nil {
		return none, err
	}
	before, after := d.audited(cluster, op.Ref)
	if d.setsConfig() {
		if err := store.InsertConfigRevision(ctx, tx, actor.Tenant, op.Ref, actor.User); err != nil {
			return none, err
		}
		before["config"], after["config"], after["changed"] = d.Before, d.After, paths(d.Before, d.After)
	}
	err = store.InsertAudit(ctx, tx, loom.AuditEntry{
		Actor: actor, Verb: verb, Kind: "cluster", Object: cluster.ID.String(), Result: "ok", Before: before, After: after,
	})
	if err != nil {
		return none, err
	}
	return op.Ref, store.InsertEvents(ctx, tx, clusterEvents(actor.Tenant, cluster.ID)...)
}

// audited is what the audit keeps of an operation that begins, but for the config.
func (d *liveDraft) audited(cluster loom.Cluster, ref loom.OperationRef) (before, after map[string]any) {
	before = map[string]any{"name": cluster.Name, "status": cluster.Status}
	after = map[string]any{"operationId": ref.String(), "action": d.Action}
	if d.Service != "" {
		after["service"] = d.Service
	}
	if f := d.Followed; f != nil {
		verb := string(d.Kind)
		if f.Mends {
			verb = string(loom.PreviewRetry)
		}
		after[verb] = f.Of
		if len(f.skipped) > 0 {
			after["skip"], after["reason"] = f.Asked.Skip, f.Asked.Reason
		}
	}
	switch {
	case d.Added != nil:
		before["services"], after["services"] = sortedNames(cluster.Services), sortedNames(d.Services)
		after["nodes"] = len(d.Added.Nodes)
	case d.Altered != nil:
		before["layout"], after["layout"] = layoutOf(d.Altered.Was.Nodes), layoutOf(d.Nodes)
		before["services"], after["services"] = versionsOf(d.Altered.Was.Services), versionsOf(d.Services)
		for word, nodes := range map[string][]loom.Node{"made": d.made(), "left": d.leavers(), "replaced": d.replaced()} {
			if len(nodes) > 0 {
				after[word] = numbers(nodes)
			}
		}
	}
	return before, after
}
