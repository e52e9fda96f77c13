package store

import (
	"context"
	"database/sql"
	"regexp"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

type previewRow struct {
	ID        string       `db:"id"`
	TenantID  string       `db:"tenant_id"`
	UserID    string       `db:"user_id"`
	Kind      string       `db:"kind"`
	ClusterID int64        `db:"cluster_id"`
	Revision  int          `db:"revision"`
	Hash      string       `db:"hash"`
	Body      []byte       `db:"body"`
	Operation int          `db:"operation"`
	CreatedAt time.Time    `db:"created_at"`
	ExpiresAt time.Time    `db:"expires_at"`
	AppliedAt sql.NullTime `db:"applied_at"`
}

func (r *previewRow) preview() loom.Preview {
	p := loom.Preview{
		ID: loom.PreviewID(r.ID), Kind: loom.ChangeKind(r.Kind),
		Owner:   loom.Account{User: loom.UserID(r.UserID), Tenant: loom.TenantID(r.TenantID)},
		Cluster: loom.ClusterID(r.ClusterID), Revision: r.Revision, Hash: r.Hash, Created: r.CreatedAt, Expires: r.ExpiresAt,
		AppliedAt: r.AppliedAt.Time,
	}
	if r.Operation > 0 {
		p.Applied = loom.OperationRef{Cluster: p.Cluster, Number: r.Operation}
	}
	return p
}

// CanonicalJSON gives a document as the database writes it: one text for
// all documents that mean the same, so that a hash survives storing.
func CanonicalJSON(ctx context.Context, q sqlx.ExtContext, document []byte) ([]byte, error) {
	var text []byte
	err := sqlx.GetContext(ctx, q, &text, `SELECT $1::jsonb::text`, document)
	return text, wrap(err, "normalize a document")
}

const insertPreview = `
INSERT INTO previews (id, tenant_id, user_id, kind, cluster_id, revision, hash, body, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now() + make_interval(secs => $9))
RETURNING created_at, expires_at`

// Bounds of previews that wait to be applied: how many of a user, and how many bytes, as they
// are stored, of a user and of all users of a tenant.
const (
	maxPreviews             = 1000
	maxPreviewBytes         = 64 << 20
	maxPreviewBytesOfTenant = 512 << 20
)

// Locked ones are being applied; they go next time.
const oldPreviews = `
DELETE FROM previews WHERE id IN (SELECT id FROM previews WHERE id IN (
	SELECT d.id FROM (
		SELECT id, row_number() OVER of_user AS place, sum(pg_column_size(body)) OVER of_user AS own, sum(pg_column_size(body)) OVER (ORDER BY created_at DESC, id) AS together
		FROM previews WHERE tenant_id = $1 AND id <> $2 AND applied_at IS NULL
		WINDOW of_user AS (PARTITION BY user_id ORDER BY created_at DESC, id)
	) d WHERE d.place >= $3 OR d.own > $4 OR d.together > $5) FOR UPDATE SKIP LOCKED)`

// InsertPreview stores a preview that lives for life, by the database clock, and returns it
// with its times. Where those that were not applied take too much, the oldest go.
func InsertPreview(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, p loom.Preview, body []byte, life time.Duration) (loom.Preview, error) {
	err := tx.QueryRowxContext(ctx, insertPreview, p.ID, tenant, p.Owner.User, p.Kind, int64(p.Cluster), p.Revision, p.Hash, body,
		life.Seconds()).Scan(&p.Created, &p.Expires)
	if err != nil {
		return p, wrap(err, "insert preview %s", p.ID)
	}
	_, err = tx.ExecContext(ctx, oldPreviews, tenant, p.ID, maxPreviews, maxPreviewBytes, maxPreviewBytesOfTenant)
	return p, wrap(err, "drop the oldest previews")
}

// An applied preview is still found after its hour, to name what came of it.
const previewByID = `
SELECT id, tenant_id, user_id, kind, cluster_id, revision, hash, body::text AS body, operation, created_at, expires_at, applied_at FROM previews
WHERE tenant_id = $1 AND user_id = $2 AND id = $3 AND (expires_at > now() OR applied_at IS NOT NULL)`

// PreviewByID reads a preview of its maker and its body as CanonicalJSON writes
// it. NotFound for the previews of others and for expired ones.
func PreviewByID(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, user loom.UserID, id loom.PreviewID) (loom.Preview, []byte, error) {
	return onePreview(ctx, q, previewByID, tenant, user, id)
}

// LockPreview is PreviewByID and locks the row until the transaction ends.
func LockPreview(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, user loom.UserID, id loom.PreviewID) (loom.Preview, []byte, error) {
	return onePreview(ctx, tx, previewByID+` FOR UPDATE`, tenant, user, id)
}

func onePreview(ctx context.Context, q sqlx.ExtContext, query string, tenant loom.TenantID, user loom.UserID, id loom.PreviewID) (loom.Preview, []byte, error) {
	var row previewRow
	if !isUUID(string(id)) {
		return loom.Preview{}, nil, wrap(sql.ErrNoRows, "read preview %q", id)
	}
	if err := sqlx.GetContext(ctx, q, &row, query, tenant, user, id); err != nil {
		return loom.Preview{}, nil, wrap(err, "read preview %s", id)
	}
	return row.preview(), row.Body, nil
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// isUUID keeps what cannot be an id away from the database, which would answer
// with an error rather than with no row.
func isUUID(s string) bool { return uuidForm.MatchString(s) }

const markPreviewApplied = `
UPDATE previews SET applied_at = now(), operation = $3 WHERE tenant_id = $1 AND id = $2 AND applied_at IS NULL`

// MarkPreviewApplied notes the operation that came of a preview, 0 for none. NotFound when
// it was applied before, which a caller that holds its lock has seen.
func MarkPreviewApplied(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.PreviewID, operation int) error {
	result, err := tx.ExecContext(ctx, markPreviewApplied, tenant, id, operation)
	if err != nil {
		return wrap(err, "mark preview %s as applied", id)
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return wrap(sql.ErrNoRows, "mark preview %s as applied", id)
}

const deletePreview = `DELETE FROM previews WHERE tenant_id = $1 AND user_id = $2 AND id = $3 AND applied_at IS NULL AND expires_at > now()`

// DeletePreview drops a preview of its maker that was not applied; NotFound when
// there is none.
func DeletePreview(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, user loom.UserID, id loom.PreviewID) error {
	if !isUUID(string(id)) {
		return wrap(sql.ErrNoRows, "delete preview %q", id)
	}
	result, err := tx.ExecContext(ctx, deletePreview, tenant, user, id)
	if err != nil {
		return wrap(err, "delete preview %s", id)
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return wrap(sql.ErrNoRows, "delete preview %s", id)
}

const trimPreviews = `DELETE FROM previews WHERE expires_at < now() - make_interval(secs => $1)`

// TrimPreviewsAllTenants deletes previews that expired more than age ago and
// says how many.
func TrimPreviewsAllTenants(ctx context.Context, tx *sqlx.Tx, age time.Duration) (int64, error) {
	result, err := tx.ExecContext(ctx, trimPreviews, age.Seconds())
	if err != nil {
		return 0, wrap(err, "trim previews")
	}
	return result.RowsAffected()
}
