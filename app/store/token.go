package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

type tokenRow struct {
	ID          int64          `db:"id"`
	TenantID    string         `db:"tenant_id"`
	UserID      string         `db:"user_id"`
	Name        string         `db:"name"`
	Prefix      string         `db:"prefix"`
	Scopes      pq.StringArray `db:"scopes"`
	CreatedAt   time.Time      `db:"created_at"`
	ExpiresAt   sql.NullTime   `db:"expires_at"`
	LastUsedAt  sql.NullTime   `db:"last_used_at"`
	LastAddress string         `db:"last_address"`
	ParentID    int64          `db:"parent_id"`
}

func (r tokenRow) token() loom.Token {
	scopes := make([]loom.Scope, len(r.Scopes))
	for i, s := range r.Scopes {
		scopes[i] = loom.Scope(s)
	}
	return loom.Token{
		ID: r.ID, Account: loom.Account{User: loom.UserID(r.UserID), Tenant: loom.TenantID(r.TenantID)}, Name: r.Name, Prefix: r.Prefix,
		Scopes: scopes, Created: r.CreatedAt, Expires: r.ExpiresAt.Time, LastUsed: r.LastUsedAt.Time, LastAddress: r.LastAddress, Parent: r.ParentID,
	}
}

const insertToken = `
INSERT INTO tokens (tenant_id, user_id, name, prefix, hash, scopes, expires_at, parent_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, nullif($8::bigint, 0))
RETURNING id, created_at`

// InsertToken stores a token under the hash of its secret; a zero Expires means
// for ever. Parent is the token that made it, 0 for none.
func InsertToken(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, t loom.Token, hash []byte, parent int64) (loom.Token, error) {
	expires := sql.NullTime{Time: t.Expires, Valid: !t.Expires.IsZero()}
	var row struct {
		ID        int64     `db:"id"`
		CreatedAt time.Time `db:"created_at"`
	}
	err := tx.GetContext(ctx, &row, insertToken, tenant, t.Account.User, t.Name, t.Prefix, hash, pq.Array(t.Scopes), expires, parent)
	t.ID, t.Created, t.Account.Tenant = row.ID, row.CreatedAt, tenant
	return t, wrap(err, "insert a token")
}

// A token that was to live for so short a time is no surprise.
const warnTokens = `
WITH warned AS (
	UPDATE tokens SET warned_for = expires_at
	WHERE expires_at > now() AND expires_at < now() + make_interval(secs => $1) AND expires_at - created_at > make_interval(secs => $1)
	  AND revoked_at IS NULL AND warned_for IS DISTINCT FROM expires_at
	RETURNING tenant_id, user_id, id
)
INSERT INTO events (tenant_id, topic, ids) SELECT tenant_id, '` + loom.TopicOfUser + `' || user_id, ARRAY['` + loom.NewsOfToken + `' || id] FROM warned`

// WarnTokensAllTenants records for the owners of tokens that end within a time that they
// do, once for each end.
func WarnTokensAllTenants(ctx context.Context, tx *sqlx.Tx, soon time.Duration) error {
	result, err := tx.ExecContext(ctx, warnTokens, soon.Seconds())
	if err != nil {
		return wrap(err, "warn of tokens that end soon")
	}
	if told, err := result.RowsAffected(); err != nil || told == 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, `SELECT pg_notify($1, '')`, EventChannel)
	return wrap(err, "wake followers of events")
}

const tokenColumns = `t.id, t.tenant_id, t.user_id, t.name, t.prefix, t.scopes, t.created_at, t.expires_at, t.last_used_at, t.last_address, coalesce(t.parent_id, 0) AS parent_id`

// tokenIsValid is the condition on tokens t that neither ran out nor were revoked.
const tokenIsValid = `(t.expires_at IS NULL OR t.expires_at > now()) AND (t.revoked_at IS NULL OR t.revoked_at > now())`

// tokenByHash finds by the hash of a secret, so it needs no tenant. A secret that
// was replaced works on for a while.
const tokenByHash = `
SELECT ` + tokenColumns + `, found.ends_at AS secret_ends_at,
	u.role AS "u.role", u.display_name AS "u.display_name", u.email AS "u.email", u.created_at AS "u.created_at",
	u.ssh_keys AS "u.ssh_keys", u.disabled AS "u.disabled", u.last_seen_at AS "u.last_seen_at", u.id AS "u.id", u.tenant_id AS "u.tenant_id", u.password_change AS "u.password_change", u.access_epoch AS "u.access_epoch", ` + grantsOfUser + ` AS "u.grants",
	n.name AS tenant_name, coalesce(t.last_used_at < now() - interval '1 minute', true) AS stale,
	u.password_hash IS NULL AND coalesce((SELECT max(d.seen_at + make_interval(days => p.max_age_days)) < now()
		FROM identity_users i JOIN identities d ON d.provider_id = i.provider_id AND d.subject = i.subject JOIN identity_providers p ON p.id = i.provider_id
		WHERE i.tenant_id = u.tenant_id AND i.user_id = u.id), false) AS lapsed
FROM (SELECT id, NULL::timestamptz AS ends_at FROM tokens WHERE hash = $1
	UNION ALL SELECT token_id, ends_at FROM token_old_secrets WHERE hash = $1 AND ends_at > now() LIMIT 1) found
JOIN tokens t ON t.id = found.id
JOIN users u ON u.tenant_id = t.tenant_id AND u.id = t.user_id
JOIN tenants n ON n.id = t.tenant_id
WHERE ` + tokenIsValid + `
	AND NOT u.disabled AND n.deleted_at IS NULL`

// TokenByHashAllTenants finds a valid token of a user who may act. NotFound for
// everything else.
func TokenByHashAllTenants(ctx context.Context, q sqlx.ExtContext, hash []byte) (loom.Token, SignedIn, error) {
	var row struct {
		tokenRow
		User       userRow      `db:"u"`
		TenantName string       `db:"tenant_name"`
		Stale      bool         `db:"stale"`
		SecretEnds sql.NullTime `db:"secret_ends_at"`
		Lapsed     bool         `db:"lapsed"`
	}
	if err := sqlx.GetContext(ctx, q, &row, tokenByHash, hash); err != nil {
		return loom.Token{}, SignedIn{}, wrap(err, "read a token")
	}
	return row.token(), SignedIn{User: row.User.user(), TenantName: row.TenantName, Stale: row.Stale, SecretEnds: row.SecretEnds.Time, Lapsed: row.Lapsed}, nil
}

// Rows that somebody else holds are left out: waiting for them here, in the opposite order
// of those who end a user's access, would be a deadlock.
const touchToken = `
WITH held AS (
	SELECT tenant_id, id, user_id FROM tokens WHERE tenant_id = $1 AND id = $2 FOR NO KEY UPDATE SKIP LOCKED
), owner AS (
	SELECT u.tenant_id, u.id FROM users u JOIN held h ON u.tenant_id = h.tenant_id AND u.id = h.user_id FOR NO KEY UPDATE OF u SKIP LOCKED
), seen AS (
	UPDATE users u SET last_seen_at = now() FROM owner o WHERE u.tenant_id = o.tenant_id AND u.id = o.id
)
UPDATE tokens t SET last_used_at = now(), last_address = $3 FROM held h WHERE t.tenant_id = h.tenant_id AND t.id = h.id`

// TouchToken notes that a token was used, from where, and its owner seen, unless somebody
// changes them at that moment.
func TouchToken(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id int64, address string) error {
	_, err := tx.ExecContext(ctx, touchToken, tenant, id, address)
	return wrap(err, "touch token %d", id)
}

const tokensOf = `
SELECT ` + tokenColumns + ` FROM tokens t
WHERE t.tenant_id = $1 AND t.user_id = $2 AND ` + tokenIsValid + `
ORDER BY t.name, t.id`

// TokensOf lists the valid tokens of a user by name.
func TokensOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, user loom.UserID) ([]loom.Token, error) {
	var rows []tokenRow
	if err := sqlx.SelectContext(ctx, q, &rows, tokensOf, tenant, user); err != nil {
		return nil, wrap(err, "list tokens of %s", user)
	}
	tokens := make([]loom.Token, len(rows))
	for i, r := range rows {
		tokens[i] = r.token()
	}
	return tokens, nil
}

// TokenSorts lists what tokens can be sorted by, the default first.
var TokenSorts = []string{"name", "-name", "-createTime", "createTime"}

var tokenKeyset = keyset{
	columns: tokenColumns, from: "tokens t", id: "t.id", idKind: "bigint",
	sorts: map[string]sortColumn{"name": {`t.name COLLATE "C"`, "t.name", "text"}, "createTime": byCreation("t")},
}

// TokenPage reads a page of the valid tokens of a user; words are words to be found
// in name or prefix. Invalid for an unknown sort and for a cursor of another list.
func TokenPage(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, user loom.UserID, words string, p loom.Page) (tokens []loom.Token, next, prev string, err error) {
	var b binder
	conditions := []string{"t.tenant_id = " + b.add(tenant), "t.user_id = " + b.add(user), tokenIsValid}
	searched, err := allWords(&b, words, "t.name", "t.prefix")
	if err != nil {
		return nil, "", "", err
	}
	conditions = append(conditions, searched...)
	type row struct {
		tokenRow
		pageKeys
	}
	rows, next, prev, err := readKeyset[row](ctx, q, tokenKeyset, conditions, &b, []string{string(user), words}, p, TokenSorts...)
	for _, r := range rows {
		tokens = append(tokens, r.token())
	}
	return tokens, next, prev, err
}

// TokenOwner gives whose a token is, which never changes. NotFound.
func TokenOwner(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id int64) (loom.UserID, error) {
	var owner loom.UserID
	err := sqlx.GetContext(ctx, q, &owner, `SELECT user_id FROM tokens WHERE tenant_id = $1 AND id = $2`, tenant, id)
	return owner, wrap(err, "read token %d", id)
}

// LockToken reads a token that is not revoked and keeps others from changing it.
// NotFound.
func LockToken(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id int64) (loom.Token, error) {
	var row tokenRow
	err := tx.GetContext(ctx, &row, `SELECT `+tokenColumns+` FROM tokens t WHERE t.tenant_id = $1 AND t.id = $2 AND t.revoked_at IS NULL FOR UPDATE`, tenant, id)
	return row.token(), wrap(err, "read token %d", id)
}

// validToken reports whether a token neither ran out nor was revoked.
func validToken(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id int64) (valid bool, err error) {
	err = sqlx.GetContext(ctx, q, &valid, `SELECT EXISTS (SELECT FROM tokens t WHERE t.tenant_id = $1 AND t.id = $2 AND `+tokenIsValid+`)`, tenant, id)
	return valid, wrap(err, "read token %d", id)
}

// maxOldSecrets is how many replaced secrets of a token work on.
const maxOldSecrets = 2

const dropOldSecrets = `
DELETE FROM token_old_secrets WHERE tenant_id = $1 AND token_id = $2 AND hash NOT IN (
	SELECT hash FROM token_old_secrets WHERE tenant_id = $1 AND token_id = $2 ORDER BY ends_at DESC, hash LIMIT $3)`

// replaceSecret keeps the secret of a token for as long as $5 says, at most until
// the token itself ends.
const replaceSecret = `
WITH old AS (
	INSERT INTO token_old_secrets (hash, tenant_id, token_id, ends_at)
	SELECT t.hash, t.tenant_id, t.id, least(now() + make_interval(secs => $5), t.expires_at) FROM tokens t WHERE t.tenant_id = $1 AND t.id = $2
)
UPDATE tokens SET hash = $3, prefix = $4 WHERE tenant_id = $1 AND id = $2`

// RotateToken gives a locked token another secret, by its hash, with the prefix of
// it; the one before works on for overlap, at most as long as the token, and so does one
// before that.
func RotateToken(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id int64, hash []byte, prefix string, overlap time.Duration) error {
	if _, err := tx.ExecContext(ctx, dropOldSecrets, tenant, id, maxOldSecrets-1); err != nil {
		return wrap(err, "forget old secrets of token %d", id)
	}
	_, err := tx.ExecContext(ctx, replaceSecret, tenant, id, hash, prefix, overlap.Seconds())
	return wrap(err, "rotate token %d", id)
}

const revokeToken = `
WITH RECURSIVE gone AS (
	SELECT id FROM tokens WHERE tenant_id = $1 AND id = $2
	UNION SELECT t.id FROM tokens t JOIN gone g ON t.parent_id = g.id WHERE t.tenant_id = $1
)
UPDATE tokens SET revoked_at = now() WHERE tenant_id = $1 AND id IN (SELECT id FROM gone) AND (revoked_at IS NULL OR id = $2)`

// RevokeToken makes a token and those that were made with it useless at once.
func RevokeToken(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id int64) error {
	_, err := tx.ExecContext(ctx, revokeToken, tenant, id)
	return wrap(err, "revoke token %d", id)
}

// RevokeTokensOf makes all tokens of a user useless at once.
func RevokeTokensOf(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, user loom.UserID) error {
	_, err := tx.ExecContext(ctx, `UPDATE tokens SET revoked_at = now() WHERE tenant_id = $1 AND user_id = $2 AND revoked_at IS NULL`, tenant, user)
	return wrap(err, "revoke tokens of %s", user)
}
