package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
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

// LogPlace is a place among the lines of several tasks, in the order in which
// they were stored. The zero value is before the first.
type LogPlace struct {
	// Transaction is the number of the transaction that stored the line, Line that
	// of the line itself.
	Transaction uint64
	Line        int64
}

// OrderedLine is a line with its place.
type OrderedLine struct {
	loom.LogLine
	Place LogPlace
}

// OrderedRange picks lines of several tasks.
type OrderedRange struct {
	After LogPlace
	// Attempt, Levels and Tasks, which are numbers, filter; 0 and none let all through.
	Attempt int
	Levels  []string
	Tasks   []int
	Limit   int
	// Unsettled takes also lines before which others may still appear. Their places
	// are no places to go on from.
	Unsettled bool
}

// OrderedLog is what was read.
type OrderedLog struct {
	Lines []OrderedLine
	// More says that there are further lines that can be read now, Waiting that
	// there are some before which others may still appear.
	More, Waiting bool
}

// A line is settled when every transaction up to its own is over: nothing appears
// before it any more. A number from the future came with a restored database and is
// over as well.
const orderedLog = `
SELECT l.xid::text AS xid, l.id, l.attempt, l.seq, l.at, l.stream, l.level, l.text,
       t.cluster_id, o.number AS operation, t.number AS task,
       l.xid < pg_snapshot_xmin(pg_current_snapshot()) OR l.xid >= pg_snapshot_xmax(pg_current_snapshot()) AS settled
FROM task_logs l JOIN tasks t ON t.id = l.task_id JOIN operations o ON o.id = t.operation_id
WHERE %s AND (l.xid, l.id) > ($4::xid8, $5) AND ($6 = 0 OR l.attempt = $6)
  AND (cardinality($7::text[]) = 0 OR l.level = ANY ($7)) AND l.day BETWEEN $8::date AND $9::date
  AND (cardinality($11::int[]) = 0 OR t.number = ANY ($11))
ORDER BY l.xid, l.id LIMIT $10`

const (
	ofOperation = `l.operation_id = (SELECT id FROM operations WHERE tenant_id = $1 AND cluster_id = $2 AND number = $3)`
	ofNode      = `l.node_id = (SELECT id FROM nodes WHERE tenant_id = $1 AND cluster_id = $2 AND id::text = $3)`
)

var (
	operationLog = fmt.Sprintf(orderedLog, ofOperation)
	nodeLog      = fmt.Sprintf(orderedLog, ofNode)
)

// OperationLog reads lines of all tasks of an operation.
func OperationLog(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef, r OrderedRange) (OrderedLog, error) {
	log, err := readOrdered(ctx, q, operationLog, daysOfOperation, r, tenant, int64(ref.Cluster), ref.Number)
	return log, wrap(err, "read the log of operation %s", ref)
}

// NodeLog reads lines of all tasks of a node.
func NodeLog(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, node loom.NodeID, r OrderedRange) (OrderedLog, error) {
	log, err := readOrdered(ctx, q, nodeLog, daysOfNode, r, tenant, int64(cluster), node)
	return log, wrap(err, "read the log of node %s", node)
}

func readOrdered(ctx context.Context, q sqlx.ExtContext, query, days string, r OrderedRange, of ...any) (OrderedLog, error) {
	within, err := readDays(ctx, q, days, of...)
	if err != nil {
		return OrderedLog{}, err
	}
	var rows []orderedRow
	args := append(of, strconv.FormatUint(r.After.Transaction, 10), r.After.Line, r.Attempt, textArray(r.Levels), within.First, within.Last, r.Limit+1, intArray(r.Tasks))
	if err := sqlx.SelectContext(ctx, q, &rows, query, args...); err != nil {
		return OrderedLog{}, err
	}
	var log OrderedLog
	for _, l := range rows {
		if !l.Settled && !r.Unsettled {
			log.Waiting = true
			break
		}
		if len(log.Lines) == r.Limit {
			log.More = true
			break
		}
		line, err := l.line()
		if err != nil {
			return OrderedLog{}, err
		}
		log.Lines = append(log.Lines, line)
	}
	return log, nil
}

type orderedRow struct {
	Xid       string    `db:"xid"`
	ID        int64     `db:"id"`
	Attempt   int       `db:"attempt"`
	Seq       int       `db:"seq"`
	At        time.Time `db:"at"`
	Stream    string    `db:"stream"`
	Level     string    `db:"level"`
	Text      string    `db:"text"`
	Cluster   int64     `db:"cluster_id"`
	Operation int       `db:"operation"`
	Task      int       `db:"task"`
	Settled   bool      `db:"settled"`
}

func (r *orderedRow) line() (OrderedLine, error) {
	xid, err := strconv.ParseUint(r.Xid, 10, 64)
	if err != nil {
		return OrderedLine{}, fmt.Errorf("read the transaction of line %d: %w", r.ID, err)
	}
	ref := loom.OperationRef{Cluster: loom.ClusterID(r.Cluster), Number: r.Operation}
	return OrderedLine{Place: LogPlace{xid, r.ID}, LogLine: loom.LogLine{
		Task: loom.TaskRef{Operation: ref, Number: r.Task}, Attempt: r.Attempt, Seq: r.Seq, Time: r.At, Stream: r.Stream, Level: r.Level, Text: r.Text,
	}}, nil
}

// logDays are the first and the last day, as “2026-01-31”, of the partitions that
// may hold lines. They are read first and then given to the statement as
// parameters: so the planner leaves the other partitions alone.
type logDays struct {
	First string `db:"first"`
	Last  string `db:"last"`
}

const attemptDays = `
SELECT ` + logDay + `::text AS first, (coalesce(a.ended_at, now()) AT TIME ZONE 'UTC')::date::text AS last
FROM ` + logOf + ` WHERE t.id = $1`

// daysOfAttempt finds where the lines of an attempt are. The ids are not checked
// against a tenant: the statement that reads the lines does that.
func daysOfAttempt(ctx context.Context, q sqlx.ExtContext, task loom.TaskID, attempt int) (logDays, error) {
	days, err := readDays(ctx, q, attemptDays, int64(task), attempt)
	return days, wrap(err, "find the log of task %d", task)
}

const daysOfOperation = `
SELECT (created_at AT TIME ZONE 'UTC')::date::text AS first, (coalesce(ended_at, now()) AT TIME ZONE 'UTC')::date::text AS last
FROM operations WHERE tenant_id = $1 AND cluster_id = $2 AND number = $3`

const daysOfNode = `
SELECT (c.created_at AT TIME ZONE 'UTC')::date::text AS first, (now() AT TIME ZONE 'UTC')::date::text AS last
FROM nodes n JOIN clusters c ON c.id = n.cluster_id WHERE n.tenant_id = $1 AND n.cluster_id = $2 AND n.id::text = $3`

// readDays reads days; for what is not there it gives days of which nothing is kept.
func readDays(ctx context.Context, q sqlx.ExtContext, query string, of ...any) (logDays, error) {
	var rows []logDays
	if err := sqlx.SelectContext(ctx, q, &rows, query, of...); err != nil {
		return logDays{}, err
	}
	if len(rows) == 0 {
		return logDays{First: "infinity", Last: "-infinity"}, nil
	}
	return rows[0], nil
}

const skipLog = `
WITH rest AS (
	SELECT l.seq FROM task_logs l
	WHERE l.task_id = (SELECT t.id FROM tasks t WHERE t.tenant_id = $1 AND t.id = $2) AND l.attempt = $3
	  AND l.seq > $4 AND (cardinality($5::text[]) = 0 OR l.level = ANY ($5)) AND l.day BETWEEN $7::date AND $8::date
), mark AS (
	SELECT seq FROM rest ORDER BY seq DESC OFFSET $6 LIMIT 1
)
SELECT m.seq, (SELECT count(*) FROM rest r WHERE r.seq <= m.seq) AS lines FROM mark m`

// SkipTaskLog passes over lines of an attempt of those levels, behind line after, but
// for the newest keep of them. It gives the last line passed over and how many they
// are; 0 lines when there are no more than keep.
func SkipTaskLog(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, task loom.Task, r LogRange, levels []string, keep int) (last, lines int, err error) {
	var row struct {
		Seq   int `db:"seq"`
		Lines int `db:"lines"`
	}
	days, err := daysOfAttempt(ctx, q, task.Row, r.Attempt)
	if err != nil {
		return r.After, 0, err
	}
	err = sqlx.GetContext(ctx, q, &row, skipLog, tenant, int64(task.Row), r.Attempt, r.After, textArray(levels), keep, days.First, days.Last)
	if errors.Is(err, sql.ErrNoRows) {
		return r.After, 0, nil
	}
	return row.Seq, row.Lines, wrap(err, "pass over lines of the log of task %s", task.Ref)
}

// Settled lines only, and none with a number from the future: nothing may appear
// later among what is passed over.
const skipOrdered = `
WITH rest AS (
	SELECT l.xid, l.id FROM task_logs l
	WHERE %s AND (l.xid, l.id) > ($4::xid8, $5) AND l.xid < pg_snapshot_xmin(pg_current_snapshot())
	  AND ($6 = 0 OR l.attempt = $6) AND (cardinality($7::text[]) = 0 OR l.level = ANY ($7)) AND l.day BETWEEN $9::date AND $10::date
), mark AS (
	SELECT xid, id FROM rest ORDER BY xid DESC, id DESC OFFSET $8 LIMIT 1
)
SELECT m.xid::text AS xid, m.id, (SELECT count(*) FROM rest r WHERE (r.xid, r.id) <= (m.xid, m.id)) AS lines FROM mark m`

var (
	skipOperationLog = fmt.Sprintf(skipOrdered, ofOperation)
	skipNodeLog      = fmt.Sprintf(skipOrdered, ofNode)
)

// SkipOperationLog passes over the lines of a range but for the newest keep of them,
// instead of its limit. It gives the place of the last line passed over and how many
// they are; 0 lines when there are no more than keep.
func SkipOperationLog(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef, r OrderedRange, keep int) (LogPlace, int, error) {
	place, lines, err := skip(ctx, q, skipOperationLog, daysOfOperation, r, keep, tenant, int64(ref.Cluster), ref.Number)
	return place, lines, wrap(err, "pass over lines of the log of operation %s", ref)
}

// SkipNodeLog is SkipOperationLog for the lines of all tasks of a node.
func SkipNodeLog(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, node loom.NodeID, r OrderedRange, keep int) (LogPlace, int, error) {
	place, lines, err := skip(ctx, q, skipNodeLog, daysOfNode, r, keep, tenant, int64(cluster), node)
	return place, lines, wrap(err, "pass over lines of the log of node %s", node)
}

func skip(ctx context.Context, q sqlx.ExtContext, query, days string, r OrderedRange, keep int, of ...any) (LogPlace, int, error) {
	within, err := readDays(ctx, q, days, of...)
	if err != nil {
		return r.After, 0, err
	}
	var row struct {
		Xid   string `db:"xid"`
		ID    int64  `db:"id"`
		Lines int    `db:"lines"`
	}
	args := append(of, strconv.FormatUint(r.After.Transaction, 10), r.After.Line, r.Attempt, textArray(r.Levels), keep, within.First, within.Last)
	err = sqlx.GetContext(ctx, q, &row, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return r.After, 0, nil
	}
	if err != nil {
		return r.After, 0, err
	}
	xid, err := strconv.ParseUint(row.Xid, 10, 64)
	return LogPlace{xid, row.ID}, row.Lines, err
}
