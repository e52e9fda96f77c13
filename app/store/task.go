package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

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

const attemptsOnNodes = `
SELECT t.number AS task, a.number, a.status, a.started_at, a.ended_at FROM tasks t JOIN attempts a ON a.task_id = t.id
WHERE t.operation_id = (SELECT o.id FROM operations o WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3) AND NOT t.gate
  AND t.node_id = ANY ($4::uuid[])
ORDER BY a.started_at, t.number, a.number`

// AttemptsOnNodes reads when the tasks of an operation on the named nodes were tried, by
// number of the task, the oldest try first, with how each ended and nothing else.
func AttemptsOnNodes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef, nodes []loom.NodeID) (map[int][]loom.Attempt, error) {
	var rows []struct {
		Task      int          `db:"task"`
		Number    int          `db:"number"`
		Status    string       `db:"status"`
		StartedAt time.Time    `db:"started_at"`
		EndedAt   sql.NullTime `db:"ended_at"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, attemptsOnNodes, tenant, int64(ref.Cluster), ref.Number, textArray(nodes)); err != nil {
		return nil, wrap(err, "read the attempts of operation %s", ref)
	}
	attempts := map[int][]loom.Attempt{}
	for _, r := range rows {
		attempts[r.Task] = append(attempts[r.Task], loom.Attempt{Number: r.Number, Status: loom.AttemptStatus(r.Status), Started: r.StartedAt, Ended: r.EndedAt.Time})
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

// Gates have the number 0 and so are in no range. Leans on tasks_operation.
const tasksInRange = `
SELECT ` + taskReadColumns + `
FROM tasks t LEFT JOIN nodes n ON n.id = t.node_id
WHERE t.operation_id = (SELECT o.id FROM operations o WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3) AND NOT t.gate
  AND (cardinality($4::text[]) = 0 OR t.status = ANY ($4) OR $9 AND t.status = 'ready' AND t.code <> 0) AND ($5 = '' OR t.node_id::text = $5)
  AND (cardinality($6::text[]) = 0 OR t.service = ANY ($6)) AND (cardinality($7::text[]) = 0 OR t.action = ANY ($7))
  AND ($8 = 0 OR t.level = $8)`

// TaskListFilter narrows a list of tasks; empty fields do not filter.
type TaskListFilter struct {
	Statuses []loom.TaskStatus
	// Again adds, to those of the statuses, those that failed and are tried again.
	Again    bool
	Node     loom.NodeID
	Services []string
	Actions  []loom.TaskAction
	// Level is that of a stage.
	Level int
}

// ListedTask is a task with what it waits for.
type ListedTask struct {
	loom.Task
	// DependsOn are numbers of tasks, Behind the gates it waits for.
	DependsOn []int
	Behind    []TaskGate
}

// TasksInRange reads a part of the tasks of an operation, gates left out, with
// what each waits for. It reads no more of the plan than that.
func TasksInRange(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef, f TaskListFilter, r NumberRange) ([]ListedTask, error) {
	end, args := r.sql("t.number", 10)
	var rows []taskReadRow
	args = append([]any{tenant, int64(ref.Cluster), ref.Number, textArray(f.Statuses), f.Node, textArray(f.Services), textArray(f.Actions), f.Level, f.Again}, args...)
	if err := sqlx.SelectContext(ctx, q, &rows, tasksInRange+end, args...); err != nil {
		return nil, wrap(err, "list tasks of operation %s", ref)
	}
	tasks := make([]ListedTask, len(rows))
	ids := make([]int64, len(rows))
	for i := range rows {
		tasks[i] = ListedTask{Task: rows[i].task(ref), DependsOn: []int{}, Behind: []TaskGate{}}
		ids[i] = rows[i].ID
	}
	return tasks, wrap(addDependencies(ctx, q, tenant, ids, tasks), "read what tasks of operation %s wait for", ref)
}

// The tasks a gate joins are counted once per gate, however many wait for it.
const tasksBeforeSeveral = `
WITH before AS MATERIALIZED (
    SELECT e.to_task, f.id, f.gate, f.number, f.service, f.action
    FROM task_edges e JOIN tasks f ON f.id = e.from_task
    WHERE f.tenant_id = $1 AND e.to_task = ANY ($2)
), joined AS (
    SELECT g.id, (SELECT count(*) FROM task_edges e WHERE e.to_task = g.id) AS n
    FROM (SELECT DISTINCT b.id FROM before b WHERE b.gate) g
)
SELECT b.to_task, b.gate, b.number, b.service, b.action, coalesce(j.n, 1) AS joined
FROM before b LEFT JOIN joined j ON j.id = b.id
ORDER BY b.to_task, b.gate, b.number, b.id`

// addDependencies fills in what tasks wait for; ids are their row ids.
func addDependencies(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ids []int64, tasks []ListedTask) error {
	if len(ids) == 0 {
		return nil
	}
	var rows []struct {
		To      int64  `db:"to_task"`
		Gate    bool   `db:"gate"`
		Number  int    `db:"number"`
		Service string `db:"service"`
		Action  string `db:"action"`
		Joined  int    `db:"joined"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, tasksBeforeSeveral, tenant, pq.Array(ids)); err != nil {
		return err
	}
	place := make(map[int64]int, len(ids))
	for i, id := range ids {
		place[id] = i
	}
	for _, r := range rows {
		t := &tasks[place[r.To]]
		if r.Gate {
			t.Behind = append(t.Behind, TaskGate{r.Service, loom.TaskAction(r.Action), r.Joined})
		} else {
			t.DependsOn = append(t.DependsOn, r.Number)
		}
	}
	for i := range tasks {
		slices.Sort(tasks[i].DependsOn)
	}
	return nil
}

const skipTask = `SELECT loom_skip($1, $2, $3)`

// SkipTask leaves out a task of a held operation; false when it does not wait to run.
func SkipTask(ctx context.Context, tx *sqlx.Tx, task loom.TaskID, s Skip) (bool, error) {
	var done bool
	err := tx.GetContext(ctx, &done, skipTask, task, s.By, cleanText(s.Reason))
	return done, wrap(err, "skip task %d", task)
}

// A later operation that completed the same task takes the mark away, and so do
// another machine, and the end of the node or of the service there.
const skippedTasks = `
SELECT ` + taskReadColumns + `, o.number AS operation
FROM tasks t JOIN operations o ON o.id = t.operation_id JOIN nodes n ON n.id = t.node_id
WHERE t.tenant_id = $1 AND t.cluster_id = $2 AND t.status = 'skipped' AND t.skipped_by <> '' AND NOT t.gate AND n.state <> 'deleted'
  AND (t.service = '' OR t.service = ANY (n.services))
  AND NOT EXISTS (SELECT FROM operations p JOIN tasks l ON l.operation_id = p.id
                  WHERE p.cluster_id = t.cluster_id AND p.number > o.number AND l.node_id = t.node_id AND NOT l.gate AND l.status IN ('complete', 'skipped')
                    AND (l.service = t.service AND l.action = t.action OR l.action = 'create'))
ORDER BY t.operation_id, t.number LIMIT $3`

// SkippedTasks reads the tasks of a cluster that somebody left out and that no later
// operation ran, oldest first and at most limit.
func SkippedTasks(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, limit int) ([]loom.Task, error) {
	var rows []struct {
		taskReadRow
		Operation int `db:"operation"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, skippedTasks, tenant, int64(cluster), limit); err != nil {
		return nil, wrap(err, "read the skipped tasks of cluster %s", cluster)
	}
	tasks := make([]loom.Task, len(rows))
	for i, r := range rows {
		tasks[i] = r.task(loom.OperationRef{Cluster: cluster, Number: r.Operation})
	}
	return tasks, nil
}

// Skip says who leaves a task out, and why.
type Skip struct {
	By     loom.UserID
	Reason string
}
