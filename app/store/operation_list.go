package store

import (
	"context"
	"database/sql"
	"fmt"

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

// intArray is an array for a statement, empty for no numbers.
func intArray(numbers []int) any {
	array := make(pq.Int64Array, len(numbers))
	for i, n := range numbers {
		array[i] = int64(n)
	}
	return array
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

// The chain of retries leads back to the operation that the first of them retried, and from
// there to the last.
const retriesOf = `
WITH RECURSIVE back AS (
    SELECT o.number, o.concerns, o.retries OR o.start IS NOT NULL AS retries FROM operations o WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3
    UNION ALL
    SELECT o.number, o.concerns, o.retries OR o.start IS NOT NULL FROM back b JOIN operations o ON o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = b.concerns
    WHERE b.retries
), forth AS (
    SELECT min(b.number) AS number FROM back b
    UNION ALL
    SELECT o.number FROM forth f JOIN operations o ON o.tenant_id = $1 AND o.cluster_id = $2 AND o.concerns = f.number AND (o.retries OR o.start IS NOT NULL)
)
SELECT number FROM forth WHERE number IS NOT NULL ORDER BY number`

// RetriesOf numbers the operations that an operation belongs to: the one that was retried,
// and each retry.
func RetriesOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) ([]int, error) {
	var numbers []int
	err := sqlx.SelectContext(ctx, q, &numbers, retriesOf, tenant, int64(ref.Cluster), ref.Number)
	return numbers, wrap(err, "read the retries of operation %s", ref)
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

// withCounts are the operations of a statement with the counts of their tasks, but that
// of the operation with a certain number. The tasks of all are counted in one go:
// operation by operation the planner, which cannot know how many tasks one has, may read
// the whole table for each.
const withCounts = `
WITH o AS MATERIALIZED (%s), counted AS (
    SELECT t.operation_id, t.status, count(*) AS n, count(*) FILTER (WHERE t.status = 'ready' AND t.code <> 0) AS again
    FROM tasks t WHERE NOT t.gate AND t.operation_id = ANY (ARRAY(SELECT o.id FROM o WHERE o.number <> %s)) GROUP BY t.operation_id, t.status
)
SELECT o.*, k.tasks, coalesce(k.again, 0) AS again
FROM o LEFT JOIN (SELECT operation_id, jsonb_object_agg(status, n) AS tasks, sum(again) AS again FROM counted GROUP BY operation_id) k ON k.operation_id = o.id
ORDER BY o.number %s`

// OperationUncounted reads an operation without the counts of its tasks; NotFound when
// the tenant has none of that name.
func OperationUncounted(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (loom.Operation, error) {
	if ref.Number <= 0 {
		return loom.Operation{}, wrap(sql.ErrNoRows, "read operation %s", ref)
	}
	var row operationReadRow
	if err := sqlx.GetContext(ctx, q, &row, operationsOfCluster, tenant, int64(ref.Cluster), ref.Number); err != nil {
		return loom.Operation{}, wrap(err, "read operation %s", ref)
	}
	return row.operation()
}

// Step is the newest task of an action on a node, or on a service there.
type Step struct {
	Node    loom.NodeID
	Service string
	Action  loom.TaskAction
	Status  loom.TaskStatus
	// Tried says that an attempt of it began.
	Tried bool
	// Operation is the number of its operation, Of what that did.
	Operation int
	Of        loom.ClusterAction
	// Open says that it is still to be done: it did not complete, nobody left it out, and
	// nothing led the cluster back to before it.
	Open bool
}

// What a rollback or an undo leads back is not to be done any more, and neither is
// what was to be done before.
const latestSteps = `
WITH back AS (
	SELECT coalesce(max(number), 0) AS number FROM operations
	WHERE tenant_id = $1 AND cluster_id = $2 AND started_at IS NOT NULL AND (action = 'rollback' OR after IS NOT NULL)
)
SELECT DISTINCT ON (t.node_id, t.service, t.action) t.node_id, t.service, t.action, t.status, t.attempt > 0 AS tried, o.number AS operation, o.action AS of,
       t.status NOT IN ('complete', 'skipped') AND o.number >= back.number AND (o.after IS NULL OR t.undo) AS open
FROM back, operations o JOIN tasks t ON t.operation_id = o.id
WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.started_at IS NOT NULL AND NOT t.gate AND t.node_id::text = ANY ($3)
ORDER BY t.node_id, t.service, t.action, o.number DESC, t.number DESC`

// LatestSteps reads, for some nodes of a cluster, how the newest task of each action
// on each of their services and on themselves stands. It reads the whole history of
// the cluster.
func LatestSteps(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, nodes []loom.NodeID) ([]Step, error) {
	ids := make([]string, len(nodes))
	for i, id := range nodes {
		ids[i] = string(id)
	}
	var rows []struct {
		Node      string `db:"node_id"`
		Service   string `db:"service"`
		Action    string `db:"action"`
		Status    string `db:"status"`
		Tried     bool   `db:"tried"`
		Operation int    `db:"operation"`
		Of        string `db:"of"`
		Open      bool   `db:"open"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, latestSteps, tenant, int64(cluster), pq.Array(ids)); err != nil {
		return nil, wrap(err, "read the operations of %d nodes of cluster %s", len(nodes), cluster)
	}
	steps := make([]Step, len(rows))
	for i, r := range rows {
		steps[i] = Step{loom.NodeID(r.Node), r.Service, loom.TaskAction(r.Action), loom.TaskStatus(r.Status), r.Tried, r.Operation, loom.ClusterAction(r.Of), r.Open}
	}
	return steps, nil
}

// OpenOperation is an operation that has not ended, with the name of its cluster.
type OpenOperation struct {
	Cluster loom.ClusterID       `db:"cluster_id"`
	Number  int                  `db:"number"`
	Name    string               `db:"name"`
	Action  loom.ClusterAction   `db:"action"`
	Status  loom.OperationStatus `db:"status"`
	Aborted bool                 `db:"aborted"`
}

// Ref names the operation.
func (o OpenOperation) Ref() loom.OperationRef {
	return loom.OperationRef{Cluster: o.Cluster, Number: o.Number}
}

const operationsOfProvider = `
SELECT o.cluster_id, o.number, c.name, o.action, o.status, o.aborted
FROM operations o JOIN clusters c ON c.id = o.cluster_id AND c.provider_name = $2
WHERE o.tenant_id = $1 AND o.status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back')
ORDER BY c.name, o.cluster_id LIMIT $3`

// OperationsOfProvider lists the operations that have not ended on clusters of a
// provider, by name of the cluster, at most limit of them.
func OperationsOfProvider(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, provider string, limit int) ([]OpenOperation, error) {
	var found []OpenOperation
	err := sqlx.SelectContext(ctx, q, &found, operationsOfProvider, tenant, provider, limit)
	return found, wrap(err, "list the operations of provider %s", provider)
}

const countOperationsOfProvider = `
SELECT count(*) FROM operations o JOIN clusters c ON c.id = o.cluster_id AND c.provider_name = $2
WHERE o.tenant_id = $1 AND o.status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back')`

// CountOperationsOfProvider counts what OperationsOfProvider lists without a limit.
func CountOperationsOfProvider(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, provider string) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, countOperationsOfProvider, tenant, provider)
	return n, wrap(err, "count the operations of provider %s", provider)
}
