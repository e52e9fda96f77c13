package testkit

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// The table of docs/engine.md, written out a second time: nothing here asks the functions that
// put River jobs where they belong. A null means any. Beside the table there are these
// windows, and no others:
//
//   - A retry is scheduled until its time. After it, it may stay so until loom_due looks, each
//     second: 30 seconds here, since a busy machine may be late. It may be available 5 seconds
//     before it, since River's own scheduler looks so far ahead. River fetches nothing early.
//   - From River's fetch to loom_start the job runs and the task is ready, at most 5 minutes.
//   - A delivery that was given back before it began, while somebody paused or resumed the
//     operation, may be where it belonged just before, until it is fetched and refused or the
//     reconciler looks. It was fetched after the last attempt of its task began.
//
// Rows of what is over may be gone: River removes them after a time.
const wrongRiverJobs = `
WITH belongs (task, goes_on, held, job) AS (VALUES
	('blocked',  NULL::boolean, NULL::boolean, 'pending'),
	('ready',    NULL,          false,         'pending'),
	('ready',    true,          true,          'available'),
	('ready',    false,         true,          'pending'),
	('running',  NULL,          true,          'running'),
	('complete', NULL,          false,         'completed'),
	('failed',   NULL,          false,         'discarded'),
	('dropped',  NULL,          false,         'cancelled'),
	('skipped',  NULL,          false,         'cancelled')
), tasks_now AS (
	SELECT t.id, t.number, t.operation_id, o.status AS operation, o.status IN ('running', 'rolling_back') AS goes_on, t.status AS task, t.attempt, t.process_id,
		coalesce(n.task_id = t.id, false) AS held,
		r.id AS river, r.state::text AS state, r.attempt AS delivery, r.attempted_by[array_upper(r.attempted_by, 1)] AS client, r.attempted_at, r.scheduled_at
	FROM operations o JOIN tasks t ON t.operation_id = o.id AND NOT t.gate JOIN nodes n ON n.id = t.node_id
	LEFT JOIN river_job r ON r.id = t.river_job_id
	WHERE o.ended_at IS NULL OR o.ended_at > now() - make_interval(secs => $1)
)
SELECT format('task %s of operation %s, which is %s, is %s in attempt %s of “%s”%s; its River job is %s in delivery %s to “%s” of %s, due %s; it is %s',
	x.number, x.operation_id, x.operation, x.task, x.attempt, x.process_id, CASE WHEN x.held THEN ' and held' END,
	coalesce(x.state, 'gone'), x.delivery, x.client, x.attempted_at, x.scheduled_at, clock_timestamp())
FROM tasks_now x
LEFT JOIN belongs b ON b.task = x.task AND coalesce(b.goes_on = x.goes_on, true) AND coalesce(b.held = x.held, true)
WHERE NOT coalesce(CASE
	WHEN b.job IS NULL THEN false
	WHEN x.river IS NULL THEN b.job IN ('completed', 'discarded', 'cancelled')
	WHEN x.state = 'running' AND b.job = 'running' THEN x.delivery = x.attempt AND x.client = x.process_id
	WHEN x.state = 'running' AND x.task = 'ready' THEN x.held AND x.delivery > x.attempt AND x.attempted_at > now() - interval '5 minutes'
	WHEN x.state = 'available' AND b.job = 'available' THEN x.scheduled_at <= clock_timestamp() + interval '5 seconds'
	WHEN x.state = 'scheduled' AND b.job = 'available' THEN x.scheduled_at > now() - interval '30 seconds'
	ELSE x.state = b.job
	END, false)
AND NOT (x.task = 'ready' AND x.held AND coalesce(x.state, '') IN ('pending', 'available', 'scheduled')
	AND coalesce(x.attempted_at > coalesce((SELECT max(a.started_at) FROM attempts a WHERE a.task_id = x.id), '-infinity') AND x.attempted_at > now() - interval '5 minutes', false))
ORDER BY x.id LIMIT 100`

// WrongRiverJobs compares River's table with the tasks of all operations that are open, or ended
// less than a time ago, in one snapshot. It returns a sentence for each difference, at most 100.
func WrongRiverJobs(ctx context.Context, q sqlx.QueryerContext, ended time.Duration) ([]string, error) {
	var wrong []string
	if err := sqlx.SelectContext(ctx, q, &wrong, wrongRiverJobs, ended.Seconds()); err != nil {
		return nil, fmt.Errorf("compare River jobs with tasks: %w", err)
	}
	return wrong, nil
}
