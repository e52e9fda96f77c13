package account

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// TokenInput is a token with the identity that the request claims: the name of a
// tenant and a user, "" where it claims none.
type TokenInput struct {
	Secret   loom.Secret
	AsUser   string
	AsTenant string
	Address  string
}

// ActorByToken gives who a token stands for, or acts as: a
// superadmin as any user of any tenant, an administrator as any user of his.
// Errors: Unauthenticated for a bad, expired or revoked token; NotFound for an
// unknown tenant or user to act as; Forbidden where that is not allowed.
func (a *Accounts) ActorByToken(ctx context.Context, in TokenInput) (loom.Actor, error) {
	bad := loom.NewError(loom.Unauthenticated, "This API token is not valid; it may have expired or been revoked.")
	if !strings.HasPrefix(in.Secret.Reveal(), tokenStart) {
		return loom.Actor{}, bad
	}
	token, who, err := store.TokenByHashAllTenants(ctx, a.db, hashOf(in.Secret))
	if isNotFound(err) || err == nil && !who.User.IsMember() {
		return loom.Actor{}, bad
	}
	if err != nil {
		return loom.Actor{}, err
	}
	if who.Lapsed {
		return loom.Actor{}, loom.NewError(loom.Unauthenticated, "The owner of this API token has not signed in with the identity provider for too long. After the next sign-in the token works again.")
	}
	in.Address = clean(in.Address)
	actor := loom.Actor{
		Tenant: token.Account.Tenant, TenantName: who.TenantName, User: who.User.ID, Role: who.User.Role, Grants: who.User.Grants,
		Via: viaToken(token.Name), Scopes: token.Scopes, Address: in.Address, AccessEpoch: who.User.AccessEpoch,
		Token: token.ID, TokenEnds: token.Expires, OldSecret: !who.SecretEnds.IsZero(),
	}
	if actor.OldSecret {
		actor.TokenEnds = who.SecretEnds
	}
	acting, err := a.actAs(ctx, actor, in)
	if err != nil {
		return loom.Actor{}, err
	}
	if who.Stale {
		err := store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
			return store.TouchToken(ctx, tx, actor.Tenant, token.ID, in.Address)
		})
		if err != nil {
			return loom.Actor{}, err
		}
	}
	if !acting.ActsAsAnother() {
		return acting, nil
	}
	return acting, a.recordActing(ctx, actor, acting)
}

// actedEvery is how long after a token acted as a user it is not recorded again; every
// change names the token anyway.
const actedEvery = time.Minute

// acted is a token with whom it acted as.
type acted struct {
	token int64
	as    loom.Account
}

// recordActing records that a token acts as another, unless this process did so of the
// same two a moment ago.
func (a *Accounts) recordActing(ctx context.Context, actor, acting loom.Actor) error {
	pair, now := acted{actor.Token, acting.Account()}, time.Now()
	a.actingMu.Lock()
	maps.DeleteFunc(a.acted, func(_ acted, at time.Time) bool { return now.Sub(at) > actedEvery })
	_, known := a.acted[pair]
	a.actingMu.Unlock()
	if known {
		return nil
	}
	err := store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		return record(ctx, tx, acting, "act_as", "user", string(acting.User), nil, map[string]any{"by": actor.User, "tenant": actor.TenantName})
	})
	if err != nil {
		return err
	}
	a.actingMu.Lock()
	a.acted[pair] = now
	a.actingMu.Unlock()
	return nil
}

// viaToken is what the audit says of a token. “ by ” stands between a token and
// who acts with it as another: a name must not look like that.
func viaToken(name string) string {
	words := strings.Fields(name)
	if !slices.ContainsFunc(words, isBy) {
		return "token:" + name
	}
	for i, word := range words {
		if isBy(word) {
			words[i] = "“" + word + "”"
		}
	}
	return "token:" + strings.Join(words, " ")
}

func isBy(word string) bool { return strings.EqualFold(word, "by") }

// viaOf says what an actor acts through as another: the token and its owner.
func viaOf(owner, acting loom.Actor) string {
	if owner.Tenant == acting.Tenant {
		return owner.Via + " by " + string(owner.User)
	}
	return owner.Via + " by " + owner.TenantName + "/" + string(owner.User)
}

// actAs turns an actor into whom the request claims to be, if he may.
func (a *Accounts) actAs(ctx context.Context, actor loom.Actor, in TokenInput) (loom.Actor, error) {
	acting := actor
	abroad := in.AsTenant != "" && in.AsTenant != actor.TenantName
	// The same whether there is such a tenant or not: that is for superadmins to know.
	if abroad && !actor.ActingRole().May(loom.Install) {
		return loom.Actor{}, loom.NewError(loom.Forbidden, "This token belongs to the tenant “%s”; only a superadmin acts in another one.", actor.TenantName)
	}
	if clean(in.AsTenant) != in.AsTenant || clean(in.AsUser) != in.AsUser {
		return loom.Actor{}, loom.NewError(loom.NotFound, "There is no such tenant or user to act as.")
	}
	if abroad {
		tenant, err := store.TenantByNameAllTenants(ctx, a.db, in.AsTenant)
		if err != nil {
			return loom.Actor{}, named(err, in.AsTenant)
		}
		acting.Tenant, acting.TenantName = tenant.ID, tenant.Name
	}
	if in.AsUser != "" {
		acting.User = loom.UserID(in.AsUser)
	}
	if acting.Account() == actor.Account() {
		return actor, nil
	}
	if actor.ActingRole() == "" {
		return loom.Actor{}, loom.NewError(loom.Forbidden, "This token belongs to “%s”; only an administrator acts as another user.", actor.User)
	}
	user, err := store.User(ctx, a.db, acting.Tenant, acting.User)
	if isNotFound(err) && acting.User == loom.AdminUser && acting.Tenant != actor.Tenant {
		err = &loom.Error{Kind: loom.NotFound, Err: err, Message: fmt.Sprintf(
			"The tenant “%s” has no user “%s” yet; “PUT /v2/tenants/%[1]s” or “loom user create %[2]s --tenant %[1]s” makes it.", acting.TenantName, acting.User)}
	}
	if err != nil {
		return loom.Actor{}, err
	}
	if user.Disabled {
		return loom.Actor{}, loom.NewError(loom.Forbidden, "The user “%s” is disabled.", user.ID)
	}
	if !user.IsMember() {
		return loom.Actor{}, loom.NewError(loom.Forbidden, "The user “%s” has no role.", user.ID)
	}
	acting.Role, acting.Grants, acting.Via = user.Role, user.Grants, viaOf(actor, acting)
	acting.AccessEpoch = 0 // of somebody else
	acting.By, acting.ByRole = actor.Account(), actor.ActingRole()
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

// HeaderInput is the identity that a request from a trusted network claims.
type HeaderInput struct {
	User    string
	Tenant  string // a name
	Address string
}

// ActorByHeaders gives who a request names that is believed; the
// caller decides whom to believe. A user seen for the first time gets a row: role
// user, admin for the id admin, and no password. Errors:
// Unauthenticated for a disabled user, NotFound for an unknown tenant, Invalid
// for an id that no user can have, Conflict for one that is like that of another.
func (a *Accounts) ActorByHeaders(ctx context.Context, in HeaderInput) (loom.Actor, error) {
	in.Address = clean(in.Address)
	tenant, err := store.TenantByNameAllTenants(ctx, a.db, in.Tenant)
	if err != nil {
		return loom.Actor{}, named(err, in.Tenant)
	}
	actor := loom.Actor{Tenant: tenant.ID, TenantName: tenant.Name, User: loom.UserID(in.User), Via: "headers", Address: in.Address}
	user, err := store.User(ctx, a.db, tenant.ID, actor.User)
	if isNotFound(err) {
		user, err = a.firstUse(ctx, actor)
	}
	if err != nil {
		return loom.Actor{}, err
	}
	if user.Disabled {
		return loom.Actor{}, loom.NewError(loom.Unauthenticated, "The user “%s” is disabled.", user.ID)
	}
	if !user.IsMember() {
		return loom.Actor{}, loom.NewError(loom.Unauthenticated, "The user “%s” has no role.", user.ID)
	}
	if time.Since(user.LastSeen) > time.Minute {
		err := store.Exec(ctx, a.db, func(tx *sqlx.Tx) error { return store.TouchUser(ctx, tx, tenant.ID, user.ID) })
		if err != nil {
			return loom.Actor{}, err
		}
	}
	actor.Role, actor.Grants, actor.AccessEpoch = user.Role, user.Grants, user.AccessEpoch
	return actor, nil
}

// firstUse makes the row of a user whom a believed header names for the first
// time, without a password. Several at once all get it.
func (a *Accounts) firstUse(ctx context.Context, actor loom.Actor) (loom.User, error) {
	user := loom.User{ID: actor.User, Role: usualRole(actor.User)}
	if err := loom.InvalidFields(append(checkUser(&user), checkNewID(user.ID)...)); err != nil {
		return loom.User{}, err
	}
	system := loom.SystemActor(actor.Tenant, actor.TenantName)
	system.Address = actor.Address
	made, err := a.insertUser(ctx, system, user, "")
	if errors.Is(err, loom.Conflict) { // another first request was quicker, or the id is like another
		if user, again := store.User(ctx, a.db, actor.Tenant, actor.User); !isNotFound(again) {
			return user, again
		}
	}
	return made, err
}
