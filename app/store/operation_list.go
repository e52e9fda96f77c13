package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// textArray is a list of texts as an argument; none is the empty list.
func textArray[T ~string](items []T) any {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = string(item)
	}
	return pq.Array(texts)
}

// NumberRange picks a part of a list by running numbers, both ends exclusive and 0
// for none. Down gives the highest numbers first. Limit 0 gives all.
type NumberRange struct {
	Above, Below int
	Down         bool
	Limit        int
}

// sql gives the end of a statement that is cut by column, whose placeholders are
// those from the n-th on.
func (r *NumberRange) sql(column string, n int) (text string, args []any) {
	direction := "ASC"
	if r.Down {
		direction = "DESC"
	}
	text = fmt.Sprintf(" AND %[1]s > $%[2]d AND ($%[3]d = 0 OR %[1]s < $%[3]d) ORDER BY %[1]s %[4]s", column, n, n+1, direction)
	args = []any{r.Above, r.Below}
	if r.Limit > 0 {
		text += fmt.Sprintf(" LIMIT $%d", n+2)
		args = append(args, r.Limit)
	}
	return text, args
}

// OperationFilter narrows a list of operations; empty fields do not filter.
type OperationFilter struct {
	Statuses []loom.OperationStatus
	Actions  []loom.ClusterAction
	// Uncounted is the number of an operation whose tasks are not counted, because the
	// caller has done it; 0 for none.
	Uncounted int
}

const operationsInRange = `
SELECT ` + operationReadColumns + ` FROM operations o
WHERE o.tenant_id = $1 AND o.cluster_id = $2
  AND (cardinality($3::text[]) = 0 OR o.status = ANY ($3)) AND (cardinality($4::text[]) = 0 OR o.action = ANY ($4))`

// OperationsInRange reads a part of the operations of a cluster with their task
// counts.
func OperationsInRange(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, f OperationFilter, r NumberRange) ([]loom.Operation, error) {
	end, args := r.sql("o.number", 6)
	direction := "ASC"
	if r.Down {
		direction = "DESC"
	}
	var rows []operationReadRow
	args = append([]any{tenant, int64(cluster), textArray(f.Statuses), textArray(f.Actions), f.Uncounted}, args...)
	if err := sqlx.SelectContext(ctx, q, &rows, fmt.Sprintf(withCounts, operationsInRange+end, "$5", direction), args...); err != nil {
		return nil, wrap(err, "list operations of cluster %s", cluster)
	}
	operations := make([]loom.Operation, len(rows))
	for i := range rows {
		var err error
		if operations[i], err = rows[i].operation(); err != nil {
			return nil, err
		}
	}
	return operations, nil
}

// Gates have the number 0 and so are in no range. Leans on tasks_operation.
const tasksInRange = `
SELECT ` + taskReadColumns + `
FROM tasks t LEFT JOIN nodes n ON n.id = t.node_id
WHERE t.operation_id = (SELECT o.id FROM operations o WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3) AND NOT t.gate
  AND (cardinality($4::text[]) = 0 OR t.status = ANY ($4)) AND ($5 = '' OR t.node_id::text = $5)
  AND (cardinality($6::text[]) = 0 OR t.service = ANY ($6)) AND (cardinality($7::text[]) = 0 OR t.action = ANY ($7))
  AND ($8 = 0 OR t.level = $8)`

// TaskListFilter narrows a list of tasks; empty fields do not filter.
type TaskListFilter struct {
	Statuses []loom.TaskStatus
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
	end, args := r.sql("t.number", 9)
	var rows []taskReadRow
	args = append([]any{tenant, int64(ref.Cluster), ref.Number, textArray(f.Statuses), f.Node, textArray(f.Services), textArray(f.Actions), f.Level}, args...)
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

const operationStatus = `
SELECT status FROM operations WHERE tenant_id = $1 AND cluster_id = $2 AND number = $3`

// OperationStatus reads how an operation stands, without counting its tasks.
// NotFound.
func OperationStatus(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (loom.OperationStatus, error) {
	var status loom.OperationStatus
	err := sqlx.GetContext(ctx, q, &status, operationStatus, tenant, int64(ref.Cluster), ref.Number)
	return status, wrap(err, "read the status of operation %s", ref)
}

const statusAroundNode = `
SELECT c.status FROM nodes n JOIN clusters c ON c.id = n.cluster_id WHERE n.tenant_id = $1 AND n.cluster_id = $2 AND n.id::text = $3`

// StatusAroundNode reads the status of the cluster of a node. NotFound when the
// cluster has no such node.
func StatusAroundNode(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, node loom.NodeID) (loom.ClusterStatus, error) {
	var status loom.ClusterStatus
	err := sqlx.GetContext(ctx, q, &status, statusAroundNode, tenant, int64(cluster), node)
	return status, wrap(err, "find node %s", node)
}
