package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

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
	// Attempt and Levels filter; 0 and none let all through.
	Attempt int
	Levels  []string
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
	args := append(of, strconv.FormatUint(r.After.Transaction, 10), r.After.Line, r.Attempt, textArray(r.Levels), within.First, within.Last, r.Limit+1)
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
