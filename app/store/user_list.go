package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// UserFilter narrows the list of users; empty fields do not filter. Q are words to
// be found in id, name or e-mail address.
type UserFilter struct {
	Q        string
	Roles    []loom.Role
	Disabled *bool
}

// UserSorts lists what users can be sorted by, the default first.
var UserSorts = []string{"id", "-id", "-createTime", "createTime"}

type userSummaryRow struct {
	userRow
	Clusters int `db:"clusters"`
	Tokens   int `db:"tokens"`
}

func (r userSummaryRow) summary() loom.UserSummary {
	return loom.UserSummary{User: r.user(), Clusters: r.Clusters, Tokens: r.Tokens}
}

const userSummaryColumns = `u.tenant_id, u.id, u.role, u.display_name, u.email, u.disabled, u.ssh_keys, u.created_at, u.last_seen_at, u.password_change,
	(SELECT count(*) FROM clusters c WHERE c.tenant_id = u.tenant_id AND c.owner_id = u.id AND c.status <> 'terminated') AS clusters,
	(SELECT count(*) FROM tokens t WHERE t.tenant_id = u.tenant_id AND t.user_id = u.id AND ` + tokenIsValid + `) AS tokens`

var userKeyset = keyset{
	columns: userSummaryColumns, from: "users u", id: `u.id COLLATE "C"`, idKind: "text",
	sorts: map[string]sortColumn{"id": {`u.id COLLATE "C"`, "u.id", "text"}, "createTime": byCreation("u")},
}

// UserPage reads a page of the users of a tenant, with the numbers of their live
// clusters and valid tokens. Invalid for an unknown sort and for a cursor of
// another list.
func UserPage(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, f UserFilter, p loom.Page) (users []loom.UserSummary, next, prev string, err error) {
	var b binder
	conditions, err := allWords(&b, f.Q, "u.id", "u.display_name", "u.email")
	if err != nil {
		return nil, "", "", err
	}
	conditions = append([]string{"u.tenant_id = " + b.add(tenant)}, conditions...)
	if len(f.Roles) > 0 {
		conditions = append(conditions, "u.role = ANY ("+b.add(pq.Array(storedRoles(tenant, f.Roles)))+")")
	}
	if f.Disabled != nil {
		conditions = append(conditions, "u.disabled = "+b.add(*f.Disabled))
	}
	type row struct {
		userSummaryRow
		pageKeys
	}
	rows, next, prev, err := readKeyset[row](ctx, q, userKeyset, conditions, &b, f, p, UserSorts...)
	for _, r := range rows {
		users = append(users, r.summary())
	}
	return users, next, prev, err
}

// storedRoles turns roles as they are shown in a tenant into those that are stored.
func storedRoles(tenant loom.TenantID, shown []loom.Role) []string {
	stored := []string{}
	for _, role := range loom.StoredRoles {
		if slices.Contains(shown, loom.RoleIn(tenant, role)) {
			stored = append(stored, string(role))
		}
	}
	return stored
}

// UserSummary reads a user with the numbers of his live clusters and valid
// tokens. NotFound.
func UserSummary(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.UserID) (loom.UserSummary, error) {
	var row userSummaryRow
	err := sqlx.GetContext(ctx, q, &row, `SELECT `+userSummaryColumns+` FROM users u WHERE u.tenant_id = $1 AND u.id = $2`, tenant, id)
	if errors.Is(err, sql.ErrNoRows) {
		return loom.UserSummary{}, noUser(id, err)
	}
	return row.summary(), wrap(err, "read user %s", id)
}

// TouchUser notes that a user was seen, once a minute at most.
func TouchUser(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.UserID) error {
	_, err := tx.ExecContext(ctx, `UPDATE users SET last_seen_at = now()
WHERE tenant_id = $1 AND id = $2 AND coalesce(last_seen_at < now() - interval '1 minute', true)`, tenant, id)
	return wrap(err, "touch user %s", id)
}

// LiveClustersOf counts the clusters of a user that are not terminated; to rely on
// it, hold LockTenant.
func LiveClustersOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.UserID) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, `SELECT count(*) FROM clusters WHERE tenant_id = $1 AND owner_id = $2 AND status <> 'terminated'`, tenant, id)
	return n, wrap(err, "count clusters of %s", id)
}

const (
	deletePreviewsOf = `DELETE FROM previews WHERE tenant_id = $1 AND user_id = $2`
	deleteKeysOf     = `DELETE FROM idempotency_keys WHERE tenant_id = $1 AND user_id = $2`
)

// DeleteUser removes a user with everything that still acts for him: sessions,
// tokens and profile go with the row, previews and kept answers are deleted too.
// What he did stays in clusters, operations and audit.
func DeleteUser(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.UserID) error {
	for _, statement := range []string{
		deletePreviewsOf, deleteKeysOf,
		`DELETE FROM users WHERE tenant_id = $1 AND id = $2`,
	} {
		if _, err := tx.ExecContext(ctx, statement, tenant, id); err != nil {
			return wrap(err, "delete user %s", id)
		}
	}
	return nil
}

// Profile gives the free-form JSON object that a user keeps, as it was written;
// nil for none.
func Profile(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.UserID) ([]byte, error) {
	var text sql.NullString
	err := sqlx.GetContext(ctx, q, &text, `SELECT profile FROM users WHERE tenant_id = $1 AND id = $2`, tenant, id)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !text.Valid {
		return nil, nil
	}
	return []byte(text.String), wrap(err, "read the profile of %s", id)
}

// SetProfile stores the profile of a user; nil takes it away.
func SetProfile(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.UserID, profile []byte) error {
	_, err := tx.ExecContext(ctx, `UPDATE users SET profile = $3 WHERE tenant_id = $1 AND id = $2`,
		tenant, id, sql.NullString{String: string(profile), Valid: profile != nil})
	return wrap(err, "store the profile of %s", id)
}
