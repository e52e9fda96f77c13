package clusters

import (
	"context"
	"slices"

	"loom/app/loom"
	"loom/app/store"
)

// Counts counts the clusters of the actor's tenant that are not terminated, by
// status, for its administrators. Forbidden.
func (u *Clusters) Counts(ctx context.Context, actor loom.Actor) (map[loom.ClusterStatus]int, error) {
	if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	return store.LiveClusters(ctx, u.db, actor.Tenant)
}

// Counted counts the clusters that the actor may see, by status: each as far as
// loom.CountLimit and one more.
func (u *Clusters) Counted(ctx context.Context, actor loom.Actor, statuses []loom.ClusterStatus) (map[loom.ClusterStatus]int, error) {
	if err := actor.May(loom.See, actor.Mine()); err != nil {
		return nil, err
	}
	return store.ClustersCounted(ctx, u.kept, actor.Tenant, store.SeenBy(actor), statuses)
}

// OfTenants asks for a part of the clusters of all tenants.
type OfTenants struct {
	Page loom.Page
	store.ClusterOfTenantFilter
}

// OfTenantsFilter limits it.
type OfTenantsFilter = store.ClusterOfTenantFilter

// ClusterOfTenant is a cluster as superadmins see it: by name and number.
type ClusterOfTenant = store.ClusterOfTenant

// OfTenantsList is a page of it, the newest cluster first.
type OfTenantsList struct {
	Items      []ClusterOfTenant
	Next, Prev string
}

// ClustersOfTenants lists the clusters of all tenants, by name and number only, for
// superadmins. Errors: Forbidden; Invalid for a status that there is not.
func (u *Clusters) ClustersOfTenants(ctx context.Context, actor loom.Actor, in OfTenants) (OfTenantsList, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return OfTenantsList{}, err
	}
	if in.Status != "" && !slices.Contains(loom.ClusterStatuses, in.Status) {
		return OfTenantsList{}, loom.InvalidFields([]loom.FieldError{{Field: "status", Message: "A cluster is pending, active, incomplete, inconsistent or terminated."}})
	}
	items, next, prev, err := store.ClusterListAllTenants(ctx, u.db, in.ClusterOfTenantFilter, in.Page)
	return OfTenantsList{Items: items, Next: next, Prev: prev}, err
}
