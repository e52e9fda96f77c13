package store

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

const tellsOnly = `
SELECT coalesce(c.services->t.service->'follows', '[]') <> '[]'
   AND NOT EXISTS (SELECT FROM tasks x WHERE x.operation_id = t.operation_id AND x.node_id = t.node_id AND x.service = t.service AND x.id <> t.id AND NOT x.gate)
FROM tasks t JOIN clusters c ON c.id = t.cluster_id WHERE t.id = $1`

// TellsOnly reports whether a held task tells a following service of what changed, and
// its operation does nothing else to that service there.
func TellsOnly(ctx context.Context, tx *sqlx.Tx, h *HeldTask) (bool, error) {
	if h.Service == "" || h.Action != loom.ActionConfigure {
		return false, nil
	}
	var only bool
	err := tx.GetContext(ctx, &only, tellsOnly, h.Key.Task)
	return only, wrap(err, "look what else is done to %s by operation %s", h.Service, h.Operation.Ref)
}

// What waits for a task that is not complete is blocked, so no node holds it. Behind what
// was dropped before everything was.
const dropBehind = `
WITH RECURSIVE behind (id) AS (
	SELECT t.id FROM task_edges e JOIN tasks t ON t.id = e.to_task
	WHERE e.from_task = $1 AND t.status = 'blocked' AND t.id <> (SELECT o.end_gate FROM operations o WHERE o.id = $2)
	UNION
	SELECT t.id FROM behind b JOIN task_edges e ON e.from_task = b.id JOIN tasks t ON t.id = e.to_task
	WHERE t.status = 'blocked' AND t.id <> (SELECT o.end_gate FROM operations o WHERE o.id = $2)
), held AS (
	SELECT t.id FROM behind b JOIN tasks t ON t.id = b.id ORDER BY t.gate DESC, t.id FOR UPDATE OF t
)
UPDATE tasks t SET status = 'dropped', ended_at = clock_timestamp() FROM held h WHERE t.id = h.id
RETURNING t.id`

// Tasks whose successors are all given up are the last ones now.
const joinEnd = `
WITH live AS MATERIALIZED (
	SELECT g.id FROM tasks g
	WHERE g.operation_id = $1 AND g.gate AND g.status = 'blocked'
	  AND EXISTS (SELECT FROM task_edges f JOIN tasks x ON x.id = f.to_task WHERE f.from_task = g.id AND x.status = 'blocked' OFFSET 0)
)
INSERT INTO task_edges (from_task, to_task)
SELECT t.id, o.end_gate FROM operations o JOIN tasks t ON t.operation_id = o.id
WHERE o.id = $1 AND NOT t.gate AND t.status IN ('blocked', 'ready', 'running')
  AND NOT EXISTS (SELECT FROM task_edges e JOIN tasks x ON x.id = e.to_task
                  WHERE e.from_task = t.id AND x.status = 'blocked' AND (NOT x.gate OR x.id IN (SELECT live.id FROM live)) OFFSET 0)
ON CONFLICT DO NOTHING`

const countEnd = `
WITH open AS (
	SELECT o.end_gate, (SELECT count(*)::int FROM task_edges e JOIN tasks t ON t.id = e.from_task
	                    WHERE e.to_task = o.end_gate AND t.status IN ('blocked', 'ready', 'running')) AS n
	FROM operations o WHERE o.id = $1
)
UPDATE tasks g
SET remaining = open.n, status = CASE WHEN open.n = 0 THEN 'complete' ELSE g.status END,
	ended_at = CASE WHEN open.n = 0 THEN clock_timestamp() END
FROM open WHERE g.id = open.end_gate AND g.status = 'blocked'
RETURNING g.remaining = 0`

// DropBehind gives up all that waits, at whatever distance, for a task that was given
// up; the rest of its operation, which the caller holds, goes on. It reports true when
// there is no rest.
func DropBehind(ctx context.Context, tx *sqlx.Tx, h *HeldTask) (bool, error) {
	var dropped []int64
	if err := tx.SelectContext(ctx, &dropped, dropBehind, h.Key.Task, h.Operation.Row); err != nil {
		return false, wrap(err, "drop what waits for task %d", h.Key.Task)
	}
	if _, err := tx.ExecContext(ctx, joinEnd, h.Operation.Row); err != nil {
		return false, wrap(err, "let the end of operation %s wait for what is left", h.Operation.Ref)
	}
	var over bool
	if err := tx.GetContext(ctx, &over, countEnd, h.Operation.Row); err != nil {
		return false, wrap(err, "count what is left of operation %s", h.Operation.Ref)
	}
	if err := promote(ctx, tx, []string{string(h.Node)}); err != nil {
		return false, err
	}
	return over, deliver(ctx, tx, false, dropped...)
}

// NoteFailure says in a held operation that goes on what failed in it first.
func NoteFailure(ctx context.Context, tx *sqlx.Tx, h *HeldTask, message string) error {
	var first bool
	err := tx.GetContext(ctx, &first, `SELECT NOT EXISTS (SELECT FROM tasks WHERE operation_id = $1 AND status = 'failed' AND id <> $2 AND NOT gate)`, h.Operation.Row, h.Key.Task)
	if err != nil {
		return wrap(err, "look for the first failure of operation %s", h.Operation.Ref)
	}
	if !first {
		return InsertEvents(ctx, tx, operationEvents(&h.Operation)...)
	}
	return setOperation(ctx, tx, &h.Operation, h.Operation.Status, message)
}

const firstFailure = `
SELECT t.number, t.action, t.service, t.message, n.number AS node_number, n.hostname
FROM tasks t JOIN nodes n ON n.id = t.node_id
WHERE t.operation_id = $1 AND t.status = 'failed' AND NOT t.gate AND NOT t.undo ORDER BY t.ended_at, t.number LIMIT 1`

// Failure is a task that was given up.
type Failure struct {
	Number     int    `db:"number"`
	Action     string `db:"action"`
	Service    string `db:"service"`
	Message    string `db:"message"`
	NodeNumber int    `db:"node_number"`
	Hostname   string `db:"hostname"`
}

// FirstFailure is the task of a held operation that was given up first; NotFound.
func FirstFailure(ctx context.Context, tx *sqlx.Tx, op *loom.Operation) (Failure, error) {
	var f Failure
	err := tx.GetContext(ctx, &f, firstFailure, op.Row)
	return f, wrap(err, "read what failed in operation %s", op.Ref)
}

// BeginFailing makes a held operation failing of which nothing is left to run.
func BeginFailing(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, message string) error {
	return setOperation(ctx, tx, op, loom.OperationFailing, message)
}
