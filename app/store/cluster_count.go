package store

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

const liveClustersOf = `
SELECT status, count(*) AS n FROM clusters WHERE tenant_id = $1 AND status <> 'terminated' GROUP BY status`

// LiveClusters counts the clusters of a tenant that are not terminated, by status.
func LiveClusters(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (map[loom.ClusterStatus]int, error) {
	var rows []struct {
		Status loom.ClusterStatus `db:"status"`
		N      int                `db:"n"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, liveClustersOf, tenant); err != nil {
		return nil, wrap(err, "count the clusters of a tenant")
	}
	counts := map[loom.ClusterStatus]int{}
	for _, r := range rows {
		counts[r.Status] = r.N
	}
	return counts, nil
}
