package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// NodeOfTenant is a node that has a machine, as superadmins see it: where the machine is.
type NodeOfTenant struct {
	Node        loom.NodeID
	Hostname    string
	State       loom.NodeState
	Cluster     loom.ClusterID
	ClusterName string
	Owner       loom.UserID
	// Provider is the name of the provider, Machine what it calls the machine; "" where
	// nobody knows it yet.
	Provider, Machine string
	Created           time.Time
}

// Leans on nodes_tenant. Nodes of terminated clusters are those whose machines were given
// up: they may go on at the provider.
var nodeOfTenantKeyset = keyset{
	columns: `n.id, n.hostname, n.state, n.cluster_id, c.name AS cluster_name, c.owner_id, c.provider_name, coalesce(n.results->>'providerid', '') AS machine, c.created_at`,
	from:    "nodes n JOIN clusters c ON c.id = n.cluster_id", id: "n.id", idKind: "uuid",
	sorts: map[string]sortColumn{"cluster": {"n.cluster_id", "n.cluster_id::text", "bigint"}},
}

type nodeOfTenantRow struct {
	pageKeys
	ID          string    `db:"id"`
	Hostname    string    `db:"hostname"`
	State       string    `db:"state"`
	Cluster     int64     `db:"cluster_id"`
	ClusterName string    `db:"cluster_name"`
	Owner       string    `db:"owner_id"`
	Provider    string    `db:"provider_name"`
	Machine     string    `db:"machine"`
	Created     time.Time `db:"created_at"`
}

// LiveNodesOfTenant reads a page of the nodes of a tenant that have a machine, are getting
// or losing one, by cluster. Invalid for a cursor of another list.
func LiveNodesOfTenant(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, p loom.Page) (found []NodeOfTenant, next, prev string, err error) {
	var b binder
	conditions := []string{"n.tenant_id = " + b.add(tenant), "n.state NOT IN ('planned', 'deleted')"}
	rows, next, prev, err := readKeyset[nodeOfTenantRow](ctx, q, nodeOfTenantKeyset, conditions, &b, tenant, p, "cluster")
	if err != nil {
		return nil, "", "", err
	}
	for _, r := range rows {
		found = append(found, NodeOfTenant{Node: loom.NodeID(r.ID), Hostname: r.Hostname, State: loom.NodeState(r.State), Cluster: loom.ClusterID(r.Cluster), ClusterName: r.ClusterName,
			Owner: loom.UserID(r.Owner), Provider: r.Provider, Machine: r.Machine, Created: r.Created})
	}
	return found, next, prev, nil
}
