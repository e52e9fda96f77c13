package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/jobs"
)

// Pause says since when a queue is paused, and by whom where that is known.
type Pause struct {
	At time.Time
	By loom.UserID
}

// PausedTenantsAllTenants lists the tenants whose tasks do not begin.
func PausedTenantsAllTenants(ctx context.Context, q sqlx.ExtContext) (map[loom.TenantID]Pause, error) {
	var rows []struct {
		Tenant string    `db:"tenant_id"`
		By     string    `db:"paused_by"`
		At     time.Time `db:"paused_at"`
	}
	const query = `SELECT z.tenant_id, z.paused_by, z.paused_at FROM paused_tenants z JOIN tenants t ON t.id = z.tenant_id WHERE t.deleted_at IS NULL`
	if err := sqlx.SelectContext(ctx, q, &rows, query); err != nil {
		return nil, wrap(err, "list the tenants that are paused")
	}
	paused := make(map[loom.TenantID]Pause, len(rows))
	for _, r := range rows {
		paused[loom.TenantID(r.Tenant)] = Pause{At: r.At, By: loom.UserID(r.By)}
	}
	return paused, nil
}

// PausedQueuesAllTenants lists the queues of the installation that River does not
// fetch from; those of tenants are left out.
func PausedQueuesAllTenants(ctx context.Context, q sqlx.ExtContext) (map[string]Pause, error) {
	var rows []struct {
		Name string    `db:"name"`
		At   time.Time `db:"paused_at"`
	}
	const query = `SELECT name, paused_at FROM river_queue WHERE paused_at IS NOT NULL AND name NOT LIKE 'tenant\_%'`
	if err := sqlx.SelectContext(ctx, q, &rows, query); err != nil {
		return nil, wrap(err, "list the queues that are paused")
	}
	paused := make(map[string]Pause, len(rows))
	for _, r := range rows {
		paused[r.Name] = Pause{At: r.At}
	}
	return paused, nil
}

// PauseTenant keeps tasks of a tenant from beginning until ResumeTenant; what runs goes
// on. It reports false when that is so already.
func PauseTenant(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, by loom.UserID) (bool, error) {
	const query = `INSERT INTO paused_tenants (tenant_id, paused_by) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	return changedOne(ctx, tx, "pause the queue of tenant", tenant, query, string(tenant), string(by))
}

// ResumeTenant takes PauseTenant back. It reports false when the tenant is not paused.
func ResumeTenant(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) (bool, error) {
	return changedOne(ctx, tx, "resume the queue of tenant", tenant, `DELETE FROM paused_tenants WHERE tenant_id = $1`, string(tenant))
}

func changedOne(ctx context.Context, tx *sqlx.Tx, what string, tenant loom.TenantID, query string, args ...any) (bool, error) {
	done, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return false, wrap(err, "%s %s", what, tenant)
	}
	n, err := done.RowsAffected()
	return n > 0, wrap(err, "%s %s", what, tenant)
}

// River keeps the row of a queue while a client holds it, and reads it when one begins
// to.
const setRiverQueue = `
WITH before AS (SELECT paused_at FROM river_queue WHERE name = $1 FOR UPDATE),
done AS (
	INSERT INTO river_queue (name, paused_at, updated_at) VALUES ($1, CASE WHEN $2 THEN now() END, now())
	ON CONFLICT (name) DO UPDATE SET paused_at = CASE WHEN $2 THEN coalesce(river_queue.paused_at, now()) END, updated_at = now()
)
SELECT $2 <> EXISTS (SELECT 1 FROM before WHERE paused_at IS NOT NULL)`

// What River's QueuePause and QueueResume send.
const tellRiverQueue = `SELECT pg_notify(current_schema() || '.river_control', json_build_object('action', $2::text, 'queue', $1::text)::text)`

// SetRiverQueueAllTenants tells River's clients to fetch nothing more from a queue, or
// to go on, as its QueuePause and QueueResume do, also while nobody holds the queue. It
// reports false when that is so already.
func SetRiverQueueAllTenants(ctx context.Context, tx *sqlx.Tx, queue string, paused bool) (bool, error) {
	var changed bool
	if err := tx.GetContext(ctx, &changed, setRiverQueue, queue, paused); err != nil {
		return false, wrap(err, "pause or resume the queue %s", queue)
	}
	action := map[bool]string{true: "pause", false: "resume"}[paused]
	_, err := tx.ExecContext(ctx, tellRiverQueue, queue, action)
	return changed, wrap(err, "tell River's clients to %s the queue %s", action, queue)
}

// Each queue's head is one step in an index per priority of River, 1 to 4.
const oldestJobs = `
SELECT q.queue, min(h.scheduled_at) AS at
FROM unnest($1::text[]) AS q (queue) CROSS JOIN generate_series(1, 4) AS p (priority)
CROSS JOIN LATERAL (
	SELECT r.scheduled_at FROM river_job r
	WHERE r.state = 'available' AND r.queue = q.queue AND r.priority = p.priority ORDER BY r.scheduled_at, r.id LIMIT 1
) AS h
GROUP BY q.queue`

// OldestJobsAllTenants tells since when the River job of each queue has been due that
// waits longest. Queues on which none waits are left out.
func OldestJobsAllTenants(ctx context.Context, q sqlx.ExtContext, queues []string) (map[string]time.Time, error) {
	var rows []struct {
		Queue string    `db:"queue"`
		At    time.Time `db:"at"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, oldestJobs, texts(queues)); err != nil {
		return nil, wrap(err, "find the oldest River jobs of %d queues", len(queues))
	}
	oldest := make(map[string]time.Time, len(rows))
	for _, r := range rows {
		oldest[r.Queue] = r.At
	}
	return oldest, nil
}

// PausesAllTenants lists what is paused, by the name of the queue.
func PausesAllTenants(ctx context.Context, q sqlx.ExtContext) (map[string]Pause, error) {
	all, err := PausedQueuesAllTenants(ctx, q)
	if err != nil {
		return nil, err
	}
	tenants, err := PausedTenantsAllTenants(ctx, q)
	for tenant, p := range tenants {
		all[jobs.TenantQueue(tenant)] = p
	}
	return all, err
}

// QueueState is how many River jobs of a queue are in a state.
type QueueState struct {
	Queue string `db:"queue"`
	State string `db:"state"`
	Count int    `db:"n"`
}

// Leans on river_job_prioritized_fetching_index (state, queue, ...); of each state
// the first 100,000 are counted.
const queueStates = `
SELECT s.state, r.queue, count(*) AS n
FROM unnest(ARRAY['available', 'running', 'scheduled', 'retryable', 'pending', 'discarded']) AS s (state)
CROSS JOIN LATERAL (SELECT queue FROM river_job WHERE river_job.state = s.state::river_job_state LIMIT 100000) r
GROUP BY 1, 2 ORDER BY 2, 1`

// QueueStatesAllTenants counts River jobs that are not done, by queue and state.
func QueueStatesAllTenants(ctx context.Context, q sqlx.ExtContext) ([]QueueState, error) {
	var states []QueueState
	err := sqlx.SelectContext(ctx, q, &states, queueStates)
	return states, wrap(err, "count River jobs by state")
}

// QueueRate is how many tasks and other River jobs were done in a stretch of time, and how
// long the tasks waited for a worker and ran: the middle and the 95th of a hundred, in
// seconds.
type QueueRate struct {
	// Stretch counts from 0, the oldest.
	Stretch int     `db:"stretch"`
	Tasks   int     `db:"tasks"`
	Others  int     `db:"others"`
	Wait50  float64 `db:"wait50"`
	Wait95  float64 `db:"wait95"`
	Run50   float64 `db:"run50"`
	Run95   float64 `db:"run95"`
}

// Leans on river_job_state_and_finalized_at_index. Of each stretch some tasks are measured: they waited from when
// they were due, in River's queue and for a worker of the process, until their attempt began.
const queuePace = `
WITH recent AS MATERIALIZED (
	SELECT id, kind, attempt, args, scheduled_at,
		width_bucket(extract(epoch FROM finalized_at), extract(epoch FROM now()) - $1::float8, extract(epoch FROM now()), $2::int) - 1 AS stretch
	FROM river_job
	WHERE state IN ('completed', 'discarded') AND finalized_at > now() - make_interval(secs => $1::float8) AND finalized_at <= now()
	ORDER BY finalized_at DESC LIMIT 100000
), placed AS (
	SELECT r.*, row_number() OVER (PARTITION BY r.stretch ORDER BY hashint8(r.id)) AS place FROM recent r WHERE r.kind = $3
), measured AS (
	SELECT p.stretch, greatest(extract(epoch FROM a.started_at - p.scheduled_at), 0)::float8 AS wait, extract(epoch FROM a.ended_at - a.started_at)::float8 AS run
	FROM placed p JOIN attempts a ON a.task_id = (p.args->>'task_id')::bigint AND a.number = p.attempt
	WHERE p.place <= 400
), timed AS (
	SELECT stretch, percentile_cont(0.5) WITHIN GROUP (ORDER BY wait) AS wait50, percentile_cont(0.95) WITHIN GROUP (ORDER BY wait) AS wait95,
		percentile_cont(0.5) WITHIN GROUP (ORDER BY run) AS run50, percentile_cont(0.95) WITHIN GROUP (ORDER BY run) AS run95
	FROM measured GROUP BY stretch
), counted AS (
	SELECT stretch, count(*) FILTER (WHERE kind = $3) AS tasks, count(*) FILTER (WHERE kind <> $3) AS others FROM recent GROUP BY stretch
)
SELECT stretch, tasks, others, coalesce(wait50, 0) AS wait50, coalesce(wait95, 0) AS wait95, coalesce(run50, 0) AS run50, coalesce(run95, 0) AS run95
FROM counted LEFT JOIN timed USING (stretch) ORDER BY stretch`

// QueueRatesAllTenants tells how tasks and other River jobs went lately, in stretches of
// equal length; those in which nothing was done are left out.
func QueueRatesAllTenants(ctx context.Context, q sqlx.ExtContext, since time.Duration, stretches int) ([]QueueRate, error) {
	var pace []QueueRate
	err := sqlx.SelectContext(ctx, q, &pace, queuePace, since.Seconds(), stretches, jobs.KindRunTask)
	return pace, wrap(err, "measure the pace of the queues")
}
