package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

// IdentitySecrets is the entity under which the sealed secret of an identity provider is kept, in
// the field IdentitySecretField.
func IdentitySecrets(id string) string { return "identity-provider:" + id }

// IdentitySecretField is the field of an identity provider's secret.
const IdentitySecretField = "secret"

type identityProviderRow struct {
	ID           string    `db:"id"`
	TenantID     string    `db:"tenant_id"`
	Name         string    `db:"name"`
	Issuer       string    `db:"issuer"`
	ClientID     string    `db:"client_id"`
	UserClaim    string    `db:"user_claim"`
	SubjectClaim string    `db:"subject_claim"`
	MaxAgeDays   int       `db:"max_age_days"`
	Enabled      bool      `db:"enabled"`
	CreatedAt    time.Time `db:"created_at"`
	Users        int       `db:"users"`
	Rules        int       `db:"rules"`
}

func (r identityProviderRow) provider() loom.IdentityProvider {
	return loom.IdentityProvider{
		ID: r.ID, Tenant: loom.TenantID(r.TenantID), Name: r.Name, Issuer: r.Issuer, ClientID: r.ClientID, UserClaim: r.UserClaim, SubjectClaim: r.SubjectClaim,
		MaxAgeDays: r.MaxAgeDays, Enabled: r.Enabled, Created: r.CreatedAt, Users: r.Users, Rules: r.Rules,
	}
}

const identityProviderColumns = `p.id, p.tenant_id, p.name, p.issuer, p.client_id, p.user_claim, p.subject_claim, p.max_age_days, p.enabled, p.created_at`

// Users and rules are counted for administrators alone: strangers read providers on the sign-in page.
const (
	identityProviders        = `SELECT ` + identityProviderColumns + ` FROM identity_providers p `
	countedIdentityProviders = `SELECT ` + identityProviderColumns + `, (SELECT count(*) FROM identity_users u WHERE u.provider_id = p.id) AS users,
	(SELECT count(*) FROM identity_rules r WHERE r.provider_id = p.id) AS rules FROM identity_providers p `
)

func someIdentityProviders(ctx context.Context, q sqlx.ExtContext, query string, args ...any) ([]loom.IdentityProvider, error) {
	var rows []identityProviderRow
	if err := sqlx.SelectContext(ctx, q, &rows, query, args...); err != nil {
		return nil, wrap(err, "list identity providers")
	}
	providers := make([]loom.IdentityProvider, len(rows))
	for i, r := range rows {
		providers[i] = r.provider()
	}
	return providers, nil
}

func oneIdentityProvider(ctx context.Context, q sqlx.ExtContext, query, id string, args ...any) (loom.IdentityProvider, error) {
	var row identityProviderRow
	err := sqlx.GetContext(ctx, q, &row, query, append([]any{id}, args...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return loom.IdentityProvider{}, &loom.Error{Kind: loom.NotFound, Message: fmt.Sprintf("There is no identity provider “%.40s”.", id), Err: err}
	}
	return row.provider(), wrap(err, "read identity provider %s", id)
}

// IdentityProviders reads the identity providers of a tenant by name.
func IdentityProviders(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) ([]loom.IdentityProvider, error) {
	return someIdentityProviders(ctx, q, countedIdentityProviders+`WHERE p.tenant_id = $1 ORDER BY lower(p.name)`, tenant)
}

// SignInProviders reads the identity providers that people of a tenant sign in with: its own and
// those for all tenants, by name.
func SignInProviders(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) ([]loom.IdentityProvider, error) {
	return someIdentityProviders(ctx, q, identityProviders+`WHERE p.enabled AND p.tenant_id IN ($1, '`+string(loom.SuperTenant)+`') ORDER BY p.tenant_id = $1 DESC, lower(p.name)`, tenant)
}

// IdentityProvider reads an identity provider of a tenant. NotFound.
func IdentityProvider(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id string) (loom.IdentityProvider, error) {
	return oneIdentityProvider(ctx, q, countedIdentityProviders+`WHERE p.id = $1 AND p.tenant_id = $2`, id, tenant)
}

// LockIdentityProvider reads an identity provider and keeps others from changing it, and people
// from signing in with it, until the transaction ends. NotFound.
func LockIdentityProvider(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id string) (loom.IdentityProvider, error) {
	return oneIdentityProvider(ctx, tx, countedIdentityProviders+`WHERE p.id = $1 AND p.tenant_id = $2 FOR UPDATE OF p`, id, tenant)
}

// IdentityProviderAllTenants reads an identity provider of whatever tenant. NotFound, also of a deleted one.
func IdentityProviderAllTenants(ctx context.Context, q sqlx.ExtContext, id string) (loom.IdentityProvider, error) {
	return oneIdentityProvider(ctx, q, identityProviders+`WHERE p.id = $1 AND EXISTS (SELECT FROM tenants t WHERE t.id = p.tenant_id AND t.deleted_at IS NULL)`, id)
}

// HoldIdentityProviderAllTenants is IdentityProviderAllTenants that keeps others from changing the
// provider and its rules until the transaction ends. Any number may hold it at once.
func HoldIdentityProviderAllTenants(ctx context.Context, tx *sqlx.Tx, id string) (loom.IdentityProvider, error) {
	return oneIdentityProvider(ctx, tx, identityProviders+`WHERE p.id = $1 AND EXISTS (SELECT FROM tenants t WHERE t.id = p.tenant_id AND t.deleted_at IS NULL) FOR SHARE OF p`, id)
}

const insertIdentityProvider = `
INSERT INTO identity_providers (id, tenant_id, name, issuer, client_id, user_claim, subject_claim, max_age_days, enabled)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING created_at`

// InsertIdentityProvider stores an identity provider under its id. Conflict where the name is in use.
func InsertIdentityProvider(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, p loom.IdentityProvider) (loom.IdentityProvider, error) {
	p.Tenant = tenant
	err := tx.GetContext(ctx, &p.Created, insertIdentityProvider, p.ID, tenant, p.Name, p.Issuer, p.ClientID, p.UserClaim, p.SubjectClaim, p.MaxAgeDays, p.Enabled)
	return p, wrap(err, "insert an identity provider")
}

const updateIdentityProvider = `
UPDATE identity_providers SET name = $3, issuer = $4, client_id = $5, user_claim = $6, subject_claim = $7, max_age_days = $8, enabled = $9
WHERE id = $1 AND tenant_id = $2`

// UpdateIdentityProvider stores a locked identity provider. Conflict where the name is in use.
func UpdateIdentityProvider(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, p loom.IdentityProvider) error {
	_, err := tx.ExecContext(ctx, updateIdentityProvider, p.ID, tenant, p.Name, p.Issuer, p.ClientID, p.UserClaim, p.SubjectClaim, p.MaxAgeDays, p.Enabled)
	return wrap(err, "update identity provider %s", p.ID)
}

// DeleteIdentityProvider removes an identity provider with its rules, identities and sessions, and
// the memberships that its rules gave.
func DeleteIdentityProvider(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, p loom.IdentityProvider) error {
	done, err := tx.ExecContext(ctx, `DELETE FROM identity_providers WHERE id = $1 AND tenant_id = $2`, p.ID, tenant)
	if err != nil {
		return wrap(err, "delete identity provider %s", p.ID)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return wrap(err, "delete identity provider %s", p.ID)
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM group_members WHERE source = $1`, p.Source()); err != nil {
		return wrap(err, "delete the memberships of identity provider %s", p.ID)
	}
	return DeleteSecrets(ctx, tx, tenant, IdentitySecrets(p.ID))
}

// IdentityRulesAllTenants reads the rules of an identity provider in order.
func IdentityRulesAllTenants(ctx context.Context, q sqlx.ExtContext, provider string) ([]loom.IdentityRule, error) {
	var rows []struct {
		Conditions json.RawMessage `db:"conditions"`
		TenantID   string          `db:"tenant_id"`
		GroupID    int64           `db:"group_id"`
		Name       string          `db:"name"`
	}
	err := sqlx.SelectContext(ctx, q, &rows, `
SELECT r.conditions, r.tenant_id, r.group_id, g.name FROM identity_rules r JOIN groups g ON g.tenant_id = r.tenant_id AND g.id = r.group_id
WHERE r.provider_id = $1 ORDER BY r.place`, provider)
	rules := make([]loom.IdentityRule, len(rows))
	for i, r := range rows {
		rules[i] = loom.IdentityRule{Group: r.GroupID, Tenant: loom.TenantID(r.TenantID), GroupName: r.Name}
		if err := json.Unmarshal(r.Conditions, &rules[i].Conditions); err != nil {
			return nil, wrap(err, "read rule %d of identity provider %s", i, provider)
		}
	}
	return rules, wrap(err, "list the rules of identity provider %s", provider)
}

// SetIdentityRulesAllTenants replaces the rules of a locked identity provider.
func SetIdentityRulesAllTenants(ctx context.Context, tx *sqlx.Tx, provider string, rules []loom.IdentityRule) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM identity_rules WHERE provider_id = $1`, provider); err != nil {
		return wrap(err, "delete the rules of identity provider %s", provider)
	}
	for i, r := range rules {
		conditions, err := json.Marshal(r.Conditions)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO identity_rules (provider_id, place, conditions, tenant_id, group_id) VALUES ($1, $2, $3, $4, $5)`, provider, i, string(conditions), r.Tenant, r.Group); err != nil {
			return wrap(err, "insert rule %d of identity provider %s", i, provider)
		}
	}
	return nil
}

// RulesOfGroup reads the names of the identity providers whose rules name a group.
func RulesOfGroup(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, group int64) ([]string, error) {
	var names []string
	err := sqlx.SelectContext(ctx, q, &names, `
SELECT DISTINCT p.name FROM identity_rules r JOIN identity_providers p ON p.id = r.provider_id WHERE r.tenant_id = $1 AND r.group_id = $2 ORDER BY p.name`, tenant, group)
	return names, wrap(err, "list the rules of group %d", group)
}

// GroupsByIDAllTenants reads groups of whatever tenants that exist, by id.
func GroupsByIDAllTenants(ctx context.Context, q sqlx.ExtContext, ids []int64) (map[int64]loom.Group, error) {
	var rows []groupRow
	err := sqlx.SelectContext(ctx, q, &rows, `SELECT `+groupColumns+` FROM groups g JOIN tenants t ON t.id = g.tenant_id AND t.deleted_at IS NULL WHERE g.id = ANY ($1)`, pq.Array(ids))
	groups := map[int64]loom.Group{}
	for _, r := range rows {
		groups[r.ID] = r.group()
	}
	return groups, wrap(err, "list groups")
}

// PutIdentityAllTenants stores what a provider says about a person who signs in. Sign-ins of one
// person take turns from here on.
func PutIdentityAllTenants(ctx context.Context, tx *sqlx.Tx, provider, subject string, claims loom.Claims) error {
	text, err := json.Marshal(claims)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO identities (provider_id, subject, claims) VALUES ($1, $2, $3)
ON CONFLICT (provider_id, subject) DO UPDATE SET claims = excluded.claims, seen_at = now()`, provider, subject, string(text))
	return wrap(err, "store an identity")
}

// InsertIdentityUser lets a user of a tenant sign in with an identity. Conflict where he, or the
// identity in this tenant, is connected already.
func InsertIdentityUser(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, provider, subject string, user loom.UserID) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO identity_users (provider_id, subject, tenant_id, user_id) VALUES ($1, $2, $3, $4)`, provider, subject, tenant, user)
	return wrap(err, "connect %s with an identity", user)
}

// DeleteIdentityUser ends that a user signs in with the identity of a provider, with its sessions
// and the memberships that its rules gave, and reports whether he did.
func DeleteIdentityUser(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, p loom.IdentityProvider, user loom.UserID) (bool, error) {
	done, err := tx.ExecContext(ctx, `DELETE FROM identity_users WHERE tenant_id = $1 AND user_id = $2 AND provider_id = $3`, tenant, user, p.ID)
	if err != nil {
		return false, wrap(err, "disconnect %s", user)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return false, wrap(err, "disconnect %s", user)
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE tenant_id = $1 AND user_id = $2 AND provider_id = $3`, tenant, user, p.ID); err != nil {
		return false, wrap(err, "end the sessions of %s", user)
	}
	_, _, err = SetMembers(ctx, tx, tenant, user, p.Source(), nil)
	return true, err
}

// IdentityUsersAllTenants reads who signs in with an identity, of tenants that are there.
func IdentityUsersAllTenants(ctx context.Context, q sqlx.ExtContext, provider, subject string) ([]loom.Account, error) {
	var rows []struct {
		Tenant string `db:"tenant_id"`
		User   string `db:"user_id"`
	}
	err := sqlx.SelectContext(ctx, q, &rows, `
SELECT u.tenant_id, u.user_id FROM identity_users u JOIN tenants t ON t.id = u.tenant_id AND t.deleted_at IS NULL
WHERE u.provider_id = $1 AND u.subject = $2 ORDER BY t.name`, provider, subject)
	accounts := make([]loom.Account, len(rows))
	for i, r := range rows {
		accounts[i] = loom.Account{Tenant: loom.TenantID(r.Tenant), User: loom.UserID(r.User)}
	}
	return accounts, wrap(err, "list the users of an identity")
}

// SetMembers makes a user a member of these groups of a tenant, and of no others, as far as a
// source goes, and returns what changed.
func SetMembers(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, user loom.UserID, source loom.MemberSource, groups []int64) (added, removed []int64, err error) {
	ids := pq.Array(append([]int64{}, groups...))
	if err := tx.SelectContext(ctx, &removed, `DELETE FROM group_members WHERE tenant_id = $1 AND user_id = $2 AND source = $3 AND NOT group_id = ANY ($4) RETURNING group_id`, tenant, user, source, ids); err != nil {
		return nil, nil, wrap(err, "take %s out of groups", user)
	}
	err = tx.SelectContext(ctx, &added, `
INSERT INTO group_members (tenant_id, group_id, user_id, source, added_by)
SELECT g.tenant_id, g.id, $2, $3, '`+string(loom.SystemUser)+`' FROM groups g WHERE g.tenant_id = $1 AND g.id = ANY ($4)
ON CONFLICT DO NOTHING RETURNING group_id`, tenant, user, source, ids)
	return added, removed, wrap(err, "add %s to groups", user)
}

type identityRow struct {
	ProviderID string          `db:"provider_id"`
	Name       string          `db:"name"`
	Subject    string          `db:"subject"`
	Claims     json.RawMessage `db:"claims"`
	SeenAt     time.Time       `db:"seen_at"`
}

func (r identityRow) identity() (loom.Identity, error) {
	claims, err := loom.ParseClaims(r.Claims)
	return loom.Identity{Provider: r.ProviderID, ProviderName: r.Name, Subject: r.Subject, Claims: claims, Seen: r.SeenAt}, err
}

// IdentitiesOf reads the identities that a user signs in with, by provider.
func IdentitiesOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, user loom.UserID) ([]loom.Identity, error) {
	var rows []identityRow
	err := sqlx.SelectContext(ctx, q, &rows, `
SELECT i.provider_id, p.name, i.subject, i.claims, i.seen_at FROM identity_users u
JOIN identities i ON i.provider_id = u.provider_id AND i.subject = u.subject JOIN identity_providers p ON p.id = i.provider_id
WHERE u.tenant_id = $1 AND u.user_id = $2 ORDER BY lower(p.name)`, tenant, user)
	if err != nil {
		return nil, wrap(err, "list the identities of %s", user)
	}
	identities := make([]loom.Identity, len(rows))
	for i, r := range rows {
		if identities[i], err = r.identity(); err != nil {
			return nil, err
		}
	}
	return identities, nil
}

// WalkIdentitiesAllTenants calls each with all identities of a provider and who signs in with them, by subject.
func WalkIdentitiesAllTenants(ctx context.Context, q sqlx.ExtContext, provider string, each func(loom.Identity) error) error {
	rows, err := q.QueryxContext(ctx, `
SELECT i.provider_id, '' AS name, i.subject, i.claims, i.seen_at,
	coalesce((SELECT json_agg(json_build_array(u.tenant_id, u.user_id) ORDER BY u.tenant_id) FROM identity_users u JOIN tenants t ON t.id = u.tenant_id AND t.deleted_at IS NULL
		WHERE u.provider_id = i.provider_id AND u.subject = i.subject), '[]') AS users
FROM identities i WHERE i.provider_id = $1 ORDER BY i.subject`, provider)
	if err != nil {
		return wrap(err, "list the identities of %s", provider)
	}
	defer rows.Close()
	for rows.Next() {
		var row struct {
			identityRow
			Users json.RawMessage `db:"users"`
		}
		if err := rows.StructScan(&row); err != nil {
			return wrap(err, "read an identity of %s", provider)
		}
		identity, err := row.identity()
		if err != nil {
			return err
		}
		var users [][2]string
		if err := json.Unmarshal(row.Users, &users); err != nil {
			return wrap(err, "read the users of an identity")
		}
		for _, u := range users {
			identity.Accounts = append(identity.Accounts, loom.Account{Tenant: loom.TenantID(u[0]), User: loom.UserID(u[1])})
		}
		if err := each(identity); err != nil {
			return err
		}
	}
	return wrap(rows.Err(), "list the identities of %s", provider)
}

// Standing is what a user of an identity provider has: his own role, and the groups he is in, by source.
type Standing struct {
	Role   loom.Role
	Groups map[int64][]loom.MemberSource
}

// StandingsAllTenants reads what the users of an identity provider have.
func StandingsAllTenants(ctx context.Context, q sqlx.ExtContext, provider string) (map[loom.Account]*Standing, error) {
	var rows []struct {
		Tenant string         `db:"tenant_id"`
		User   string         `db:"user_id"`
		Role   string         `db:"role"`
		Group  sql.NullInt64  `db:"group_id"`
		Source sql.NullString `db:"source"`
	}
	err := sqlx.SelectContext(ctx, q, &rows, `
SELECT u.tenant_id, u.id AS user_id, u.role, m.group_id, m.source FROM users u
LEFT JOIN group_members m ON m.tenant_id = u.tenant_id AND m.user_id = u.id
WHERE (u.tenant_id, u.id) IN (SELECT tenant_id, user_id FROM identity_users WHERE provider_id = $1)`, provider)
	all := map[loom.Account]*Standing{}
	for _, r := range rows {
		account := loom.Account{Tenant: loom.TenantID(r.Tenant), User: loom.UserID(r.User)}
		if all[account] == nil {
			all[account] = &Standing{Role: loom.RoleIn(account.Tenant, loom.Role(r.Role)), Groups: map[int64][]loom.MemberSource{}}
		}
		if r.Group.Valid {
			all[account].Groups[r.Group.Int64] = append(all[account].Groups[r.Group.Int64], loom.MemberSource(r.Source.String))
		}
	}
	return all, wrap(err, "list what the users of an identity provider have")
}

// RolesAllTenants reads the roles of groups, and those of the users of an identity provider, by bindings.
func RolesAllTenants(ctx context.Context, q sqlx.ExtContext, provider string, groups []int64) (ofGroups map[int64][]loom.Grant, ofUsers map[loom.Account][]loom.Grant, err error) {
	var rows []bindingRow
	err = sqlx.SelectContext(ctx, q, &rows, `
SELECT `+bindingColumns+` FROM `+bindingKeyset.from+`
WHERE b.group_id = ANY ($1) OR (b.tenant_id, b.user_id) IN (SELECT tenant_id, user_id FROM identity_users WHERE provider_id = $2)
ORDER BY b.id`, pq.Array(append([]int64{}, groups...)), provider)
	ofGroups, ofUsers = map[int64][]loom.Grant{}, map[loom.Account][]loom.Grant{}
	for _, r := range rows {
		b := r.binding()
		if b.Group != 0 {
			ofGroups[b.Group] = append(ofGroups[b.Group], b.Grant)
			continue
		}
		account := loom.Account{Tenant: b.Tenant, User: b.User}
		ofUsers[account] = append(ofUsers[account], b.Grant)
	}
	return ofGroups, ofUsers, wrap(err, "list roles")
}

// UseTokenAllTenants notes that a token of a provider was used, and reports whether it was not before.
func UseTokenAllTenants(ctx context.Context, tx *sqlx.Tx, provider, token string, ends time.Time) (bool, error) {
	done, err := tx.ExecContext(ctx, `INSERT INTO used_tokens (provider_id, token, ends_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, provider, token, ends)
	if err != nil {
		return false, wrap(err, "note a used token")
	}
	n, err := done.RowsAffected()
	return n > 0, wrap(err, "note a used token")
}

// SetSessionProvider notes by which sign-in at an identity provider a session began.
func SetSessionProvider(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, hash []byte, provider, session string, idToken []byte) error {
	_, err := tx.ExecContext(ctx, `UPDATE sessions SET provider_id = $3, provider_session = nullif($4, ''), id_token = $5 WHERE tenant_id = $1 AND id = $2`, tenant, hash, provider, session, idToken)
	return wrap(err, "note the provider of a session")
}

// SessionProvider reads by which identity provider a session began, "" for none, with the sealed ID token. NotFound.
func SessionProvider(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, hash []byte) (provider string, idToken []byte, err error) {
	var row struct {
		Provider sql.NullString `db:"provider_id"`
		IDToken  []byte         `db:"id_token"`
	}
	err = sqlx.GetContext(ctx, q, &row, `SELECT provider_id, id_token FROM sessions WHERE tenant_id = $1 AND id = $2`, tenant, hash)
	return row.Provider.String, row.IDToken, wrap(err, "read the provider of a session")
}

// EndProviderSessionsAllTenants ends the sessions of a sign-in at a provider, or, where it names
// none, all by that provider of those who sign in as a subject, and returns whose they were.
func EndProviderSessionsAllTenants(ctx context.Context, tx *sqlx.Tx, provider, subject, session string) ([]loom.Account, error) {
	var rows []struct {
		Tenant string `db:"tenant_id"`
		User   string `db:"user_id"`
	}
	err := tx.SelectContext(ctx, &rows, `
DELETE FROM sessions s WHERE s.provider_id = $1 AND CASE WHEN $3 <> '' THEN s.provider_session = $3
	ELSE (s.tenant_id, s.user_id) IN (SELECT tenant_id, user_id FROM identity_users WHERE provider_id = $1 AND subject = $2) END
RETURNING s.tenant_id, s.user_id`, provider, subject, session)
	accounts := make([]loom.Account, len(rows))
	for i, r := range rows {
		accounts[i] = loom.Account{Tenant: loom.TenantID(r.Tenant), User: loom.UserID(r.User)}
	}
	return accounts, wrap(err, "end the sessions of a provider")
}

// PurgeIdentitiesAllTenants removes identities without a user that were not seen for 90 days, and
// used tokens that are over.
func PurgeIdentitiesAllTenants(ctx context.Context, tx *sqlx.Tx) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM used_tokens WHERE ends_at < now()`); err != nil {
		return wrap(err, "purge used tokens")
	}
	_, err := tx.ExecContext(ctx, `
DELETE FROM identities i WHERE i.seen_at < now() - interval '90 days'
	AND NOT EXISTS (SELECT FROM identity_users u WHERE u.provider_id = i.provider_id AND u.subject = i.subject)`)
	return wrap(err, "purge identities")
}
