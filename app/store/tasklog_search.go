package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// LogMatch picks lines by what they say. Contains is looked for without regard to
// case, "" lets all through; Errors keeps what went to stderr or has the level error.
type LogMatch struct {
	Contains string
	Errors   bool
	Limit    int
	// Unsettled, of a log of several tasks, takes also lines before which others may
	// still appear: for one that has ended.
	Unsettled bool
	// Tasks, of a log of several tasks, are the numbers of those whose lines are read, none for all.
	Tasks []int
}

// matches is the condition of a LogMatch; its arguments are the n-th and the next.
func (m *LogMatch) matches(n int) string {
	return fmt.Sprintf("($%[1]d = '' OR position(lower($%[1]d) IN lower(l.text)) > 0) AND (NOT $%[2]d OR l.stream = 'stderr' OR l.level = 'error')", n, n+1)
}

var findLines = `
SELECT l.seq, l.at, l.stream, l.level, l.text FROM task_logs l
WHERE l.task_id = (SELECT t.id FROM tasks t WHERE t.tenant_id = $1 AND t.id = $2) AND l.attempt = $3
  AND ` + (&LogMatch{}).matches(4) + ` AND l.day BETWEEN $6::date AND $7::date
ORDER BY l.seq LIMIT $8`

// FindLogLines reads the first lines of the log of an attempt that match, in order,
// and says whether there are more. It walks the whole log of the attempt.
func FindLogLines(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, task loom.Task, attempt int, m LogMatch) ([]loom.LogLine, bool, error) {
	days, err := daysOfAttempt(ctx, q, task.Row, attempt)
	if err != nil {
		return nil, false, err
	}
	var rows []struct {
		Seq    int       `db:"seq"`
		At     time.Time `db:"at"`
		Stream string    `db:"stream"`
		Level  string    `db:"level"`
		Text   string    `db:"text"`
	}
	err = sqlx.SelectContext(ctx, q, &rows, findLines, tenant, int64(task.Row), attempt, m.Contains, m.Errors, days.First, days.Last, m.Limit+1)
	if err != nil {
		return nil, false, wrap(err, "search the log of task %s", task.Ref)
	}
	more := len(rows) > m.Limit
	rows = rows[:min(len(rows), m.Limit)]
	lines := make([]loom.LogLine, len(rows))
	for i, l := range rows {
		lines[i] = loom.LogLine{Task: task.Ref, Attempt: attempt, Seq: l.Seq, Time: l.At, Stream: l.Stream, Level: l.Level, Text: l.Text}
	}
	return lines, more, nil
}

var countLines = `
SELECT count(*) FROM (
	SELECT 1 FROM task_logs l
	WHERE l.task_id = (SELECT t.id FROM tasks t WHERE t.tenant_id = $1 AND t.id = $2) AND l.attempt = $3
	  AND ` + (&LogMatch{}).matches(4) + ` AND l.day BETWEEN $6::date AND $7::date
	LIMIT $8) AS found`

// CountLogLines counts the lines of the log of an attempt that match, as far as the limit
// of the match. It walks the whole log of the attempt.
func CountLogLines(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, task loom.Task, attempt int, m LogMatch) (int, error) {
	days, err := daysOfAttempt(ctx, q, task.Row, attempt)
	if err != nil {
		return 0, err
	}
	var n int
	err = sqlx.GetContext(ctx, q, &n, countLines, tenant, int64(task.Row), attempt, m.Contains, m.Errors, days.First, days.Last, m.Limit)
	return n, wrap(err, "count lines of the log of task %s", task.Ref)
}

// The newest first, as orderedLog is the oldest first. What is not settled yet is left
// to whoever follows from the last of these lines.
const orderedBack = `
SELECT l.xid::text AS xid, l.id, l.attempt, l.seq, l.at, l.stream, l.level, l.text,
       t.cluster_id, o.number AS operation, t.number AS task, true AS settled
FROM task_logs l JOIN tasks t ON t.id = l.task_id JOIN operations o ON o.id = t.operation_id
WHERE %s AND ($5 = 0 OR (l.xid, l.id) < ($4::xid8, $5))
  AND ($11 OR l.xid < pg_snapshot_xmin(pg_current_snapshot()) OR l.xid >= pg_snapshot_xmax(pg_current_snapshot()))
  AND %s AND l.day BETWEEN $8::date AND $9::date AND (cardinality($12::int[]) = 0 OR t.number = ANY ($12))
ORDER BY l.xid DESC, l.id DESC LIMIT $10`

var (
	operationLogBack = fmt.Sprintf(orderedBack, ofOperation, (&LogMatch{}).matches(6))
	nodeLogBack      = fmt.Sprintf(orderedBack, ofNode, (&LogMatch{}).matches(6))
)

// OperationLogBack reads the last matching lines of all tasks of an operation before a
// place, the zero place being the end. They come in their order; More says that there
// are others before them.
func OperationLogBack(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef, before LogPlace, m LogMatch) (OrderedLog, error) {
	log, err := readBack(ctx, q, operationLogBack, daysOfOperation, before, m, tenant, int64(ref.Cluster), ref.Number)
	return log, wrap(err, "read the end of the log of operation %s", ref)
}

// NodeLogBack is OperationLogBack for all tasks of a node.
func NodeLogBack(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, node loom.NodeID, before LogPlace, m LogMatch) (OrderedLog, error) {
	log, err := readBack(ctx, q, nodeLogBack, daysOfNode, before, m, tenant, int64(cluster), node)
	return log, wrap(err, "read the end of the log of node %s", node)
}

func readBack(ctx context.Context, q sqlx.ExtContext, query, days string, before LogPlace, m LogMatch, of ...any) (OrderedLog, error) {
	within, err := readDays(ctx, q, days, of...)
	if err != nil {
		return OrderedLog{}, err
	}
	var rows []orderedRow
	args := append(of, strconv.FormatUint(before.Transaction, 10), before.Line, m.Contains, m.Errors, within.First, within.Last, m.Limit+1, m.Unsettled, intArray(m.Tasks))
	if err := sqlx.SelectContext(ctx, q, &rows, query, args...); err != nil {
		return OrderedLog{}, err
	}
	log := OrderedLog{More: len(rows) > m.Limit}
	rows = rows[:min(len(rows), m.Limit)]
	for i := range rows {
		line, err := rows[i].line()
		if err != nil {
			return OrderedLog{}, err
		}
		log.Lines = append(log.Lines, line)
	}
	slices.Reverse(log.Lines)
	return log, nil
}
