package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// HookSecrets is the entity under which the sealed secret of a hook is kept, in
// the field HookSecretField.
func HookSecrets(id loom.HookID) string { return fmt.Sprintf("hook:%d", int64(id)) }

// HookSecretField is the field of a hook's secret.
const HookSecretField = "secret"

const hookColumns = `h.id, h.tenant_id, h.name, h.url, h.events, h.actions, h.templates, h.blocking, h.on_timeout, h.global, h.legacy_body, h.enabled, h.created_at`

type hookRow struct {
	ID         int64          `db:"id"`
	TenantID   string         `db:"tenant_id"`
	Name       string         `db:"name"`
	URL        string         `db:"url"`
	Events     pq.StringArray `db:"events"`
	Actions    pq.StringArray `db:"actions"`
	Templates  pq.StringArray `db:"templates"`
	Blocking   bool           `db:"blocking"`
	OnTimeout  string         `db:"on_timeout"`
	Global     bool           `db:"global"`
	LegacyBody bool           `db:"legacy_body"`
	Enabled    bool           `db:"enabled"`
	CreatedAt  time.Time      `db:"created_at"`
}

func (r *hookRow) hook() loom.Hook {
	h := loom.Hook{
		ID: loom.HookID(r.ID), Tenant: loom.TenantID(r.TenantID), Name: r.Name, URL: r.URL, Templates: r.Templates,
		Blocking: r.Blocking, OnTimeout: r.OnTimeout, Global: r.Global, LegacyBody: r.LegacyBody, Enabled: r.Enabled, Created: r.CreatedAt,
	}
	for _, e := range r.Events {
		h.Events = append(h.Events, loom.HookEvent(e))
	}
	for _, a := range r.Actions {
		h.Actions = append(h.Actions, loom.ClusterAction(a))
	}
	return h
}

// texts gives a list that Postgres takes for text[], empty rather than NULL.
func texts[T ~string](items []T) any {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = string(item)
	}
	return pq.Array(out)
}

// Hooks lists the hooks of a tenant in the order in which they were made; those
// of the superadmin's tenant include the global ones.
func Hooks(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) ([]loom.Hook, error) {
	var rows []hookRow
	if err := sqlx.SelectContext(ctx, q, &rows, `SELECT `+hookColumns+` FROM hooks h WHERE h.tenant_id = $1 ORDER BY h.id`, tenant); err != nil {
		return nil, wrap(err, "list hooks")
	}
	hooks := make([]loom.Hook, len(rows))
	for i := range rows {
		hooks[i] = rows[i].hook()
	}
	return hooks, nil
}

// HookByID reads a hook. NotFound.
func HookByID(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.HookID) (loom.Hook, error) {
	return oneHook(ctx, q, `SELECT `+hookColumns+` FROM hooks h WHERE h.tenant_id = $1 AND h.id = $2`, tenant, id)
}

// LockHook reads a hook and keeps others from changing it. Operations do not wait
// for that: they only need the hook to stay there. NotFound.
func LockHook(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.HookID) (loom.Hook, error) {
	return oneHook(ctx, tx, `SELECT `+hookColumns+` FROM hooks h WHERE h.tenant_id = $1 AND h.id = $2 FOR NO KEY UPDATE`, tenant, id)
}

func oneHook(ctx context.Context, q sqlx.ExtContext, query string, tenant loom.TenantID, id loom.HookID) (loom.Hook, error) {
	var row hookRow
	if err := sqlx.GetContext(ctx, q, &row, query, tenant, int64(id)); err != nil {
		return loom.Hook{}, wrap(err, "read hook %d", id)
	}
	return row.hook(), nil
}

const insertHook = `
INSERT INTO hooks AS h (tenant_id, name, url, events, actions, templates, blocking, on_timeout, global, legacy_body, enabled)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
RETURNING ` + hookColumns

// InsertHook stores a hook and gives it with its id.
func InsertHook(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, h loom.Hook) (loom.Hook, error) {
	var row hookRow
	err := tx.GetContext(ctx, &row, insertHook, tenant, h.Name, h.URL, texts(h.Events), texts(h.Actions), texts(h.Templates),
		h.Blocking, h.OnTimeout, h.Global, h.LegacyBody, h.Enabled)
	return row.hook(), wrap(err, "insert a hook")
}

const updateHook = `
UPDATE hooks SET name = $3, url = $4, events = $5, actions = $6, templates = $7, blocking = $8, on_timeout = $9, global = $10,
	legacy_body = $11, enabled = $12
WHERE tenant_id = $1 AND id = $2`

// UpdateHook stores all that can change of a held hook.
func UpdateHook(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, h loom.Hook) error {
	_, err := tx.ExecContext(ctx, updateHook, tenant, int64(h.ID), h.Name, h.URL, texts(h.Events), texts(h.Actions), texts(h.Templates),
		h.Blocking, h.OnTimeout, h.Global, h.LegacyBody, h.Enabled)
	return wrap(err, "update hook %d", h.ID)
}

// DeleteHook deletes a hook with its secret and its deliveries, those that wait
// included.
func DeleteHook(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.HookID) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM hooks WHERE tenant_id = $1 AND id = $2`, tenant, int64(id)); err != nil {
		return wrap(err, "delete hook %d", id)
	}
	return DeleteSecrets(ctx, tx, tenant, HookSecrets(id))
}
