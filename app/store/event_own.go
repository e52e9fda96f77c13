package store

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// The owner and who asked are often the same.
const tellOwner = `
INSERT INTO events (tenant_id, topic, ids)
SELECT $1::text, '` + loom.TopicOfUser + `' || who, ARRAY[$4::text]
FROM (SELECT owner_id AS who FROM clusters WHERE tenant_id = $1 AND id = $2 UNION SELECT $3::text WHERE $3 <> '') AS told`

// TellOwner records for the owner of a cluster, and for another user if one is named,
// that something of theirs needs to be known: id is that of the operation that ended,
// or of the cluster whose lease ends. InsertEvents wakes the followers.
func TellOwner(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, other loom.UserID, id string) error {
	_, err := tx.ExecContext(ctx, tellOwner, tenant, cluster, other, id)
	return wrap(err, "tell the owner of cluster %s", cluster)
}
