package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// DeletedEntry is a catalog entry that was deleted: its newest version, as the audit
// keeps it, with values of keys that look secret masked.
type DeletedEntry struct {
	// ID is that of the audit entry.
	ID   int64           `db:"id"`
	Name string          `db:"object"`
	By   loom.UserID     `db:"actor"`
	Time time.Time       `db:"created_at"`
	Body json.RawMessage `db:"before"`
}

// The row of a single version that was deleted has another object than the name.
const deletedEntries = `
SELECT d.id, d.object, d.actor, d.created_at, d.before FROM (
    SELECT DISTINCT ON (a.object) a.id, a.object, a.actor, a.created_at, a.before FROM audit a
    WHERE a.tenant_id = $1 AND a.kind = $2 AND a.verb = 'delete' AND a.result = 'ok' AND a.before->>'name' = a.object
      AND NOT EXISTS (SELECT FROM catalog_versions v WHERE v.tenant_id = $1 AND v.kind = $3 AND v.name = a.object)
    ORDER BY a.object, a.id DESC) AS d
WHERE $4 = '' OR position(lower($4) IN lower(concat_ws(' ', d.object, d.before->>'label', d.before->>'description'))) > 0
ORDER BY d.id DESC LIMIT $5`

const maxDeletedBytes = 8 << 20

// DeletedCatalogEntries lists the entries of a kind that were deleted and are not there
// again, the last deleted first, no more than fit into maxDeletedBytes; q is looked for in
// name, label and description.
func DeletedCatalogEntries(ctx context.Context, db sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, q string, limit int) ([]DeletedEntry, error) {
	found, _, err := selectBytes(ctx, db, maxDeletedBytes, func(d *DeletedEntry) int { return len(d.Body) }, deletedEntries, tenant, kind.Word(), kind, q, limit)
	return found, wrap(err, "list deleted %s", kind)
}

const deletedEntry = `
SELECT a.id, a.object, a.actor, a.created_at, a.before FROM audit a
WHERE a.tenant_id = $1 AND a.kind = $2 AND a.verb = 'delete' AND a.result = 'ok' AND a.before->>'name' = a.object AND a.id = $3`

// DeletedCatalogEntry is one of DeletedCatalogEntries. NotFound.
func DeletedCatalogEntry(ctx context.Context, db sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, id int64) (DeletedEntry, error) {
	var found DeletedEntry
	err := wrap(sqlx.GetContext(ctx, db, &found, deletedEntry, tenant, kind.Word(), id), "read a deleted %s", kind.Word())
	if errors.Is(err, loom.NotFound) {
		err = loom.NewError(loom.NotFound, "The audit does not hold this deleted %s any more.", kind.Word())
	}
	return found, err
}
