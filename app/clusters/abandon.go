package clusters

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

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
		if err := allowed(actor, loom.Override, id, cluster.Owner, err); err != nil || cluster.Status == loom.ClusterTerminated {
			return err
		}
		if err := u.mayBegin(ctx, tx, cluster, loom.VerbDelete); err != nil {
			return err
		}
		left, err := store.Leftovers(ctx, tx, actor.Tenant, id)
		if err != nil {
			return err
		}
		if cluster.Status != loom.ClusterIncomplete || len(left) == 0 {
			return loom.NewError(loom.Conflict, "No machine of the cluster was left behind by a delete, so there is none to give up; delete the cluster without “abandon” first.")
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
