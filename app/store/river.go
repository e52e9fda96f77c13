package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
	"loom/jobs"
)

const enqueue = `
INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at)
VALUES ('available', $1, $2, $3::jsonb, $4, now())`

// Enqueue inserts a River job that is due at once and wakes its queue when the
// transaction commits. It commits or vanishes with the change that caused it.
func Enqueue(ctx context.Context, tx *sqlx.Tx, args jobs.Args) error {
	body, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("marshal the arguments of %s: %w", args.Kind(), err)
	}
	if _, err := tx.ExecContext(ctx, enqueue, args.Queue(), args.Kind(), string(body), jobs.ControlTries); err != nil {
		return wrap(err, "enqueue %s", args.Kind())
	}
	return WakeQueues(ctx, tx, args.Queue())
}

// WakeQueues sends River's wake-up for queues, as River itself does on insert.
func WakeQueues(ctx context.Context, tx sqlx.ExecerContext, queues ...string) error {
	if len(queues) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `SELECT loom_wake($1)`, pq.Array(queues))
	return wrap(err, "wake %d queues", len(queues))
}

// RiverChannel is the NOTIFY channel on which River hears of new work; the
// payload is {"queue": name}.
func RiverChannel(ctx context.Context, q sqlx.ExtContext) (string, error) {
	var schema string
	if err := sqlx.GetContext(ctx, q, &schema, `SELECT current_schema()`); err != nil {
		return "", wrap(err, "read the current schema")
	}
	return schema + ".river_insert", nil
}

// Leans on river_job_prioritized_fetching_index (state, queue, ...), which it
// walks from one queue to the next: the length of a queue does not matter.
const busyQueues = `
WITH RECURSIVE queues AS (
	(SELECT queue FROM river_job WHERE state = 'available' ORDER BY queue LIMIT 1)
	UNION ALL
	SELECT (SELECT r.queue FROM river_job r WHERE r.state = 'available' AND r.queue > queues.queue ORDER BY r.queue LIMIT 1)
	FROM queues WHERE queues.queue IS NOT NULL
)
SELECT queue FROM queues WHERE queue IS NOT NULL`

// BusyQueuesAllTenants lists the queues with River jobs that are available.
func BusyQueuesAllTenants(ctx context.Context, q sqlx.ExtContext) ([]string, error) {
	var queues []string
	err := sqlx.SelectContext(ctx, q, &queues, busyQueues)
	return queues, wrap(err, "list busy queues")
}

// DueAllTenants makes retries available whose time has come and wakes the
// queues concerned; it says how many there were.
func DueAllTenants(ctx context.Context, tx *sqlx.Tx) (int, error) {
	var n int
	err := tx.GetContext(ctx, &n, `SELECT loom_due()`)
	return n, wrap(err, "make due retries available")
}

// reserveIDs takes n numbers from a sequence, in ascending order. Never setval:
// that races with everybody else.
func reserveIDs(ctx context.Context, tx *sqlx.Tx, sequence string, n int) ([]int64, error) {
	ids := make([]int64, 0, n)
	if n == 0 {
		return ids, nil
	}
	err := tx.SelectContext(ctx, &ids, `SELECT nextval($1::regclass) FROM generate_series(1, $2)`, sequence, n)
	return ids, wrap(err, "reserve %d numbers of %s", n, sequence)
}

const insertRiverTasks = `
INSERT INTO river_job (id, state, queue, kind, args, max_attempts)
SELECT x.id, 'pending', $3, $4, jsonb_build_object('task_id', x.task), $5
FROM unnest($1::bigint[], $2::bigint[]) AS x (id, task)`

// riverChunk is how many River jobs go into one statement.
const riverChunk = 10_000

// insertRiverJobs inserts one inert River job per task.
func insertRiverJobs(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, ids, tasks []int64) error {
	for len(ids) > 0 {
		n := min(len(ids), riverChunk)
		_, err := tx.ExecContext(ctx, insertRiverTasks, pq.Array(ids[:n]), pq.Array(tasks[:n]),
			jobs.TenantQueue(tenant), jobs.KindRunTask, jobs.TaskTries)
		if err != nil {
			return wrap(err, "insert %d River jobs", n)
		}
		ids, tasks = ids[n:], tasks[n:]
	}
	return nil
}
