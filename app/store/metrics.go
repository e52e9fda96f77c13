package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// What these read is asked for again and again by programs that collect metrics:
// each is one statement, and what it costs depends on what is alive, never on
// what has ever been.

// Leans on river_job_prioritized_fetching_index, see busyQueues. Of one queue no
// more than the first 100,000 are counted.
const queueLengths = `
WITH RECURSIVE queues AS (
	(SELECT queue FROM river_job WHERE state = 'available' ORDER BY queue LIMIT 1)
	UNION ALL
	SELECT (SELECT r.queue FROM river_job r WHERE r.state = 'available' AND r.queue > queues.queue ORDER BY r.queue LIMIT 1)
	FROM queues WHERE queues.queue IS NOT NULL
)
SELECT t.name, w.n AS waits, greatest(extract(epoch FROM now() - w.oldest), 0)::float8 AS oldest
FROM queues JOIN tenants t ON queues.queue = 'tenant_' || t.id
CROSS JOIN LATERAL (SELECT count(*) AS n, min(r.since) AS oldest
	FROM (SELECT scheduled_at AS since FROM river_job WHERE state = 'available' AND queue = queues.queue LIMIT 100000) AS r) AS w
ORDER BY w.n DESC, t.name`

// QueueLengthsAllTenants counts, by tenant, the tasks for which no worker was
// free yet, the longest queue first. Tenants for whom nothing waits are left out.
func QueueLengthsAllTenants(ctx context.Context, q sqlx.ExtContext) ([]loom.QueueLength, error) {
	var rows []struct {
		Name   string  `db:"name"`
		Waits  int     `db:"waits"`
		Oldest float64 `db:"oldest"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, queueLengths); err != nil {
		return nil, wrap(err, "measure the queues of tenants")
	}
	lengths := make([]loom.QueueLength, len(rows))
	for i, r := range rows {
		lengths[i] = loom.QueueLength{Tenant: r.Name, Waits: r.Waits, Oldest: inSeconds(r.Oldest)}
	}
	return lengths, nil
}

// Leans on clusters_live.
const clustersByStatus = `
SELECT status, count(*) AS n FROM clusters WHERE status <> 'terminated' GROUP BY status`

// LiveClustersByStatusAllTenants counts the clusters that are not terminated.
// Every status but that one is in the answer.
func LiveClustersByStatusAllTenants(ctx context.Context, q sqlx.ExtContext) (map[loom.ClusterStatus]int, error) {
	var rows []struct {
		Status loom.ClusterStatus `db:"status"`
		N      int                `db:"n"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, clustersByStatus); err != nil {
		return nil, wrap(err, "count clusters by status")
	}
	counts := map[loom.ClusterStatus]int{}
	for _, s := range loom.ClusterStatuses {
		if s != loom.ClusterTerminated {
			counts[s] = 0
		}
	}
	for _, r := range rows {
		counts[r.Status] = r.N
	}
	return counts, nil
}

// Leans on clusters_expiry.
const leasesEnding = `
SELECT count(*) FROM clusters
WHERE expires_at IS NOT NULL AND status <> 'terminated' AND expires_at < now() + make_interval(secs => $1)`

// LeasesEndingAllTenants counts the clusters whose lease ends within a time, or
// has ended without their being terminated.
func LeasesEndingAllTenants(ctx context.Context, q sqlx.ExtContext, within time.Duration) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, leasesEnding, within.Seconds())
	return n, wrap(err, "count leases that end")
}

const processFigures = `
SELECT kind, count(*) AS n, min(started_at) AS started, greatest(extract(epoch FROM max(now() - expires_at)) + $1, 0)::float8 AS age
FROM processes GROUP BY kind ORDER BY kind`

// ProcessFiguresAllTenants sums up processes by kind, those whose lease is over
// but that nobody reaped yet among them; lease is how long a lease runs.
func ProcessFiguresAllTenants(ctx context.Context, q sqlx.ExtContext, lease time.Duration) ([]loom.ProcessFigure, error) {
	var rows []struct {
		Kind    string    `db:"kind"`
		N       int       `db:"n"`
		Age     float64   `db:"age"`
		Started time.Time `db:"started"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, processFigures, lease.Seconds()); err != nil {
		return nil, wrap(err, "sum up processes")
	}
	figures := make([]loom.ProcessFigure, len(rows))
	for i, r := range rows {
		figures[i] = loom.ProcessFigure{Kind: r.Kind, Count: r.N, LeaseAge: inSeconds(r.Age), Started: r.Started}
	}
	return figures, nil
}

const workerFigures = `
SELECT coalesce((SELECT sum(capacity) FROM processes WHERE kind = 'provisioner' AND expires_at > now() AND NOT draining AND NOT drain_asked), 0) AS capacity,
	coalesce((SELECT sum(workers) FROM tenants WHERE deleted_at IS NULL AND id NOT IN (SELECT tenant_id FROM paused_tenants)), 0) AS wanted,
	coalesce((SELECT sum(workers) FROM worker_assignments), 0) AS assigned,
	(SELECT count(*) FROM running_tasks) AS busy`

// WorkerFiguresAllTenants sums up workers over provisioners and tenants.
func WorkerFiguresAllTenants(ctx context.Context, q sqlx.ExtContext) (loom.WorkerFigure, error) {
	var row struct {
		Capacity int `db:"capacity"`
		Wanted   int `db:"wanted"`
		Assigned int `db:"assigned"`
		Busy     int `db:"busy"`
	}
	err := sqlx.GetContext(ctx, q, &row, workerFigures)
	return loom.WorkerFigure(row), wrap(err, "sum up workers")
}

// Transactions of other users are seen by roles only that may look at them; those
// of Loom have Loom's own.
const databaseFigures = `
SELECT count(*) AS connections, coalesce(greatest(extract(epoch FROM max(clock_timestamp() - xact_start)), 0), 0)::float8 AS oldest
FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`

// DatabaseFigures counts the other connections to the database and finds the age
// of their oldest transaction.
func DatabaseFigures(ctx context.Context, q sqlx.ExtContext) (loom.DatabaseFigure, error) {
	var row struct {
		Connections int     `db:"connections"`
		Oldest      float64 `db:"oldest"`
	}
	err := sqlx.GetContext(ctx, q, &row, databaseFigures)
	return loom.DatabaseFigure{Connections: row.Connections, OldestTransaction: inSeconds(row.Oldest)}, wrap(err, "look at the connections of the database")
}

// Leans on hook_deliveries_waiting.
const hookFigures = `
SELECT (SELECT count(*) FROM hooks WHERE enabled) AS enabled, (SELECT count(*) FROM hook_deliveries WHERE status = 'waiting') AS waiting`

// HookFiguresAllTenants counts the hooks that are called, and the deliveries that have not
// ended.
func HookFiguresAllTenants(ctx context.Context, q sqlx.ExtContext) (loom.HookFigure, error) {
	var f struct {
		Enabled int `db:"enabled"`
		Waiting int `db:"waiting"`
	}
	err := sqlx.GetContext(ctx, q, &f, hookFigures)
	return loom.HookFigure(f), wrap(err, "count hooks and their waiting deliveries")
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
