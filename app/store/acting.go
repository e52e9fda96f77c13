package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

const beginActing = `
UPDATE sessions SET acting_tenant = $3, acting_until = now() + make_interval(secs => $4)
WHERE tenant_id = $1 AND id = $2 AND expires_at > now() RETURNING acting_until`

// BeginActing lets a live session act in another tenant for a while, and says until
// when. NotFound.
func BeginActing(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, hash []byte, in loom.TenantID, life time.Duration) (time.Time, error) {
	var until time.Time
	err := tx.GetContext(ctx, &until, beginActing, tenant, hash, in, life.Seconds())
	return until, wrap(err, "begin to act in tenant %s", in)
}

const endActing = `
UPDATE sessions SET acting_tenant = NULL, acting_until = NULL WHERE tenant_id = $1 AND id = $2`

// EndActing lets a session act for itself again.
func EndActing(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, hash []byte) error {
	_, err := tx.ExecContext(ctx, endActing, tenant, hash)
	return wrap(err, "end acting in another tenant")
}
