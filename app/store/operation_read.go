package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// operationReadRow is an operation with the counts that people are shown.
type operationReadRow struct {
	operationRow
	Tasks []byte `db:"tasks"`
	Again int    `db:"again"`
}

func (r *operationReadRow) operation() (loom.Operation, error) {
	o := r.operationRow.operation()
	o.Again = r.Again
	return o, wrap(decodeExactInto(r.Tasks, &o.Tasks), "read the task counts of operation %s", o.Ref)
}

// decodeExactInto is decodeExact for a column that may be NULL.
func decodeExactInto[V any](data []byte, into *map[loom.TaskStatus]V) error {
	*into = map[loom.TaskStatus]V{}
	if len(data) == 0 {
		return nil
	}
	return decodeExact(data, into)
}

const operationReadColumns = `o.id, o.tenant_id, o.cluster_id, o.number, o.action, o.status, o.message, o.requested_by,
       o.on_failure, o.aborted, o.concerns, o.retries, o.start IS NOT NULL AS mends, o.after IS NOT NULL AS undone, o.created_at, o.started_at, o.ended_at`

const operationsOfCluster = `
SELECT ` + operationReadColumns + ` FROM operations o
WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND ($3 = 0 OR o.number = $3)`

var operationsByCluster = fmt.Sprintf(withCounts, operationsOfCluster, "0", "DESC")

// OperationsByCluster reads the operations of a cluster with their task
// counts, newest first.
func OperationsByCluster(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID) ([]loom.Operation, error) {
	return readOperations(ctx, q, tenant, loom.OperationRef{Cluster: cluster})
}

// OperationByRef reads an operation with its task counts; NotFound when the
// tenant has none of that name.
func OperationByRef(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (loom.Operation, error) {
	if ref.Number <= 0 {
		return loom.Operation{}, wrap(sql.ErrNoRows, "read operation %s", ref)
	}
	operations, err := readOperations(ctx, q, tenant, ref)
	if err == nil && len(operations) == 0 {
		err = wrap(sql.ErrNoRows, "read operation %s", ref)
	}
	if err != nil {
		return loom.Operation{}, err
	}
	return operations[0], nil
}

// OperationRequest reads the request for an operation that never began; nil where none
// was kept. NotFound.
func OperationRequest(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) ([]byte, error) {
	var data []byte
	err := sqlx.GetContext(ctx, q, &data, `SELECT request FROM operations WHERE tenant_id = $1 AND cluster_id = $2 AND number = $3`, tenant, int64(ref.Cluster), ref.Number)
	return data, wrap(err, "read the request for operation %s", ref)
}

const newestOperations = `
SELECT ` + operationReadColumns + ` FROM clusters c JOIN operations o ON o.cluster_id = c.id AND o.number = c.latest_operation
WHERE c.tenant_id = $1 AND o.tenant_id = $1 AND c.id = ANY ($2)`

var latestOperations = fmt.Sprintf(withCounts, newestOperations, "0", "DESC")

// LatestOperations reads the newest operations of clusters, in no order, and where counted
// says so the counts of their tasks; clusters without one and those of other tenants are
// left out.
func LatestOperations(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, clusters []loom.ClusterID, counted bool) ([]loom.Operation, error) {
	ids := make(pq.Int64Array, len(clusters))
	for i, id := range clusters {
		ids[i] = int64(id)
	}
	var rows []operationReadRow
	query := latestOperations
	if !counted {
		query = newestOperations
	}
	if err := sqlx.SelectContext(ctx, q, &rows, query, tenant, ids); err != nil {
		return nil, wrap(err, "read the newest operations of %d clusters", len(clusters))
	}
	return operationsOf(rows)
}

func readOperations(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) ([]loom.Operation, error) {
	var rows []operationReadRow
	if err := sqlx.SelectContext(ctx, q, &rows, operationsByCluster, tenant, int64(ref.Cluster), ref.Number); err != nil {
		return nil, wrap(err, "read operations of cluster %s", ref.Cluster)
	}
	return operationsOf(rows)
}

func operationsOf(rows []operationReadRow) ([]loom.Operation, error) {
	operations := make([]loom.Operation, len(rows))
	for i := range rows {
		var err error
		if operations[i], err = rows[i].operation(); err != nil {
			return nil, err
		}
	}
	return operations, nil
}

// TaskFilter narrows a list of tasks; empty fields do not filter.
type TaskFilter struct {
	Statuses []loom.TaskStatus
	Node     loom.NodeID
	Service  string
	Action   loom.TaskAction
	// Number is that of one task; 0 for all.
	Number int
}

type taskReadRow struct {
	ID         int64         `db:"id"`
	Gate       bool          `db:"gate"`
	Number     int           `db:"number"`
	NodeID     string        `db:"node_id"`
	NodeNumber int           `db:"node_number"`
	Hostname   string        `db:"hostname"`
	Service    string        `db:"service"`
	Action     string        `db:"action"`
	Level      int           `db:"level"`
	Rank       int           `db:"rank"`
	Critical   bool          `db:"critical"`
	Old        bool          `db:"old"`
	Undo       bool          `db:"undo"`
	Status     string        `db:"status"`
	Again      bool          `db:"again"`
	Attempt    int           `db:"attempt"`
	Message    string        `db:"message"`
	SkippedBy  string        `db:"skipped_by"`
	SkipReason string        `db:"skip_reason"`
	StartedAt  sql.NullTime  `db:"started_at"`
	EndedAt    sql.NullTime  `db:"ended_at"`
	Before     pq.Int64Array `db:"before"`
}

func (r *taskReadRow) task(ref loom.OperationRef) loom.Task {
	return loom.Task{
		Row: loom.TaskID(r.ID), Ref: loom.TaskRef{Operation: ref, Number: r.Number}, Node: loom.NodeID(r.NodeID),
		NodeNumber: r.NodeNumber, NodeHostname: r.Hostname, Service: r.Service, Action: loom.TaskAction(r.Action),
		Level: r.Level, Critical: r.Critical, Undo: r.Undo, Status: loom.TaskStatus(r.Status), Again: r.Again, Attempt: r.Attempt,
		Started: r.StartedAt.Time, Ended: r.EndedAt.Time, Message: r.Message,
		SkippedBy: loom.UserID(r.SkippedBy), SkipReason: r.SkipReason,
	}
}

const taskReadColumns = `t.id, t.gate, t.number, coalesce(t.node_id::text, '') AS node_id, coalesce(n.number, 0) AS node_number,
       coalesce(n.hostname, '') AS hostname, t.service, t.action, t.level, t.rank, t.critical, t.old, t.undo, t.status,
       t.status = 'ready' AND t.code <> 0 AS again, t.attempt,
       t.message, t.skipped_by, t.skip_reason, t.started_at, t.ended_at`

const tasksByOperation = `
SELECT ` + taskReadColumns + `
FROM operations o JOIN tasks t ON t.operation_id = o.id AND NOT t.gate LEFT JOIN nodes n ON n.id = t.node_id
WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3
  AND (cardinality($4::text[]) = 0 OR t.status = ANY ($4)) AND ($5 = '' OR t.node_id::text = $5)
  AND ($6 = '' OR t.service = $6) AND ($7 = '' OR t.action = $7) AND ($8 = 0 OR t.number = $8)
ORDER BY t.number`

// TasksByOperation reads the tasks of an operation by number, gates left out.
func TasksByOperation(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef, f TaskFilter) ([]loom.Task, error) {
	statuses := make([]string, len(f.Statuses))
	for i, s := range f.Statuses {
		statuses[i] = string(s)
	}
	var rows []taskReadRow
	err := sqlx.SelectContext(ctx, q, &rows, tasksByOperation, tenant, int64(ref.Cluster), ref.Number,
		pq.Array(statuses), f.Node, f.Service, f.Action, f.Number)
	if err != nil {
		return nil, wrap(err, "read the tasks of operation %s", ref)
	}
	tasks := make([]loom.Task, len(rows))
	for i := range rows {
		tasks[i] = rows[i].task(ref)
	}
	return tasks, nil
}

// TaskByRef reads one task; NotFound when the tenant has none of that name.
func TaskByRef(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.TaskRef) (loom.Task, error) {
	var tasks []loom.Task
	var err error
	if ref.Number > 0 {
		tasks, err = TasksByOperation(ctx, q, tenant, ref.Operation, TaskFilter{Number: ref.Number})
	}
	if err == nil && len(tasks) == 0 {
		err = wrap(sql.ErrNoRows, "read task %s", ref)
	}
	if err != nil {
		return loom.Task{}, err
	}
	return tasks[0], nil
}

const attemptsByTask = `
SELECT a.number, a.status, a.code, a.message, a.process_id, a.facts, a.started_at, a.ended_at
FROM tasks t JOIN attempts a ON a.task_id = t.id WHERE t.tenant_id = $1 AND t.id = $2 ORDER BY a.number`

// AttemptsByTask reads the attempts of a task, oldest first.
func AttemptsByTask(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, task loom.TaskID) ([]loom.Attempt, error) {
	var rows []struct {
		Number    int          `db:"number"`
		Status    string       `db:"status"`
		Code      int          `db:"code"`
		Message   string       `db:"message"`
		ProcessID string       `db:"process_id"`
		Facts     []byte       `db:"facts"`
		StartedAt time.Time    `db:"started_at"`
		EndedAt   sql.NullTime `db:"ended_at"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, attemptsByTask, tenant, int64(task)); err != nil {
		return nil, wrap(err, "read the attempts of task %d", task)
	}
	attempts := make([]loom.Attempt, len(rows))
	for i, r := range rows {
		attempts[i] = loom.Attempt{
			Number: r.Number, Status: loom.AttemptStatus(r.Status), Code: r.Code, Message: r.Message,
			Process: loom.ProcessID(r.ProcessID), Started: r.StartedAt, Ended: r.EndedAt.Time,
		}
		if len(r.Facts) == 0 {
			continue
		}
		if err := decodeExact(r.Facts, &attempts[i].Facts); err != nil {
			return nil, fmt.Errorf("read what attempt %d of task %d learned: %w", r.Number, task, err)
		}
	}
	return attempts, nil
}

// TaskGate is a gate that a task waits for, and how many tasks it joins.
type TaskGate struct {
	Service string
	Action  loom.TaskAction
	Count   int
}

// TaskNeighbours are what a task waits for, one by one and behind gates, and the
// numbers of the tasks that wait for it, directly or behind gates.
type TaskNeighbours struct {
	DependsOn []int
	Behind    []TaskGate
	Next      []int
}

const tasksBefore = `
SELECT f.gate, f.number, f.service, f.action,
       CASE WHEN f.gate THEN (SELECT count(*) FROM task_edges g WHERE g.to_task = f.id) ELSE 1 END AS joined
FROM task_edges e JOIN tasks f ON f.id = e.from_task
WHERE f.tenant_id = $1 AND e.to_task = $2 ORDER BY f.gate, f.number, f.id`

// A gate never follows a gate, so one step through gates is enough.
const tasksAfter = `
SELECT DISTINCT n.number FROM (
    SELECT e.to_task FROM task_edges e WHERE e.from_task = $2
    UNION ALL
    SELECT b.to_task FROM task_edges e JOIN tasks g ON g.id = e.to_task AND g.gate JOIN task_edges b ON b.from_task = g.id
    WHERE e.from_task = $2) after
JOIN tasks n ON n.id = after.to_task AND NOT n.gate WHERE n.tenant_id = $1 ORDER BY n.number`

// NeighboursOfTask reads what is next to a task in its plan.
func NeighboursOfTask(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, task loom.TaskID) (TaskNeighbours, error) {
	n := TaskNeighbours{DependsOn: []int{}, Behind: []TaskGate{}, Next: []int{}}
	var rows []struct {
		Gate    bool   `db:"gate"`
		Number  int    `db:"number"`
		Service string `db:"service"`
		Action  string `db:"action"`
		Joined  int    `db:"joined"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, tasksBefore, tenant, int64(task)); err != nil {
		return n, wrap(err, "read what task %d waits for", task)
	}
	for _, r := range rows {
		if r.Gate {
			n.Behind = append(n.Behind, TaskGate{r.Service, loom.TaskAction(r.Action), r.Joined})
		} else {
			n.DependsOn = append(n.DependsOn, r.Number)
		}
	}
	err := sqlx.SelectContext(ctx, q, &n.Next, tasksAfter, tenant, int64(task))
	return n, wrap(err, "read what waits for task %d", task)
}

// Tasks first, by number, then gates in the order in which they were stored,
// the end gate last: the vertex order of loom.Plan. What takes back comes last.
const planByOperation = `
SELECT ` + taskReadColumns + `,
       ARRAY(SELECT e.from_task FROM task_edges e WHERE e.to_task = t.id) AS before
FROM operations o JOIN tasks t ON t.operation_id = o.id LEFT JOIN nodes n ON n.id = t.node_id
WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3
ORDER BY t.gate, t.number, t.id = o.end_gate, t.id`

// PlanByOperation rebuilds the plan of an operation from its stored tasks and
// edges, with each task as it is now, by number. Tasks that a retry added are
// part of it. An operation that does not exist gives an empty plan.
func PlanByOperation(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, op loom.Operation) (loom.Plan, map[int]loom.Task, error) {
	var rows []taskReadRow
	if err := sqlx.SelectContext(ctx, q, &rows, planByOperation, tenant, int64(op.Ref.Cluster), op.Ref.Number); err != nil {
		return loom.Plan{}, nil, wrap(err, "read the plan of operation %s", op.Ref)
	}
	plan := loom.Plan{Action: op.Action}
	tasks := make(map[int]loom.Task, len(rows))
	vertex := make(map[int64]int, len(rows))
	for i, r := range rows {
		vertex[r.ID] = i + 1
		if r.Gate {
			plan.Gates = append(plan.Gates, loom.Gate{Service: r.Service, Action: loom.TaskAction(r.Action)})
			continue
		}
		tasks[r.Number] = r.task(op.Ref)
		plan.Tasks = append(plan.Tasks, loom.PlanTask{
			Number: r.Number, Node: loom.NodeID(r.NodeID), NodeNumber: r.NodeNumber, Service: r.Service,
			Action: loom.TaskAction(r.Action), Level: r.Level, Rank: r.Rank, Critical: r.Critical,
			Old: r.Old, Undo: r.Undo,
		})
	}
	for _, r := range rows {
		for _, from := range r.Before {
			if v, ok := vertex[from]; ok {
				plan.Edges = append(plan.Edges, loom.Edge{From: v, To: vertex[r.ID]})
			}
		}
	}
	loom.SortEdges(plan.Edges)
	return plan, tasks, nil
}
