package store

import (
	"context"
	"database/sql"
	"errors"
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
}

func (r userRow) user() loom.User {
	return loom.User{
		ID: loom.UserID(r.ID), Tenant: loom.TenantID(r.TenantID), Role: loom.RoleIn(loom.TenantID(r.TenantID), loom.Role(r.Role)),
		DisplayName: r.DisplayName, Email: r.Email, Disabled: r.Disabled, SSHKeys: r.SSHKeys,
		Created: r.CreatedAt, LastSeen: r.LastSeenAt.Time, PasswordChange: loom.PasswordChange(r.PasswordChange.String),
		AccessEpoch: r.AccessEpoch,
	}
}

const userColumns = `SELECT tenant_id, id, role, display_name, email, disabled, ssh_keys, created_at, last_seen_at, password_change, access_epoch FROM users`

// User reads a user of a tenant. NotFound.
func User(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.UserID) (loom.User, error) {
	return oneUser(ctx, q, userColumns+` WHERE tenant_id = $1 AND id = $2`, tenant, id)
}

// LockUser reads a user and keeps others from changing it until the transaction
// ends. NotFound.
func LockUser(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.UserID) (loom.User, error) {
	return oneUser(ctx, tx, userColumns+` WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE`, tenant, id)
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
	still := err == nil && user.StillHolds(actor.Role) && (actor.AccessEpoch == 0 || actor.AccessEpoch == user.AccessEpoch)
	owner := actor.Account()
	if still && actor.ActsAsAnother() {
		owner = actor.By
		user, err = User(ctx, q, owner.Tenant, owner.User)
		still = err == nil && user.StillHolds(actor.ByRole)
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
