package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// What must hold of an operation that has ended, each as a query of what is wrong with
// operation $1.
var wrongAtRest = []string{
	`SELECT 'the operation is still ' || o.status FROM operations o
	WHERE o.id = $1 AND o.status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back')`,
	`SELECT 'task ' || t.number || ' (' || t.action || ') is still ' || t.status FROM tasks t
	WHERE t.operation_id = $1 AND t.status IN ('blocked', 'ready', 'running')`,
	`SELECT 'attempt ' || a.number || ' of task ' || t.number || ' still runs' FROM tasks t JOIN attempts a ON a.task_id = t.id
	WHERE t.operation_id = $1 AND a.status = 'running'`,
	`SELECT 'task ' || t.number || ' is complete with ' || count(a.*) FILTER (WHERE a.status = 'complete') || ' complete attempts'
	FROM tasks t LEFT JOIN attempts a ON a.task_id = t.id
	WHERE t.operation_id = $1 AND NOT t.gate AND t.status = 'complete'
	GROUP BY t.id, t.number HAVING count(a.*) FILTER (WHERE a.status = 'complete') <> 1`,
	`SELECT 'task ' || t.number || ' is ' || t.status || ' though an attempt of it is complete'
	FROM tasks t WHERE t.operation_id = $1 AND t.status <> 'complete'
	  AND EXISTS (SELECT FROM attempts a WHERE a.task_id = t.id AND a.status = 'complete')`,
	`SELECT 'task ' || t.number || ' is complete with attempt ' || t.attempt || ', which is not the complete one'
	FROM tasks t JOIN attempts a ON a.task_id = t.id AND a.status = 'complete'
	WHERE t.operation_id = $1 AND a.number <> t.attempt`,
	`SELECT 'task ' || t.number || ' began before task ' || f.number || ' was over, on which it depends'
	FROM tasks f JOIN task_edges e ON e.from_task = f.id
	JOIN LATERAL (SELECT e.to_task AS id UNION ALL
		SELECT behind.to_task FROM tasks g JOIN task_edges behind ON behind.from_task = g.id WHERE g.id = e.to_task AND g.gate) AS next ON true
	JOIN tasks t ON t.id = next.id AND NOT t.gate
	JOIN attempts a ON a.task_id = f.id AND a.status = 'complete' JOIN attempts b ON b.task_id = t.id
	WHERE f.operation_id = $1 AND NOT f.gate AND b.started_at < a.ended_at
	  AND f.number < t.number -- what is put in before a retry comes after its first try`,
	`SELECT 'node ' || n.number || ' still holds task ' || t.number FROM operations o
	JOIN nodes n ON n.cluster_id = o.cluster_id JOIN tasks t ON t.id = n.task_id
	WHERE o.id = $1 AND t.operation_id = o.id`,
	`SELECT 'the River job of task ' || t.number || ', which is ' || t.status || ', is ' || r.state FROM tasks t JOIN river_job r ON r.id = t.river_job_id
	WHERE t.operation_id = $1 AND r.state::text <> CASE t.status WHEN 'complete' THEN 'completed' WHEN 'failed' THEN 'discarded' ELSE 'cancelled' END`,
	`SELECT 'a River job that looks for its end is ' || r.state FROM river_job r
	WHERE r.kind = 'end_operation' AND (r.args->>'operation_id')::bigint = $1 AND r.state NOT IN ('completed', 'cancelled', 'discarded')`,
	`SELECT 'the notice ' || d.id || ' waits without a River job' FROM hook_deliveries d
	WHERE d.operation_id = $1 AND d.status = 'waiting' AND NOT EXISTS (
		SELECT FROM river_job r WHERE r.kind = 'deliver_hook' AND (r.args->>'delivery_id')::bigint = d.id
		  AND r.state IN ('available', 'running', 'scheduled', 'retryable'))`,
}

// WrongAtRestAllTenants says what is wrong with an operation that has ended, one
// sentence each and at most 100 of a kind; none is how it must be.
func WrongAtRestAllTenants(ctx context.Context, q sqlx.ExtContext, id loom.OperationID) ([]string, error) {
	var wrong []string
	for _, query := range wrongAtRest {
		var found []string
		if err := sqlx.SelectContext(ctx, q, &found, query+` LIMIT 100`, id); err != nil {
			return nil, wrap(err, "look whether operation %d is at rest", id)
		}
		wrong = append(wrong, found...)
	}
	return wrong, nil
}

// From the first task that takes a node down, or its machine away, until its last start:
// in the middle of that it does not serve. What goes down later is counted at its
// beginning.
const mostDown = `
WITH spans AS (
	SELECT t.node_id, min(a.started_at) FILTER (WHERE t.action IN ('stop', 'delete')) AS down,
		max(a.ended_at) FILTER (WHERE t.action = 'start' AND a.status = 'complete') AS up
	FROM tasks t JOIN attempts a ON a.task_id = t.id
	WHERE t.operation_id = $1 AND t.action IN ('stop', 'delete', 'start')
	GROUP BY t.node_id)
SELECT coalesce(max(n), 0) FROM (
	SELECT count(*) AS n FROM spans s JOIN spans o ON o.down <= s.down AND s.down < o.up GROUP BY s.node_id) AS at_once`

// MostDownAllTenants gives how many nodes an operation that rolls had taken down at once.
func MostDownAllTenants(ctx context.Context, q sqlx.ExtContext, id loom.OperationID) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, mostDown, id)
	return n, wrap(err, "count what operation %d had taken down at once", id)
}

// TaskTries says how a task came to its end.
type TaskTries struct {
	Number   int    `db:"number"`
	NodeID   string `db:"node_id"`
	Service  string `db:"service"`
	Action   string `db:"action"`
	Status   string `db:"status"`
	Accepted int    `db:"accepted"` // number of the attempt that counts, 0 for none
	Begun    int    `db:"begun"`    // attempts of any outcome
	Failed   int    `db:"failed"`   // attempts that failed by themselves
}

const taskTries = `
SELECT t.number, t.node_id, t.service, t.action, t.status, coalesce(max(a.number) FILTER (WHERE a.status = 'complete'), 0) AS accepted,
	count(a.*) AS begun, count(a.*) FILTER (WHERE a.status = 'failed') AS failed
FROM tasks t LEFT JOIN attempts a ON a.task_id = t.id
WHERE t.operation_id = $1 AND NOT t.gate
GROUP BY t.id ORDER BY t.number`

// TaskTriesAllTenants lists the tasks of an operation by number.
func TaskTriesAllTenants(ctx context.Context, q sqlx.ExtContext, id loom.OperationID) ([]TaskTries, error) {
	var tries []TaskTries
	err := sqlx.SelectContext(ctx, q, &tries, taskTries, id)
	return tries, wrap(err, "read the tries of operation %d", id)
}

// CreateDatabase makes an empty database on the server of q. The name must be a
// plain identifier.
func CreateDatabase(ctx context.Context, q sqlx.ExecerContext, name string) error {
	_, err := q.ExecContext(ctx, `CREATE DATABASE "`+name+`"`)
	return wrap(err, "create the database %s", name)
}

// DatabaseName returns the name of the database of q.
func DatabaseName(ctx context.Context, q sqlx.QueryerContext) (string, error) {
	var name string
	err := sqlx.GetContext(ctx, q, &name, `SELECT current_database()`)
	return name, wrap(err, "read the name of the database")
}

// AllowConnections lets sessions connect to another database of the server of q, or ends those
// of an application and lets nobody connect.
func AllowConnections(ctx context.Context, q sqlx.ExecerContext, database, application string, allow bool) error {
	if _, err := q.ExecContext(ctx, fmt.Sprintf(`ALTER DATABASE "%s" ALLOW_CONNECTIONS %t`, database, allow)); err != nil || allow {
		return wrap(err, "let sessions connect to the database %s: %t", database, allow)
	}
	_, err := q.ExecContext(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND application_name = $2`, database, application)
	return wrap(err, "end the sessions of %s", application)
}

// AutomaticRepair is an operation that Loom began by itself, with the incident that it is for.
type AutomaticRepair struct {
	ID      int64              `db:"id"`
	Cluster loom.ClusterID     `db:"cluster_id"`
	Number  int                `db:"number"`
	Action  loom.ClusterAction `db:"action"`
	Created time.Time          `db:"created_at"`
	// Node is empty if no incident was recorded to be repaired by it.
	Node    loom.NodeID `db:"node_id"`
	Service string      `db:"service"`
	// Nodes counts the nodes of its provider, Incidents those with an incident that began in the
	// ten minutes before, and Members the nodes of its cluster.
	Nodes     int `db:"nodes"`
	Incidents int `db:"incidents"`
	Members   int `db:"members"`
}

// Incidents from right before the decision may not have been seen.
const automaticRepairs = `
SELECT o.id, o.cluster_id, o.number, o.action, o.created_at, coalesce(i.node_id::text, '') AS node_id, coalesce(i.service, '') AS service,
       (SELECT count(*) FROM clusters d JOIN nodes n ON n.cluster_id = d.id WHERE d.tenant_id = c.tenant_id AND d.provider_name = c.provider_name AND n.state = 'ready') AS nodes,
       (SELECT count(DISTINCT j.node_id) FROM clusters d JOIN incidents j ON j.cluster_id = d.id WHERE d.tenant_id = c.tenant_id AND d.provider_name = c.provider_name
          AND j.since > o.created_at - interval '10 minutes' AND j.since < o.created_at - interval '5 seconds') AS incidents,
       (SELECT count(*) FROM nodes n WHERE n.cluster_id = c.id AND n.state <> 'deleted') AS members
FROM operations o JOIN clusters c ON c.id = o.cluster_id
LEFT JOIN incidents i ON i.cluster_id = o.cluster_id AND i.operation = o.number AND i.decision = 'begun'
WHERE o.requested_by = 'system' AND o.id > $1 ORDER BY o.id`

// AutomaticRepairsAllTenants lists the operations that Loom began by itself after one.
func AutomaticRepairsAllTenants(ctx context.Context, q sqlx.ExtContext, after int64) ([]AutomaticRepair, error) {
	var repairs []AutomaticRepair
	err := sqlx.SelectContext(ctx, q, &repairs, automaticRepairs, after)
	return repairs, wrap(err, "list the repairs that Loom began")
}
