package store

import (
	"context"
	"fmt"

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

// Walks clusters_by_status, or clusters_owner.
const clustersCounted = `
SELECT s.status, (SELECT count(*) FROM (SELECT FROM clusters c WHERE c.tenant_id = $1 AND c.status COLLATE "C" = s.status%s LIMIT $3) x) AS n
FROM unnest($2::text[]) AS s (status)`

// ClustersCounted counts the clusters of a tenant that a viewer sees (see SeenBy), by status: each as far as loom.CountLimit and one more.
func ClustersCounted(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, viewer loom.UserID, statuses []loom.ClusterStatus) (map[loom.ClusterStatus]int, error) {
	var rows []struct {
		Status loom.ClusterStatus `db:"status"`
		N      int                `db:"n"`
	}
	b := binder{values: []any{tenant, textArray(statuses), loom.CountLimit + 1}}
	condition := ""
	for _, c := range b.seen(viewer) {
		condition = " AND " + c
	}
	if err := sqlx.SelectContext(ctx, q, &rows, fmt.Sprintf(clustersCounted, condition), b.values...); err != nil {
		return nil, wrap(err, "count clusters by status")
	}
	counts := map[loom.ClusterStatus]int{}
	for _, r := range rows {
		counts[r.Status] = r.N
	}
	return counts, nil
}
