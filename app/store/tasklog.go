package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// All lines of an attempt lie in the partition of the day on which it began (UTC).
const (
	logOf  = `tasks t JOIN operations o ON o.id = t.operation_id LEFT JOIN attempts a ON a.task_id = t.id AND a.number = $2`
	logDay = `(coalesce(a.started_at, o.created_at) AT TIME ZONE 'UTC')::date`
)

// A line that is there already stays: the writer repeats a batch whose outcome
// it does not know.
const appendLogs = `
WITH logs AS MATERIALIZED (
	SELECT k.n, t.id, k.attempt, t.operation_id, t.node_id, ` + logDay + ` AS day
	FROM unnest($1::bigint[], $2::int[]) WITH ORDINALITY AS k (task, attempt, n)
	JOIN tasks t ON t.id = k.task JOIN operations o ON o.id = t.operation_id LEFT JOIN attempts a ON a.task_id = t.id AND a.number = k.attempt
)
INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, level, text, day)
SELECT g.id, g.attempt, l.seq, g.operation_id, g.node_id, l.at, l.stream, l.level, l.text, g.day
FROM unnest($3::int[], $4::int[], $5::timestamptz[], $6::text[], $7::text[], $8::text[]) WITH ORDINALITY AS l (log, seq, at, stream, level, text, place)
JOIN logs g ON g.n = l.log
ORDER BY l.place
ON CONFLICT (task_id, attempt, seq, day) DO NOTHING`

// LogPart are lines of the log of an attempt, numbered by their writer. Task of a
// line is not looked at: Key says whose they are.
type LogPart struct {
	Key   AttemptKey
	Lines []loom.LogLine
}

// AppendLogsAllTenants adds lines to the logs of attempts and wakes followers of
// those logs. Lines that are there already stay.
func AppendLogsAllTenants(ctx context.Context, tx *sqlx.Tx, parts []LogPart) error {
	var tasks, attempts, logs, seqs []int64
	var ats []time.Time
	var streams, levels, texts []string
	for _, p := range parts {
		if len(p.Lines) == 0 {
			continue
		}
		tasks, attempts = append(tasks, int64(p.Key.Task)), append(attempts, int64(p.Key.Attempt))
		for _, l := range p.Lines {
			logs, seqs, ats = append(logs, int64(len(tasks))), append(seqs, int64(l.Seq)), append(ats, l.Time)
			streams, levels, texts = append(streams, l.Stream), append(levels, l.Level), append(texts, cleanText(l.Text))
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, appendLogs, pq.Array(tasks), pq.Array(attempts), pq.Array(logs), pq.Array(seqs), pq.Array(ats),
		pq.Array(streams), pq.Array(levels), pq.Array(texts))
	if err != nil {
		return wrap(err, "append %d lines to the logs of %d tasks", len(seqs), len(tasks))
	}
	return signalLogs(ctx, tx, tasks)
}

// signalLogs wakes who follows logs. It is a notice and no event: a busy log would
// fill the table of events.
func signalLogs(ctx context.Context, tx *sqlx.Tx, tasks []int64) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_notify($1, task::text) FROM unnest($2::bigint[]) AS task`, LogChannel, pq.Array(tasks))
	return wrap(err, "wake followers of the logs of %d tasks", len(tasks))
}

const cutLog = `
DELETE FROM task_logs WHERE task_id = $1 AND attempt = $2 AND seq > $3 AND seq <= $4 AND day BETWEEN $5::date AND $6::date`

const markLog = `
INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, level, text, day)
SELECT t.id, $2, $3, t.operation_id, t.node_id, now(), 'loom', 'warn', $4, ` + logDay + ` FROM ` + logOf + ` WHERE t.id = $1
ON CONFLICT (task_id, attempt, seq, day) DO UPDATE SET stream = 'loom', level = 'warn', text = excluded.text`

// CutLogAllTenants takes the lines mark to last out of the log of an attempt and
// leaves a line that says so in the place of the first.
func CutLogAllTenants(ctx context.Context, tx *sqlx.Tx, key AttemptKey, mark, last int, text string) error {
	days, err := daysOfAttempt(ctx, tx, key.Task, key.Attempt)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, cutLog, key.Task, key.Attempt, mark, last, days.First, days.Last); err != nil {
		return wrap(err, "shorten the log of task %d", key.Task)
	}
	_, err = tx.ExecContext(ctx, markLog, key.Task, key.Attempt, mark, text)
	return wrap(err, "mark the gap in the log of task %d", key.Task)
}

// lockTimeout bounds how long the duties of partitions wait for readers of logs:
// whoever reads or writes queues behind them meanwhile.
const lockTimeout = `SET LOCAL lock_timeout = '3s'`

// EnsureLogPartitionAllTenants makes the partition of task logs of a day, counted
// from today (UTC); false where it is there already. It waits only a moment for
// others, so an error may pass by itself.
func EnsureLogPartitionAllTenants(ctx context.Context, tx *sqlx.Tx, fromToday int) (bool, error) {
	if _, err := tx.ExecContext(ctx, lockTimeout); err != nil {
		return false, wrap(err, "bound the wait for a partition of task logs")
	}
	var made bool
	err := tx.GetContext(ctx, &made, `SELECT loom_log_partition((now() AT TIME ZONE 'UTC')::date + $1::int)`, fromToday)
	return made, wrap(err, "make a partition of task logs")
}

// OldLogPartitionsAllTenants names the partitions of task logs of days that ended
// longer than age ago, oldest first.
func OldLogPartitionsAllTenants(ctx context.Context, q sqlx.ExtContext, age time.Duration) ([]string, error) {
	var names []string
	err := sqlx.SelectContext(ctx, q, &names, `
SELECT name FROM loom_old_log_partitions(((now() - make_interval(secs => $1)) AT TIME ZONE 'UTC')::date)`, age.Seconds())
	return names, wrap(err, "list old partitions of task logs")
}

// The name is one that the database gave; format quotes it all the same.
const dropPartition = `DO $do$ BEGIN EXECUTE format('DROP TABLE IF EXISTS %I', current_setting('loom.partition')); END $do$`

// DropLogPartitionAllTenants deletes a partition that OldLogPartitionsAllTenants
// named, with all lines in it.
func DropLogPartitionAllTenants(ctx context.Context, tx *sqlx.Tx, name string) error {
	if _, err := tx.ExecContext(ctx, lockTimeout); err != nil {
		return wrap(err, "bound the wait for a partition of task logs")
	}
	if _, err := tx.ExecContext(ctx, `SELECT set_config('loom.partition', $1, true)`, name); err != nil {
		return wrap(err, "name the partition %s", name)
	}
	_, err := tx.ExecContext(ctx, dropPartition)
	return wrap(err, "drop the partition %s of task logs", name)
}

const trimDefaultLogs = `
DELETE FROM task_logs_default WHERE day < ((now() - make_interval(secs => $1)) AT TIME ZONE 'UTC')::date`

// Lines of operations that began before may be gone: they are counted anew.
const recountLogs = `
UPDATE operations SET log_bytes = NULL WHERE log_bytes > 0 AND created_at < now() - make_interval(secs => $1)`

// TrimLooseLogsAllTenants deletes old lines that lie in no partition of their own
// and says how many there were. What is known of sizes is forgotten for operations
// that began longer than age ago.
func TrimLooseLogsAllTenants(ctx context.Context, tx *sqlx.Tx, age time.Duration) (int64, error) {
	result, err := tx.ExecContext(ctx, trimDefaultLogs, age.Seconds())
	if err != nil {
		return 0, wrap(err, "trim task logs")
	}
	if _, err := tx.ExecContext(ctx, recountLogs, age.Seconds()); err != nil {
		return 0, wrap(err, "forget sizes of task logs")
	}
	return result.RowsAffected()
}

const uncountedLogs = `
SELECT id FROM operations WHERE log_bytes IS NULL AND ended_at IS NOT NULL AND ended_at < now() - interval '10 minutes'
ORDER BY id LIMIT $1`

const logBytes = `
SELECT coalesce(sum(octet_length(l.text) + ` + lineOverhead + `), 0)::bigint
FROM operations o JOIN task_logs l ON l.operation_id = o.id
WHERE o.id = $1 AND l.day BETWEEN (o.created_at AT TIME ZONE 'UTC')::date AND (o.ended_at AT TIME ZONE 'UTC')::date`

// lineOverhead is what a line takes beside its text, in bytes, about.
const lineOverhead = `120`

// UncountedLogsAllTenants lists operations that ended a while ago and of which the
// size of their logs is not known.
func UncountedLogsAllTenants(ctx context.Context, q sqlx.ExtContext, limit int) ([]loom.OperationID, error) {
	var ids []loom.OperationID
	err := sqlx.SelectContext(ctx, q, &ids, uncountedLogs, limit)
	return ids, wrap(err, "list operations with logs of unknown size")
}

// CountLogAllTenants notes the size of the logs of an operation, in bytes.
func CountLogAllTenants(ctx context.Context, tx *sqlx.Tx, id loom.OperationID) error {
	_, err := tx.ExecContext(ctx, `UPDATE operations SET log_bytes = (`+logBytes+`) WHERE id = $1`, int64(id))
	return wrap(err, "count the logs of operation %d", id)
}

// Walks operations_logs. What runs or was not counted yet is not in it: a tenant
// goes over its share by that much for a while.
const oversizedLogs = `
SELECT id FROM (
	SELECT o.id, o.tenant_id, o.ended_at, o.logs_trimmed_at, row_number() OVER newest AS place, sum(o.log_bytes) OVER newest AS upto
	FROM operations o WHERE o.log_bytes > 0 AND o.ended_at IS NOT NULL
	WINDOW newest AS (PARTITION BY o.tenant_id ORDER BY o.ended_at DESC, o.id DESC)) x
WHERE upto > $1 AND place > 1 AND logs_trimmed_at IS NULL ORDER BY tenant_id, ended_at, id LIMIT $2`

// OversizedLogsAllTenants lists operations whose logs have to go for their tenants
// to keep no more than limit bytes: those that ended first. Those of the newest one
// stay whatever their size: somebody may be looking at them.
func OversizedLogsAllTenants(ctx context.Context, q sqlx.ExtContext, limit int64, most int) ([]loom.OperationID, error) {
	var ids []loom.OperationID
	err := sqlx.SelectContext(ctx, q, &ids, oversizedLogs, limit, most)
	return ids, wrap(err, "look for tenants with too many task logs")
}

// The mark takes the number of the last line: whoever read up to there before gets
// nothing twice.
const trimOperationLogs = `
WITH gone AS (
	DELETE FROM task_logs l USING operations o
	WHERE o.id = $1 AND l.operation_id = o.id AND l.day BETWEEN (o.created_at AT TIME ZONE 'UTC')::date AND (coalesce(o.ended_at, now()) AT TIME ZONE 'UTC')::date
	RETURNING l.task_id, l.attempt, l.seq, l.day, l.node_id
)
INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, level, text, day)
SELECT task_id, attempt, max(seq), $1, node_id, now(), 'loom', 'warn',
       '[' || count(*) || CASE WHEN count(*) = 1 THEN ' line was' ELSE ' lines were' END || ' removed here: ' || $2 || ']', day
FROM gone GROUP BY task_id, attempt, node_id, day`

// TrimOperationLogsAllTenants removes the logs of an operation and leaves a line in
// each that says how many lines there were and why they went.
func TrimOperationLogsAllTenants(ctx context.Context, tx *sqlx.Tx, id loom.OperationID, why string) error {
	if _, err := tx.ExecContext(ctx, trimOperationLogs, int64(id), why); err != nil {
		return wrap(err, "trim the logs of operation %d", id)
	}
	_, err := tx.ExecContext(ctx, `UPDATE operations SET logs_trimmed_at = now(), log_bytes = (`+logBytes+`) WHERE id = $1`, int64(id))
	return wrap(err, "note that the logs of operation %d were trimmed", id)
}
