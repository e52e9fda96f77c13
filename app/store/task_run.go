package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

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

const (
	startTasks    = `SELECT task_id, attempt, clock_timestamp() AS at FROM loom_start($1, $2, $3)`
	completeTasks = `SELECT loom_complete($1, $2, $3::jsonb[])`
)

// StartTasksAllTenants begins attempts of delivered tasks for a process and returns those
// that began, with the time by the database clock, the zero time when none did. The River
// jobs of the others are put where they belong. The keys are in the order of the tasks' ids.
func StartTasksAllTenants(ctx context.Context, prepared *Prepared, tx *sqlx.Tx, process loom.ProcessID, keys []AttemptKey) ([]AttemptKey, time.Time, error) {
	tasks, attempts := splitKeys(keys)
	var rows []struct {
		AttemptKey
		At time.Time `db:"at"`
	}
	err := prepared.start.selectInto(ctx, tx, &rows, pq.Array(tasks), pq.Array(attempts), process)
	var at time.Time
	begun := make([]AttemptKey, len(rows))
	for i, r := range rows {
		begun[i], at = r.AttemptKey, r.At
	}
	return begun, at, wrap(err, "start %d tasks", len(keys))
}

// storedResult is what a result leaves in the database.
type storedResult struct {
	Message   string            `json:"message,omitempty"`
	Hostname  string            `json:"hostname,omitempty"`
	Addresses map[string]string `json:"ipaddresses,omitempty"`
	Result    map[string]any    `json:"result,omitempty"`
}

// CompleteTasksAllTenants records successes, results[i] of keys[i] in the order of the
// tasks' ids, and frees what waited for them. It returns the tasks whose result counts; the
// others are not running with that attempt any longer.
func CompleteTasksAllTenants(ctx context.Context, prepared *Prepared, tx *sqlx.Tx, keys []AttemptKey, results []loom.TaskResult) ([]loom.TaskID, error) {
	tasks, attempts := splitKeys(keys)
	bodies := make([]string, len(results))
	for i, r := range results {
		var err error
		if bodies[i], err = storedBody(&r); err != nil {
			return nil, fmt.Errorf("marshal the result of task %d: %w", keys[i].Task, err)
		}
	}
	var accepted []loom.TaskID
	err := prepared.complete.selectInto(ctx, tx, &accepted, pq.Array(tasks), pq.Array(attempts), pq.Array(bodies))
	return accepted, wrap(err, "complete %d tasks", len(keys))
}

// storedBody is what loom_complete takes of a result.
func storedBody(r *loom.TaskResult) (string, error) {
	if r.Message == "" && r.Hostname == "" && len(r.Addresses) == 0 && len(r.Result) == 0 {
		return "{}", nil
	}
	body, err := json.Marshal(storedResult{cleanText(r.Message), r.Hostname, r.Addresses, Facts(r.Result)})
	return cleanJSON(body), err
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

// It may have ended since it was listed: nobody has to look for its end once more.
const reconcile = `
SELECT loom_reconcile(o.id) FROM operations o
WHERE o.id = $1 AND o.status IN ('running', 'rolling_back', 'paused', 'failing') FOR SHARE SKIP LOCKED`

// ReconcileAllTenants puts right what crashes may leave in an operation that has not
// ended and says how many things it touched. One operation per transaction: its locks
// are those of one operation only.
func ReconcileAllTenants(ctx context.Context, tx *sqlx.Tx, id loom.OperationID) (int, error) {
	var touched []int
	if err := tx.SelectContext(ctx, &touched, reconcile, id); err != nil || len(touched) == 0 {
		return 0, wrap(err, "reconcile operation %d", id)
	}
	return touched[0], nil
}

// RecallAllTenants delivers what ends operations and tells hooks again where a living
// process has had it for minutes, and says how many there were.
func RecallAllTenants(ctx context.Context, tx *sqlx.Tx) (int, error) {
	var n int
	err := tx.GetContext(ctx, &n, `SELECT loom_recall()`)
	return n, wrap(err, "recall forgotten deliveries")
}

// WakeWaitingAllTenants wakes the queues on which something waits for longer than
// a moment.
func WakeWaitingAllTenants(ctx context.Context, q sqlx.ExecerContext) error {
	_, err := q.ExecContext(ctx, `SELECT loom_wake_waiting()`)
	return wrap(err, "wake queues on which work waits")
}

// The plugins are those that execution names as well when an attempt begins.
const longAttempts = `
SELECT t.id AS task_id, t.attempt, t.action, extract(epoch FROM now() - a.started_at)::float8 AS age,
       array_remove(CASE WHEN t.action = 'bootstrap' THEN n.automators
            WHEN t.action IN ('create', 'confirm', 'delete') THEN ARRAY[loom_provider(c.tenant_id, c.provider_name, '{}')->>'providertype']
            ELSE ARRAY[CASE WHEN t.old THEN o.before->'services'->t.service ELSE c.services->t.service END->'provisioner'->'actions'->t.action->>'type'] END, NULL) AS plugins
FROM running_tasks t
JOIN attempts a ON a.task_id = t.id AND a.number = t.attempt AND a.status = 'running'
JOIN operations o ON o.id = t.operation_id JOIN clusters c ON c.id = t.cluster_id JOIN nodes n ON n.id = t.node_id
WHERE a.started_at < now() - make_interval(secs => $1)
ORDER BY t.id LIMIT 10000`

// LongAttempt is an attempt that runs for a long time, and the plugins that carry
// it out.
type LongAttempt struct {
	Key     AttemptKey
	Action  loom.TaskAction
	Plugins []string
	Age     time.Duration
}

// LongAttemptsAllTenants finds running attempts that began longer than age ago.
func LongAttemptsAllTenants(ctx context.Context, q sqlx.ExtContext, age time.Duration) ([]LongAttempt, error) {
	var rows []struct {
		AttemptKey
		Action  string         `db:"action"`
		Age     float64        `db:"age"`
		Plugins pq.StringArray `db:"plugins"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, longAttempts, age.Seconds()); err != nil {
		return nil, wrap(err, "look for long attempts")
	}
	long := make([]LongAttempt, len(rows))
	for i, r := range rows {
		long[i] = LongAttempt{Key: r.AttemptKey, Action: loom.TaskAction(r.Action), Plugins: r.Plugins, Age: time.Duration(r.Age * float64(time.Second))}
	}
	return long, nil
}

const weary = `
SELECT t.id AS task_id, t.attempt FROM tasks t
WHERE t.id = ANY($1) AND t.status = 'ready'
  AND (SELECT count(*) FILTER (WHERE last.status = 'interrupted')
       FROM (SELECT a.status FROM attempts a WHERE a.task_id = t.id ORDER BY a.number DESC LIMIT $2) AS last) >= $2`

// InterruptedTasksAllTenants gives those of the waiting tasks whose newest attempts,
// limit of them in a row, were all interrupted.
func InterruptedTasksAllTenants(ctx context.Context, q sqlx.ExtContext, tasks []loom.TaskID, limit int) ([]AttemptKey, error) {
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = int64(t)
	}
	var keys []AttemptKey
	err := sqlx.SelectContext(ctx, q, &keys, weary, pq.Array(ids), limit)
	return keys, wrap(err, "look for tasks that are interrupted again and again")
}

// wireTail is how many characters of output the wire format keeps of a failure.
const wireTail = 2048

// cleanText makes text that Postgres can hold: valid UTF-8 without NUL.
func cleanText(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.ReplaceAll(s, "\x00", "")
}

// cleanJSON takes NUL out of marshalled JSON, which jsonb cannot hold.
func cleanJSON(body []byte) string {
	if !bytes.Contains(body, []byte(`\u0000`)) {
		return string(body)
	}
	// An escaped backslash before "u0000" is text, not NUL.
	var out strings.Builder
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' || i+1 == len(body) {
			out.WriteByte(body[i])
			continue
		}
		if bytes.HasPrefix(body[i:], []byte(`\u0000`)) {
			i += 5
			continue
		}
		out.Write(body[i : i+2])
		i++
	}
	return out.String()
}

// tail keeps the last wireTail characters, with the mark of the wire format
// where something was cut.
func tail(s string) string {
	s = cleanText(s)
	if utf8.RuneCountInString(s) <= wireTail {
		return s
	}
	runes := []rune(s)
	return "[snipped]" + string(runes[len(runes)-wireTail:])
}
