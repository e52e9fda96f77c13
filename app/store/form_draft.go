package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

const trimDrafts = `DELETE FROM secrets WHERE entity >= 'draft:' AND entity < 'draft;' AND updated_at < now() - make_interval(secs => $1)`

// DraftEntity is the entity under which a draft of a user is kept, sealed.
func DraftEntity(user loom.UserID, subject string) string {
	return fmt.Sprintf("draft:%d:%s:%s", len(user), user, subject)
}

// TrimDraftsAllTenants deletes drafts that nobody touched for as long as age.
func TrimDraftsAllTenants(ctx context.Context, q sqlx.ExtContext, age time.Duration) error {
	_, err := q.ExecContext(ctx, trimDrafts, age.Seconds())
	return wrap(err, "trim drafts")
}

const trimImports = `DELETE FROM secrets WHERE entity >= 'import:' AND entity < 'import;' AND updated_at < now() - make_interval(secs => $1)`

// ImportEntity is the entity under which what a user uploaded for an import is kept, sealed.
func ImportEntity(user loom.UserID) string { return "import:" + string(user) }

// TrimImportsAllTenants deletes uploads that were not imported for as long as age.
func TrimImportsAllTenants(ctx context.Context, q sqlx.ExtContext, age time.Duration) error {
	_, err := q.ExecContext(ctx, trimImports, age.Seconds())
	return wrap(err, "trim uploads for imports")
}

const draftRow = `SELECT sealed, updated_at FROM secrets WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND updated_at > now() - make_interval(secs => $4)`

// Draft reads a sealed draft that was touched less than age ago. NotFound.
func Draft(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, entity, field string, age time.Duration) (sealed []byte, saved time.Time, err error) {
	var row struct {
		Sealed []byte    `db:"sealed"`
		Saved  time.Time `db:"updated_at"`
	}
	err = sqlx.GetContext(ctx, q, &row, draftRow, tenant, entity, field, age.Seconds())
	return row.Sealed, row.Saved, wrap(err, "read a draft")
}
