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

// PurgeSessionsAllTenants deletes sessions that are over and says how many.
func PurgeSessionsAllTenants(ctx context.Context, tx *sqlx.Tx) (int64, error) {
	result, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE expires_at < now()`)
	if err != nil {
		return 0, wrap(err, "purge sessions")
	}
	return result.RowsAffected()
}
