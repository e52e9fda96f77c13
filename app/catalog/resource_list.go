package catalog

import (
	"context"

	"loom/app/loom"
	"loom/app/store"
)

// ResourceListInput says which plugin resources to list, one for each name; empty parts
// do not filter. Sorts: "plugin" (default; then by type and name), "name" and "createTime",
// "-" before it for descending.
type ResourceListInput struct {
	loom.Page
	// Q are words in name, plugin or resource type.
	Q string
	// Kind, Plugin and Type are as in loom.ResourceRef.
	Kind, Plugin, Type string
	Status             loom.ResourceStatus
}

// ResourceList is a page of plugin resources. Next and Prev are cursors, "" where there is
// no more.
type ResourceList struct {
	Items      []loom.ResourceSummary
	Next, Prev string
}

// ListResources lists the plugin resources of the actor's tenant page by page. Errors:
// Forbidden; Invalid for an unknown status or sort, and for a cursor of another list.
func (c *Catalog) ListResources(ctx context.Context, actor loom.Actor, in ResourceListInput) (ResourceList, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return ResourceList{}, err
	}
	if err := checkResourceStatus(in.Status); err != nil {
		return ResourceList{}, err
	}
	filter := store.ResourceNameFilter{Q: in.Q, Kind: in.Kind, Plugin: in.Plugin, Type: in.Type, Status: in.Status}
	items, next, prev, err := store.ResourcePage(ctx, c.db, actor.Tenant, filter, in.Page)
	return ResourceList{Items: items, Next: next, Prev: prev}, err
}

// ResourcesWaiting counts the resources that the next sync puts a version of in use, and those
// that it takes out of use. Forbidden.
func (c *Catalog) ResourcesWaiting(ctx context.Context, actor loom.Actor) (in, out int, err error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return 0, 0, err
	}
	return store.ResourcesWaiting(ctx, c.db, actor.Tenant)
}

// checkResourceStatus refuses what is no status of a resource; "" is any.
func checkResourceStatus(status loom.ResourceStatus) error {
	switch status {
	case "", loom.ResourceInactive, loom.ResourceStaged, loom.ResourceActive, loom.ResourceRecalled:
		return nil
	}
	return loom.InvalidFields([]loom.FieldError{{Field: "status", Message: "The status is active, inactive, staged or recalled."}})
}

// ResourceClusters gives the live clusters of the actor's tenant whose services were last set up
// with a file, by the version that is in use, else the newest, of its content. Those set up
// with a version that was deleted are under 0. Forbidden.
func (c *Catalog) ResourceClusters(ctx context.Context, actor loom.Actor, ref loom.ResourceRef, versions []loom.Resource) (map[int][]loom.ResourceCluster, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	if ref.Kind != string(loom.KindAutomatorType) {
		return nil, nil
	}
	uses, err := store.FileUses(ctx, c.db, actor.Tenant, ref)
	if err != nil {
		return nil, err
	}
	of, live := map[string]int{}, map[string]bool{}
	for _, v := range versions {
		if v.Live || !live[v.SHA256] && v.Version > of[v.SHA256] {
			of[v.SHA256], live[v.SHA256] = v.Version, v.Live
		}
	}
	by := map[int][]loom.ResourceCluster{}
	for _, use := range uses {
		by[of[use.SHA256]] = append(by[of[use.SHA256]], use)
	}
	return by, nil
}

// ResourceMachines counts, by file, the nodes of live clusters of the actor's tenant whose
// services were last set up with any version of it. Forbidden.
func (c *Catalog) ResourceMachines(ctx context.Context, actor loom.Actor, refs ...loom.ResourceRef) (map[loom.ResourceRef]int, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	return store.FileNodes(ctx, c.db, actor.Tenant, refs)
}
