package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

type sessionRow struct {
	ID         []byte    `db:"id"`
	TenantID   string    `db:"tenant_id"`
	UserID     string    `db:"user_id"`
	Address    string    `db:"address"`
	Agent      string    `db:"agent"`
	CreatedAt  time.Time `db:"created_at"`
	LastSeenAt time.Time `db:"last_seen_at"`
	ExpiresAt  time.Time `db:"expires_at"`
}

func (r sessionRow) session() loom.Session {
	return loom.Session{
		ID: hex.EncodeToString(r.ID), Account: loom.Account{User: loom.UserID(r.UserID), Tenant: loom.TenantID(r.TenantID)},
		Created: r.CreatedAt, LastUsed: r.LastSeenAt, Address: r.Address, Agent: r.Agent, Expires: r.ExpiresAt,
	}
}

const insertSession = `
INSERT INTO sessions (id, tenant_id, user_id, address, agent, expires_at)
VALUES ($1, $2, $3, $4, $5, now() + make_interval(secs => $6)) RETURNING expires_at`

// InsertSession stores a session under the hash of its cookie, valid for life by
// the database clock, and says until when.
func InsertSession(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, hash []byte, user loom.UserID, address, agent string, life time.Duration) (time.Time, error) {
	var expires time.Time
	err := tx.GetContext(ctx, &expires, insertSession, hash, tenant, user, address, agent, life.Seconds())
	return expires, wrap(err, "insert a session")
}

// SignedIn is who a session or a token stands for.
type SignedIn struct {
	User       loom.User
	TenantName string
	// Stale says that "last seen" is older than a minute.
	Stale bool
	// Acting is the name of the tenant as whose administrator a session acts, until
	// ActingUntil; "" for none.
	Acting      string
	ActingUntil time.Time
	// SecretEnds is when a replaced secret of a token ends, zero for the present one.
	SecretEnds time.Time
	// Lapsed says that the owner of a token, who has no password, did not sign in at his identity
	// provider for too long.
	Lapsed bool
}

// sessionByHash finds by the hash of a secret, so it needs no tenant.
const sessionByHash = `
SELECT s.id, s.tenant_id, s.user_id, s.address, s.agent, s.created_at, s.last_seen_at, s.expires_at,
	u.role AS "u.role", u.display_name AS "u.display_name", u.email AS "u.email", u.created_at AS "u.created_at",
	u.ssh_keys AS "u.ssh_keys", u.disabled AS "u.disabled", u.last_seen_at AS "u.last_seen_at", u.id AS "u.id", u.tenant_id AS "u.tenant_id", u.password_change AS "u.password_change", u.access_epoch AS "u.access_epoch", ` + grantsOfUser + ` AS "u.grants",
	t.name AS tenant_name, s.last_seen_at < now() - interval '1 minute' AS stale, u.preferences,
	coalesce(a.name, '') AS acting_name, coalesce(s.acting_until, to_timestamp(0)) AS acting_until
FROM sessions s
JOIN users u ON u.tenant_id = s.tenant_id AND u.id = s.user_id
JOIN tenants t ON t.id = s.tenant_id
LEFT JOIN tenants a ON a.id = s.acting_tenant AND a.deleted_at IS NULL AND s.acting_until > now()
WHERE s.id = $1 AND s.expires_at > now() AND NOT u.disabled AND t.deleted_at IS NULL`

// SessionByHashAllTenants finds a live session of a user who may sign in.
// NotFound for everything else.
func SessionByHashAllTenants(ctx context.Context, q sqlx.ExtContext, hash []byte) (loom.Session, SignedIn, error) {
	var row struct {
		sessionRow
		User        userRow         `db:"u"`
		TenantName  string          `db:"tenant_name"`
		Stale       bool            `db:"stale"`
		Preferences preferencesJSON `db:"preferences"`
		ActingName  string          `db:"acting_name"`
		ActingUntil time.Time       `db:"acting_until"`
	}
	err := sqlx.GetContext(ctx, q, &row, sessionByHash, hash)
	if err != nil {
		return loom.Session{}, SignedIn{}, wrap(err, "read a session")
	}
	session := row.session()
	session.Preferences = row.Preferences.read()
	session.PasswordChange = loom.PasswordChange(row.User.PasswordChange.String)
	return session, SignedIn{User: row.User.user(), TenantName: row.TenantName, Stale: row.Stale, Acting: row.ActingName, ActingUntil: row.ActingUntil}, nil
}

const touchSession = `
WITH held AS (
	SELECT tenant_id, id, user_id FROM sessions WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE SKIP LOCKED
), owner AS (
	SELECT u.tenant_id, u.id FROM users u JOIN held h ON u.tenant_id = h.tenant_id AND u.id = h.user_id FOR NO KEY UPDATE OF u SKIP LOCKED
), seen AS (
	UPDATE users u SET last_seen_at = now() FROM owner o WHERE u.tenant_id = o.tenant_id AND u.id = o.id
)
UPDATE sessions s SET last_seen_at = now(), address = $3 FROM held h WHERE s.tenant_id = h.tenant_id AND s.id = h.id`

// TouchSession notes that a session and its user were seen, from where, unless somebody
// changes them at that moment, as TouchToken does.
func TouchSession(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, hash []byte, address string) error {
	_, err := tx.ExecContext(ctx, touchSession, tenant, hash, address)
	return wrap(err, "touch a session")
}

// SessionDataByHashAllTenants reads what a live session keeps. NotFound.
func SessionDataByHashAllTenants(ctx context.Context, q sqlx.ExtContext, hash []byte) (map[string]string, error) {
	var raw json.RawMessage
	if err := sqlx.GetContext(ctx, q, &raw, `SELECT data FROM sessions WHERE id = $1 AND expires_at > now()`, hash); err != nil {
		return nil, wrap(err, "read session data")
	}
	data := map[string]string{}
	return data, json.Unmarshal(raw, &data)
}

// SetSessionDataByHashAllTenants replaces what a live session keeps. NotFound.
func SetSessionDataByHashAllTenants(ctx context.Context, tx *sqlx.Tx, hash []byte, data map[string]string) error {
	if data == nil {
		data = map[string]string{}
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var there bool
	err = tx.GetContext(ctx, &there, `UPDATE sessions SET data = $2 WHERE id = $1 AND expires_at > now() RETURNING true`, hash, string(raw))
	return wrap(err, "store session data")
}

const sessionsOf = `
SELECT id, tenant_id, user_id, address, agent, created_at, last_seen_at, expires_at FROM sessions
WHERE tenant_id = $1 AND user_id = $2 AND expires_at > now()
ORDER BY created_at DESC, id`

// SessionsOf lists the live sessions of a user, newest first.
func SessionsOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, user loom.UserID) ([]loom.Session, error) {
	var rows []sessionRow
	if err := sqlx.SelectContext(ctx, q, &rows, sessionsOf, tenant, user); err != nil {
		return nil, wrap(err, "list sessions of %s", user)
	}
	sessions := make([]loom.Session, len(rows))
	for i, r := range rows {
		sessions[i] = r.session()
	}
	return sessions, nil
}

// SessionSorts lists what sessions can be sorted by, the default first.
var SessionSorts = []string{"id", "-id", "-createTime", "createTime"}

var sessionKeyset = keyset{
	columns: `s.id, s.tenant_id, s.user_id, s.address, s.agent, s.created_at, s.last_seen_at, s.expires_at`, from: "sessions s",
	id: `encode(s.id, 'hex') COLLATE "C"`, idKind: "text",
	sorts: map[string]sortColumn{"id": {`encode(s.id, 'hex') COLLATE "C"`, "encode(s.id, 'hex')", "text"}, "createTime": byCreation("s")},
}

// SessionPage reads a page of the live sessions of a user; words are words to be
// found in address or agent. Invalid for an unknown sort and for a cursor of
// another list.
func SessionPage(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, user loom.UserID, words string, p loom.Page) (sessions []loom.Session, next, prev string, err error) {
	var b binder
	conditions := []string{"s.tenant_id = " + b.add(tenant), "s.user_id = " + b.add(user), "s.expires_at > now()"}
	searched, err := allWords(&b, words, "s.address", "s.agent")
	if err != nil {
		return nil, "", "", err
	}
	conditions = append(conditions, searched...)
	type row struct {
		sessionRow
		pageKeys
	}
	rows, next, prev, err := readKeyset[row](ctx, q, sessionKeyset, conditions, &b, []string{string(user), words}, p, SessionSorts...)
	for _, r := range rows {
		sessions = append(sessions, r.session())
	}
	return sessions, next, prev, err
}

// LiveSession reads a live session by the hash of its cookie. NotFound.
func LiveSession(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, hash []byte) (loom.Session, error) {
	var row sessionRow
	err := sqlx.GetContext(ctx, q, &row, `SELECT `+sessionKeyset.columns+` FROM sessions s WHERE s.tenant_id = $1 AND s.id = $2 AND s.expires_at > now()`, tenant, hash)
	return row.session(), wrap(err, "read a session")
}

// DeleteSession ends one session; ending it twice is no error.
func DeleteSession(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, hash []byte) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE tenant_id = $1 AND id = $2`, tenant, hash)
	return wrap(err, "delete a session")
}

// DeleteSessionsOf ends all sessions of a user but the one with the hash keep,
// which may be nil, and says how many.
func DeleteSessionsOf(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, user loom.UserID, keep []byte) (int64, error) {
	result, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE tenant_id = $1 AND user_id = $2 AND id IS DISTINCT FROM $3`, tenant, user, keep)
	if err != nil {
		return 0, wrap(err, "delete sessions of %s", user)
	}
	return result.RowsAffected()
}

// PurgeSignInsAllTenants deletes counts of failed sign-ins and answers kept for
// repeated requests that are a day old, and replaced secrets whose time is over. PurgeSessionsAllTenants, which ends the
// sessions themselves, is beside the other duties.
func PurgeSignInsAllTenants(ctx context.Context, tx *sqlx.Tx) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM sign_in_failures WHERE last_at < now() - interval '1 day'`); err != nil {
		return wrap(err, "purge failed sign-ins")
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM token_old_secrets WHERE ends_at < now()`); err != nil {
		return wrap(err, "purge replaced secrets")
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM idempotency_keys WHERE created_at < now() - interval '1 day'`)
	return wrap(err, "purge kept answers")
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

// PurgeSessionsAllTenants deletes sessions that are over and says how many.
func PurgeSessionsAllTenants(ctx context.Context, tx *sqlx.Tx) (int64, error) {
	result, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE expires_at < now()`)
	if err != nil {
		return 0, wrap(err, "purge sessions")
	}
	return result.RowsAffected()
}

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
