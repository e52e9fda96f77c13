package store

import (
	"context"

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
