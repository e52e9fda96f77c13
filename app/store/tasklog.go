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
const appendLog = `
INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, level, text, day)
SELECT t.id, $2, l.seq, t.operation_id, t.node_id, l.at, l.stream, l.level, l.text, ` + logDay + `
FROM ` + logOf + `, unnest($3::int[], $4::timestamptz[], $5::text[], $6::text[], $7::text[]) AS l (seq, at, stream, level, text)
WHERE t.id = $1
ON CONFLICT (task_id, attempt, seq, day) DO NOTHING`

// AppendLogAllTenants adds lines, numbered by their writer, to the log of an
// attempt and wakes followers of that log. Lines of Task "" are not looked at:
// key says whose they are.
func AppendLogAllTenants(ctx context.Context, tx *sqlx.Tx, key AttemptKey, lines []loom.LogLine) error {
	if len(lines) == 0 {
		return nil
	}
	var seqs []int64
	var ats []time.Time
	var streams, levels, texts []string
	for _, l := range lines {
		seqs, ats = append(seqs, int64(l.Seq)), append(ats, l.Time)
		streams, levels, texts = append(streams, l.Stream), append(levels, l.Level), append(texts, cleanText(l.Text))
	}
	_, err := tx.ExecContext(ctx, appendLog, key.Task, key.Attempt, pq.Array(seqs), pq.Array(ats), pq.Array(streams), pq.Array(levels), pq.Array(texts))
	if err != nil {
		return wrap(err, "append %d lines to the log of task %d", len(lines), key.Task)
	}
	return signalLog(ctx, tx, key)
}

// signalLog wakes who follows the log. It is a notice and no event: a busy log
// would fill the table of events.
func signalLog(ctx context.Context, tx *sqlx.Tx, key AttemptKey) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_notify($1, $2::bigint::text)`, LogChannel, key.Task)
	return wrap(err, "wake followers of the log of task %d", key.Task)
}

const cutLog = `
DELETE FROM task_logs WHERE task_id = $1 AND attempt = $2 AND seq > $3 AND seq <= $4 AND day BETWEEN $5::date AND $6::date`

const markLog = `
INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, level, text, day)
SELECT t.id, $2, $3, t.operation_id, t.node_id, now(), 'loom', 'warn', $4, ` + logDay + ` FROM ` + logOf + ` WHERE t.id = $1
ON CONFLICT (task_id, attempt, seq, day) DO UPDATE SET stream = 'loom', level = 'warn', text = excluded.text`

// CutLogAllTenants takes the lines mark+1 to last out of the log of an attempt
// and leaves a line that says so in the place of line mark.
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
