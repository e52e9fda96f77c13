package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

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
