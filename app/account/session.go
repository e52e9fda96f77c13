package account

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Lives of a session, from sign-in.
const (
	SessionLife     = 12 * time.Hour
	KeptSessionLife = 30 * 24 * time.Hour
)

// maxAgent is how much of a browser's description is kept, in bytes.
const maxAgent = 300

// SignInInput is a try to sign in. Tenant is a name; Keep asks for a session that
// outlives the day; Previous, if set, is the cookie of an earlier session of the
// same browser, which ends.
type SignInInput struct {
	Tenant   string
	User     string
	Password loom.Secret
	Address  string
	Agent    string
	Keep     bool
	Previous loom.Secret
	// Device is the cookie that Device gave to the browser, if it has one.
	Device loom.Secret
}

// SignIn checks a password and begins a session. The cookie is shown this once.
// Errors: Unauthenticated, the same for a wrong password, an unknown user, an
// unknown tenant and a disabled user; Throttled with RetryAfter after too many
// of those.
func (a *Accounts) SignIn(ctx context.Context, in SignInInput) (loom.Actor, loom.Secret, time.Time, error) {
	none := time.Time{}
	in.Address = clean(in.Address)
	if clean(in.Tenant) != in.Tenant || clean(in.User) != in.User {
		in.Tenant, in.User = "", "" // names that cannot be stored are those of nobody
	}
	wrong := loom.NewError(loom.Unauthenticated, "The user name, password or tenant is wrong.")
	tenant, err := store.TenantByNameAllTenants(ctx, a.db, in.Tenant)
	if err != nil && !isNotFound(err) {
		return loom.Actor{}, loom.Secret{}, none, err
	}
	if err := a.mayUsePassword(ctx, tenant, loom.UserID(in.User)); err != nil {
		return loom.Actor{}, loom.Secret{}, none, err
	}
	device, err := a.deviceOf(ctx, in.Device, tenant, loom.UserID(in.User))
	if err != nil {
		return loom.Actor{}, loom.Secret{}, none, err
	}
	counts := signInCounts(in.Tenant, in.User, in.Address, device)
	if err := a.beginSignIn(ctx, counts); err != nil {
		return loom.Actor{}, loom.Secret{}, none, err
	}
	// Before the password is compared: who changes it then ends what begins here.
	user, missing := store.User(ctx, a.db, tenant.ID, loom.UserID(in.User))
	if missing != nil && !isNotFound(missing) {
		return loom.Actor{}, loom.Secret{}, none, missing
	}
	// The password is compared also when there is no tenant or user: the time that
	// the answer takes gives nothing away.
	right, err := a.passwordIs(ctx, tenant.ID, loom.UserID(in.User), in.Password)
	if err != nil {
		return loom.Actor{}, loom.Secret{}, none, err
	}
	if missing != nil || !right || user.Disabled || !user.IsMember() {
		why := ""
		switch {
		case missing != nil: // nobody, so nothing to keep
		case !right:
			why = "wrong password"
		case user.Disabled:
			why = "the user is disabled"
		default:
			why = "the user has no role"
		}
		if err := a.refusedSignIn(ctx, tenant, user.ID, counts, in.Address, why); err != nil {
			return loom.Actor{}, loom.Secret{}, none, err
		}
		return loom.Actor{}, loom.Secret{}, none, wrong
	}
	actor := loom.Actor{Tenant: tenant.ID, TenantName: tenant.Name, User: user.ID, Role: user.Role, Grants: user.Grants, Via: "session", Address: in.Address, AccessEpoch: user.AccessEpoch}
	life := SessionLife
	if in.Keep {
		life = KeptSessionLife
	}
	begun, err := store.InTx(ctx, a.db, func(tx *sqlx.Tx) (sessionCookie, error) {
		begun, err := beginSession(ctx, tx, actor, newSession{previous: in.Previous, agent: in.Agent, life: life})
		if err != nil {
			return begun, err
		}
		if err := store.SignInSucceeded(ctx, tx, counts); err != nil {
			return begun, err
		}
		if err := store.MarkPasswordUsed(ctx, tx, tenant.ID, user.ID); err != nil {
			return begun, err
		}
		return begun, record(ctx, tx, actor, "sign_in", "session", string(user.ID), nil, nil)
	})
	if errors.Is(err, loom.Unauthenticated) {
		err = wrong
	}
	if err != nil {
		return loom.Actor{}, loom.Secret{}, none, err
	}
	if a.SignedIn != nil {
		a.SignedIn(ctx, tenant.Name, user.ID)
	}
	return actor, begun.value, begun.expires, nil
}

// newSession is what a session begins with: previous is the cookie of one of the same browser, which
// ends.
type newSession struct {
	previous loom.Secret
	agent    string
	life     time.Duration
}

// sessionCookie is the cookie of a session that began.
type sessionCookie struct {
	value   loom.Secret
	expires time.Time
}

// beginSession begins a session of an actor. Unauthenticated, where he changed meanwhile.
func beginSession(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, in newSession) (sessionCookie, error) {
	cookie := sessionCookie{value: loom.NewSecret(newSecret())}
	if len(in.agent) > maxAgent {
		in.agent = in.agent[:maxAgent]
	}
	if err := store.HoldActor(ctx, tx, actor); err != nil {
		return cookie, err
	}
	if !in.previous.IsZero() {
		if err := store.DeleteSession(ctx, tx, actor.Tenant, hashOf(in.previous)); err != nil {
			return cookie, err
		}
	}
	var err error
	cookie.expires, err = store.InsertSession(ctx, tx, actor.Tenant, hashOf(cookie.value), actor.User, actor.Address, clean(in.agent), in.life)
	if err != nil {
		return cookie, err
	}
	return cookie, store.TouchSession(ctx, tx, actor.Tenant, hashOf(cookie.value), actor.Address)
}

// ActorBySession gives who a cookie stands for. It notes once a minute that the
// session is in use. Unauthenticated.
func (a *Accounts) ActorBySession(ctx context.Context, cookie loom.Secret, address string) (loom.Actor, loom.Session, error) {
	session, who, err := store.SessionByHashAllTenants(ctx, a.kept, hashOf(cookie))
	if err != nil {
		if isNotFound(err) {
			return loom.Actor{}, loom.Session{}, loom.NewError(loom.Unauthenticated, "You are not signed in.")
		}
		return loom.Actor{}, loom.Session{}, err
	}
	if !who.User.IsMember() {
		return loom.Actor{}, loom.Session{}, loom.NewError(loom.Unauthenticated, "You have no role in this tenant any longer. Ask an administrator of it.")
	}
	if who.Stale {
		err := store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
			return store.TouchSession(ctx, tx, session.Account.Tenant, hashOf(cookie), address)
		})
		if err != nil {
			return loom.Actor{}, loom.Session{}, err
		}
	}
	actor := loom.Actor{
		Tenant: session.Account.Tenant, TenantName: who.TenantName, User: who.User.ID, Role: who.User.Role, Grants: who.User.Grants, Via: "session", Address: address,
		AccessEpoch: who.User.AccessEpoch,
	}
	return a.acting(ctx, actor, session, who)
}

// SessionData gives what the pages keep in a session. Unauthenticated.
func (a *Accounts) SessionData(ctx context.Context, cookie loom.Secret) (map[string]string, error) {
	data, err := store.SessionDataByHashAllTenants(ctx, a.kept, hashOf(cookie))
	if isNotFound(err) {
		return nil, loom.NewError(loom.Unauthenticated, "You are not signed in.")
	}
	return data, err
}

// SetSessionData replaces what the pages keep in a session. Unauthenticated.
func (a *Accounts) SetSessionData(ctx context.Context, cookie loom.Secret, data map[string]string) error {
	err := store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		return store.SetSessionDataByHashAllTenants(ctx, tx, hashOf(cookie), data)
	})
	if isNotFound(err) {
		return loom.NewError(loom.Unauthenticated, "You are not signed in.")
	}
	return err
}

// mayUsePassword returns Unauthenticated for users of a tenant whose settings let only the built-in
// administrator sign in with a password.
func (a *Accounts) mayUsePassword(ctx context.Context, tenant loom.Tenant, user loom.UserID) error {
	if tenant.ID == "" || user == loom.AdminUser {
		return nil
	}
	settings, err := store.Settings(ctx, a.db, tenant.ID)
	if err == nil && settings.LocalSignIn == loom.LocalBuiltin {
		err = loom.NewError(loom.Unauthenticated, "In the tenant “%s” nobody but the built-in administrator signs in with a password. Sign in with your organization.", tenant.Name)
	}
	return err
}

// SignOut ends the session of a cookie. Where it began at an identity provider that ends its own
// session too, it returns the page that does so.
func (a *Accounts) SignOut(ctx context.Context, actor loom.Actor, cookie loom.Secret) (leave string, err error) {
	actor = himself(actor)
	if leave, err = a.signOutURL(ctx, actor, cookie); err != nil {
		return "", err
	}
	return leave, store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if err := store.DeleteSession(ctx, tx, actor.Tenant, hashOf(cookie)); err != nil {
			return err
		}
		return record(ctx, tx, actor, "sign_out", "session", string(actor.User), nil, nil)
	})
}

// Sessions lists the actor's own live sessions, newest first.
func (a *Accounts) Sessions(ctx context.Context, actor loom.Actor) ([]loom.Session, error) {
	return a.SessionsOf(ctx, actor, actor.User)
}

// SessionsOf lists the live sessions of a user: the actor's own, or anyone's of
// the tenant for an administrator. NotFound.
func (a *Accounts) SessionsOf(ctx context.Context, actor loom.Actor, user loom.UserID) ([]loom.Session, error) {
	if err := a.maySeeUser(actor, user); err != nil {
		return nil, err
	}
	return store.SessionsOf(ctx, a.db, actor.Tenant, user)
}

// SessionList is a page of sessions. Next and Prev are cursors, "" where there is
// no more.
type SessionList struct {
	Items      []loom.Session
	Next, Prev string
}

// ListSessions lists the live sessions of a user page by page, as SessionsOf may.
// Words are words to be found in address or agent. Sorts: "id" (default) and
// "createTime", "-" before it for descending. Errors: NotFound, Invalid.
func (a *Accounts) ListSessions(ctx context.Context, actor loom.Actor, user loom.UserID, words string, page loom.Page) (SessionList, error) {
	if err := a.maySeeThingsOf(ctx, actor, user); err != nil {
		return SessionList{}, err
	}
	items, next, prev, err := store.SessionPage(ctx, a.db, actor.Tenant, user, words, page)
	return SessionList{Items: items, Next: next, Prev: prev}, err
}

// SessionID gives the id under which the session of a cookie is shown, "" without
// a cookie.
func SessionID(cookie loom.Secret) string { return hex.EncodeToString(hashOf(cookie)) }

// EndSession ends a session by its id: one's own, or anyone's of the tenant for an
// administrator. NotFound.
func (a *Accounts) EndSession(ctx context.Context, actor loom.Actor, id string) error {
	if err := actor.May(loom.Self, actor.Mine()); err != nil {
		return err
	}
	missing := loom.NewError(loom.NotFound, "There is no such session; it may have ended.")
	hash, err := hex.DecodeString(id)
	if err != nil || len(hash) != sha256.Size {
		return missing
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		session, err := store.LiveSession(ctx, tx, actor.Tenant, hash)
		owner := session.Account.User
		if err == nil {
			err = mayEnd(actor, owner)
		}
		if isNotFound(err) {
			return missing
		}
		if err != nil {
			return err
		}
		if err := store.DeleteSession(ctx, tx, actor.Tenant, hash); err != nil {
			return err
		}
		return record(ctx, tx, actor, "delete", "session", string(owner), map[string]any{
			"owner": owner, "address": session.Address, "agent": session.Agent, "createTime": session.Created.UnixMilli(),
		}, nil)
	})
}

// EndOtherSessions ends all sessions of the actor but that of keep. A token ends sessions one
// by one: whoever stole it does not keep its owner out. Forbidden.
func (a *Accounts) EndOtherSessions(ctx context.Context, actor loom.Actor, keep loom.Secret) error {
	if err := actor.May(loom.Self, actor.Mine()); err != nil {
		return err
	}
	if actor.Token != 0 {
		return loom.NewError(loom.Forbidden, "A token ends sessions one by one: DELETE /v2/sessions/{id}. Sign in to end all others.")
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		ended, err := store.DeleteSessionsOf(ctx, tx, actor.Tenant, actor.User, hashOf(keep))
		if err != nil || ended == 0 {
			return err
		}
		return record(ctx, tx, actor, "delete", "session", string(actor.User), nil, map[string]any{"sessions": "all others"})
	})
}
