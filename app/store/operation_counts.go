package store

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

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
