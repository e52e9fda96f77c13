package account

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

const (
	tokenStart  = "loom_"
	tokenPrefix = 9 // characters that are stored in clear, to tell tokens apart
	maxToken    = 100
)

// NewToken is a token to make. A nil Expires means as long as the tenant's
// settings allow.
type NewToken struct {
	Name    string
	Scopes  []loom.Scope
	Expires *time.Time
}

// CreateToken makes a token for the actor. The secret is shown this once. A token
// never gets more than its owner's role, nor more than the token that made it.
// Errors: Forbidden, Invalid.
func (a *Accounts) CreateToken(ctx context.Context, actor loom.Actor, in NewToken) (loom.Token, loom.Secret, error) {
	if err := actor.Require(loom.ScopeAdmin); err != nil {
		return loom.Token{}, loom.Secret{}, err
	}
	return a.createToken(ctx, actor, actor.Account(), actor.Role, in)
}

// CreateTokenFor makes a token for a user of a tenant by name, for the command
// line; the actor is the system, or a superadmin. Errors: Forbidden, NotFound,
// Invalid.
func (a *Accounts) CreateTokenFor(ctx context.Context, actor loom.Actor, tenant string, user loom.UserID, in NewToken) (loom.Token, loom.Secret, error) {
	if actor.Via != "system" && actor.Via != "cli" {
		if err := actor.RequireSuperadmin(); err != nil {
			return loom.Token{}, loom.Secret{}, err
		}
	}
	t, err := store.TenantByNameAllTenants(ctx, a.db, tenant)
	if err != nil {
		return loom.Token{}, loom.Secret{}, named(err, tenant)
	}
	owner, err := store.User(ctx, a.db, t.ID, user)
	if err != nil {
		return loom.Token{}, loom.Secret{}, err
	}
	if owner.Disabled {
		return loom.Token{}, loom.Secret{}, loom.NewError(loom.Conflict, "The user “%s” is disabled; a token would be of no use.", user)
	}
	// What is done to a tenant is in the audit of that tenant.
	actor.Tenant, actor.TenantName = t.ID, t.Name
	return a.createToken(ctx, actor, loom.Account{User: user, Tenant: t.ID}, owner.Role, in)
}

func (a *Accounts) createToken(ctx context.Context, actor loom.Actor, owner loom.Account, role loom.Role, in NewToken) (loom.Token, loom.Secret, error) {
	days, err := store.MaxTokenDays(ctx, a.db, owner.Tenant)
	if err != nil {
		return loom.Token{}, loom.Secret{}, err
	}
	token := loom.Token{Account: owner, Name: strings.TrimSpace(in.Name), Scopes: in.Scopes}
	errs := checkToken(&token, role)
	now := time.Now()
	limit := now.AddDate(0, 0, days)
	switch {
	case in.Expires == nil && days > 0:
		token.Expires = limit
	case in.Expires == nil:
	case !in.Expires.After(now):
		errs = append(errs, loom.FieldError{Field: "expires", Message: "This time is over already."})
	case days > 0 && in.Expires.After(limit.Add(time.Minute)):
		errs = append(errs, loom.FieldError{Field: "expires", Message: fmt.Sprintf("Tokens of this tenant live at most %d days.", days)})
	default:
		token.Expires = *in.Expires
	}
	if err := loom.InvalidFields(errs); err != nil {
		return loom.Token{}, loom.Secret{}, err
	}
	secret := tokenStart + newSecret()
	token.Prefix = secret[:tokenPrefix]
	token, err = store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.Token, error) {
		stored, err := store.InsertToken(ctx, tx, owner.Tenant, token, hashOf(loom.NewSecret(secret)))
		if err != nil {
			return loom.Token{}, err
		}
		return stored, record(ctx, tx, actor, "create", "token", stored.Name, nil, map[string]any{
			"id": stored.ID, "owner": owner.User, "scopes": stored.Scopes, "expires": stored.Expires,
		})
	})
	if err != nil {
		return loom.Token{}, loom.Secret{}, err
	}
	return token, loom.NewSecret(secret), nil
}

// checkToken checks name and scopes; scopes collapse and are put in order.
func checkToken(t *loom.Token, role loom.Role) []loom.FieldError {
	var errs []loom.FieldError
	if n := utf8.RuneCountInString(t.Name); n < 1 || n > maxToken || strings.ContainsAny(t.Name, "\x00\n\r") {
		errs = append(errs, loom.FieldError{Field: "name", Message: "A token has a name of 1 to 100 characters that says what it is for."})
	}
	if len(t.Scopes) == 0 {
		errs = append(errs, loom.FieldError{Field: "scopes", Message: "Choose at least one scope: read, clusters:write, catalog:write or admin."})
	}
	for i, scope := range t.Scopes {
		at := "scopes[" + itoa(i) + "]"
		switch {
		case !slices.Contains(loom.Scopes, scope):
			errs = append(errs, loom.FieldError{Field: at, Message: fmt.Sprintf("There is no scope “%s”; scopes are read, clusters:write, catalog:write and admin.", scope)})
		case scope == loom.ScopeCatalogWrite && role == loom.RoleUser:
			errs = append(errs, loom.FieldError{Field: at, Message: "The scope “catalog:write” is for administrators only."})
		}
	}
	var ordered []loom.Scope
	for _, scope := range loom.Scopes {
		if slices.Contains(t.Scopes, scope) {
			ordered = append(ordered, scope)
		}
	}
	t.Scopes = ordered
	return errs
}

// Tokens lists the actor's own valid tokens by name.
func (a *Accounts) Tokens(ctx context.Context, actor loom.Actor) ([]loom.Token, error) {
	return a.TokensOf(ctx, actor, actor.User)
}

// TokensOf lists the valid tokens of a user: the actor's own, or anyone's of the
// tenant for an administrator. NotFound.
func (a *Accounts) TokensOf(ctx context.Context, actor loom.Actor, user loom.UserID) ([]loom.Token, error) {
	if err := a.maySeeUser(actor, user); err != nil {
		return nil, err
	}
	return store.TokensOf(ctx, a.db, actor.Tenant, user)
}

// RevokeToken makes a token useless at once: one's own, or anyone's of the tenant
// for an administrator. NotFound.
func (a *Accounts) RevokeToken(ctx context.Context, actor loom.Actor, id int64) error {
	if err := actor.Require(loom.ScopeAdmin); err != nil {
		return err
	}
	missing := loom.NewError(loom.NotFound, "There is no such token; it may have been revoked.")
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		token, err := store.LockToken(ctx, tx, actor.Tenant, id)
		if isNotFound(err) || err == nil && token.Account.User != actor.User && !actor.IsAdmin() {
			return missing
		}
		if err != nil {
			return err
		}
		if err := store.RevokeToken(ctx, tx, actor.Tenant, id); err != nil {
			return err
		}
		return record(ctx, tx, actor, "delete", "token", token.Name, map[string]any{"id": token.ID, "owner": token.Account.User}, nil)
	})
}

// TokenInput is a token with the identity that the request claims: the name of a
// tenant and a user, "" where it claims none.
type TokenInput struct {
	Secret   loom.Secret
	AsUser   string
	AsTenant string
	Address  string
}

// ActorByToken gives who a token stands for, or acts as (rest-api.md 1.4): a
// superadmin as any user of any tenant, an administrator as any user of his.
// Errors: Unauthenticated for a bad, expired or revoked token; NotFound for an
// unknown tenant or user to act as; Forbidden where that is not allowed.
func (a *Accounts) ActorByToken(ctx context.Context, in TokenInput) (loom.Actor, error) {
	bad := loom.NewError(loom.Unauthenticated, "This API token is not valid; it may have expired or been revoked.")
	if !strings.HasPrefix(in.Secret.Reveal(), tokenStart) {
		return loom.Actor{}, bad
	}
	token, who, err := store.TokenByHashAllTenants(ctx, a.db, hashOf(in.Secret))
	if isNotFound(err) {
		return loom.Actor{}, bad
	}
	if err != nil {
		return loom.Actor{}, err
	}
	in.Address = clean(in.Address)
	actor := loom.Actor{
		Tenant: token.Account.Tenant, TenantName: who.TenantName, User: who.User.ID, Role: who.User.Role,
		Via: "token:" + token.Name, Scopes: token.Scopes, Address: in.Address,
	}
	acting, err := a.actAs(ctx, actor, in)
	if err != nil {
		return loom.Actor{}, err
	}
	if who.Stale {
		err := store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
			if err := store.TouchToken(ctx, tx, actor.Tenant, token.ID, in.Address); err != nil {
				return err
			}
			if acting.Account() == actor.Account() {
				return nil
			}
			// Once a minute at most; every change names the token anyway.
			return record(ctx, tx, acting, "act_as", "user", string(acting.User), nil, map[string]any{"by": actor.User, "tenant": actor.TenantName})
		})
		if err != nil {
			return loom.Actor{}, err
		}
	}
	return acting, nil
}

// actAs turns an actor into whom the request claims to be, if he may.
func (a *Accounts) actAs(ctx context.Context, actor loom.Actor, in TokenInput) (loom.Actor, error) {
	acting := actor
	if clean(in.AsTenant) != in.AsTenant || clean(in.AsUser) != in.AsUser {
		return loom.Actor{}, loom.NewError(loom.NotFound, "There is no such tenant or user to act as.")
	}
	if in.AsTenant != "" && in.AsTenant != actor.TenantName {
		tenant, err := store.TenantByNameAllTenants(ctx, a.db, in.AsTenant)
		if err != nil {
			return loom.Actor{}, named(err, in.AsTenant)
		}
		if !actor.IsSuperadmin() {
			return loom.Actor{}, loom.NewError(loom.Forbidden, "This token belongs to the tenant “%s”; only a superadmin acts in another one.", actor.TenantName)
		}
		acting.Tenant, acting.TenantName = tenant.ID, tenant.Name
	}
	if in.AsUser != "" {
		acting.User = loom.UserID(in.AsUser)
	}
	if acting.Account() == actor.Account() {
		return actor, nil
	}
	if !actor.IsAdmin() {
		return loom.Actor{}, loom.NewError(loom.Forbidden, "This token belongs to “%s”; only an administrator acts as another user.", actor.User)
	}
	user, err := store.User(ctx, a.db, acting.Tenant, acting.User)
	if err != nil {
		return loom.Actor{}, err
	}
	if user.Disabled {
		return loom.Actor{}, loom.NewError(loom.Forbidden, "The user “%s” is disabled.", user.ID)
	}
	acting.Role = user.Role
	return acting, nil
}

// named puts the name into the error of a tenant that is not there.
func named(err error, tenant string) error {
	if isNotFound(err) {
		return loom.NewError(loom.NotFound, "There is no tenant “%s”.", tenant)
	}
	return err
}

// clean makes a text from outside fit to be stored.
func clean(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}
