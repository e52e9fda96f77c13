package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// TaskGroup counts the tasks of an operation that have the same stage, action,
// service and status.
type TaskGroup struct {
	Level   int
	Action  loom.TaskAction
	Service string
	Undo    bool
	Status  loom.TaskStatus
	Count   int
	// Critical says that one of them is on the longest path.
	Critical bool
	// Started is the earliest start, Ended the latest end; zero where there is none.
	Started, Ended time.Time
	// Running are the numbers of those that run, in no order; Again counts those that
	// failed and are ready to be tried again.
	Running []int64
	Again   int
}

const taskGroups = `
SELECT t.level, t.action, t.service, t.undo, t.status, count(*) AS n, bool_or(t.critical) AS critical,
       min(t.started_at) AS started_at, max(t.ended_at) AS ended_at,
       array_agg(t.number) FILTER (WHERE t.status = 'running') AS running, count(*) FILTER (WHERE t.status = 'ready' AND t.code <> 0) AS again
FROM tasks t
WHERE t.operation_id = (SELECT o.id FROM operations o WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3) AND NOT t.gate
GROUP BY t.level, t.action, t.service, t.undo, t.status ORDER BY t.level, min(t.number)`

// TaskGroups counts the tasks of an operation by what they do and how they stand,
// by stage; of a plan of any size it is a short list.
func TaskGroups(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) ([]TaskGroup, error) {
	var rows []struct {
		Level     int           `db:"level"`
		Action    string        `db:"action"`
		Service   string        `db:"service"`
		Undo      bool          `db:"undo"`
		Status    string        `db:"status"`
		Count     int           `db:"n"`
		Critical  bool          `db:"critical"`
		StartedAt sql.NullTime  `db:"started_at"`
		EndedAt   sql.NullTime  `db:"ended_at"`
		Running   pq.Int64Array `db:"running"`
		Again     int           `db:"again"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, taskGroups, tenant, int64(ref.Cluster), ref.Number); err != nil {
		return nil, wrap(err, "count the tasks of operation %s", ref)
	}
	groups := make([]TaskGroup, len(rows))
	for i, r := range rows {
		groups[i] = TaskGroup{
			Level: r.Level, Action: loom.TaskAction(r.Action), Service: r.Service, Undo: r.Undo, Status: loom.TaskStatus(r.Status),
			Count: r.Count, Critical: r.Critical, Started: r.StartedAt.Time, Ended: r.EndedAt.Time, Running: r.Running, Again: r.Again,
		}
	}
	return groups, nil
}

const taskStatuses = `
SELECT t.status, array_agg(t.number) AS numbers FROM tasks t
WHERE t.operation_id = (SELECT o.id FROM operations o WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3) AND NOT t.gate
GROUP BY t.status`

// TaskStatuses reads how the tasks of an operation stand: their numbers by status, in
// no order.
func TaskStatuses(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (map[loom.TaskStatus][]int64, error) {
	var rows []struct {
		Status  loom.TaskStatus `db:"status"`
		Numbers pq.Int64Array   `db:"numbers"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, taskStatuses, tenant, int64(ref.Cluster), ref.Number); err != nil {
		return nil, wrap(err, "read how the tasks of operation %s stand", ref)
	}
	numbers := make(map[loom.TaskStatus][]int64, len(rows))
	for _, r := range rows {
		numbers[r.Status] = r.Numbers
	}
	return numbers, nil
}

// NodeCourse sums up what an operation does on a node.
type NodeCourse struct {
	Node     loom.NodeID
	Hostname string
	// Tasks counts all of them; Done those complete or skipped.
	Tasks, Done, Running, Failed int
	// Busy is the time for which a task of the operation was at work, up to now for
	// those that run.
	Busy time.Duration
	// Started is the first start, Ended the last end; zero where there is none.
	Started, Ended time.Time
}

// Tasks are summed up by the ids that they have; the nodes are looked up for the sums.
const nodeCourses = `
SELECT t.node_id::text AS node_id, coalesce(n.hostname, '') AS hostname,
       t.tasks, t.done, t.running, t.failed, coalesce(t.busy, 0) AS busy, t.started_at, t.ended_at
FROM (SELECT node_id, count(*) AS tasks, count(*) FILTER (WHERE status IN ('complete', 'skipped')) AS done,
             count(*) FILTER (WHERE status = 'running') AS running, count(*) FILTER (WHERE status = 'failed') AS failed,
             sum(date_part('epoch', coalesce(ended_at, CASE WHEN status = 'running' THEN now() END) - started_at)) AS busy,
             min(started_at) AS started_at, max(ended_at) AS ended_at
      FROM tasks
      WHERE operation_id = (SELECT o.id FROM operations o WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3)
        AND NOT gate AND node_id IS NOT NULL
      GROUP BY node_id) t LEFT JOIN nodes n ON n.id = t.node_id
ORDER BY n.number, t.node_id`

// NodeCourses sums the tasks of an operation up by node, by number.
func NodeCourses(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) ([]NodeCourse, error) {
	var rows []struct {
		NodeID    string       `db:"node_id"`
		Hostname  string       `db:"hostname"`
		Tasks     int          `db:"tasks"`
		Done      int          `db:"done"`
		Running   int          `db:"running"`
		Failed    int          `db:"failed"`
		Busy      float64      `db:"busy"`
		StartedAt sql.NullTime `db:"started_at"`
		EndedAt   sql.NullTime `db:"ended_at"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, nodeCourses, tenant, int64(ref.Cluster), ref.Number); err != nil {
		return nil, wrap(err, "sum up the nodes of operation %s", ref)
	}
	nodes := make([]NodeCourse, len(rows))
	for i, r := range rows {
		nodes[i] = NodeCourse{
			Node: loom.NodeID(r.NodeID), Hostname: r.Hostname, Tasks: r.Tasks, Done: r.Done, Running: r.Running, Failed: r.Failed,
			Busy: time.Duration(r.Busy * float64(time.Second)), Started: r.StartedAt.Time, Ended: r.EndedAt.Time,
		}
	}
	return nodes, nil
}

// NodeName names a node; Hostname is empty of one whose record is gone.
type NodeName struct {
	ID       loom.NodeID
	Hostname string
}

const operationNodes = `
SELECT t.node_id::text AS id, coalesce(n.hostname, '') AS hostname
FROM (SELECT DISTINCT node_id FROM tasks
      WHERE operation_id = (SELECT o.id FROM operations o WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3)
        AND NOT gate AND node_id IS NOT NULL) t LEFT JOIN nodes n ON n.id = t.node_id
ORDER BY n.number, t.node_id`

// OperationNodes names the nodes that tasks of an operation are about, by number.
func OperationNodes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) ([]NodeName, error) {
	var rows []struct {
		ID       string `db:"id"`
		Hostname string `db:"hostname"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, operationNodes, tenant, int64(ref.Cluster), ref.Number); err != nil {
		return nil, wrap(err, "name the nodes of operation %s", ref)
	}
	nodes := make([]NodeName, len(rows))
	for i, r := range rows {
		nodes[i] = NodeName{loom.NodeID(r.ID), r.Hostname}
	}
	return nodes, nil
}

const tasksOnNodes = `
SELECT ` + taskReadColumns + `
FROM tasks t LEFT JOIN nodes n ON n.id = t.node_id
WHERE t.operation_id = (SELECT o.id FROM operations o WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3) AND NOT t.gate
  AND t.node_id = ANY ($4::uuid[])
ORDER BY t.number`

// TasksOnNodes reads the tasks of an operation that are about the named nodes, by
// number.
func TasksOnNodes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef, nodes []loom.NodeID) ([]loom.Task, error) {
	ids := []string{}
	for _, id := range nodes {
		if isUUID(string(id)) {
			ids = append(ids, string(id))
		}
	}
	var rows []taskReadRow
	if err := sqlx.SelectContext(ctx, q, &rows, tasksOnNodes, tenant, int64(ref.Cluster), ref.Number, pq.Array(ids)); err != nil {
		return nil, wrap(err, "read the tasks of %d nodes of operation %s", len(nodes), ref)
	}
	tasks := make([]loom.Task, len(rows))
	for i := range rows {
		tasks[i] = rows[i].task(ref)
	}
	return tasks, nil
}

const tasksNumbered = `
SELECT ` + taskReadColumns + `
FROM tasks t LEFT JOIN nodes n ON n.id = t.node_id
WHERE t.operation_id = (SELECT o.id FROM operations o WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3) AND NOT t.gate
  AND t.number = ANY ($4::int[])
ORDER BY t.number`

// TasksNumbered reads the tasks of an operation with these numbers, by number.
func TasksNumbered(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef, numbers []int) ([]loom.Task, error) {
	var rows []taskReadRow
	if err := sqlx.SelectContext(ctx, q, &rows, tasksNumbered, tenant, int64(ref.Cluster), ref.Number, pq.Array(numbers)); err != nil {
		return nil, wrap(err, "read %d tasks of operation %s", len(numbers), ref)
	}
	tasks := make([]loom.Task, len(rows))
	for i := range rows {
		tasks[i] = rows[i].task(ref)
	}
	return tasks, nil
}

// What comes last before a task: a task, or of those behind a gate the last one. A gate
// never follows a gate.
const taskReady = `
SELECT CASE WHEN count(*) FILTER (WHERE f.status NOT IN ('complete', 'skipped')) > 0 THEN NULL ELSE coalesce(max(f.ended_at), min(o.started_at)) END
FROM tasks t JOIN operations o ON o.id = t.operation_id
LEFT JOIN LATERAL (
    SELECT b.status, b.ended_at FROM task_edges e JOIN tasks b ON b.id = e.from_task WHERE e.to_task = t.id AND NOT b.gate
    UNION ALL
    SELECT b.status, b.ended_at FROM task_edges e JOIN tasks g ON g.id = e.from_task AND g.gate
    JOIN task_edges i ON i.to_task = g.id JOIN tasks b ON b.id = i.from_task WHERE e.to_task = t.id) f ON true
WHERE t.tenant_id = $1 AND t.id = $2`

// TaskReady reads when a task had nothing more to wait for but its node and a worker;
// zero while it has.
func TaskReady(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, task loom.TaskID) (time.Time, error) {
	var at sql.NullTime
	err := sqlx.GetContext(ctx, q, &at, taskReady, tenant, int64(task))
	return at.Time, wrap(err, "read since when task %d is ready", task)
}
