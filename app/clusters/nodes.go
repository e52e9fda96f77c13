package clusters

import (
	"context"
	"errors"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// NodeView is a node with the copies of services that its cluster holds.
type NodeView struct {
	loom.Node
	Catalog map[string]loom.Service
}

// NodePage is a page of nodes; Next and Prev are cursors.
type NodePage struct {
	Items      []NodeView
	Next, Prev string
}

// Nodes lists the nodes of all clusters that the actor may see, with their
// history; secrets among their facts are masked. The page sorts by clusterId, then
// by number. Invalid for a wrong sort, limit or cursor.
func (u *Clusters) Nodes(ctx context.Context, actor loom.Actor, page loom.Page) (NodePage, error) {
	if err := actor.May(loom.See, actor.Mine()); err != nil {
		return NodePage{}, err
	}
	list, err := store.NodesByTenant(ctx, u.db, actor.Tenant, store.SeenBy(actor), page)
	if err != nil {
		return NodePage{}, err
	}
	if err := store.AddNodeHistory(ctx, u.db, actor.Tenant, list.Items, maxNodeActions); err != nil {
		return NodePage{}, err
	}
	var clusters []loom.ClusterID
	for _, n := range list.Items {
		if len(clusters) == 0 || clusters[len(clusters)-1] != n.Cluster { // they come by cluster
			clusters = append(clusters, n.Cluster)
		}
	}
	services, err := store.ServicesOfClusters(ctx, u.db, actor.Tenant, clusters)
	if err != nil {
		return NodePage{}, err
	}
	out := NodePage{Items: make([]NodeView, len(list.Items)), Next: list.Next, Prev: list.Prev}
	for i := range list.Items {
		n := list.Items[i]
		maskFacts(&n)
		out.Items[i] = NodeView{n, services[n.Cluster]}
	}
	return out, nil
}

// NodeByID reads one node by its id alone. NotFound for a node of a cluster that
// the actor may not see.
func (u *Clusters) NodeByID(ctx context.Context, actor loom.Actor, id loom.NodeID) (NodeView, error) {
	none := loom.NewError(loom.NotFound, "There is no node “%.40s”.", id)
	if id == "" || len(checkStorable("id", string(id))) > 0 {
		return NodeView{}, none
	}
	cluster, owner, err := store.OwnerOfNode(ctx, u.db, actor.Tenant, id)
	if err == nil {
		err = actor.May(loom.See, loom.OwnedBy(owner))
	}
	if isNotFound(err) {
		return NodeView{}, none
	}
	if err != nil {
		return NodeView{}, err
	}
	n, err := store.NodeByID(ctx, u.db, actor.Tenant, cluster, id)
	if isNotFound(err) {
		return NodeView{}, none
	}
	if err != nil {
		return NodeView{}, err
	}
	nodes := []loom.Node{n}
	if err := store.AddNodeHistory(ctx, u.db, actor.Tenant, nodes, maxNodeActions); err != nil {
		return NodeView{}, err
	}
	maskFacts(&nodes[0])
	services, err := store.ServicesOfClusters(ctx, u.db, actor.Tenant, []loom.ClusterID{cluster})
	return NodeView{nodes[0], services[cluster]}, err
}

// NodeProperties gives the facts of those nodes of a cluster that have all the
// named services, by id; none for a cluster that the actor may not see.
func (u *Clusters) NodeProperties(ctx context.Context, actor loom.Actor, id loom.ClusterID, services []string) (map[loom.NodeID]loom.NodeProperties, error) {
	found := map[loom.NodeID]loom.NodeProperties{}
	if err := u.see(ctx, actor, id); err != nil {
		if isNotFound(err) {
			return found, nil
		}
		return nil, err
	}
	nodes, err := store.NodesByCluster(ctx, u.db, actor.Tenant, id)
	// Those that left are not told of, unless nothing is left of the cluster.
	if here := slices.DeleteFunc(slices.Clone(nodes), func(n loom.Node) bool { return n.Leaving && n.State == loom.NodeDeleted }); len(here) > 0 {
		nodes = here
	}
	for i := range nodes {
		n := &nodes[i]
		if !slices.ContainsFunc(services, func(name string) bool { return !slices.Contains(n.Services, name) }) {
			found[n.ID] = n.Properties()
		}
	}
	return found, err
}

// RemoveNode removes the record of a node that no operation ever touched, for
// administrators of its tenant; a node that is not there is no error. Conflict for
// one that has or had a machine, and while the cluster is busy.
func (u *Clusters) RemoveNode(ctx context.Context, actor loom.Actor, id loom.NodeID) error {
	if err := actor.May(loom.Administer, actor.InTenant()); err != nil {
		return err
	}
	cluster, _, err := store.OwnerOfNode(ctx, u.db, actor.Tenant, id)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	err = store.Exec(ctx, u.db, func(tx *sqlx.Tx) error {
		c, err := store.LockCluster(ctx, tx, actor.Tenant, cluster)
		if err != nil {
			return err
		}
		held, err := holdNode(ctx, tx, c, id)
		if err != nil {
			return err
		}
		if held.Lived {
			return loom.NewError(loom.Conflict,
				"Node %s has or had a machine and is a part of what happened to cluster %s; delete the cluster to remove its machines.", id, c.ID)
		}
		if err := store.DeleteNodeRecord(ctx, tx, actor.Tenant, c.ID, id); err != nil {
			return err
		}
		return u.nodeWritten(ctx, tx, actor, "delete", &held.Node, nil)
	})
	if isNotFound(err) { // somebody else was faster
		return nil
	}
	return err
}

// holdNode locks a node of a held cluster for a write. NotFound, and Conflict while
// an operation may be at work on it.
func holdNode(ctx context.Context, tx *sqlx.Tx, c loom.Cluster, id loom.NodeID) (store.HeldNode, error) {
	if err := idle(c); err != nil {
		return store.HeldNode{}, err
	}
	held, err := store.LockNode(ctx, tx, c.Owner.Tenant, c.ID, id)
	if err == nil && held.Busy {
		err = loom.NewError(loom.Conflict, "Node %s is busy with a task; try again when that is over.", id)
	}
	return held, err
}

// idle answers Conflict while the nodes of a cluster belong to an operation.
func idle(c loom.Cluster) error {
	if c.Status == loom.ClusterPending {
		return loom.NewError(loom.Conflict, "Cluster %s is pending: its nodes belong to the operation that is under way. Try again when that is over.", c.ID)
	}
	return nil
}

// nodeWritten does what every write of a node brings with it: previews of the
// cluster become stale, tasks see the new facts, the audit and open pages hear of it.
func (u *Clusters) nodeWritten(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, verb string, before, after *loom.Node) error {
	entry := loom.AuditEntry{Actor: actor, Verb: verb, Kind: "node", Result: "ok"}
	cluster := loom.ClusterID(0)
	if before != nil {
		entry.Before, entry.Object, cluster = nodeFacts(before), string(before.ID), before.Cluster
	}
	if after != nil {
		entry.After, entry.Object, cluster = nodeFacts(after), string(after.ID), after.Cluster
	}
	return errors.Join(
		store.NodesWritten(ctx, tx, actor.Tenant, cluster),
		store.InsertAudit(ctx, tx, entry),
		store.InsertEvents(ctx, tx, clusterEvents(actor.Tenant, cluster)...),
	)
}

// nodeFacts is a node as the audit keeps it.
func nodeFacts(n *loom.Node) map[string]any {
	return map[string]any{"clusterId": n.Cluster.String(), "properties": n.Properties()}
}
