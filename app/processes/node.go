package processes

import (
	"context"

	"loom/app/loom"
	"loom/app/store"
)

// NodeOfTenant is a node that has a machine, as superadmins see it.
type NodeOfTenant = store.NodeOfTenant

// NodesOfTenant is a page of them. Next and Prev are cursors, "" where there is no more.
type NodesOfTenant struct {
	Items      []NodeOfTenant
	Next, Prev string
}

// LiveNodesOf lists the nodes of a tenant that have a machine, are getting or losing one,
// and those whose machines were given up; superadmins only. Invalid for a cursor of another
// list.
func (f *Processes) LiveNodesOf(ctx context.Context, actor loom.Actor, tenant loom.TenantID, p loom.Page) (NodesOfTenant, error) {
	if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
		return NodesOfTenant{}, err
	}
	items, next, prev, err := store.LiveNodesOfTenant(ctx, f.db, tenant, p)
	return NodesOfTenant{Items: items, Next: next, Prev: prev}, err
}
