package account

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
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

// RotationOverlap is how long the old secret of a rotated token works on.
const RotationOverlap = 24 * time.Hour

// NewToken is a token to make. A nil Expires means as long as the tenant's
// settings allow.
type NewToken struct {
	Name    string
	Scopes  []loom.Scope
	Expires *time.Time
}

// CreateToken makes a token for the actor. The secret is shown this once. A token
// never gets more than its owner's role, nor more than the token that made it: it ends
// with that one at the latest, and is revoked with it. Nobody makes one while acting as
// another. Errors: Forbidden, Invalid.
func (a *Accounts) CreateToken(ctx context.Context, actor loom.Actor, in NewToken) (loom.Token, loom.Secret, error) {
	if err := actor.May(loom.Self, actor.Mine()); err != nil {
		return loom.Token{}, loom.Secret{}, err
	}
	if actor.ActsAsAnother() {
		remedy := "send no identity headers"
		if actor.Token == 0 {
			remedy = "end that"
		}
		return loom.Token{}, loom.Secret{}, loom.NewError(loom.Forbidden, "You act as “%s”, and a token belongs to whoever creates it. To create your own, %s.", actor.User, remedy)
	}
	return a.createToken(ctx, actor, loom.User{ID: actor.User, Tenant: actor.Tenant, Role: actor.Role, Grants: actor.Grants}, in)
}

// CreateTokenFor makes a token for a user of a tenant by name, for the command
// line; the actor is the system, or a superadmin. Errors: Forbidden, NotFound,
// Invalid.
func (a *Accounts) CreateTokenFor(ctx context.Context, actor loom.Actor, tenant string, user loom.UserID, in NewToken) (loom.Token, loom.Secret, error) {
	if actor.Via != "system" && actor.Via != "cli" {
		if err := actor.May(loom.Install, loom.Installation); err != nil {
			return loom.Token{}, loom.Secret{}, err
		}
	}
	t, err := store.TenantByNameAllTenants(ctx, a.db, tenant)
	if err != nil {
		return loom.Token{}, loom.Secret{}, named(err, tenant)
	}
	owner, err := store.User(ctx, a.db, t.ID, user)
	if err != nil {
		return loom.Token{}, loom.Secret{}, noUserOf(err, user, t.Name)
	}
	if owner.Disabled {
		return loom.Token{}, loom.Secret{}, loom.NewError(loom.Conflict, "The user “%s” is disabled; a token would be of no use.", user)
	}
	// What is done to a tenant is in the audit of that tenant.
	actor.Tenant, actor.TenantName = t.ID, t.Name
	return a.createToken(ctx, actor, owner, in)
}

func (a *Accounts) createToken(ctx context.Context, actor loom.Actor, of loom.User, in NewToken) (loom.Token, loom.Secret, error) {
	owner := loom.Account{User: of.ID, Tenant: of.Tenant}
	days, err := store.MaxTokenDays(ctx, a.db, owner.Tenant)
	if err != nil {
		return loom.Token{}, loom.Secret{}, err
	}
	token := loom.Token{Account: owner, Name: strings.TrimSpace(in.Name), Scopes: in.Scopes}
	errs := checkToken(&token, of.May(loom.Publish))
	now := time.Now()
	limit := now.AddDate(0, 0, days)
	switch {
	case in.Expires == nil:
		if days > 0 {
			token.Expires = limit
		}
		if ends := actor.TokenEnds; !ends.IsZero() && (token.Expires.IsZero() || token.Expires.After(ends)) {
			token.Expires = ends
		}
	case !in.Expires.After(now):
		errs = append(errs, loom.FieldError{Field: "expires", Message: "This time is over already."})
	case days > 0 && in.Expires.After(limit.Add(time.Minute)):
		errs = append(errs, loom.FieldError{Field: "expires", Message: fmt.Sprintf("Tokens of this tenant live at most %d days.", days)})
	case !actor.TokenEnds.IsZero() && in.Expires.After(actor.TokenEnds):
		errs = append(errs, loom.FieldError{Field: "expires", Message: "A token ends no later than the one that creates it, which ends at " + actor.TokenEnds.UTC().Format(time.RFC3339) + "; leave “expires” out, or sign in and create it on the account page."})
	default:
		token.Expires = *in.Expires
	}
	if err := loom.InvalidFields(errs); err != nil {
		return loom.Token{}, loom.Secret{}, err
	}
	secret := tokenStart + newSecret()
	token.Prefix = secret[:tokenPrefix]
	token, err = store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.Token, error) {
		if err := store.HoldActor(ctx, tx, actor); err != nil {
			return loom.Token{}, err
		}
		if err := mayHaveMore(ctx, tx, owner); err != nil {
			return loom.Token{}, err
		}
		stored, err := store.InsertToken(ctx, tx, owner.Tenant, token, hashOf(loom.NewSecret(secret)), actor.Token)
		if err != nil {
			return loom.Token{}, err
		}
		return stored, record(ctx, tx, actor, "create", "token", stored.Name, nil, shownToken(stored))
	})
	if err != nil {
		return loom.Token{}, loom.Secret{}, err
	}
	return token, loom.NewSecret(secret), nil
}

// maxTokens are the valid tokens that a user may have.
const maxTokens = 100

// mayHaveMore refuses a token more to a user who has enough. Exhausted.
func mayHaveMore(ctx context.Context, tx *sqlx.Tx, owner loom.Account) error {
	tokens, err := store.TokensOf(ctx, tx, owner.Tenant, owner.User)
	if err == nil && len(tokens) >= maxTokens {
		return loom.NewError(loom.Exhausted, "The user “%s” has %d tokens, the most there are; revoke one that is not used.", owner.User, len(tokens))
	}
	return err
}

// checkToken checks name and scopes; scopes collapse and are put in order.
func checkToken(t *loom.Token, mayPublish bool) []loom.FieldError {
	var errs []loom.FieldError
	if n := utf8.RuneCountInString(t.Name); n < 1 || n > maxToken || strings.ContainsFunc(t.Name, unseen) {
		errs = append(errs, loom.FieldError{Field: "name", Message: "A token has a name of 1 to 100 characters that says what it is for, without control characters."})
	}
	if len(t.Scopes) == 0 {
		errs = append(errs, loom.FieldError{Field: "scopes", Message: "Choose at least one scope: read, clusters:write, catalog:write or admin."})
	}
	for i, scope := range t.Scopes {
		at := "scopes[" + itoa(i) + "]"
		switch {
		case !slices.Contains(loom.Scopes, scope):
			errs = append(errs, loom.FieldError{Field: at, Message: fmt.Sprintf("There is no scope “%s”; scopes are read, clusters:write, catalog:write and admin.", scope)})
		case scope == loom.ScopeCatalogWrite && !mayPublish:
			errs = append(errs, loom.FieldError{Field: at, Message: "The scope “catalog:write” is for publishers and administrators only."})
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

// unseen reports whether a character shows nothing, or turns around what is shown.
func unseen(c rune) bool { return unicode.In(c, unicode.Cc, unicode.Cf) }

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

// TokenList is a page of tokens. Next and Prev are cursors, "" where there is no more.
type TokenList struct {
	Items      []loom.Token
	Next, Prev string
}

// ListTokens lists the valid tokens of a user page by page, as TokensOf may. Words
// are words to be found in name or prefix. Sorts: "name" (default) and
// "createTime", "-" before it for descending. Errors: NotFound, Invalid.
func (a *Accounts) ListTokens(ctx context.Context, actor loom.Actor, user loom.UserID, words string, page loom.Page) (TokenList, error) {
	if err := a.maySeeThingsOf(ctx, actor, user); err != nil {
		return TokenList{}, err
	}
	items, next, prev, err := store.TokenPage(ctx, a.db, actor.Tenant, user, words, page)
	return TokenList{Items: items, Next: next, Prev: prev}, err
}

// maySeeThingsOf is maySeeUser; a user that is not there is NotFound too.
func (a *Accounts) maySeeThingsOf(ctx context.Context, actor loom.Actor, user loom.UserID) error {
	if err := a.maySeeUser(actor, user); err != nil || user == actor.User {
		return err
	}
	_, err := store.User(ctx, a.db, actor.Tenant, user)
	return err
}

// RotateToken gives a token of the actor another secret, shown this once. Others may
// revoke it, not get its secret; and a token rotates only itself and what it created, by its present secret. The
// old secret works on for RotationOverlap, at most until the token expires; so does one
// before it, for its own time. Errors: Forbidden; NotFound; Conflict for an expired token.
func (a *Accounts) RotateToken(ctx context.Context, actor loom.Actor, id int64) (loom.Token, loom.Secret, error) {
	if err := actor.May(loom.Self, actor.Mine()); err != nil {
		return loom.Token{}, loom.Secret{}, err
	}
	secret := tokenStart + newSecret()
	token, err := store.InTx(ctx, a.db, func(tx *sqlx.Tx) (loom.Token, error) {
		if err := store.HoldActor(ctx, tx, actor); err != nil {
			return loom.Token{}, err
		}
		token, err := ownedToken(ctx, tx, actor, id)
		if err != nil {
			return loom.Token{}, err
		}
		if !token.Expires.IsZero() && !token.Expires.After(time.Now()) {
			return loom.Token{}, loom.NewError(loom.Conflict, "The token “%s” has expired; make a new one.", token.Name)
		}
		if err := mayHaveSecret(actor, token); err != nil {
			return loom.Token{}, err
		}
		before := shownToken(token)
		token.Prefix = secret[:tokenPrefix]
		if err := store.RotateToken(ctx, tx, actor.Tenant, id, hashOf(loom.NewSecret(secret)), token.Prefix, RotationOverlap); err != nil {
			return loom.Token{}, err
		}
		return token, record(ctx, tx, actor, "update", "token", token.Name, before, shownToken(token))
	})
	if err != nil {
		return loom.Token{}, loom.Secret{}, err
	}
	return token, loom.NewSecret(secret), nil
}

// mayHaveSecret returns Forbidden unless the actor may get a new secret of a token that
// he may change.
func mayHaveSecret(actor loom.Actor, token loom.Token) error {
	switch {
	case token.Account.User != actor.User || actor.ActsAsAnother():
		return loom.NewError(loom.Forbidden, "Only “%s” can rotate this token. An administrator can revoke it.", token.Account.User)
	case actor.Token != 0 && actor.Token != token.ID && actor.Token != token.Parent:
		return loom.NewError(loom.Forbidden, "A token rotates only itself and what it created; rotate “%s” with its own secret, or on the account page.", token.Name)
	case actor.OldSecret:
		return loom.NewError(loom.Forbidden, "The secret that you use was replaced already and rotates no token; use the present one, or the account page.")
	}
	return nil
}

// ownedToken locks a token that the actor may change, its owner before it: whoever makes,
// rotates or revokes tokens of a user does so one after the other. NotFound.
func ownedToken(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, id int64) (loom.Token, error) {
	missing := loom.NewError(loom.NotFound, "There is no such token; it may have been revoked.")
	owner, err := store.TokenOwner(ctx, tx, actor.Tenant, id)
	if err == nil {
		err = mayEnd(actor, owner)
	}
	if isNotFound(err) {
		return loom.Token{}, missing
	}
	if err == nil {
		_, err = store.LockUser(ctx, tx, actor.Tenant, owner)
	}
	if err != nil {
		return loom.Token{}, err
	}
	token, err := store.LockToken(ctx, tx, actor.Tenant, id)
	if isNotFound(err) {
		return loom.Token{}, missing
	}
	return token, err
}

// mayEnd asks whether the actor may end tokens and sessions of a user: his own, or
// anyone's of the tenant for an administrator. NotFound.
func mayEnd(actor loom.Actor, owner loom.UserID) error {
	if owner == actor.User {
		return actor.May(loom.Self, actor.Mine())
	}
	return actor.May(loom.Administer, loom.Account{User: owner, Tenant: actor.Tenant}.Object())
}

// shownToken is a token as the API shows it, for the audit.
func shownToken(t loom.Token) map[string]any {
	shown := map[string]any{"id": t.ID, "name": t.Name, "prefix": t.Prefix, "owner": t.Account.User, "scopes": t.Scopes, "expires": nil}
	if !t.Expires.IsZero() {
		shown["expires"] = t.Expires.UnixMilli()
	}
	return shown
}

// RevokeToken makes a token and those that were made with it useless at once: one's own, or anyone's of the tenant
// for an administrator. NotFound.
func (a *Accounts) RevokeToken(ctx context.Context, actor loom.Actor, id int64) error {
	if err := actor.May(loom.Self, actor.Mine()); err != nil {
		return err
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		token, err := ownedToken(ctx, tx, actor, id)
		if err != nil {
			return err
		}
		if err := store.RevokeToken(ctx, tx, actor.Tenant, id); err != nil {
			return err
		}
		return record(ctx, tx, actor, "delete", "token", token.Name, shownToken(token), nil)
	})
}

// IsToken reports whether a text has the form of an API token.
func IsToken(text string) bool { return strings.HasPrefix(text, tokenStart) }
