package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

type userRow struct {
	TenantID    string         `db:"tenant_id"`
	ID          string         `db:"id"`
	Role        string         `db:"role"`
	DisplayName string         `db:"display_name"`
	Email       string         `db:"email"`
	Disabled    bool           `db:"disabled"`
	SSHKeys     pq.StringArray `db:"ssh_keys"`
	CreatedAt   time.Time      `db:"created_at"`
	LastSeenAt  sql.NullTime   `db:"last_seen_at"`

	PasswordChange sql.NullString `db:"password_change"`
	AccessEpoch    int64          `db:"access_epoch"`
	// Grants are read for one user at a time.
	Grants grantsRow `db:"grants"`
}

func (r userRow) user() loom.User {
	return loom.User{
		ID: loom.UserID(r.ID), Tenant: loom.TenantID(r.TenantID), Role: loom.RoleIn(loom.TenantID(r.TenantID), loom.Role(r.Role)),
		DisplayName: r.DisplayName, Email: r.Email, Disabled: r.Disabled, SSHKeys: r.SSHKeys,
		Created: r.CreatedAt, LastSeen: r.LastSeenAt.Time, PasswordChange: loom.PasswordChange(r.PasswordChange.String),
		AccessEpoch: r.AccessEpoch, Grants: r.Grants,
	}
}

const userColumns = `SELECT u.tenant_id, u.id, u.role, u.display_name, u.email, u.disabled, u.ssh_keys, u.created_at, u.last_seen_at, u.password_change, u.access_epoch,
	` + grantsOfUser + ` AS grants FROM users u`

// User reads a user of a tenant. NotFound.
func User(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.UserID) (loom.User, error) {
	return oneUser(ctx, q, userColumns+` WHERE u.tenant_id = $1 AND u.id = $2`, tenant, id)
}

// LockUser reads a user and keeps others from changing it until the transaction
// ends. NotFound.
func LockUser(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.UserID) (loom.User, error) {
	return oneUser(ctx, tx, userColumns+` WHERE u.tenant_id = $1 AND u.id = $2 FOR NO KEY UPDATE OF u`, tenant, id)
}

// HoldActor keeps the user as whom an actor acts from being changed or removed until the
// transaction ends. Unauthenticated when he, or who really acts, is gone, disabled or of
// another role, or when the access with which the actor came ended since. Loom itself is always there.
func HoldActor(ctx context.Context, tx *sqlx.Tx, actor loom.Actor) error {
	if actor.Via == "system" || actor.Via == "cli" {
		return nil
	}
	if _, err := LockUser(ctx, tx, actor.Tenant, actor.User); err != nil && !errors.Is(err, loom.NotFound) {
		return err
	}
	return StillActs(ctx, tx, actor)
}

// StillActs is HoldActor without keeping anybody: for what waited before it, and gives no
// access of its own.
func StillActs(ctx context.Context, q sqlx.ExtContext, actor loom.Actor) error {
	if actor.Via == "system" || actor.Via == "cli" {
		return nil
	}
	user, err := User(ctx, q, actor.Tenant, actor.User)
	still := err == nil && user.StillHolds(actor.Role, actor.Grants) && (actor.AccessEpoch == 0 || actor.AccessEpoch == user.AccessEpoch)
	owner := actor.Account()
	if still && actor.ActsAsAnother() {
		owner = actor.By
		user, err = User(ctx, q, owner.Tenant, owner.User)
		still = err == nil && user.StillActs(actor.ByRole)
	}
	if still && actor.Token != 0 {
		still, err = validToken(ctx, q, owner.Tenant, actor.Token)
	}
	if err != nil && !errors.Is(err, loom.NotFound) {
		return err
	}
	if !still {
		return &loom.Error{Kind: loom.Unauthenticated, Message: "Your access ended while this was on its way; nothing was changed. Sign in again.", Err: err}
	}
	return nil
}

// EndAccess makes HoldActor refuse all who came with what a user had so far.
func EndAccess(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.UserID) error {
	_, err := tx.ExecContext(ctx, `UPDATE users SET access_epoch = nextval('access_epochs') WHERE tenant_id = $1 AND id = $2`, tenant, id)
	return wrap(err, "end the access of %s", id)
}

func oneUser(ctx context.Context, q sqlx.ExtContext, query string, tenant loom.TenantID, id loom.UserID) (loom.User, error) {
	var row userRow
	err := sqlx.GetContext(ctx, q, &row, query, tenant, id)
	if errors.Is(err, sql.ErrNoRows) {
		return loom.User{}, noUser(id, err)
	}
	return row.user(), wrap(err, "read user %s", id)
}

func noUser(id loom.UserID, err error) error {
	return &loom.Error{Kind: loom.NotFound, Message: "There is no user “" + string(id) + "” in this tenant.", Err: err}
}

const insertUser = `
INSERT INTO users (tenant_id, id, role, display_name, email, password_hash, ssh_keys, password_change)
VALUES ($1, $2, $3, $4, $5, nullif($6, ''), $7, nullif($8, '')) RETURNING created_at`

// UserAlike gives the id of a user of the tenant that differs from another id only in
// upper and lower case, "" for none; to rely on it, hold LockTenant.
func UserAlike(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.UserID) (loom.UserID, error) {
	var ids []loom.UserID
	if err := sqlx.SelectContext(ctx, q, &ids, `SELECT id FROM users WHERE tenant_id = $1 AND id <> $2`, tenant, id); err != nil {
		return "", wrap(err, "list the ids of users")
	}
	// What the database folds depends on its locale.
	for _, other := range ids {
		if strings.EqualFold(string(other), string(id)) {
			return other, nil
		}
	}
	return "", nil
}

// The clusters of a deleted user, all of them terminated, keep his name until somebody
// else gets it. No id holds a slash.
const leaveClusters = `UPDATE clusters SET owner_id = owner_id || '/deleted' WHERE tenant_id = $1 AND owner_id = $2 AND status = 'terminated'`

// InsertUser makes a user, who inherits nothing of a deleted one of the same id; an empty
// hash allows no sign-in by password. Conflict when the id is in use.
func InsertUser(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, u loom.User, passwordHash string) (loom.User, error) {
	keys := u.SSHKeys
	if keys == nil {
		keys = []string{}
	}
	u.Tenant = tenant
	err := tx.GetContext(ctx, &u.Created, insertUser, tenant, u.ID, u.Role, u.DisplayName, u.Email, passwordHash, pq.Array(keys), u.PasswordChange)
	if err != nil {
		return u, wrap(err, "insert user %s", u.ID)
	}
	for _, statement := range []string{leaveClusters, deletePreviewsOf, deleteKeysOf} {
		if _, err := tx.ExecContext(ctx, statement, tenant, u.ID); err != nil {
			return u, wrap(err, "separate user %s from one before", u.ID)
		}
	}
	return u, nil
}

const updateUser = `
UPDATE users SET role = $3, display_name = $4, email = $5, disabled = $6, ssh_keys = $7 WHERE tenant_id = $1 AND id = $2`

// UpdateUser stores everything of a locked user but the password. Role is one
// that is stored, or shown.
func UpdateUser(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, u loom.User) error {
	keys := u.SSHKeys
	if keys == nil {
		keys = []string{}
	}
	_, err := tx.ExecContext(ctx, updateUser, tenant, u.ID, u.Role.Stored(), u.DisplayName, u.Email, u.Disabled, pq.Array(keys))
	return wrap(err, "update user %s", u.ID)
}

// PasswordHash gives the stored hash of a user, "" when there is no such user or
// no password.
func PasswordHash(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.UserID) (string, error) {
	var hash sql.NullString
	err := sqlx.GetContext(ctx, q, &hash, `SELECT password_hash FROM users WHERE tenant_id = $1 AND id = $2`, tenant, id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return hash.String, wrap(err, "read the password of %s", id)
}

const setPasswordHash = `
UPDATE users SET password_hash = $3, password_change = nullif($4, ''), password_used_at = NULL
WHERE tenant_id = $1 AND id = $2 RETURNING true`

// SetPasswordHash stores a new hash, which nobody has signed in with yet, and whether
// the password is to be changed. NotFound.
func SetPasswordHash(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.UserID, hash string, change loom.PasswordChange) error {
	var there bool
	err := tx.GetContext(ctx, &there, setPasswordHash, tenant, id, hash, change)
	return wrap(err, "store the password of %s", id)
}

// MarkPasswordUsed notes that somebody signed in with the present password.
func MarkPasswordUsed(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.UserID) error {
	_, err := tx.ExecContext(ctx, `UPDATE users SET password_used_at = now() WHERE tenant_id = $1 AND id = $2 AND password_used_at IS NULL`, tenant, id)
	return wrap(err, "note that the password of %s was used", id)
}

// PasswordUsed reports whether somebody has signed in with the present password of a
// user; false when there is no such user.
func PasswordUsed(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.UserID) (bool, error) {
	var used bool
	err := sqlx.GetContext(ctx, q, &used, `SELECT password_used_at IS NOT NULL FROM users WHERE tenant_id = $1 AND id = $2`, tenant, id)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return used, wrap(err, "read whether the password of %s was used", id)
}

// UserFilter narrows the list of users; empty fields do not filter. Q are words to
// be found in id, name or email address.
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
