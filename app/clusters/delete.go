package clusters

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// DeleteInput may bring provider fields where the cluster's own are not enough.
type DeleteInput struct {
	ProviderFields map[string]any
	// Abort ends a running operation first. The delete begins when that has ended,
	// which survives the end of this process.
	Abort bool
	// Abandon gives up the machines that a delete left behind: the cluster is
	// terminated at once, whatever is still there. For administrators.
	Abandon bool
}

// Delete deletes a cluster at once. A cluster that is gone already gives the
// zero reference and no error; where an operation has to be aborted first, the
// reference is that operation's. Errors: NotFound, Conflict (pending, protected),
// Invalid with missing provider fields; Forbidden where somebody else than an
// administrator abandons machines.
func (u *Clusters) Delete(ctx context.Context, actor loom.Actor, id loom.ClusterID, in DeleteInput) (loom.OperationRef, error) {
	if err := actor.May(loom.Own, actor.Mine()); err != nil {
		return loom.OperationRef{}, err
	}
	if in.Abandon {
		return loom.OperationRef{}, u.abandon(ctx, actor, id)
	}
	for try := 0; ; try++ {
		if in.Abort {
			ref, err := u.abortFirst(ctx, actor, id, in.ProviderFields, nil)
			if err != nil || ref.Number > 0 {
				return ref, err
			}
		}
		ref, err := u.deleteIf(ctx, actor, id, in, nil)
		// Another operation may have begun between the two.
		if in.Abort && errors.Is(err, loom.Conflict) && try < maxReads {
			continue
		}
		return ref, err
	}
}

// deleteIf is Delete for a cluster of which still, unless nil, holds as it is
// read, which its revision guards until the lock; otherwise it does nothing.
func (u *Clusters) deleteIf(ctx context.Context, actor loom.Actor, id loom.ClusterID, in DeleteInput, still func(c loom.Cluster) bool) (loom.OperationRef, error) {
	ref, cluster, err := u.execute(ctx, actor, PreviewInput{Kind: loom.ChangeDelete, Cluster: id, ProviderFields: in.ProviderFields}, conditions{still: still})
	if err != nil && cluster.Status == loom.ClusterTerminated && actor.May(loom.Own, cluster.Object()) == nil {
		return loom.OperationRef{}, nil
	}
	return ref, err
}

// abortFirst aborts the operation of a pending cluster and notes that the cluster
// is to be deleted when it has ended (Expire does that). It gives the zero
// reference for a cluster without a running operation, and when still, unless nil,
// does not hold.
func (u *Clusters) abortFirst(ctx context.Context, actor loom.Actor, id loom.ClusterID, given map[string]any, still func(c loom.Cluster) bool) (loom.OperationRef, error) {
	return store.InTx(ctx, u.db, func(tx *sqlx.Tx) (loom.OperationRef, error) {
		var none loom.OperationRef
		cluster, err := store.LockCluster(ctx, tx, actor.Tenant, id)
		if err := allowed(actor, loom.Own, id, cluster.Object(), err); err != nil {
			return none, err
		}
		if cluster.Status != loom.ClusterPending || cluster.LatestOperation == 0 || still != nil && !still(cluster) {
			return none, nil
		}
		if why := cluster.WhyNotDeletedIdle(); why != "" {
			return none, loom.NewError(loom.Conflict, "%s", why)
		}
		if err := u.takeProviderFields(ctx, tx, actor, &cluster, given); err != nil {
			return none, err
		}
		op, err := store.LockOperation(ctx, tx, actor.Tenant, loom.OperationRef{Cluster: id, Number: cluster.LatestOperation})
		if err != nil {
			return none, err
		}
		if err := u.abort(ctx, tx, actor, &op, fmt.Sprintf("Aborted by %s, to delete the cluster.", actor.User)); err != nil {
			return none, err
		}
		if err := store.SetDeleteWanted(ctx, tx, actor.Tenant, id, actor.User); err != nil {
			return none, err
		}
		err = store.InsertAudit(ctx, tx, loom.AuditEntry{
			Actor: actor, Verb: "delete", Kind: "cluster", Object: id.String(), Result: "ok",
			Before: map[string]any{"name": cluster.Name, "status": cluster.Status},
			After:  map[string]any{"after": op.Ref.String(), "action": loom.ClusterDelete},
		})
		if err != nil {
			return none, err
		}
		return op.Ref, store.InsertEvents(ctx, tx, clusterEvents(actor.Tenant, id)...)
	})
}

func (u *Clusters) abort(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, op *loom.Operation, why string) error {
	if op.Status.Final() || op.Status == loom.OperationFailing {
		return nil
	}
	before := op.Status
	if err := store.FailOperation(ctx, tx, op, why, true); err != nil {
		return err
	}
	return store.InsertAudit(ctx, tx, loom.AuditEntry{
		Actor: actor, Verb: "abort", Kind: "operation", Object: op.Ref.String(), Result: "ok",
		Before: map[string]any{"status": before}, After: map[string]any{"status": op.Status},
	})
}

// draftDelete leaves nothing.
func draftDelete(_ context.Context, _ *Clusters, _ request, c *change) error {
	c.After = state{}
	return nil
}

func planDelete(_ context.Context, _ *Clusters, c *change, _ loom.TenantID) (loom.Plan, error) {
	return planner.Make(c.Action, c.Before.Nodes, c.Before.Services, planner.Scope{})
}

func showDelete(v *PreviewView, c *change, list *changeList) error {
	v.After.Clusters--
	v.After.Nodes -= len(c.Before.Nodes)
	list.wholeNodes("remove", c.Before.Nodes)
	return nil
}

func summarizeDelete(v *PreviewView) string {
	return fmt.Sprintf("Deletes %s with all that is on it", count(len(v.Nodes), "node"))
}

// abandon terminates a cluster whose delete left machines behind and records what is
// given up. A cluster that is gone already is no error.
func (u *Clusters) abandon(ctx context.Context, actor loom.Actor, id loom.ClusterID) error {
	if err := u.see(ctx, actor, id); err != nil {
		return err
	}
	if err := actor.May(loom.Override, actor.InTenant()); err != nil {
		return err
	}
	return store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
		cluster, err := store.LockCluster(ctx, tx, actor.Tenant, id)
		if err := allowed(actor, loom.Override, id, cluster.Object(), err); err != nil || cluster.Status == loom.ClusterTerminated {
			return err
		}
		if err := u.checkAllowed(ctx, tx, cluster, loom.ChangeDelete); err != nil {
			return err
		}
		left, err := store.Leftovers(ctx, tx, actor.Tenant, id)
		if err != nil {
			return err
		}
		if cluster.Status != loom.ClusterIncomplete || len(left) == 0 {
			return loom.NewError(loom.Conflict, "The cluster has no leftover machines. Delete it without “abandon” first.")
		}
		given := make([]map[string]any, len(left))
		for i, l := range left {
			given[i] = map[string]any{"provider": l.Provider, "machineId": l.Machine, "nodeId": l.Node, "lastError": l.Error}
		}
		if err := store.AbandonLeftovers(ctx, tx, actor.Tenant, id); err != nil {
			return err
		}
		return store.TerminateCluster(ctx, tx, actor, actor.Tenant, cluster, map[string]any{"abandoned": given})
	})
}

// AbandonIn gives up what the delete of a cluster of any tenant left behind and
// terminates the cluster: a superadmin does it as the tenant's administrator, and is
// named in its audit. Errors: Forbidden, NotFound, Conflict where nothing was left.
func (u *Clusters) AbandonIn(ctx context.Context, actor loom.Actor, tenant loom.Tenant, id loom.ClusterID) error {
	if err := actor.May(loom.Install, loom.Installation); err != nil {
		return err
	}
	if tenant.ID == actor.Tenant {
		return u.abandon(ctx, actor, id)
	}
	acting := actor
	acting.Tenant, acting.TenantName, acting.User, acting.Role, acting.Grants = tenant.ID, tenant.Name, loom.AdminUser, loom.RoleAdmin, nil
	acting.Via = actor.Via + " by " + actor.TenantName + "/" + string(actor.User)
	acting.By, acting.ByRole = actor.Account(), actor.ActingRole()
	return u.abandon(ctx, acting, id)
}
