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
