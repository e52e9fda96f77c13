package store

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

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
