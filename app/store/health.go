package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// HealthChannel is the NOTIFY channel that tells provisioners that somebody asked for checks, or
// that an operation has ended.
const HealthChannel = "loom_health"

// latestWork is the number of the latest operation of cluster c that worked on its services or
// machines: adding keys changes neither, so what is known of them stays.
const latestWork = `coalesce((SELECT o.number FROM operations o WHERE o.cluster_id = c.id AND o.number <= c.latest_operation AND o.action <> 'cluster_authorize' ORDER BY o.number DESC LIMIT 1), c.latest_operation)`

// healthNodes reads every node that has a machine: what is known of it changes with
// operations only, and each process finds its share by itself.
const healthNodes = `
SELECT n.id, n.tenant_id, n.cluster_id, n.incarnation, ` + latestWork + ` AS operation, coalesce(n.results->>'local_host', '') AS local_host, n.service_states,
       n.id IN (SELECT t.node_id FROM operations o JOIN tasks t ON t.operation_id = o.id
                WHERE o.status IN ('running', 'failing', 'rolling_back') AND o.action <> 'cluster_authorize' AND NOT t.gate AND t.status IN ('blocked', 'ready', 'running')) AS changing,
       CASE WHEN h.wanted_at > coalesce(h.checked_at, '-infinity') THEN h.wanted_at END AS wanted_at
FROM clusters c JOIN nodes n ON n.cluster_id = c.id LEFT JOIN node_health h ON h.node_id = n.id
WHERE c.status <> 'terminated' AND n.state = 'ready' AND ($1 = '' OR n.tenant_id = $1)
ORDER BY n.cluster_id, n.number`

// HealthNodesAllTenants lists the nodes that have a machine, of one tenant or, with "", of
// all, by cluster and number.
func HealthNodesAllTenants(ctx context.Context, q sqlx.ExtContext, only loom.TenantID) ([]loom.HealthNode, error) {
	rows, err := q.QueryxContext(ctx, healthNodes, only)
	if err != nil {
		return nil, wrap(err, "list the nodes that are watched")
	}
	defer rows.Close()
	var nodes []loom.HealthNode
	for rows.Next() {
		var n loom.HealthNode
		var states []byte
		var wanted sql.NullTime
		if err := rows.Scan(&n.Node, &n.Tenant, (*int64)(&n.Cluster), &n.Incarnation, &n.Operation, &n.LocalHost, &states, &n.Changing, &wanted); err != nil {
			return nil, wrap(err, "list the nodes that are watched")
		}
		if err := decodeExact(states, &n.ServiceStates); err != nil {
			return nil, fmt.Errorf("read the services of node %s: %w", n.Node, err)
		}
		n.WantedAt = wanted.Time
		nodes = append(nodes, n)
	}
	return nodes, wrap(rows.Err(), "list the nodes that are watched")
}

// Leans on tasks_lives: a node has such a task as long as it is a node.
const createTasks = `
SELECT DISTINCT ON (t.node_id) t.node_id, t.id FROM unnest($1::text[], $2::bigint[], $3::uuid[]) AS x (tenant, cluster, node)
JOIN tasks t ON t.tenant_id = x.tenant AND t.cluster_id = x.cluster AND t.node_id = x.node
WHERE t.action IN ('create', 'delete') ORDER BY t.node_id, t.id DESC`

// SpecFactsOfNodesAllTenants reads what a task of each node would be built from, were there
// one, by node. Nodes that are gone are left out.
func SpecFactsOfNodesAllTenants(ctx context.Context, q sqlx.ExtContext, prepared *Prepared, nodes []loom.HealthNode) (map[loom.NodeID]*SpecFacts, error) {
	tenants, clusters, ids := make([]string, len(nodes)), make([]int64, len(nodes)), make([]string, len(nodes))
	for i, n := range nodes {
		tenants[i], clusters[i], ids[i] = string(n.Tenant), int64(n.Cluster), string(n.Node)
	}
	var rows []struct {
		Node loom.NodeID `db:"node_id"`
		Task loom.TaskID `db:"id"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, createTasks, pq.Array(tenants), pq.Array(clusters), pq.Array(ids)); err != nil {
		return nil, wrap(err, "find the tasks that made %d nodes", len(nodes))
	}
	tasks := make([]loom.TaskID, len(rows))
	for i, r := range rows {
		tasks[i] = r.Task
	}
	all, err := SpecFactsAllTenants(ctx, prepared, tasks...)
	if err != nil {
		return nil, err
	}
	facts := make(map[loom.NodeID]*SpecFacts, len(all))
	for i := range all {
		facts[all[i].Node.ID] = &all[i]
	}
	return facts, nil
}

// ClusterChecks is what a cluster says of its checks.
type ClusterChecks struct {
	Services map[string]loom.Service
	// Rule is that of its template.
	Rule loom.HealthRule
}

const clusterChecks = `
SELECT services, coalesce(template->'administration'->'health', '{}') AS rule FROM clusters WHERE tenant_id = $1 AND id = $2`

// ChecksOfCluster reads the services of a cluster and what its template says of checks.
// NotFound.
func ChecksOfCluster(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID) (ClusterChecks, error) {
	var row struct {
		Services []byte `db:"services"`
		Rule     []byte `db:"rule"`
	}
	var checks ClusterChecks
	if err := sqlx.GetContext(ctx, q, &row, clusterChecks, tenant, int64(cluster)); err != nil {
		return checks, wrap(err, "read the checks of cluster %s", cluster)
	}
	if err := decodeExact(row.Services, &checks.Services); err != nil {
		return checks, fmt.Errorf("read the services of cluster %s: %w", cluster, err)
	}
	if err := decodeExact(row.Rule, &checks.Rule); err != nil {
		return checks, fmt.Errorf("read the checks of cluster %s: %w", cluster, err)
	}
	return checks, nil
}

// HeldHealth is what is known of a node, locked.
type HeldHealth struct {
	loom.NodeHealth
	Tenant loom.TenantID
	// Incarnation and Operation are those that were seen; Now the ones that the node and its
	// cluster have.
	Incarnation, Operation       int
	NowIncarnation, NowOperation int
	// Busy says that an operation is at work on the node; Ready that it has a machine; Wanted
	// that somebody asked for a check since the last one; Maintained that maintenance was
	// announced for it; Waiting that an operation of its cluster is paused or not submitted.
	Busy, Ready, Wanted, Maintained, Waiting bool
}

const (
	insertHealth = `
INSERT INTO node_health (node_id, tenant_id, cluster_id, incarnation, operation, status)
SELECT n.id, n.tenant_id, n.cluster_id, 0, 0, 'unknown' FROM nodes n WHERE n.id = ANY($1::uuid[]) AND n.state = 'ready'
  AND NOT EXISTS (SELECT FROM node_health h WHERE h.node_id = n.id) ORDER BY n.id
ON CONFLICT DO NOTHING`
	healthColumns = `h.node_id, h.tenant_id, h.cluster_id, h.status, h.since, h.seen_at, h.checked_at, h.changed_at, h.interval_s, h.message, h.down_since, h.listed, h.listed_at, h.missing_since, h.cpu, h.memory, h.disk, h.services,
       h.boot_id, h.machine, h.drift`
	lockHealth = `
SELECT ` + healthColumns + `, h.incarnation, h.operation, n.incarnation AS now_incarnation, ` + latestWork + ` AS now_operation, n.state = 'ready' AS ready,
       coalesce(h.wanted_at > coalesce(h.checked_at, '-infinity'), false) AS wanted,
       EXISTS (SELECT FROM tasks t JOIN operations o ON o.id = t.operation_id WHERE t.id = n.task_id AND o.status IN ('running', 'failing', 'rolling_back') AND o.action <> 'cluster_authorize') AS busy,
       EXISTS (SELECT FROM maintenance m WHERE m.cluster_id = n.cluster_id AND (m.node_id IS NULL OR m.node_id = n.id) AND m.until > now()) AS maintained,
       EXISTS (SELECT FROM operations o WHERE o.cluster_id = c.id AND o.number = c.latest_operation AND o.status IN ('paused', 'not_submitted')) AS waiting
FROM node_health h JOIN nodes n ON n.id = h.node_id JOIN clusters c ON c.id = n.cluster_id
WHERE h.node_id = ANY($1::uuid[]) ORDER BY h.node_id FOR UPDATE OF h`
)

type healthRow struct {
	Node      loom.NodeID       `db:"node_id"`
	Tenant    loom.TenantID     `db:"tenant_id"`
	Cluster   int64             `db:"cluster_id"`
	Status    loom.HealthStatus `db:"status"`
	Since     time.Time         `db:"since"`
	SeenAt    sql.NullTime      `db:"seen_at"`
	CheckedAt sql.NullTime      `db:"checked_at"`
	ChangedAt time.Time         `db:"changed_at"`
	Interval  int               `db:"interval_s"`
	Message   string            `db:"message"`
	Down      sql.NullTime      `db:"down_since"`
	Listed    loom.MachineState `db:"listed"`
	ListedAt  sql.NullTime      `db:"listed_at"`
	Missing   sql.NullTime      `db:"missing_since"`
	CPU       int               `db:"cpu"`
	Memory    int               `db:"memory"`
	Disk      int               `db:"disk"`
	Services  []byte            `db:"services"`
	BootID    string            `db:"boot_id"`
	Machine   []byte            `db:"machine"`
	Drift     []byte            `db:"drift"`
}

func (r *healthRow) health() (loom.NodeHealth, error) {
	h := loom.NodeHealth{
		Node: r.Node, Cluster: loom.ClusterID(r.Cluster), Status: r.Status, Since: r.Since, SeenAt: r.SeenAt.Time, CheckedAt: r.CheckedAt.Time, ChangedAt: r.ChangedAt,
		Interval: time.Duration(r.Interval) * time.Second, Message: r.Message, DownSince: r.Down.Time,
		Listed: loom.Listed{State: r.Listed, At: r.ListedAt.Time, MissingSince: r.Missing.Time}, Load: loom.Load{CPU: r.CPU, Memory: r.Memory, Disk: r.Disk}, BootID: r.BootID,
	}
	err := decodeExact(r.Services, &h.Services)
	if err == nil && r.Machine != nil {
		err = decodeExact(r.Machine, &h.Machine)
	}
	if err == nil {
		err = decodeExact(r.Drift, &h.Drift)
	}
	if err != nil {
		return h, fmt.Errorf("read the health of node %s: %w", r.Node, err)
	}
	return h, nil
}

// ProcessLives reports whether the lease of a process runs.
func ProcessLives(ctx context.Context, q sqlx.QueryerContext, process loom.ProcessID) (bool, error) {
	var live bool
	err := sqlx.GetContext(ctx, q, &live, `SELECT EXISTS (SELECT FROM processes WHERE id = $1 AND expires_at > now())`, process)
	return live, wrap(err, "look for the lease of process %s", process)
}

// Now returns the time by the clock of the database; within a transaction, when that began.
func Now(ctx context.Context, q sqlx.QueryerContext) (time.Time, error) {
	var now time.Time
	err := sqlx.GetContext(ctx, q, &now, `SELECT now()`)
	return now, wrap(err, "read the time")
}

// LockHealth locks what is known of nodes, in the order of their ids, and returns it with the
// time by the clock of the database.
func LockHealth(ctx context.Context, tx *sqlx.Tx, nodes []loom.NodeID) (held []HeldHealth, now time.Time, err error) {
	if _, err := tx.ExecContext(ctx, insertHealth, pq.Array(nodes)); err != nil {
		return nil, now, wrap(err, "begin to record the health of %d nodes", len(nodes))
	}
	if now, err = Now(ctx, tx); err != nil {
		return nil, now, err
	}
	var rows []struct {
		healthRow
		Incarnation    int  `db:"incarnation"`
		Operation      int  `db:"operation"`
		NowIncarnation int  `db:"now_incarnation"`
		NowOperation   int  `db:"now_operation"`
		Busy           bool `db:"busy"`
		Ready          bool `db:"ready"`
		Wanted         bool `db:"wanted"`
		Maintained     bool `db:"maintained"`
		Waiting        bool `db:"waiting"`
	}
	if err := sqlx.SelectContext(ctx, tx, &rows, lockHealth, pq.Array(nodes)); err != nil {
		return nil, now, wrap(err, "lock the health of %d nodes", len(nodes))
	}
	held = make([]HeldHealth, len(rows))
	for i := range rows {
		r := &rows[i]
		h, err := r.health()
		if err != nil {
			return nil, now, err
		}
		held[i] = HeldHealth{NodeHealth: h, Tenant: r.Tenant, Incarnation: r.Incarnation, Operation: r.Operation,
			NowIncarnation: r.NowIncarnation, NowOperation: r.NowOperation, Busy: r.Busy, Ready: r.Ready, Wanted: r.Wanted, Maintained: r.Maintained, Waiting: r.Waiting}
	}
	return held, now, nil
}

const updateHealth = `
UPDATE node_health h SET incarnation = x.incarnation, operation = x.operation, status = x.status, since = x.since, seen_at = x.seen_at, checked_at = x.checked_at,
       changed_at = x.changed_at, interval_s = x.interval_s, message = x.message, down_since = x.down_since, cpu = x.cpu, memory = x.memory, disk = x.disk, services = x.services,
       boot_id = x.boot_id, machine = x.machine, drift = x.drift
FROM jsonb_to_recordset($1) AS x (node_id uuid, incarnation int, operation int, status text, since timestamptz, seen_at timestamptz, checked_at timestamptz,
       changed_at timestamptz, interval_s int, message text, down_since timestamptz, cpu smallint, memory smallint, disk smallint, services jsonb,
       boot_id text, machine jsonb, drift jsonb)
WHERE h.node_id = x.node_id`

// UpdateHealth records what is known of locked nodes now.
func UpdateHealth(ctx context.Context, tx *sqlx.Tx, held []HeldHealth) error {
	type record struct {
		Node        loom.NodeID                   `json:"node_id"`
		Incarnation int                           `json:"incarnation"`
		Operation   int                           `json:"operation"`
		Status      loom.HealthStatus             `json:"status"`
		Since       time.Time                     `json:"since"`
		SeenAt      *time.Time                    `json:"seen_at"`
		CheckedAt   *time.Time                    `json:"checked_at"`
		ChangedAt   time.Time                     `json:"changed_at"`
		Interval    int                           `json:"interval_s"`
		Message     string                        `json:"message"`
		DownSince   *time.Time                    `json:"down_since"`
		CPU         int                           `json:"cpu"`
		Memory      int                           `json:"memory"`
		Disk        int                           `json:"disk"`
		Services    map[string]loom.ServiceHealth `json:"services"`
		BootID      string                        `json:"boot_id"`
		Machine     loom.ListedMachine            `json:"machine,omitzero"`
		Drift       []loom.Drift                  `json:"drift"`
	}
	records := make([]record, len(held))
	for i := range held {
		h := &held[i]
		records[i] = record{h.Node, h.Incarnation, h.Operation, h.Status, h.Since, timeOrNil(h.SeenAt), timeOrNil(h.CheckedAt), h.ChangedAt,
			int(h.Interval.Seconds()), cleanText(h.Message), timeOrNil(h.DownSince), h.CPU, h.Memory, h.Disk, h.Services,
			h.BootID, h.Machine, append([]loom.Drift{}, h.Drift...)}
		if h.Services == nil {
			records[i].Services = map[string]loom.ServiceHealth{}
		}
	}
	data, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("encode the health of %d nodes: %w", len(held), err)
	}
	_, err = tx.ExecContext(ctx, updateHealth, data)
	return wrap(err, "record the health of %d nodes", len(held))
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

const (
	insertClusterHealth = `
INSERT INTO cluster_health (cluster_id, tenant_id, status)
SELECT id, tenant_id, 'unknown' FROM clusters WHERE id = ANY($1) AND status <> 'terminated' ORDER BY id ON CONFLICT DO NOTHING`
	lockClusterHealth = `
SELECT h.cluster_id, h.tenant_id, h.status FROM cluster_health h
WHERE h.cluster_id = ANY($1) ORDER BY h.cluster_id FOR UPDATE`
	healthOfClusters = `
SELECT ` + healthColumns + ` FROM node_health h JOIN nodes n ON n.id = h.node_id AND n.state = 'ready' WHERE h.cluster_id = ANY($1)`
)

// clusterHealth is the health h of cluster c as shown: of one whose create failed only what
// is bad is known, whatever its machines say, since it does not work yet.
const clusterHealth = `CASE WHEN c.status = 'incomplete' AND h.status NOT IN ('degraded', 'failing') THEN 'unknown' ELSE h.status END`

// ClusterHealthRow is what is known of a cluster, locked, with its nodes.
type ClusterHealthRow struct {
	Cluster loom.ClusterID
	Tenant  loom.TenantID
	Status  loom.HealthStatus
	Nodes   []loom.NodeHealth
}

// LockClusterHealth locks what is known of clusters, and reads their nodes after that: who
// records other nodes of the same cluster waits, and sees these.
func LockClusterHealth(ctx context.Context, tx *sqlx.Tx, clusters []loom.ClusterID) ([]ClusterHealthRow, error) {
	ids := idArray(clusters)
	if _, err := tx.ExecContext(ctx, insertClusterHealth, ids); err != nil {
		return nil, wrap(err, "begin to record the health of %d clusters", len(clusters))
	}
	var rows []struct {
		Cluster int64             `db:"cluster_id"`
		Tenant  loom.TenantID     `db:"tenant_id"`
		Status  loom.HealthStatus `db:"status"`
	}
	if err := sqlx.SelectContext(ctx, tx, &rows, lockClusterHealth, ids); err != nil {
		return nil, wrap(err, "lock the health of %d clusters", len(clusters))
	}
	var nodes []healthRow
	if err := sqlx.SelectContext(ctx, tx, &nodes, healthOfClusters, ids); err != nil {
		return nil, wrap(err, "read the health of the nodes of %d clusters", len(clusters))
	}
	of := map[int64][]loom.NodeHealth{}
	for i := range nodes {
		h, err := nodes[i].health()
		if err != nil {
			return nil, err
		}
		of[nodes[i].Cluster] = append(of[nodes[i].Cluster], h)
	}
	out := make([]ClusterHealthRow, len(rows))
	for i, r := range rows {
		out[i] = ClusterHealthRow{loom.ClusterID(r.Cluster), r.Tenant, r.Status, of[r.Cluster]}
	}
	return out, nil
}

const updateClusterHealth = `
UPDATE cluster_health h SET status = x.status, since = now() FROM unnest($1::bigint[], $2::text[]) AS x (id, status) WHERE h.cluster_id = x.id`

// UpdateClusterHealth records other statuses of locked clusters, by cluster.
func UpdateClusterHealth(ctx context.Context, tx *sqlx.Tx, statuses map[loom.ClusterID]loom.HealthStatus) error {
	ids, words := make([]int64, 0, len(statuses)), make([]string, 0, len(statuses))
	for id, status := range statuses {
		ids, words = append(ids, int64(id)), append(words, string(status))
	}
	_, err := tx.ExecContext(ctx, updateClusterHealth, pq.Array(ids), pq.Array(words))
	return wrap(err, "record the health of %d clusters", len(statuses))
}

const staleHealth = `
SELECT node_id FROM node_health
WHERE status NOT IN ('unknown', 'off', 'changing') AND seen_at < now() - make_interval(secs => $1 * interval_s)
   OR status = 'changing' AND NOT EXISTS (SELECT FROM operations o WHERE o.cluster_id = node_health.cluster_id AND o.status IN ('running', 'failing', 'rolling_back'))
      AND coalesce(seen_at, changed_at) < now() - make_interval(secs => $1 * interval_s)
ORDER BY node_id LIMIT $2`

// StaleHealthAllTenants finds nodes that were not heard from for longer than their results
// count, up to the given number.
func StaleHealthAllTenants(ctx context.Context, q sqlx.ExtContext, most int) ([]loom.NodeID, error) {
	var nodes []loom.NodeID
	err := sqlx.SelectContext(ctx, q, &nodes, staleHealth, loom.StaleAfter, most)
	return nodes, wrap(err, "find nodes that nobody checks")
}

const (
	dropNodeHealth = `
DELETE FROM node_health WHERE node_id IN (
    SELECT h.node_id FROM node_health h JOIN nodes n ON n.id = h.node_id WHERE n.state <> 'ready' ORDER BY h.node_id FOR UPDATE OF h SKIP LOCKED) RETURNING cluster_id`
	dropOfMachines = `
DELETE FROM TABLE WHERE node_id IN (
    SELECT x.node_id FROM TABLE x JOIN nodes n ON n.id = x.node_id WHERE n.state <> 'ready' ORDER BY x.node_id FOR UPDATE OF x SKIP LOCKED)`
	dropClusterHealth = `
DELETE FROM cluster_health h USING clusters c WHERE c.id = h.cluster_id AND c.status = 'terminated'`
	endIncidentsOfGone = `
UPDATE incidents i SET ended_at = now() FROM nodes n WHERE n.id = i.node_id AND n.state <> 'ready' AND i.ended_at IS NULL`
)

// DropHealthAllTenants forgets machines and clusters that are gone, and returns the clusters
// of the machines.
func DropHealthAllTenants(ctx context.Context, tx *sqlx.Tx) ([]loom.ClusterID, error) {
	var clusters []loom.ClusterID
	if err := tx.SelectContext(ctx, &clusters, dropNodeHealth); err != nil {
		return nil, wrap(err, "forget the health of machines that are gone")
	}
	for _, table := range []string{"node_load", "node_files"} {
		if _, err := tx.ExecContext(ctx, strings.ReplaceAll(dropOfMachines, "TABLE", table)); err != nil {
			return nil, wrap(err, "forget the %s of machines that are gone", table)
		}
	}
	if _, err := tx.ExecContext(ctx, dropClusterHealth); err != nil {
		return nil, wrap(err, "forget the health of clusters that are gone")
	}
	_, err := tx.ExecContext(ctx, endIncidentsOfGone)
	return clusters, wrap(err, "end the incidents of machines that are gone")
}

const nodeHealth = `
SELECT ` + healthColumns + ` FROM node_health h JOIN nodes n ON n.id = h.node_id AND n.state = 'ready'
WHERE h.tenant_id = $1 AND h.cluster_id = $2 ORDER BY n.number`

// HealthOfCluster reads what is known of a cluster and its nodes. A zero status: nothing yet.
func HealthOfCluster(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID) (loom.ClusterHealth, error) {
	var health loom.ClusterHealth
	var nodes []healthRow
	if err := sqlx.SelectContext(ctx, q, &nodes, nodeHealth, tenant, int64(cluster)); err != nil {
		return health, wrap(err, "read the health of cluster %s", cluster)
	}
	for i := range nodes {
		h, err := nodes[i].health()
		if err != nil {
			return health, err
		}
		health.Nodes = append(health.Nodes, h)
	}
	var own struct {
		Status   loom.HealthStatus `db:"status"`
		Since    sql.NullTime      `db:"since"`
		Policy   []byte            `db:"repair"`
		Template []byte            `db:"template_repair"`
	}
	err := sqlx.GetContext(ctx, q, &own, `
SELECT coalesce(`+clusterHealth+`, '') AS status, h.since, c.repair, coalesce(c.template->'administration'->'repair', '{}') AS template_repair
FROM clusters c LEFT JOIN cluster_health h ON h.cluster_id = c.id AND c.status <> 'terminated' WHERE c.tenant_id = $1 AND c.id = $2`, tenant, int64(cluster))
	if err != nil {
		return health, wrap(err, "read the health of cluster %s", cluster)
	}
	health.Status, health.Since = own.Status, own.Since.Time
	if health.Repair, err = repairPolicy(own.Policy, own.Template); err != nil {
		return health, fmt.Errorf("read the repair policy of cluster %s: %w", cluster, err)
	}
	health.CheckedAt = loom.HealthAsOf(health.Status, health.Nodes)
	health.Maintenance, err = maintenanceOf(ctx, q, tenant, cluster)
	return health, err
}

const wantChecks = `
UPDATE node_health h SET wanted_at = now() FROM nodes n
WHERE n.id = h.node_id AND n.state = 'ready' AND h.tenant_id = $1 AND h.cluster_id = $2 AND (cardinality($3::uuid[]) = 0 OR h.node_id = ANY($3::uuid[]))
  AND coalesce(h.wanted_at < now() - make_interval(secs => $4), true)`

// WantChecks notes that somebody wants nodes of a cluster checked now, all of them if none
// are named, and wakes provisioners. It returns how many; those that somebody asked for within
// the pause are left out.
func WantChecks(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, nodes []loom.NodeID, pause time.Duration) (int, error) {
	result, err := tx.ExecContext(ctx, wantChecks, tenant, int64(cluster), pq.Array(append([]loom.NodeID{}, nodes...)), pause.Seconds())
	if err != nil {
		return 0, wrap(err, "ask for checks of cluster %s", cluster)
	}
	n, err := result.RowsAffected()
	if err != nil || n == 0 {
		return 0, wrap(err, "ask for checks of cluster %s", cluster)
	}
	return int(n), wakeWatchers(ctx, tx)
}

// wakeWatchers lets provisioners read at once which nodes are to be looked at.
func wakeWatchers(ctx context.Context, tx *sqlx.Tx) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_notify($1, '')`, HealthChannel)
	return wrap(err, "wake those who check")
}

// HealthFiguresAllTenants counts nodes and clusters by health, and incidents that last.
func HealthFiguresAllTenants(ctx context.Context, q sqlx.ExtContext) (loom.HealthFigure, error) {
	figure := loom.HealthFigure{Nodes: map[loom.HealthStatus]int{}, Clusters: map[loom.HealthStatus]int{}}
	for query, into := range map[string]map[loom.HealthStatus]int{
		`SELECT status, count(*) AS n FROM node_health GROUP BY status`:    figure.Nodes,
		`SELECT status, count(*) AS n FROM cluster_health GROUP BY status`: figure.Clusters,
	} {
		var rows []struct {
			Status loom.HealthStatus `db:"status"`
			N      int               `db:"n"`
		}
		if err := sqlx.SelectContext(ctx, q, &rows, query); err != nil {
			return figure, wrap(err, "count nodes and clusters by health")
		}
		for _, r := range rows {
			into[r.Status] = r.N
		}
	}
	var err error
	figure.Incidents, err = openIncidentsAllTenants(ctx, q)
	return figure, err
}
