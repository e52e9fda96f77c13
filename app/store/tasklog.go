package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// A line that is there already stays: the writer repeats a batch whose outcome
// it does not know.
const appendLog = `
INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, level, text)
SELECT t.id, $2, l.seq, t.operation_id, t.node_id, l.at, l.stream, l.level, l.text
FROM tasks t, unnest($3::int[], $4::timestamptz[], $5::text[], $6::text[], $7::text[]) AS l (seq, at, stream, level, text)
WHERE t.id = $1
ON CONFLICT (task_id, attempt, seq) DO NOTHING`

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
DELETE FROM task_logs WHERE task_id = $1 AND attempt = $2 AND seq > $3 AND seq <= $4`

const markLog = `
INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, level, text)
SELECT t.id, $2, $3, t.operation_id, t.node_id, now(), 'loom', 'warn', $4 FROM tasks t WHERE t.id = $1
ON CONFLICT (task_id, attempt, seq) DO UPDATE SET stream = 'loom', level = 'warn', text = excluded.text`

// CutLogAllTenants takes the lines mark+1 to last out of the log of an attempt
// and leaves a line that says so in the place of line mark.
func CutLogAllTenants(ctx context.Context, tx *sqlx.Tx, key AttemptKey, mark, last int, text string) error {
	if _, err := tx.ExecContext(ctx, cutLog, key.Task, key.Attempt, mark, last); err != nil {
		return wrap(err, "shorten the log of task %d", key.Task)
	}
	_, err := tx.ExecContext(ctx, markLog, key.Task, key.Attempt, mark, text)
	return wrap(err, "mark the gap in the log of task %d", key.Task)
}

const trimLogs = `
DELETE FROM task_logs WHERE operation_id IN (
	SELECT id FROM operations WHERE ended_at < now() - make_interval(secs => $1) ORDER BY id)
RETURNING 1`

// TrimLogsAllTenants deletes the task logs of operations that ended longer than
// age ago and says how many lines went.
func TrimLogsAllTenants(ctx context.Context, tx *sqlx.Tx, age time.Duration) (int64, error) {
	result, err := tx.ExecContext(ctx, trimLogs, age.Seconds())
	if err != nil {
		return 0, wrap(err, "trim task logs")
	}
	return result.RowsAffected()
}

// PurgeSessionsAllTenants deletes sessions that are over and says how many.
func PurgeSessionsAllTenants(ctx context.Context, tx *sqlx.Tx) (int64, error) {
	result, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE expires_at < now()`)
	if err != nil {
		return 0, wrap(err, "purge sessions")
	}
	return result.RowsAffected()
}
