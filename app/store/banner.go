package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// Notices are what pages tell everybody of a tenant without being asked.
type Notices struct {
	// Workers that the tenant wants.
	Workers int
	// ClustersFull and NodesFull say that a quota is reached.
	ClustersFull, NodesFull bool
	MaxClusters, MaxNodes   int
	// Outstanding counts names of plugin resources that the next sync changes.
	Outstanding int
	// Expiring counts tokens of the user that end soon; Token is the next one.
	Expiring int
	Token    string
	TokenEnd time.Time
}

// The nodes are counted only where there is a limit.
const notices = `
SELECT t.workers, t.max_clusters, t.max_nodes,
	t.max_clusters < 2147483647 AND (SELECT count(*) FROM clusters c WHERE c.tenant_id = t.id AND c.status <> 'terminated') >= t.max_clusters AS clusters_full,
	CASE WHEN t.max_nodes < 2147483647 THEN ` + nodesInUse + ` >= t.max_nodes ELSE false END AS nodes_full,
	(SELECT count(DISTINCT (r.kind, r.plugin, r.type, r.name)) FROM resources r WHERE r.tenant_id = t.id AND r.live <> r.slated) AS outstanding,
	(SELECT count(*) FROM tokens k WHERE k.tenant_id = t.id AND k.user_id = $2 AND k.revoked_at IS NULL AND k.expires_at > now()
		AND k.expires_at < now() + make_interval(secs => $3)) AS expiring,
	n.name AS token, n.expires_at AS token_end
FROM tenants t
LEFT JOIN LATERAL (SELECT k.name, k.expires_at FROM tokens k WHERE k.tenant_id = t.id AND k.user_id = $2 AND k.revoked_at IS NULL
	AND k.expires_at > now() AND k.expires_at < now() + make_interval(secs => $3) ORDER BY k.expires_at, k.id LIMIT 1) n ON true
WHERE t.id = $1 AND t.deleted_at IS NULL`

// NoticesFor reads what pages tell a user; tokens end soon within the time given.
func NoticesFor(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, user loom.UserID, soon time.Duration) (Notices, error) {
	var row struct {
		Workers      int            `db:"workers"`
		MaxClusters  int            `db:"max_clusters"`
		MaxNodes     int            `db:"max_nodes"`
		ClustersFull bool           `db:"clusters_full"`
		NodesFull    bool           `db:"nodes_full"`
		Outstanding  int            `db:"outstanding"`
		Expiring     int            `db:"expiring"`
		Token        sql.NullString `db:"token"`
		TokenEnd     sql.NullTime   `db:"token_end"`
	}
	err := sqlx.GetContext(ctx, q, &row, notices, tenant, user, soon.Seconds())
	return Notices{
		Workers: row.Workers, ClustersFull: row.ClustersFull, NodesFull: row.NodesFull, MaxClusters: row.MaxClusters, MaxNodes: row.MaxNodes,
		Outstanding: row.Outstanding, Expiring: row.Expiring, Token: row.Token.String, TokenEnd: row.TokenEnd.Time,
	}, wrap(err, "read what there is to tell in tenant %s", tenant)
}
