package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// preferencesJSON reads a column of preferences; what a later release wrote is left out.
type preferencesJSON json.RawMessage

// Scan takes the column's text.
func (p *preferencesJSON) Scan(src any) error {
	if text, ok := src.([]byte); ok {
		*p = append((*p)[:0], text...)
	}
	return nil
}

func (p preferencesJSON) read() loom.ViewPreferences {
	var out loom.ViewPreferences
	if json.Unmarshal(p, &out) != nil {
		return loom.ViewPreferences{} // not worth failing a page
	}
	return out
}

// SetPreferences stores how a user wants pages to look. NotFound.
func SetPreferences(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, user loom.UserID, p loom.ViewPreferences) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	var there bool
	err = tx.GetContext(ctx, &there, `UPDATE users SET preferences = $3 WHERE tenant_id = $1 AND id = $2 RETURNING true`, tenant, user, string(body))
	return wrap(err, "store preferences of %s", user)
}

const extendSession = `
UPDATE sessions SET expires_at = least(greatest(expires_at, now() + make_interval(secs => $3)), created_at + make_interval(secs => $4))
WHERE tenant_id = $1 AND id = $2 AND expires_at > now() RETURNING expires_at`

// ExtendSession lets a live session go on for life from now, at most until longest
// after it began, by the database clock, and says until when. NotFound.
func ExtendSession(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, hash []byte, life, longest time.Duration) (time.Time, error) {
	var expires time.Time
	err := tx.GetContext(ctx, &expires, extendSession, tenant, hash, life.Seconds(), longest.Seconds())
	return expires, wrap(err, "extend a session")
}
