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

// AttemptKey names one try of one task: River's attempt number fences results.
type AttemptKey struct {
	Task    loom.TaskID `db:"task_id"`
	Attempt int         `db:"attempt"`
}

func splitKeys(keys []AttemptKey) (tasks []int64, attempts []int64) {
	tasks, attempts = make([]int64, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		tasks[i], attempts[i] = int64(k.Task), int64(k.Attempt)
	}
	return tasks, attempts
}

// StartTasksAllTenants begins attempts of delivered tasks for a process and gives
// those that began. The River jobs of the others were put where they belong.
func StartTasksAllTenants(ctx context.Context, tx *sqlx.Tx, process loom.ProcessID, keys []AttemptKey) ([]AttemptKey, error) {
	tasks, attempts := splitKeys(keys)
	var begun []AttemptKey
	err := tx.SelectContext(ctx, &begun, `SELECT task_id, attempt FROM loom_start($1, $2, $3)`, pq.Array(tasks), pq.Array(attempts), process)
	return begun, wrap(err, "start %d tasks", len(keys))
}

// storedResult is what loom_complete takes of a result.
type storedResult struct {
	Message   string            `json:"message,omitempty"`
	Hostname  string            `json:"hostname,omitempty"`
	Addresses map[string]string `json:"ipaddresses,omitempty"`
	Result    map[string]any    `json:"result,omitempty"`
}

// CompleteTasksAllTenants records successes, results[i] of keys[i], frees what
// waited for them and gives the tasks it accepted; the others are not running
// with that attempt any more.
func CompleteTasksAllTenants(ctx context.Context, tx *sqlx.Tx, keys []AttemptKey, results []loom.TaskResult) ([]loom.TaskID, error) {
	tasks, attempts := splitKeys(keys)
	bodies := make([]string, len(results))
	for i, r := range results {
		body, err := json.Marshal(storedResult{cleanText(r.Message), r.Hostname, r.Addresses, Facts(r.Result)})
		if err != nil {
			return nil, fmt.Errorf("marshal the result of task %d: %w", keys[i].Task, err)
		}
		bodies[i] = cleanJSON(body)
	}
	var done []loom.TaskID
	err := tx.SelectContext(ctx, &done, `SELECT task_id FROM loom_complete($1, $2, $3::jsonb[])`, pq.Array(tasks), pq.Array(attempts), pq.Array(bodies))
	return done, wrap(err, "complete %d tasks", len(keys))
}

// Facts gives the results that may be merged into a node: those not named like a
// fixed key of the payload.
func Facts(results map[string]any) map[string]any {
	if len(results) == 0 {
		return nil
	}
	facts := make(map[string]any, len(results))
	for key, value := range results {
		if !loom.FixedConfigKey(key) {
			facts[key] = value
		}
	}
	return facts
}

const mergeFacts = `
UPDATE nodes n SET results = loom_merge(n.results, $3::jsonb)
FROM tasks t
WHERE t.id = $1 AND t.attempt = $2 AND t.status = 'running' AND n.id = t.node_id`

// MergeFactsAllTenants merges facts into the node of a running attempt at once;
// false says that the attempt does not hold its task any more.
func MergeFactsAllTenants(ctx context.Context, tx *sqlx.Tx, key AttemptKey, facts map[string]any) (bool, error) {
	body, err := json.Marshal(Facts(facts))
	if err != nil {
		return false, fmt.Errorf("marshal facts of task %d: %w", key.Task, err)
	}
	result, err := tx.ExecContext(ctx, mergeFacts, key.Task, key.Attempt, cleanJSON(body))
	if err != nil {
		return false, wrap(err, "store facts of task %d", key.Task)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// Lost is a process whose lease was over, with the tasks that went back.
type Lost struct {
	Process loom.ProcessID
	Kind    string
	Tasks   []loom.TaskID
}

// ReapAllTenants removes processes whose lease is over and returns their work.
func ReapAllTenants(ctx context.Context, tx *sqlx.Tx) ([]Lost, error) {
	var rows []struct {
		Process string        `db:"process_id"`
		Kind    string        `db:"kind"`
		Tasks   pq.Int64Array `db:"tasks"`
	}
	if err := tx.SelectContext(ctx, &rows, `SELECT process_id, kind, coalesce(tasks, '{}') AS tasks FROM loom_reap()`); err != nil {
		return nil, wrap(err, "reap lost processes")
	}
	lost := make([]Lost, len(rows))
	for i, r := range rows {
		lost[i] = Lost{Process: loom.ProcessID(r.Process), Kind: r.Kind}
		for _, id := range r.Tasks {
			lost[i].Tasks = append(lost[i].Tasks, loom.TaskID(id))
		}
	}
	return lost, nil
}

const openOperations = `
SELECT id FROM operations WHERE status IN ('running', 'rolling_back', 'paused', 'failing') ORDER BY id`

// OpenOperationsAllTenants lists the operations that have not ended.
func OpenOperationsAllTenants(ctx context.Context, q sqlx.ExtContext) ([]loom.OperationID, error) {
	var ids []loom.OperationID
	err := sqlx.SelectContext(ctx, q, &ids, openOperations)
	return ids, wrap(err, "list open operations")
}

// ReconcileAllTenants puts right what crashes may leave in an operation and says
// how many things it touched. One operation per transaction: its locks are those
// of one operation only.
func ReconcileAllTenants(ctx context.Context, tx *sqlx.Tx, id loom.OperationID) (int, error) {
	var n int
	err := tx.GetContext(ctx, &n, `SELECT loom_reconcile($1)`, id)
	return n, wrap(err, "reconcile operation %d", id)
}

// WakeWaitingAllTenants wakes the queues on which something waits for longer than
// a moment.
func WakeWaitingAllTenants(ctx context.Context, q sqlx.ExecerContext) error {
	_, err := q.ExecContext(ctx, `SELECT loom_wake_waiting()`)
	return wrap(err, "wake queues on which work waits")
}

const overdue = `
SELECT t.id AS task_id, t.attempt
FROM tasks t
JOIN attempts a ON a.task_id = t.id AND a.number = t.attempt AND a.status = 'running'
LEFT JOIN unnest($1::text[], $2::float8[]) AS l (action, seconds) ON l.action = t.action
WHERE t.status = 'running' AND a.started_at < now() - make_interval(secs => coalesce(l.seconds, $3) + $4)
ORDER BY t.id LIMIT 1000`

// OverdueAllTenants finds running attempts that are past the limit of their
// action, or otherwise's where an action has none, by more than grace.
func OverdueAllTenants(ctx context.Context, q sqlx.ExtContext, limits map[loom.TaskAction]time.Duration, otherwise, grace time.Duration) ([]AttemptKey, error) {
	var actions []string
	var seconds []float64
	for action, limit := range limits {
		actions, seconds = append(actions, string(action)), append(seconds, limit.Seconds())
	}
	var keys []AttemptKey
	err := sqlx.SelectContext(ctx, q, &keys, overdue, pq.Array(actions), pq.Array(seconds), otherwise.Seconds(), grace.Seconds())
	return keys, wrap(err, "look for overdue attempts")
}

const weary = `
SELECT t.id AS task_id, t.attempt FROM tasks t
WHERE t.id = ANY($1) AND t.status = 'ready'
  AND (SELECT count(*) FILTER (WHERE last.status = 'interrupted')
       FROM (SELECT a.status FROM attempts a WHERE a.task_id = t.id ORDER BY a.number DESC LIMIT $2) AS last) >= $2`

// WearyTasksAllTenants gives those of the waiting tasks whose newest attempts,
// limit of them in a row, were all interrupted.
func WearyTasksAllTenants(ctx context.Context, q sqlx.ExtContext, tasks []loom.TaskID, limit int) ([]AttemptKey, error) {
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = int64(t)
	}
	var keys []AttemptKey
	err := sqlx.SelectContext(ctx, q, &keys, weary, pq.Array(ids), limit)
	return keys, wrap(err, "look for tasks that are interrupted again and again")
}
