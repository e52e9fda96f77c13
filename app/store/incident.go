package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

type incidentRow struct {
	pageKeys
	ID        int64               `db:"id"`
	Cluster   int64               `db:"cluster_id"`
	Name      string              `db:"cluster_name"`
	Node      loom.NodeID         `db:"node_id"`
	Hostname  string              `db:"hostname"`
	Service   string              `db:"service"`
	Kind      loom.IncidentKind   `db:"kind"`
	Since     time.Time           `db:"since"`
	Ended     sql.NullTime        `db:"ended_at"`
	Message   string              `db:"message"`
	Decision  loom.RepairDecision `db:"decision"`
	Reason    string              `db:"reason"`
	DecidedBy loom.UserID         `db:"decided_by"`
	DecidedAt sql.NullTime        `db:"decided_at"`
	Operation sql.NullInt64       `db:"operation"`
}

func (r *incidentRow) incident() loom.Incident {
	return loom.Incident{ID: r.ID, Cluster: loom.ClusterID(r.Cluster), ClusterName: r.Name, Node: r.Node, Hostname: r.Hostname,
		Trouble: loom.Trouble{Kind: r.Kind, Service: r.Service, Message: r.Message}, Since: r.Since, Ended: r.Ended.Time,
		Decision: r.Decision, Reason: r.Reason, DecidedBy: r.DecidedBy, DecidedAt: r.DecidedAt.Time, Operation: int(r.Operation.Int64)}
}

const incidentColumns = `i.id, i.cluster_id, i.node_id, i.service, i.kind, i.since, i.ended_at, i.message, i.decision, i.reason, i.decided_by, i.decided_at, i.operation`

// OpenIncidents reads the incidents that last on nodes whose health is locked, by node.
func OpenIncidents(ctx context.Context, tx *sqlx.Tx, nodes []loom.NodeID) (map[loom.NodeID][]loom.Incident, error) {
	var rows []incidentRow
	err := tx.SelectContext(ctx, &rows, `SELECT `+incidentColumns+` FROM incidents i WHERE i.node_id = ANY($1::uuid[]) AND i.ended_at IS NULL ORDER BY i.id`, pq.Array(nodes))
	open := map[loom.NodeID][]loom.Incident{}
	for i := range rows {
		open[rows[i].Node] = append(open[rows[i].Node], rows[i].incident())
	}
	return open, wrap(err, "read the incidents of %d nodes", len(nodes))
}

// NewIncident is a trouble of a node that begins.
type NewIncident struct {
	Tenant  loom.TenantID
	Cluster loom.ClusterID
	Node    loom.NodeID
	loom.Trouble
}

const insertIncidents = `
INSERT INTO incidents (tenant_id, cluster_id, node_id, service, kind, message)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::text[])`

// InsertIncidents records troubles that begin now.
func InsertIncidents(ctx context.Context, tx *sqlx.Tx, begun []NewIncident) error {
	n := len(begun)
	tenants, clusters, nodes, services, kinds, messages := make([]string, n), make([]int64, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, b := range begun {
		tenants[i], clusters[i], nodes[i], services[i], kinds[i], messages[i] = string(b.Tenant), int64(b.Cluster), string(b.Node), b.Service, string(b.Kind), cleanText(b.Message)
	}
	_, err := tx.ExecContext(ctx, insertIncidents, pq.Array(tenants), pq.Array(clusters), pq.Array(nodes), pq.Array(services), pq.Array(kinds), pq.Array(messages))
	return wrap(err, "record %d incidents", n)
}

// UpdateIncidents records what incidents that last are about now.
func UpdateIncidents(ctx context.Context, tx *sqlx.Tx, changed []loom.Incident) error {
	ids, kinds, messages := make([]int64, len(changed)), make([]string, len(changed)), make([]string, len(changed))
	for i, c := range changed {
		ids[i], kinds[i], messages[i] = c.ID, string(c.Kind), cleanText(c.Message)
	}
	_, err := tx.ExecContext(ctx, `UPDATE incidents i SET kind = x.kind, message = x.message FROM unnest($1::bigint[], $2::text[], $3::text[]) AS x (id, kind, message) WHERE i.id = x.id`,
		pq.Array(ids), pq.Array(kinds), pq.Array(messages))
	return wrap(err, "update %d incidents", len(changed))
}

// EndIncidents records that troubles are over now.
func EndIncidents(ctx context.Context, tx *sqlx.Tx, ended []loom.Incident) error {
	ids := make([]int64, len(ended))
	for i, e := range ended {
		ids[i] = e.ID
	}
	_, err := tx.ExecContext(ctx, `UPDATE incidents SET ended_at = now() WHERE id = ANY($1)`, pq.Array(ids))
	return wrap(err, "end %d incidents", len(ended))
}

// TrimIncidentsAllTenants deletes incidents that ended longer ago than age.
func TrimIncidentsAllTenants(ctx context.Context, tx *sqlx.Tx, age time.Duration) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM incidents WHERE ended_at < now() - make_interval(secs => $1)`, age.Seconds())
	return wrap(err, "trim incidents")
}

// IncidentFilter limits a list of incidents; empty parts mean any.
type IncidentFilter struct {
	// Owner is whose clusters the list is about.
	Owner     loom.UserID
	Cluster   loom.ClusterID
	Kinds     []string
	Decisions []string
	// Open limits it to those that last, or with false to those that are over.
	Open *bool
	// Since is inclusive.
	Since time.Time
}

var incidents = keyset{
	columns: incidentColumns + `, c.name AS cluster_name, n.hostname`,
	from:    `incidents i JOIN clusters c ON c.id = i.cluster_id JOIN nodes n ON n.id = i.node_id`,
	id:      "i.id", idKind: "bigint",
	sorts: map[string]sortColumn{"since": {"i.since", `to_char(i.since AT TIME ZONE 'UTC', '` + cursorTime + `')`, "timestamptz"}},
}

// IncidentList is a page of incidents, with the cursors of its neighbors.
type IncidentList struct {
	Items      []loom.Incident
	Next, Prev string
}

// Incidents reads a page of the incidents in a tenant, the newest first. Invalid for a cursor
// of another list.
func Incidents(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, f IncidentFilter, p loom.Page) (IncidentList, error) {
	var b binder
	conditions := []string{"i.tenant_id = " + b.add(tenant)}
	if f.Owner != "" {
		conditions = append(conditions, "c.owner_id = "+b.add(f.Owner))
	}
	if f.Cluster != 0 {
		conditions = append(conditions, "i.cluster_id = "+b.add(int64(f.Cluster)))
	}
	if len(f.Kinds) > 0 {
		conditions = append(conditions, "i.kind = ANY ("+b.add(pq.Array(f.Kinds))+")")
	}
	if len(f.Decisions) > 0 {
		conditions = append(conditions, "i.decision = ANY ("+b.add(pq.Array(f.Decisions))+")")
	}
	if f.Open != nil {
		conditions = append(conditions, map[bool]string{true: "i.ended_at IS NULL", false: "i.ended_at IS NOT NULL"}[*f.Open])
	}
	if !f.Since.IsZero() {
		conditions = append(conditions, "i.since >= "+b.add(f.Since))
	}
	rows, next, prev, err := readKeyset[incidentRow](ctx, q, incidents, conditions, &b, []any{"incidents", tenant, f}, p, "-since")
	if err != nil {
		return IncidentList{}, err
	}
	list := IncidentList{Items: make([]loom.Incident, len(rows)), Next: next, Prev: prev}
	for i := range rows {
		list.Items[i] = rows[i].incident()
	}
	return list, nil
}

// openIncidentsAllTenants counts incidents that last, by kind.
func openIncidentsAllTenants(ctx context.Context, q sqlx.ExtContext) (map[loom.IncidentKind]int, error) {
	var rows []struct {
		Kind loom.IncidentKind `db:"kind"`
		N    int               `db:"n"`
	}
	err := sqlx.SelectContext(ctx, q, &rows, `SELECT kind, count(*) AS n FROM incidents WHERE ended_at IS NULL GROUP BY kind`)
	counts := map[loom.IncidentKind]int{}
	for _, r := range rows {
		counts[r.Kind] = r.N
	}
	return counts, wrap(err, "count incidents")
}

type maintenanceRow struct {
	Node   sql.NullString `db:"node_id"`
	Until  time.Time      `db:"until"`
	Reason string         `db:"reason"`
	By     string         `db:"by_user"`
}

// maintenanceOf reads the maintenance that lasts for a cluster and its nodes.
func maintenanceOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID) ([]loom.Maintenance, error) {
	var rows []maintenanceRow
	err := sqlx.SelectContext(ctx, q, &rows, `
SELECT m.node_id, m.until, m.reason, m.by_user FROM maintenance m LEFT JOIN nodes n ON n.id = m.node_id
WHERE m.tenant_id = $1 AND m.cluster_id = $2 AND m.until > now() ORDER BY n.number NULLS FIRST`, tenant, int64(cluster))
	all := make([]loom.Maintenance, len(rows))
	for i, r := range rows {
		all[i] = loom.Maintenance{Node: loom.NodeID(r.Node.String), Until: r.Until, Reason: r.Reason, By: loom.UserID(r.By)}
	}
	return all, wrap(err, "read the maintenance of cluster %s", cluster)
}

const putMaintenance = `
INSERT INTO maintenance (tenant_id, cluster_id, node_id, until, reason, by_user)
SELECT c.tenant_id, c.id, n.id, $4, $5, $6 FROM clusters c, unnest($3::uuid[]) AS n (id) WHERE c.tenant_id = $1 AND c.id = $2
ON CONFLICT (cluster_id, node_id) DO UPDATE SET until = excluded.until, reason = excluded.reason, by_user = excluded.by_user`

// PutMaintenance announces maintenance of nodes of a cluster, of all together if none are
// named, in place of what was announced before for the same.
func PutMaintenance(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, nodes []loom.NodeID, m loom.Maintenance) error {
	_, err := tx.ExecContext(ctx, putMaintenance, tenant, int64(cluster), nodesOrNull(nodes), m.Until, m.Reason, m.By)
	return wrap(err, "announce maintenance of cluster %s", cluster)
}

// nodesOrNull is an array of ids, with NULL as its only one for the whole cluster.
func nodesOrNull(nodes []loom.NodeID) any {
	if len(nodes) == 0 {
		return pq.Array([]sql.NullString{{}})
	}
	return pq.Array(nodes)
}

// DeleteMaintenance ends maintenance of nodes of a cluster, all that there is if none are
// named, and returns how much that was.
func DeleteMaintenance(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, nodes []loom.NodeID) (int64, error) {
	result, err := tx.ExecContext(ctx, `DELETE FROM maintenance WHERE tenant_id = $1 AND cluster_id = $2 AND (cardinality($3::uuid[]) = 0 OR node_id = ANY ($3::uuid[]))`,
		tenant, int64(cluster), pq.Array(append([]loom.NodeID{}, nodes...)))
	if err != nil {
		return 0, wrap(err, "end maintenance of cluster %s", cluster)
	}
	return result.RowsAffected()
}

// DropMaintenanceAllTenants forgets maintenance that is over.
func DropMaintenanceAllTenants(ctx context.Context, tx *sqlx.Tx) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM maintenance m USING clusters c WHERE c.id = m.cluster_id AND (m.until <= now() OR c.status = 'terminated')`)
	return wrap(err, "forget maintenance that is over")
}

const expectedMachines = `
SELECT n.id AS node, n.incarnation, coalesce(n.results->>'providerid', '') AS machine, coalesce(n.results->>'local_host', '') AS host
FROM clusters c JOIN nodes n ON n.cluster_id = c.id JOIN node_health h ON h.node_id = n.id
WHERE c.tenant_id = $1 AND c.provider_name = $2 AND c.status <> 'terminated' AND n.state = 'ready'
  AND NOT EXISTS (SELECT FROM operations o WHERE o.cluster_id = c.id AND (o.ended_at >= $3 OR o.status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back')))
ORDER BY n.id`

// ExpectedMachines reads the machines that a list of a provider which began at a time should
// hold, by node: those of clusters that no operation has worked on since. Local machines on
// other hosts are left out.
func ExpectedMachines(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, provider string, began time.Time, process loom.ProcessID) ([]loom.MachineExpected, error) {
	var host string
	if err := sqlx.GetContext(ctx, q, &host, `SELECT host FROM processes WHERE id = $1`, process); err != nil {
		return nil, wrap(err, "read the host of process %s", process)
	}
	var rows []struct {
		Node        loom.NodeID `db:"node"`
		Incarnation int         `db:"incarnation"`
		Machine     string      `db:"machine"`
		Host        string      `db:"host"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, expectedMachines, tenant, provider, began); err != nil {
		return nil, wrap(err, "read the machines that provider %s should list", provider)
	}
	var expected []loom.MachineExpected
	for _, r := range rows {
		if r.Machine != "" && (r.Host == "" || r.Host == host) {
			expected = append(expected, loom.MachineExpected{Node: r.Node, Machine: r.Machine, Key: loom.IdempotencyKey(r.Node, r.Incarnation)})
		}
	}
	return expected, nil
}

const recordListed = `
UPDATE node_health h SET listed = x.state, listed_at = $3,
       missing_since = CASE WHEN x.state = 'missing' THEN CASE WHEN h.missing_since >= h.down_since THEN h.missing_since ELSE $3 END END,
       machine = CASE WHEN x.facts IS NULL THEN h.machine ELSE jsonb_build_object('first', coalesce(h.machine->'first', x.facts), 'last', x.facts) END
FROM unnest($1::uuid[], $2::text[], $4::jsonb[]) AS x (node, state, facts), (SELECT node_id FROM node_health WHERE node_id = ANY($1::uuid[]) ORDER BY node_id FOR UPDATE) AS locked
WHERE h.node_id = x.node AND locked.node_id = h.node_id`

// RecordListed records what a list of a provider which began at a time said of nodes.
func RecordListed(ctx context.Context, tx *sqlx.Tx, listed map[loom.NodeID]loom.TaggedMachine, began time.Time) error {
	nodes, words, all := make([]string, 0, len(listed)), make([]string, 0, len(listed)), make([]sql.NullString, 0, len(listed))
	for node, m := range listed {
		facts, known := m.Facts()
		nodes, words, all = append(nodes, string(node)), append(words, string(m.State)), append(all, sql.NullString{String: loom.JSONText(facts), Valid: known})
	}
	_, err := tx.ExecContext(ctx, recordListed, pq.Array(nodes), pq.Array(words), began, pq.Array(all))
	return wrap(err, "record what a provider said of %d nodes", len(listed))
}

const unlistedProviders = `
SELECT DISTINCT c.tenant_id, c.provider_name
FROM node_health h JOIN clusters c ON c.id = h.cluster_id
WHERE h.down_since IS NOT NULL AND c.status <> 'terminated'
  AND (h.listed_at IS NULL OR h.listed_at <= h.down_since OR h.listed = 'missing' AND h.status <> 'gone' OR h.listed_at < now() - make_interval(secs => $1)
       OR h.listed_at < now() - make_interval(secs => $2) AND EXISTS (SELECT FROM incidents i WHERE i.node_id = h.node_id AND i.ended_at IS NULL AND i.decision = 'held' AND i.reason = $3))
  AND NOT EXISTS (SELECT FROM provider_requests r WHERE r.tenant_id = c.tenant_id AND r.provider_name = c.provider_name AND r.purpose = 'sweep'
                  AND r.created_at > now() - make_interval(secs => $2))`

// SuspectedProvidersAllTenants finds providers to be asked about machines that do not answer:
// those that were not listed since they stopped answering, or again after a while, or whose repair
// waits for another list. No provider is asked twice within the pause.
func SuspectedProvidersAllTenants(ctx context.Context, tx *sqlx.Tx, again, pause time.Duration) ([]ProviderRef, error) {
	var refs []ProviderRef
	err := tx.SelectContext(ctx, &refs, unlistedProviders, again.Seconds(), pause.Seconds(), loom.HeldByOldList)
	return refs, wrap(err, "find providers to ask about machines that do not answer")
}
