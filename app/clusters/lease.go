package clusters

import (
	"context"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

// remains reads what is to be said of the end of a cluster's lease and of machines
// that its delete left behind.
func (u *Clusters) remains(ctx context.Context, actor loom.Actor, v *ClusterView) error {
	if v.Status == loom.ClusterTerminated {
		return nil
	}
	settings, err := store.Settings(ctx, u.kept, actor.Tenant)
	if err != nil {
		return err
	}
	end, now, err := store.LeaseEndOf(ctx, u.kept, actor.Tenant, v.ID)
	if err != nil {
		return err
	}
	v.LeaseNote = settings.LeaseNotice(end, anyStopped(v.Nodes), now.In(loom.ZoneOf(ctx)))
	if actor.May(loom.Override.Reading(), actor.InTenant()) == nil && v.Status != loom.ClusterActive {
		v.Leftovers, err = store.Leftovers(ctx, u.kept, actor.Tenant, v.ID)
	}
	return err
}

// anyStopped reports whether a service is stopped somewhere.
func anyStopped(nodes []loom.Node) bool {
	for _, n := range nodes {
		for _, state := range n.ServiceStates {
			if state == loom.ServiceStopped {
				return true
			}
		}
	}
	return false
}

// leaseSoon marks the clusters of a list whose lease is over or that its owner is
// reminded of, and says what happens to those that are in their time of grace.
func (u *Clusters) leaseSoon(ctx context.Context, tenant loom.TenantID, items []loom.ClusterSummary) error {
	if len(items) == 0 {
		return nil
	}
	settings, err := store.Settings(ctx, u.kept, tenant)
	if err != nil {
		return err
	}
	now := time.Now() // for display only
	for i := range items {
		c := &items[i]
		if c.Expires.IsZero() || c.Status == loom.ClusterTerminated {
			continue
		}
		c.LeaseSoon = c.Expires.Sub(now) <= settings.LongestReminder()
		if deleted := c.Expires.Add(settings.Grace()); !now.Before(c.Expires) && now.Before(deleted) {
			c.DeletedAt = deleted
		}
	}
	return nil
}
