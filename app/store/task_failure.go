package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
	"loom/jobs"
)

// HeldTask is a task that its transaction holds, with its operation, FOR NO KEY UPDATE.
type HeldTask struct {
	Operation loom.Operation
	Key       AttemptKey
	Number    int
	Node      loom.NodeID
	// NodeNumber is the number of the node in its cluster, Hostname its name.
	NodeNumber int
	Hostname   string
	Service    string
	Action     loom.TaskAction
	Status     loom.TaskStatus
	// HasMachine says that the node's facts hold a provider id.
	HasMachine bool
	// Made says that the operation, or one that it goes on with, tried to create that.
	Made bool
	// History are the outcomes of the attempts before this one, oldest first.
	History []loom.AttemptStatus

	level, rank int
	undo        bool
	riverJob    int64
}

const lockOperation = `
SELECT ` + operationColumns + ` FROM operations WHERE id = $1 FOR NO KEY UPDATE`

// LockOperationAllTenants locks an operation by its row id.
func LockOperationAllTenants(ctx context.Context, tx *sqlx.Tx, id loom.OperationID) (loom.Operation, error) {
	var row operationRow
	if err := tx.GetContext(ctx, &row, lockOperation, id); err != nil {
		return loom.Operation{}, wrap(err, "lock operation %d", id)
	}
	return row.operation(), nil
}

const lockTask = `
SELECT t.number, t.node_id, n.number AS node_number, n.hostname, t.undo, t.service, t.action, t.status, t.level, t.rank, t.attempt, coalesce(t.river_job_id, 0) AS river_job_id,
	coalesce(n.results->>'providerid', '') <> '' AS has_machine,
	EXISTS (
		WITH RECURSIVE chain AS (
			SELECT o.id, o.cluster_id, o.concerns, o.retries FROM operations o WHERE o.id = t.operation_id
			UNION ALL
			SELECT o.id, o.cluster_id, o.concerns, o.retries FROM chain c JOIN operations o ON o.cluster_id = c.cluster_id AND o.number = c.concerns
			WHERE c.retries
		)
		SELECT FROM chain c JOIN tasks m ON m.operation_id = c.id
		WHERE m.node_id = t.node_id AND m.action = 'create' AND NOT m.gate AND m.attempt > 0
	) AS made
FROM tasks t JOIN nodes n ON n.id = t.node_id
WHERE t.id = $1 FOR UPDATE OF t`

const attemptsBefore = `
SELECT CASE WHEN status = 'interrupted' AND code = $3 THEN 'waited' ELSE status END
FROM attempts WHERE task_id = $1 AND number < $2 ORDER BY number`

// LockTaskAllTenants locks the operation of a task and then the task itself. The
// fence is left to the caller: Status and Key.Attempt are those of the row.
func LockTaskAllTenants(ctx context.Context, tx *sqlx.Tx, task loom.TaskID) (HeldTask, error) {
	var operation int64
	if err := tx.GetContext(ctx, &operation, `SELECT operation_id FROM tasks WHERE id = $1 AND NOT gate`, task); err != nil {
		return HeldTask{}, wrap(err, "find the operation of task %d", task)
	}
	op, err := LockOperationAllTenants(ctx, tx, loom.OperationID(operation))
	if err != nil {
		return HeldTask{}, err
	}
	var row struct {
		Number     int    `db:"number"`
		Node       string `db:"node_id"`
		NodeNumber int    `db:"node_number"`
		Hostname   string `db:"hostname"`
		Undo       bool   `db:"undo"`
		Service    string `db:"service"`
		Action     string `db:"action"`
		Status     string `db:"status"`
		Level      int    `db:"level"`
		Rank       int    `db:"rank"`
		Attempt    int    `db:"attempt"`
		RiverJob   int64  `db:"river_job_id"`
		HasMachine bool   `db:"has_machine"`
		Made       bool   `db:"made"`
	}
	if err := tx.GetContext(ctx, &row, lockTask, task); err != nil {
		return HeldTask{}, wrap(err, "lock task %d", task)
	}
	h := HeldTask{
		Operation: op, Key: AttemptKey{task, row.Attempt}, Number: row.Number, Node: loom.NodeID(row.Node), NodeNumber: row.NodeNumber, Hostname: row.Hostname, Service: row.Service,
		Action: loom.TaskAction(row.Action), Status: loom.TaskStatus(row.Status), HasMachine: row.HasMachine, Made: row.Made,
		level: row.Level, rank: row.Rank, undo: row.Undo, riverJob: row.RiverJob,
	}
	err = tx.SelectContext(ctx, &h.History, attemptsBefore, task, row.Attempt, loom.StatusWaits)
	return h, wrap(err, "read the attempts of task %d", task)
}

const closeAttempt = `
UPDATE attempts SET status = $3, code = $4, message = $5, stdout = $6, stderr = $7, facts = $8::jsonb, ended_at = clock_timestamp()
WHERE task_id = $1 AND number = $2`

// CloseAttempt ends the attempt that holds the task with an outcome other than
// success and merges what it learned into the node.
func CloseAttempt(ctx context.Context, tx *sqlx.Tx, h *HeldTask, status loom.AttemptStatus, r loom.TaskResult) error {
	facts, err := factsBody(r.Result)
	if err != nil {
		return fmt.Errorf("result of task %d: %w", h.Key.Task, err)
	}
	_, err = tx.ExecContext(ctx, closeAttempt, h.Key.Task, h.Key.Attempt, status, r.Status, cleanText(r.Message), tail(r.Stdout), tail(r.Stderr), facts)
	if err != nil {
		return wrap(err, "close attempt %d of task %d", h.Key.Attempt, h.Key.Task)
	}
	return AddFacts(ctx, tx, h.Operation.Tenant, h.Node, r.Result)
}

// factsBody is the JSON of facts, nil where there are none.
func factsBody(results map[string]any) (*string, error) {
	facts := Facts(results)
	if len(facts) == 0 {
		return nil, nil
	}
	body, err := json.Marshal(facts)
	if err != nil {
		return nil, fmt.Errorf("marshal facts: %w", err)
	}
	text := cleanJSON(body)
	return &text, nil
}

// AddFacts merges facts into a node, whoever holds it.
func AddFacts(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, node loom.NodeID, results map[string]any) error {
	facts, err := factsBody(results)
	if err != nil || facts == nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE nodes SET results = loom_merge(results, $3::jsonb) WHERE tenant_id = $1 AND id = $2`, tenant, node, *facts)
	return wrap(err, "merge facts into node %s", node)
}

// deliver puts the River jobs of tasks where they belong. Over says that what River has
// delivered of them came to its end.
func deliver(ctx context.Context, tx *sqlx.Tx, over bool, tasks ...int64) error {
	_, err := tx.ExecContext(ctx, `SELECT loom_deliver($1, $2)`, pq.Array(tasks), over)
	return wrap(err, "deliver %d tasks", len(tasks))
}

const delayJob = `UPDATE river_job SET scheduled_at = now() + make_interval(secs => $2) WHERE id = $1`

// deliverAfter is deliver for a held task whose attempt is over, not before a delay.
func deliverAfter(ctx context.Context, tx *sqlx.Tx, h *HeldTask, delay time.Duration) error {
	if _, err := tx.ExecContext(ctx, delayJob, h.riverJob, delay.Seconds()); err != nil {
		return wrap(err, "delay task %d", h.Key.Task)
	}
	return deliver(ctx, tx, true, int64(h.Key.Task))
}

const setTask = `
UPDATE tasks SET status = $2, code = $3, message = $4, ended_at = CASE WHEN $2 IN ('failed', 'dropped') THEN clock_timestamp() END,
	remaining = remaining + $5
WHERE id = $1`

func setTaskStatus(ctx context.Context, tx *sqlx.Tx, h *HeldTask, status loom.TaskStatus, code int, message string, more int) error {
	_, err := tx.ExecContext(ctx, setTask, h.Key.Task, string(status), code, cleanText(message), more)
	return wrap(err, "make task %d %s", h.Key.Task, status)
}

// RetryTask lets a task run again after a delay; its node keeps holding it.
func RetryTask(ctx context.Context, tx *sqlx.Tx, h *HeldTask, delay time.Duration, r loom.TaskResult) error {
	if err := setTaskStatus(ctx, tx, h, loom.TaskReady, r.Status, r.Message, 0); err != nil {
		return err
	}
	return deliverAfter(ctx, tx, h, delay)
}

const retryNow = `
UPDATE river_job SET state = 'available', scheduled_at = now() WHERE id = $1 AND state IN ('scheduled', 'retryable')`

// RetryNow makes the next try of a held task, which waits for its time, due at once;
// false where it does not wait for that.
func RetryNow(ctx context.Context, tx *sqlx.Tx, h *HeldTask) (bool, error) {
	result, err := tx.ExecContext(ctx, retryNow, h.riverJob)
	if err != nil {
		return false, wrap(err, "retry task %d now", h.Key.Task)
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return false, wrap(err, "retry task %d now", h.Key.Task)
	}
	return true, WakeQueues(ctx, tx, jobs.TenantQueue(h.Operation.Tenant))
}

// LastCode is the status code of the last attempt of a held task.
func LastCode(ctx context.Context, tx *sqlx.Tx, h *HeldTask) (int, error) {
	var code int
	err := tx.GetContext(ctx, &code, `SELECT code FROM tasks WHERE id = $1`, h.Key.Task)
	return code, wrap(err, "read the code of task %d", h.Key.Task)
}

const insertTask = `
INSERT INTO tasks (id, operation_id, tenant_id, cluster_id, number, node_id, action, action_order, level, rank, status, remaining, river_job_id, undo)
SELECT $1, $2, $3, $4, (SELECT max(number) FROM tasks WHERE operation_id = $2) + 1, $5, $6, $7, $8, $9, $10, $11, $12, $13`

// RecreateFirst puts new tasks into the node's own chain before the held task,
// which waits for the last of them.
func RecreateFirst(ctx context.Context, tx *sqlx.Tx, h *HeldTask, actions []loom.TaskAction, r loom.TaskResult) error {
	rows, err := reserveIDs(ctx, tx, "tasks_id_seq", len(actions))
	if err != nil {
		return err
	}
	river, err := reserveIDs(ctx, tx, "river_job_id_seq", len(actions))
	if err != nil {
		return err
	}
	if err := insertRiverJobs(ctx, tx, h.Operation.Tenant, river, rows); err != nil {
		return err
	}
	for i, action := range actions {
		waits := min(i, 1)
		_, err := tx.ExecContext(ctx, insertTask, rows[i], h.Operation.Row, h.Operation.Tenant, h.Operation.Ref.Cluster, h.Node,
			string(action), action.Order(), h.level, h.rank+len(actions)-i, string(taskStart(waits)), waits, river[i], h.undo)
		if err != nil {
			return wrap(err, "insert %s before task %d", action, h.Key.Task)
		}
		next := int64(h.Key.Task)
		if i+1 < len(rows) {
			next = rows[i+1]
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO task_edges (from_task, to_task) VALUES ($1, $2)`, rows[i], next); err != nil {
			return wrap(err, "join %s to what follows", action)
		}
	}
	if err := setTaskStatus(ctx, tx, h, loom.TaskBlocked, r.Status, r.Message, 1); err != nil {
		return err
	}
	if err := freeNode(ctx, tx, h); err != nil {
		return err
	}
	if err := deliverAfter(ctx, tx, h, 0); err != nil {
		return err
	}
	return promote(ctx, tx, []string{string(h.Node)})
}

func freeNode(ctx context.Context, tx *sqlx.Tx, h *HeldTask) error {
	_, err := tx.ExecContext(ctx, `UPDATE nodes SET task_id = NULL WHERE id = $1 AND task_id = $2`, h.Node, h.Key.Task)
	return wrap(err, "free node %s", h.Node)
}

const markNode = `
UPDATE nodes SET state = 'failed', task_id = CASE WHEN task_id = $2 THEN NULL ELSE task_id END,
	service_states = CASE WHEN $3 = '' THEN service_states ELSE service_states || jsonb_build_object($3::text, 'failed') END
WHERE id = $1`

// GiveUpTask ends a task for good, as failed or, where it was stopped through no
// fault of its own, as dropped.
func GiveUpTask(ctx context.Context, tx *sqlx.Tx, h *HeldTask, status loom.TaskStatus, r loom.TaskResult) error {
	if err := setTaskStatus(ctx, tx, h, status, r.Status, r.Message, 0); err != nil {
		return err
	}
	var err error
	if status == loom.TaskDropped || h.Action == loom.ActionKeys { // says nothing against the machine, which serves as before
		err = freeNode(ctx, tx, h)
	} else {
		_, err = tx.ExecContext(ctx, markNode, h.Node, h.Key.Task, h.Service)
		err = wrap(err, "mark node %s as failed", h.Node)
	}
	if err != nil {
		return err
	}
	return deliver(ctx, tx, true, int64(h.Key.Task))
}

// SignalTask tells open pages of a change to a task and its node.
func SignalTask(ctx context.Context, tx *sqlx.Tx, h *HeldTask) error {
	_, err := tx.ExecContext(ctx, `SELECT loom_signal($1, $2::uuid[])`, pq.Array([]int64{int64(h.Key.Task)}), pq.Array([]string{string(h.Node)}))
	return wrap(err, "signal task %d", h.Key.Task)
}

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
