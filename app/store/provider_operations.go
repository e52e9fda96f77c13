package store

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

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
