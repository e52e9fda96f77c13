package store

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// What these read is shown to superadmins on pages; each is one statement,
// whatever the number of tenants, and its answer is bounded.

const quotaUses = `
SELECT t.id, t.max_clusters, t.max_nodes, coalesce(c.n, 0) AS clusters, coalesce(n.n, 0) AS nodes
FROM tenants t
LEFT JOIN LATERAL (SELECT count(*) AS n FROM clusters WHERE tenant_id = t.id AND status <> 'terminated') c ON true
LEFT JOIN LATERAL (SELECT count(*) AS n FROM nodes n JOIN clusters c ON c.id = n.cluster_id
	WHERE c.tenant_id = t.id AND c.status <> 'terminated' AND n.state <> 'deleted') n ON true
WHERE t.id = ANY ($1) AND t.deleted_at IS NULL`

// QuotaUsesAllTenants is QuotaUse of several tenants. Those that are not there are
// left out.
func QuotaUsesAllTenants(ctx context.Context, q sqlx.ExtContext, ids []loom.TenantID) (map[loom.TenantID]loom.QuotaUse, error) {
	var rows []struct {
		ID          string `db:"id"`
		MaxClusters int    `db:"max_clusters"`
		MaxNodes    int    `db:"max_nodes"`
		Clusters    int    `db:"clusters"`
		Nodes       int    `db:"nodes"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, quotaUses, texts(ids)); err != nil {
		return nil, wrap(err, "count what %d tenants use", len(ids))
	}
	uses := make(map[loom.TenantID]loom.QuotaUse, len(rows))
	for _, r := range rows {
		uses[loom.TenantID(r.ID)] = loom.QuotaUse{Clusters: r.Clusters, MaxClusters: r.MaxClusters, Nodes: r.Nodes, MaxNodes: r.MaxNodes}
	}
	return uses, nil
}

// maxLeftovers bounds the list of all tenants.
const maxLeftovers = 500

// LeftoversAllTenants lists the machines that deletes left behind and that may still
// be there, the oldest first, 500 at most.
func LeftoversAllTenants(ctx context.Context, q sqlx.ExtContext) ([]loom.Leftover, error) {
	var rows []leftoverRow
	err := sqlx.SelectContext(ctx, q, &rows, leftoverColumns+` WHERE l.ended_at IS NULL ORDER BY l.id LIMIT $1`, maxLeftovers)
	if err != nil {
		return nil, wrap(err, "list leftovers")
	}
	all := make([]loom.Leftover, len(rows))
	for i, r := range rows {
		all[i] = r.leftover()
	}
	return all, nil
}

// SentDelivery reads a delivery of a hook with the facts its body is made from.
// NotFound.
func SentDelivery(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, hook loom.HookID, id loom.DeliveryID) (loom.Delivery, loom.Notice, error) {
	var row struct {
		deliveryRow
		Notice []byte `db:"notice"`
	}
	err := sqlx.GetContext(ctx, q, &row, `SELECT `+deliveryColumns+`, d.notice FROM hook_deliveries d JOIN operations o ON o.id = d.operation_id
WHERE d.tenant_id = $1 AND d.hook_id = $2 AND d.id = $3`, tenant, int64(hook), int64(id))
	if err != nil {
		return loom.Delivery{}, loom.Notice{}, wrap(err, "read delivery %d", id)
	}
	notice, err := readNotice(row.Notice)
	return row.delivery(), notice, wrap(err, "read the notice of delivery %d", id)
}

// readNotice keeps numbers as they were written.
func readNotice(text []byte) (loom.Notice, error) {
	var n loom.Notice
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err := decoder.Decode(&n)
	return n, err
}
