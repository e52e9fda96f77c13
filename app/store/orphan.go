package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

type orphanRow struct {
	ID         int64     `db:"id"`
	Tenant     string    `db:"tenant_id"`
	TenantName string    `db:"tenant_name"`
	Provider   string    `db:"provider_name"`
	Machine    string    `db:"machine_id"`
	Name       string    `db:"name"`
	Key        string    `db:"key"`
	Cluster    int64     `db:"cluster_id"`
	Node       string    `db:"node_id"`
	Own        string    `db:"own"`
	FirstSeen  time.Time `db:"first_seen"`
}

func (r orphanRow) orphan() loom.Orphan {
	return loom.Orphan{ID: r.ID, Tenant: loom.TenantID(r.Tenant), TenantName: r.TenantName, Provider: r.Provider, Machine: r.Machine, Name: r.Name,
		Key: r.Key, Cluster: loom.ClusterID(r.Cluster), Node: loom.NodeID(r.Node), Own: r.Own, FirstSeen: r.FirstSeen}
}

const orphanColumns = `
SELECT o.id, o.tenant_id, t.name AS tenant_name, o.provider_name, o.machine_id, o.name, o.key, o.cluster_id, o.node_id, o.first_seen,
	coalesce((SELECT n.results->>'providerid' FROM nodes n JOIN clusters c ON c.id = n.cluster_id
		WHERE n.id = o.node_id AND n.tenant_id = o.tenant_id AND n.state <> 'deleted' AND c.status <> 'terminated'), '') AS own
FROM orphans o JOIN tenants t ON t.id = o.tenant_id`

// OrphansAllTenants lists the machines that no live node claims, by id.
func OrphansAllTenants(ctx context.Context, q sqlx.ExtContext) ([]loom.Orphan, error) {
	return orphans(ctx, q, ` ORDER BY o.id`)
}

func orphans(ctx context.Context, q sqlx.ExtContext, which string, args ...any) ([]loom.Orphan, error) {
	var rows []orphanRow
	if err := sqlx.SelectContext(ctx, q, &rows, orphanColumns+which, args...); err != nil {
		return nil, wrap(err, "list orphaned machines")
	}
	orphans := make([]loom.Orphan, len(rows))
	for i, r := range rows {
		orphans[i] = r.orphan()
	}
	return orphans, nil
}

// OrphanAllTenants reads one of them. NotFound.
func OrphanAllTenants(ctx context.Context, q sqlx.ExtContext, id int64) (loom.Orphan, error) {
	var row orphanRow
	err := sqlx.GetContext(ctx, q, &row, orphanColumns+` WHERE o.id = $1`, id)
	return row.orphan(), wrap(err, "read orphaned machine %d", id)
}

const insertOrphans = `
INSERT INTO orphans (tenant_id, provider_name, machine_id, name, key, cluster_id, node_id)
SELECT $1, $2, x.machine, x.name, x.key, x.cluster, x.node
FROM unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $7::uuid[]) AS x (machine, name, key, cluster, node)
ON CONFLICT (tenant_id, provider_name, machine_id)
DO UPDATE SET name = excluded.name, key = excluded.key, cluster_id = excluded.cluster_id, node_id = excluded.node_id,
	first_seen = CASE WHEN orphans.key = excluded.key THEN orphans.first_seen ELSE now() END
WHERE (orphans.name, orphans.key, orphans.cluster_id, orphans.node_id) IS DISTINCT FROM (excluded.name, excluded.key, excluded.cluster_id, excluded.node_id)`

// PutOrphans stores orphaned machines of a provider; those that are known keep
// the time when they were first seen. It says how many rows changed.
func PutOrphans(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, provider string, orphans []loom.Orphan) (int64, error) {
	var machines, names, keys, nodes []string
	var clusters []int64
	for _, o := range orphans {
		machines, names, keys = append(machines, o.Machine), append(names, o.Name), append(keys, o.Key)
		clusters, nodes = append(clusters, int64(o.Cluster)), append(nodes, string(o.Node))
	}
	result, err := tx.ExecContext(ctx, insertOrphans, tenant, provider, pq.Array(machines), pq.Array(names), pq.Array(keys), pq.Array(clusters), pq.Array(nodes))
	if err != nil {
		return 0, wrap(err, "store %d orphaned machines of provider %s", len(orphans), provider)
	}
	return result.RowsAffected()
}

// DeleteOrphansBut forgets the orphaned machines of a provider but those named,
// and says how many there were.
func DeleteOrphansBut(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, provider string, machines []string) (int64, error) {
	result, err := tx.ExecContext(ctx, `DELETE FROM orphans WHERE tenant_id = $1 AND provider_name = $2 AND NOT machine_id = ANY ($3)`,
		tenant, provider, pq.Array(append([]string{}, machines...)))
	if err != nil {
		return 0, wrap(err, "forget orphaned machines of provider %s", provider)
	}
	return result.RowsAffected()
}

// DeleteOrphan forgets one orphaned machine.
func DeleteOrphan(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id int64) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM orphans WHERE tenant_id = $1 AND id = $2`, tenant, id)
	return wrap(err, "forget orphaned machine %d", id)
}

// NodeClaim is what decides whether a machine with the label of a node is its
// machine.
type NodeClaim struct {
	Node        loom.NodeID
	Cluster     loom.ClusterID
	Provider    string
	Incarnation int
	// Machine is the provider id among the node's results, "" for none.
	Machine string
	// Gone says that the node is deleted, or its cluster terminated; Ready that it has its
	// machine and no CREATE is left to do.
	Gone, Ready bool
	// Busy says that an operation of the cluster is open, or ended after the time
	// asked for.
	Busy bool
}

const nodeClaims = `
SELECT n.id, n.cluster_id, c.provider_name, n.incarnation, coalesce(n.results->>'providerid', '') AS machine,
	n.state = 'deleted' OR c.status = 'terminated' AS gone, n.state = 'ready' AS ready,
	EXISTS (SELECT FROM operations o WHERE o.cluster_id = c.id
	        AND (o.ended_at >= $3 OR o.status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back'))) AS busy
FROM nodes n JOIN clusters c ON c.id = n.cluster_id AND c.tenant_id = n.tenant_id
WHERE n.tenant_id = $1 AND n.id = ANY ($2::uuid[])`

// NodeClaims reads what nodes of a tenant claim, by node; ids that are not the
// tenant's are left out. They must have the form of node ids.
func NodeClaims(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, nodes []loom.NodeID, since time.Time) (map[loom.NodeID]NodeClaim, error) {
	ids := make([]string, len(nodes))
	for i, n := range nodes {
		ids[i] = string(n)
	}
	var rows []struct {
		ID          string `db:"id"`
		Cluster     int64  `db:"cluster_id"`
		Provider    string `db:"provider_name"`
		Incarnation int    `db:"incarnation"`
		Machine     string `db:"machine"`
		Gone        bool   `db:"gone"`
		Ready       bool   `db:"ready"`
		Busy        bool   `db:"busy"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, nodeClaims, tenant, pq.Array(ids), since); err != nil {
		return nil, wrap(err, "read what %d nodes claim", len(nodes))
	}
	claims := make(map[loom.NodeID]NodeClaim, len(rows))
	for _, r := range rows {
		claims[loom.NodeID(r.ID)] = NodeClaim{Node: loom.NodeID(r.ID), Cluster: loom.ClusterID(r.Cluster), Provider: r.Provider,
			Incarnation: r.Incarnation, Machine: r.Machine, Gone: r.Gone, Ready: r.Ready, Busy: r.Busy}
	}
	return claims, nil
}

// ProviderRef names a provider of a tenant.
type ProviderRef struct {
	Tenant   loom.TenantID `db:"tenant_id"`
	Provider string        `db:"provider_name"`
}

// A machine that a lost answer left behind is where its node was to be made, also once
// the node is gone.
const placesOfProvider = `
SELECT DISTINCT n.results->'place' FROM nodes n JOIN clusters c ON c.id = n.cluster_id
WHERE c.tenant_id = $1 AND c.provider_name = $2 AND jsonb_exists(n.results, 'place') AND (c.status <> 'terminated' OR EXISTS (
	SELECT FROM operations o WHERE o.cluster_id = c.id AND o.ended_at > now() - make_interval(secs => $3))
	OR EXISTS (SELECT FROM orphans x WHERE x.node_id = n.id))`

// Places gives where machines of a provider were made, for clusters that are there,
// ended within recent, or left orphaned machines.
func Places(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, provider string, recent time.Duration) ([]map[string]any, error) {
	var rows [][]byte
	if err := sqlx.SelectContext(ctx, q, &rows, placesOfProvider, tenant, provider, recent.Seconds()); err != nil {
		return nil, wrap(err, "read where machines of provider %s were made", provider)
	}
	places := make([]map[string]any, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row, &places[i]); err != nil {
			return nil, fmt.Errorf("read where a machine of provider %s was made: %w", provider, err)
		}
	}
	return places, nil
}

// A machine may be left behind by what ended lately; what was found before is
// looked at until it is gone. Providers that are being swept are left out.
const mayHaveMachines = `
	SELECT c.tenant_id, c.provider_name FROM clusters c WHERE c.status <> 'terminated'
	UNION
	SELECT c.tenant_id, c.provider_name FROM operations o JOIN clusters c ON c.id = o.cluster_id
	WHERE o.ended_at > now() - make_interval(secs => $1)
	UNION
	SELECT o.tenant_id, o.provider_name FROM orphans o`

const sweepTargets = `
SELECT DISTINCT x.tenant_id, x.provider_name FROM (` + mayHaveMachines + `
) AS x JOIN tenants t ON t.id = x.tenant_id AND t.deleted_at IS NULL
WHERE NOT EXISTS (SELECT FROM provider_requests r
                  WHERE r.tenant_id = x.tenant_id AND r.provider_name = x.provider_name AND r.purpose = 'sweep' AND r.ended_at IS NULL)
ORDER BY x.tenant_id, x.provider_name`

// SweepTargetsAllTenants lists the providers to sweep: those with live clusters,
// with operations that ended within recent, or with orphaned machines.
func SweepTargetsAllTenants(ctx context.Context, q sqlx.ExtContext, recent time.Duration) ([]ProviderRef, error) {
	var targets []ProviderRef
	err := sqlx.SelectContext(ctx, q, &targets, sweepTargets, recent.Seconds())
	return targets, wrap(err, "list providers to sweep")
}
