package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// QueuedTask is a task that its node holds: it waits for a worker, or has one.
type QueuedTask struct {
	Cluster     loom.ClusterID       `db:"cluster_id"`
	ClusterName string               `db:"cluster_name"`
	Owner       string               `db:"owner_id"`
	Operation   int                  `db:"operation"`
	Number      int                  `db:"number"`
	Action      string               `db:"action"`
	Service     string               `db:"service"`
	Hostname    string               `db:"hostname"`
	Status      loom.TaskStatus      `db:"status"`
	State       loom.OperationStatus `db:"operation_status"`
	Aborted     bool                 `db:"aborted"`
	// Since is when a task that runs was begun, and when one that waits was given to its
	// queue; later than Now for one that is tried again then.
	Since time.Time `db:"since"`
	Now   time.Time `db:"now"`
	// Failed says that it was tried before, Message why that did not do.
	Failed  bool   `db:"failed"`
	Message string `db:"message"`
	// Priority is River's, 1 to 4: clusters with less under way go first. 0 where the
	// task is not in the queue.
	Priority int `db:"priority"`
	// Process is who runs it, "" for a task that waits; Host is where that is.
	Process string `db:"process_id"`
	Host    string `db:"host"`
}

// Ref names the task.
func (t QueuedTask) Ref() loom.TaskRef {
	return loom.TaskRef{Operation: loom.OperationRef{Cluster: t.Cluster, Number: t.Operation}, Number: t.Number}
}

// queuedSince is when a row of queuedFrom began to wait or to run.
const queuedSince = `CASE WHEN h.status = 'running' THEN coalesce(h.started_at, o.created_at) ELSE coalesce(r.scheduled_at, o.created_at) END`

// A node holds one task at a time, so that there are as many rows as nodes at most,
// found by way of the few operations that have not ended.
const queuedFrom = `operations o JOIN nodes n ON n.cluster_id = o.cluster_id
JOIN tasks h ON h.id = n.task_id AND h.operation_id = o.id
JOIN clusters c ON c.id = o.cluster_id
LEFT JOIN river_job r ON r.id = h.river_job_id
LEFT JOIN processes p ON p.id = h.process_id AND h.status = 'running'`

const queuedOpen = `o.status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back') AND o.tenant_id = `

var queuedKeyset = keyset{
	columns: `o.cluster_id, c.name AS cluster_name, c.owner_id, o.number AS operation, h.number, h.action, h.service, n.hostname, h.status, o.status AS operation_status, o.aborted,
	` + queuedSince + ` AS since, now() AS now, h.code <> 0 AS failed, h.message, CASE WHEN r.state = 'available' THEN r.priority ELSE 0 END AS priority,
	CASE WHEN h.status = 'running' THEN h.process_id ELSE '' END AS process_id, coalesce(p.host, '') AS host`,
	from: queuedFrom, id: "h.id", idKind: "bigint",
	sorts: map[string]sortColumn{"since": {queuedSince, `to_char((` + queuedSince + `) AT TIME ZONE 'UTC', '` + cursorTime + `')`, "timestamptz"}},
}

// QueuedTasks reads a page of the tasks of a tenant that wait for a worker, or with
// running those that have one, the oldest first. Invalid for a cursor of another list.
func QueuedTasks(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, running bool, p loom.Page) (tasks []QueuedTask, next, prev string, err error) {
	var b binder
	status := "ready"
	if running {
		status = "running"
	}
	conditions := []string{queuedOpen + b.add(tenant), "h.status = " + b.add(status)}
	type row struct {
		QueuedTask
		pageKeys
	}
	rows, next, prev, err := readKeyset[row](ctx, q, queuedKeyset, conditions, &b, status, p, "since")
	for _, r := range rows {
		tasks = append(tasks, r.QueuedTask)
	}
	return tasks, next, prev, err
}

// QueuedSum is how many tasks of a tenant wait for a worker and have one, and since when
// the one that is due and waits longest does; the zero time when none is due.
type QueuedSum struct {
	Waiting int       `db:"waiting"`
	Running int       `db:"running"`
	Oldest  time.Time `db:"oldest"`
	Now     time.Time `db:"now"`
}

const queuedSum = `
SELECT count(*) FILTER (WHERE h.status = 'ready') AS waiting, count(*) FILTER (WHERE h.status = 'running') AS running, now() AS now,
	coalesce(min(r.scheduled_at) FILTER (WHERE h.status = 'ready' AND r.state = 'available'), '0001-01-01T00:00:00Z') AS oldest
FROM ` + queuedFrom + ` WHERE ` + queuedOpen + `$1`

// SumQueued counts what QueuedTasks lists.
func SumQueued(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (QueuedSum, error) {
	var sum QueuedSum
	err := sqlx.GetContext(ctx, q, &sum, queuedSum, tenant)
	if sum.Oldest.Year() <= 1 {
		sum.Oldest = time.Time{}
	}
	return sum, wrap(err, "count the tasks that wait")
}

// Queueing is what an operation with tasks that are ready may wait for.
type Queueing struct {
	// Wanted are the workers that the tenant is to have, Assigned those that live
	// provisioners hold for it, Busy the tasks of the tenant that run.
	Wanted   int `db:"wanted"`
	Assigned int `db:"assigned"`
	Busy     int `db:"busy"`
	// Live are the provisioners that may work for the tenant.
	Live int `db:"live"`
	// Ready are the tasks of the operation that their nodes hold and that wait to be
	// taken, those that are due later not counted.
	Ready int `db:"ready"`
	// Paused says that nothing of the tenant begins until a superadmin says so.
	Paused bool `db:"paused"`
}

const queueing = `
SELECT t.workers AS wanted,
       (SELECT count(*) FROM processes p WHERE p.kind = $4 AND p.expires_at > now() AND (p.only_tenant IS NULL OR p.only_tenant = t.id)) AS live,
       (SELECT coalesce(sum(a.workers), 0) FROM worker_assignments a JOIN processes p ON p.id = a.process_id AND p.expires_at > now()
        WHERE a.tenant_id = t.id) AS assigned,
       (SELECT count(*) FROM operations o JOIN running_tasks b ON b.operation_id = o.id
        WHERE o.tenant_id = t.id AND o.status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back')) AS busy,
       (SELECT count(*) FROM operations o JOIN nodes n ON n.cluster_id = o.cluster_id
        JOIN tasks h ON h.id = n.task_id AND h.operation_id = o.id AND h.status = 'ready' AND h.code = 0
        WHERE o.tenant_id = t.id AND o.cluster_id = $2 AND o.number = $3) AS ready,
       EXISTS (SELECT 1 FROM paused_tenants z WHERE z.tenant_id = t.id) AS paused
FROM tenants t WHERE t.id = $1`

// QueueingOf reads what an operation may wait for. NotFound for the tenant.
func QueueingOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (Queueing, error) {
	var found Queueing
	err := sqlx.GetContext(ctx, q, &found, queueing, tenant, int64(ref.Cluster), ref.Number, loom.ProcessProvisioner)
	return found, wrap(err, "read what operation %s waits for", ref)
}

// NextTry is a task that failed and is tried again.
type NextTry struct {
	Number     int    `db:"number"`
	NodeNumber int    `db:"node_number"`
	Action     string `db:"action"`
	Service    string `db:"service"`
	Hostname   string `db:"hostname"`
	Message    string `db:"message"`
	// Attempt is the number of the one that failed.
	Attempt int `db:"attempt"`
	// Error is the end of what that said on standard error.
	Error string    `db:"error"`
	At    time.Time `db:"scheduled_at"`
}

// A snooze is no retry: it keeps the code of the attempt before it, which is 0.
const nextTries = `
SELECT h.number, n.number AS node_number, coalesce(n.hostname, '') AS hostname, h.action, h.service, h.message, h.attempt, r.scheduled_at,
       coalesce((SELECT right(a.stderr, 1000) FROM attempts a WHERE a.task_id = h.id AND a.number = h.attempt), '') AS error
FROM operations o JOIN nodes n ON n.cluster_id = o.cluster_id
JOIN tasks h ON h.id = n.task_id AND h.operation_id = o.id AND h.status = 'ready' AND h.code <> 0
JOIN river_job r ON r.id = h.river_job_id AND r.state IN ('scheduled', 'available')
WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3
ORDER BY r.scheduled_at, h.number LIMIT $4`

// NextTryOf reads the retry of an operation that is due first; ok is false when none
// is.
func NextTryOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (try NextTry, ok bool, err error) {
	rows, err := NextTriesOf(ctx, q, tenant, ref, 1)
	if err != nil || len(rows) == 0 {
		return NextTry{}, false, err
	}
	return rows[0], true, nil
}

// NextTriesOf reads the retries of an operation, at most limit, what is due first first.
func NextTriesOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef, limit int) ([]NextTry, error) {
	var rows []NextTry
	err := sqlx.SelectContext(ctx, q, &rows, nextTries, tenant, int64(ref.Cluster), ref.Number, limit)
	return rows, wrap(err, "read the retries of operation %s", ref)
}

// QueueCount is how many tasks of a tenant wait for a worker and are worked on.
type QueueCount struct {
	Tenant  string `db:"name"`
	Waiting int    `db:"waiting"`
	Running int    `db:"running"`
}

// Leans on river_job_prioritized_fetching_index (state, queue, ...).
const queueCounts = `
SELECT n.name,
	(SELECT count(*) FROM river_job r WHERE r.state = 'available' AND r.queue = 'tenant_' || n.id) AS waiting,
	(SELECT count(*) FROM river_job r WHERE r.state = 'running' AND r.queue = 'tenant_' || n.id) AS running
FROM tenants n
WHERE n.deleted_at IS NULL AND ($2 OR n.id = $1) ORDER BY n.name`

// QueueCounts counts the tasks of a tenant.
func QueueCounts(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) ([]QueueCount, error) {
	return queueCountsOf(ctx, q, tenant, false)
}

// QueueCountsAllTenants counts the tasks of every tenant, by name.
func QueueCountsAllTenants(ctx context.Context, q sqlx.ExtContext) ([]QueueCount, error) {
	return queueCountsOf(ctx, q, "", true)
}

func queueCountsOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, all bool) ([]QueueCount, error) {
	var counts []QueueCount
	err := sqlx.SelectContext(ctx, q, &counts, queueCounts, tenant, all)
	return counts, wrap(err, "count waiting tasks")
}
