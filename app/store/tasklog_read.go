package store

import (
	"context"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// LogRange picks lines of the log of one attempt. After and Before are sequence
// numbers, both exclusive, 0 for no bound. Newest takes the last lines of the
// range rather than the first.
type LogRange struct {
	Attempt       int
	After, Before int
	Limit         int
	Newest        bool
}

// Both directions walk the primary key (task, attempt, seq) of one partition, two
// where the attempt runs past midnight.
const logForward = `
SELECT l.seq, l.at, l.stream, l.level, l.text FROM task_logs l
WHERE l.task_id = (SELECT t.id FROM tasks t WHERE t.tenant_id = $1 AND t.id = $2) AND l.attempt = $3
  AND l.seq > $4 AND ($5 = 0 OR l.seq < $5) AND l.day BETWEEN $7::date AND $8::date ORDER BY l.seq LIMIT $6`

const logBackward = `
SELECT l.seq, l.at, l.stream, l.level, l.text FROM task_logs l
WHERE l.task_id = (SELECT t.id FROM tasks t WHERE t.tenant_id = $1 AND t.id = $2) AND l.attempt = $3
  AND l.seq > $4 AND ($5 = 0 OR l.seq < $5) AND l.day BETWEEN $7::date AND $8::date ORDER BY l.seq DESC LIMIT $6`

// LogLines reads lines of the log of an attempt in their order and says whether
// the range holds more than Limit of them.
func LogLines(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, task loom.Task, r LogRange) ([]loom.LogLine, bool, error) {
	query := logForward
	if r.Newest {
		query = logBackward
	}
	var rows []struct {
		Seq    int       `db:"seq"`
		At     time.Time `db:"at"`
		Stream string    `db:"stream"`
		Level  string    `db:"level"`
		Text   string    `db:"text"`
	}
	days, err := daysOfAttempt(ctx, q, task.Row, r.Attempt)
	if err != nil {
		return nil, false, err
	}
	err = sqlx.SelectContext(ctx, q, &rows, query, tenant, int64(task.Row), r.Attempt, r.After, r.Before, r.Limit+1, days.First, days.Last)
	if err != nil {
		return nil, false, wrap(err, "read the log of task %s", task.Ref)
	}
	more := len(rows) > r.Limit
	if more {
		rows = rows[:r.Limit]
	}
	if r.Newest {
		slices.Reverse(rows)
	}
	lines := make([]loom.LogLine, len(rows))
	for i, l := range rows {
		lines[i] = loom.LogLine{Task: task.Ref, Attempt: r.Attempt, Seq: l.Seq, Time: l.At, Stream: l.Stream, Level: l.Level, Text: l.Text}
	}
	return lines, more, nil
}
