package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// KeptAnswer is the first answer to a request that carried an Idempotency-Key.
type KeptAnswer struct {
	Status   int
	Response []byte
}

// beginIdempotent takes a key that is new, a day old, or of a request that
// started so long ago that its process must have died.
const beginIdempotent = `
INSERT INTO idempotency_keys AS k (tenant_id, user_id, key, path, body_hash) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant_id, user_id, key) DO UPDATE SET path = excluded.path, body_hash = excluded.body_hash, status = 0, response = NULL, created_at = now()
WHERE k.created_at < now() - interval '24 hours' OR (k.status = 0 AND k.created_at < now() - interval '5 minutes')
RETURNING true`

// BeginIdempotent claims a key for a request of a user. It gives nil when the
// request is to be carried out, or the answer that was given before. Conflict:
// the first request is still being worked on (RetryAfter is set), or the key was
// used for another one.
func BeginIdempotent(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, user loom.UserID, key, path string, bodyHash []byte) (*KeptAnswer, error) {
	var claimed []bool
	if err := tx.SelectContext(ctx, &claimed, beginIdempotent, tenant, user, key, path, bodyHash); err != nil {
		return nil, wrap(err, "claim an idempotency key")
	}
	if len(claimed) == 1 {
		return nil, nil
	}
	var row struct {
		Status   int    `db:"status"`
		Response []byte `db:"response"`
		Same     bool   `db:"same"`
	}
	err := tx.GetContext(ctx, &row, `SELECT status, response, path = $4 AND body_hash = $5 AS same FROM idempotency_keys WHERE tenant_id = $1 AND user_id = $2 AND key = $3`,
		tenant, user, key, path, bodyHash)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && row.Same && row.Status == 0:
		return nil, &loom.Error{Kind: loom.Conflict, Message: "The first request with this Idempotency-Key is still being worked on; try again in a moment.", RetryAfter: time.Second}
	case err != nil:
		return nil, wrap(err, "read an idempotency key")
	case !row.Same:
		return nil, loom.NewError(loom.Conflict, "This Idempotency-Key was used for another request; use a new one.")
	}
	return &KeptAnswer{Status: row.Status, Response: row.Response}, nil
}

// CountIdempotent counts the keys of a user of the last day that begin with what is before
// the newline of prefix; with "" those that have none.
func CountIdempotent(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, user loom.UserID, prefix string) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, `
		SELECT count(*) FROM idempotency_keys
		WHERE tenant_id = $1 AND user_id = $2 AND created_at > now() - interval '24 hours'
		  AND CASE WHEN $3 = '' THEN strpos(key, E'\n') = 0 ELSE starts_with(key, $3) END`, tenant, user, prefix)
	return n, wrap(err, "count idempotency keys")
}

// FinishIdempotent keeps the answer of a request that succeeded, or short, where those of
// the user's last day would have more bytes than most with it.
func FinishIdempotent(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, user loom.UserID, key string, answer KeptAnswer, short []byte, most int) error {
	_, err := tx.ExecContext(ctx, `
		UPDATE idempotency_keys SET status = $4, response = CASE WHEN coalesce(octet_length($5::bytea), 0) + (
			SELECT coalesce(sum(octet_length(response)), 0) FROM idempotency_keys
			WHERE tenant_id = $1 AND user_id = $2 AND created_at > now() - interval '24 hours') <= $7 THEN $5 ELSE $6 END
		WHERE tenant_id = $1 AND user_id = $2 AND key = $3`,
		tenant, user, key, answer.Status, answer.Response, short, most)
	return wrap(err, "keep an answer")
}

// ForgetIdempotent gives a key back after a request that failed.
func ForgetIdempotent(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, user loom.UserID, key string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM idempotency_keys WHERE tenant_id = $1 AND user_id = $2 AND key = $3 AND status = 0`, tenant, user, key)
	return wrap(err, "give back an idempotency key")
}
