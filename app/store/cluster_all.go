package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// ClusterOfTenant is a cluster as superadmins see it: by name and number, without
// what is in it.
type ClusterOfTenant struct {
	ID       loom.ClusterID
	Tenant   string
	Owner    loom.UserID
	Name     string
	Template string
	Status   loom.ClusterStatus
	Nodes    int
	Created  time.Time
	Expires  time.Time
}

// ClusterOfTenantFilter limits a list over all tenants; empty parts mean any, but
// terminated clusters are only listed by their status.
type ClusterOfTenantFilter struct {
	Tenant, Owner, Words string
	Status               loom.ClusterStatus
}

// Leans on the primary key: the newest have the highest numbers.
var clusterOfTenantKeyset = keyset{
	columns: `c.id, t.name AS tenant_name, c.owner_id, c.name, c.template_name, c.status, c.created_at, c.expires_at,
	(SELECT count(*) FROM nodes n WHERE n.cluster_id = c.id AND n.state <> 'deleted') AS nodes`,
	from: "clusters c JOIN tenants t ON t.id = c.tenant_id", id: "c.id", idKind: "bigint",
	sorts: map[string]sortColumn{"id": {"c.id", "c.id::text", "bigint"}},
}

type clusterOfTenantRow struct {
	pageKeys
	ID       int64        `db:"id"`
	Tenant   string       `db:"tenant_name"`
	Owner    string       `db:"owner_id"`
	Name     string       `db:"name"`
	Template string       `db:"template_name"`
	Status   string       `db:"status"`
	Created  time.Time    `db:"created_at"`
	Expires  sql.NullTime `db:"expires_at"`
	Nodes    int          `db:"nodes"`
}

// ClusterListAllTenants reads a page of the clusters of all tenants, the newest
// first. Invalid for a cursor of another list.
func ClusterListAllTenants(ctx context.Context, q sqlx.ExtContext, f ClusterOfTenantFilter, p loom.Page) (found []ClusterOfTenant, next, prev string, err error) {
	var b binder
	conditions := []string{"c.status <> 'terminated'"}
	if f.Status != "" {
		conditions = []string{"c.status = " + b.add(f.Status)}
	}
	if f.Tenant != "" {
		conditions = append(conditions, "t.name = "+b.add(f.Tenant))
	}
	if f.Owner != "" {
		conditions = append(conditions, "c.owner_id = "+b.add(f.Owner))
	}
	searched, err := allWords(&b, f.Words, "c.name", "c.description", "c.template_name", "loom_pad(c.id)")
	if err != nil {
		return nil, "", "", err
	}
	conditions = append(conditions, searched...)
	rows, next, prev, err := readKeyset[clusterOfTenantRow](ctx, q, clusterOfTenantKeyset, conditions, &b, f, p, "-id")
	if err != nil {
		return nil, "", "", err
	}
	for _, r := range rows {
		found = append(found, ClusterOfTenant{ID: loom.ClusterID(r.ID), Tenant: r.Tenant, Owner: loom.UserID(r.Owner), Name: r.Name, Template: r.Template,
			Status: loom.ClusterStatus(r.Status), Nodes: r.Nodes, Created: r.Created, Expires: r.Expires.Time})
	}
	return found, next, prev, nil
}
