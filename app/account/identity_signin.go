package account

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/idp"
	"loom/app/loom"
	"loom/app/store"
)

// AttemptLife is how long somebody may take to sign in at an identity provider.
const AttemptLife = 10 * time.Minute

// attemptContext is what the cookies of attempts are sealed for, idTokenContext ID tokens.
const (
	attemptContext = "sign-in attempt"
	idTokenContext = "ID token"
)

// Attempt is what somebody wants of an identity provider: to sign in, in a tenant by name if it
// says so, or to connect the user who is signed in; then he goes to Next.
type Attempt struct {
	Tenant string
	Next   string
	// Connect is the user to connect, zero for a sign-in.
	Connect loom.Account
}

// attempt is the content of the cookie of an attempt.
type attempt struct {
	Attempt
	idp.Sent
	Provider string
	Made     int64 // seconds
}

// AttemptCookie is what a browser keeps of an attempt: it alone can finish it. Name is behind the
// start of the cookie's name.
type AttemptCookie struct {
	Name  string
	Value loom.Secret
}

// attemptName is that of the cookie of an attempt: the older, the smaller.
func attemptName(made int64, state string) string { return fmt.Sprintf("%d-%.8s", made, state) }

// SignInProviders returns the identity providers that people sign in with: those of the installation,
// and those of a tenant by name. An unknown one has none of its own.
func (a *Accounts) SignInProviders(ctx context.Context, tenant string) ([]loom.IdentityProvider, error) {
	var id loom.TenantID
	if clean(tenant) == tenant && tenant != "" {
		t, err := store.TenantByNameAllTenants(ctx, a.db, tenant)
		if err != nil && !isNotFound(err) {
			return nil, err
		}
		id = t.ID
	}
	return store.SignInProviders(ctx, a.db, id)
}

// enabledProvider returns a provider that people sign in with. NotFound.
func (a *Accounts) enabledProvider(ctx context.Context, id string) (loom.IdentityProvider, error) {
	p, err := store.IdentityProviderAllTenants(ctx, a.db, clean(id))
	if err == nil && !p.Enabled {
		err = loom.NewError(loom.NotFound, "Nobody signs in with “%s” at present.", p.Name)
	}
	return p, err
}

// BeginAttempt returns the page of an identity provider to which somebody is sent, and the cookie
// that finishes what begins here. It writes nothing. Errors: NotFound, Unavailable.
func (a *Accounts) BeginAttempt(ctx context.Context, provider string, want Attempt) (url string, cookie AttemptCookie, err error) {
	p, err := a.enabledProvider(ctx, provider)
	if err != nil {
		return "", cookie, err
	}
	r, err := a.registration(ctx, a.db, p)
	if err != nil {
		return "", cookie, err
	}
	sent := attempt{Attempt: want, Sent: idp.NewSent(), Provider: p.ID, Made: time.Now().Unix()}
	if url, err = a.Identity.SignInURL(ctx, r, sent.Sent); err != nil {
		return "", cookie, err
	}
	text, err := json.Marshal(sent)
	if err != nil {
		return "", cookie, err
	}
	sealed, err := a.ring.SealBytes(attemptContext, text)
	return url, AttemptCookie{attemptName(sent.Made, sent.State), loom.NewSecret(base64.RawURLEncoding.EncodeToString(sealed))}, err
}

// openAttempt reads the cookie of an attempt that this answer finishes, out of all that a browser
// has, and returns its place among them, -1 for none.
func (a *Accounts) openAttempt(provider, state string, cookies []loom.Secret) (attempt, int) {
	for i, cookie := range cookies {
		sealed, err := base64.RawURLEncoding.DecodeString(cookie.Reveal())
		if err != nil {
			continue
		}
		plain, err := a.ring.OpenBytes(attemptContext, sealed)
		var found attempt
		if err != nil || json.Unmarshal(plain, &found) != nil || state == "" || found.State != state || found.Provider != provider || time.Since(time.Unix(found.Made, 0)) > AttemptLife {
			continue
		}
		return found, i
	}
	return attempt{}, -1
}

// ProviderAnswer is what a browser comes back from an identity provider with.
type ProviderAnswer struct {
	Provider            string
	State, Code, Issuer string
	// Refused is the provider's reason not to sign somebody in.
	Refused string
	// Attempts are the browser's cookies of attempts; Session is that of a session it has, which ends.
	Attempts []loom.Secret
	Session  loom.Secret
	Address  string
	Agent    string
}

// Finished is what came of an attempt.
type Finished struct {
	Attempt
	// Used is the place of the attempt's cookie, -1 where none fits.
	Used     int
	Provider loom.IdentityProvider
	// Actor, Cookie and Expires are those of a session that began, zero without one.
	Actor   loom.Actor
	Cookie  loom.Secret
	Expires time.Time
	// Tenants are the names of the tenants to choose from.
	Tenants []string
	// Claims are what the provider says of somebody who belongs to no tenant.
	Claims loom.Claims
}

// FinishAttempt signs somebody in who comes back from an identity provider, or connects him.
// Errors: NotFound; Invalid for an answer that does not belong to this browser or cannot be
// verified; Forbidden for somebody who belongs to no tenant (Claims), or is disabled; Conflict for a
// user id that is taken; Throttled; Unavailable.
func (a *Accounts) FinishAttempt(ctx context.Context, in ProviderAnswer) (Finished, error) {
	p, err := a.enabledProvider(ctx, in.Provider)
	done := Finished{Used: -1, Provider: p}
	if err != nil {
		return done, err
	}
	began, place := a.openAttempt(p.ID, in.State, in.Attempts)
	done.Attempt, done.Used = began.Attempt, place
	if place < 0 {
		return done, loom.NewError(loom.Invalid, "This sign-in did not start in this browser, was finished already, or took more than 10 minutes. Sign in again.")
	}
	if in.Refused != "" {
		return done, loom.NewError(loom.Invalid, "“%s” did not sign you in: %.200s", p.Name, in.Refused)
	}
	in.Address = clean(in.Address)
	counts := []store.SignInCount{{Subject: "address:" + loom.PlaceOf(in.Address), Free: freeOfAddress, Window: signInWindow}}
	if err := a.beginSignIn(ctx, counts); err != nil {
		return done, err
	}
	r, err := a.registration(ctx, a.db, p)
	if err != nil {
		return done, err
	}
	person, err := a.Identity.Exchange(ctx, r, began.Sent, idp.Answer{Code: in.Code, Issuer: in.Issuer})
	if err != nil {
		return done, a.refusedAttempt(ctx, p, in, err)
	}
	try := signingIn{accounts: a, in: in, began: began, person: person, done: &done}
	err = store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if err := store.SignInSucceeded(ctx, tx, counts); err != nil {
			return err
		}
		return try.run(ctx, tx)
	})
	switch {
	case err == nil && try.belongsNowhere:
		done.Claims = person.Claims
		err = a.refusedAttempt(ctx, p, in, loom.NewError(loom.Forbidden, "“%s” knows you, but no rule gives you a place in Loom. Ask an administrator, and show what “%[1]s” says about you:", p.Name))
	case errors.Is(err, loom.Forbidden) || errors.Is(err, loom.Conflict):
		err = a.refusedAttempt(ctx, p, in, err)
	}
	return done, err
}

// refusedAttempt records why nobody was signed in, and returns that.
func (a *Accounts) refusedAttempt(ctx context.Context, p loom.IdentityProvider, in ProviderAnswer, why error) error {
	e := loom.AsError(why)
	reason := e.Message
	if e.Err != nil {
		reason = e.Err.Error()
	}
	t, err := store.Tenant(ctx, a.db, p.Tenant)
	if err == nil {
		err = store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
			return store.InsertRefusal(ctx, tx, loom.AuditEntry{
				Actor: loom.Actor{Tenant: t.ID, TenantName: t.Name, User: loom.SystemUser, Via: "session", Address: in.Address},
				Verb:  "sign_in", Kind: "identity_provider", Object: p.ID, Result: "refused", After: map[string]any{"reason": clean(reason)},
			}, refusedEvery)
		})
	}
	return errors.Join(why, err)
}

// signingIn signs a person in, in one transaction: who crashes before its end leaves nothing.
type signingIn struct {
	accounts *Accounts
	in       ProviderAnswer
	began    attempt
	person   idp.Person
	done     *Finished

	provider loom.IdentityProvider
	groups   map[loom.TenantID][]int64
	matched  []int
	users    []loom.Account
	// connecting is the user who connects himself.
	connecting loom.Actor
	// belongsNowhere says that the person has no place in any tenant.
	belongsNowhere bool
}

func (s *signingIn) run(ctx context.Context, tx *sqlx.Tx) error {
	if s.connects() {
		if err := s.holdActor(ctx, tx); err != nil {
			return err
		}
	}
	p, err := store.HoldIdentityProviderAllTenants(ctx, tx, s.done.Provider.ID)
	if err != nil {
		return err
	}
	if !p.Enabled || p.Issuer != s.done.Provider.Issuer || p.SubjectClaim != s.done.Provider.SubjectClaim {
		return loom.NewError(loom.Invalid, "The identity provider was changed while you signed in. Sign in again.")
	}
	s.provider = p
	once, err := store.UseTokenAllTenants(ctx, tx, p.ID, "state:"+s.began.State, time.Now().Add(AttemptLife))
	if err == nil && !once {
		err = loom.NewError(loom.Invalid, "This sign-in was finished already. Sign in again.")
	}
	if err != nil {
		return err
	}
	if err := store.PutIdentityAllTenants(ctx, tx, p.ID, s.person.Subject, s.person.Claims); err != nil {
		return err
	}
	rules, err := store.IdentityRulesAllTenants(ctx, tx, p.ID)
	if err != nil {
		return err
	}
	s.matched = loom.NewIdentityRules(rules).Match(s.person.Claims)
	s.groups = groupsBy(rules, s.matched)
	if s.users, err = store.IdentityUsersAllTenants(ctx, tx, p.ID, s.person.Subject); err != nil {
		return err
	}
	if s.connects() {
		return s.connect(ctx, tx)
	}
	for _, user := range s.users {
		if err := s.setMembers(ctx, tx, user); err != nil {
			return err
		}
	}
	tenant, err := s.choose(ctx, tx)
	if err != nil || tenant.ID == "" {
		return err
	}
	user, err := s.user(ctx, tx, tenant)
	if err != nil {
		return err
	}
	return s.begin(ctx, tx, tenant, user)
}

func (s *signingIn) setMembers(ctx context.Context, tx *sqlx.Tx, user loom.Account) error {
	added, removed, err := store.SetMembers(ctx, tx, user.Tenant, user.User, s.provider.Source(), s.groups[user.Tenant])
	if err != nil || len(added)+len(removed) == 0 {
		return err
	}
	return store.InsertEvents(ctx, tx, groupEvent(user.Tenant))
}

// choose returns the tenant to sign in to, none where the person belongs nowhere or has to choose.
func (s *signingIn) choose(ctx context.Context, tx *sqlx.Tx) (loom.Tenant, error) {
	ids, err := s.placesByRules(ctx, tx)
	if err != nil {
		return loom.Tenant{}, err
	}
	for _, account := range s.users {
		user, err := store.User(ctx, tx, account.Tenant, account.User)
		if err != nil {
			return loom.Tenant{}, err
		}
		if user.IsMember() && !slices.Contains(ids, account.Tenant) {
			ids = append(ids, account.Tenant)
		}
	}
	var tenants []loom.Tenant
	for _, id := range ids {
		t, err := store.Tenant(ctx, tx, id)
		if isNotFound(err) {
			continue // deleted
		}
		if err != nil {
			return loom.Tenant{}, err
		}
		if s.began.Tenant == t.Name {
			return t, nil
		}
		tenants = append(tenants, t)
	}
	switch len(tenants) {
	case 0:
		s.belongsNowhere = true
		return loom.Tenant{}, nil
	case 1:
		return tenants[0], nil
	}
	for _, t := range tenants {
		s.done.Tenants = append(s.done.Tenants, t.Name)
	}
	slices.Sort(s.done.Tenants)
	return loom.Tenant{}, nil
}

// placesByRules returns the tenants in which the groups that rules give have a role.
func (s *signingIn) placesByRules(ctx context.Context, tx *sqlx.Tx) (ids []loom.TenantID, err error) {
	var all []int64
	for _, groups := range s.groups {
		all = append(all, groups...)
	}
	groups, err := store.GroupsByIDAllTenants(ctx, tx, all)
	for _, g := range groups {
		if g.Bindings > 0 && !slices.Contains(ids, g.Tenant) {
			ids = append(ids, g.Tenant)
		}
	}
	return ids, err
}

// user returns who the person is in a tenant. He is made if he is new there.
func (s *signingIn) user(ctx context.Context, tx *sqlx.Tx, tenant loom.Tenant) (loom.User, error) {
	mine := func(a loom.Account) bool { return a.Tenant == tenant.ID }
	if i := slices.IndexFunc(s.users, mine); i >= 0 {
		return store.User(ctx, tx, tenant.ID, s.users[i].User)
	}
	if _, err := store.LockTenant(ctx, tx, tenant.ID); err != nil {
		return loom.User{}, err
	}
	user := loom.User{ID: loom.UserID(s.person.Claims.Text(s.provider.UserClaim)), Tenant: tenant.ID, Role: loom.RoleNone,
		DisplayName: s.person.Claims.Text("name"), Email: s.person.Claims.Text("email")}
	if errs := checkUser(&loom.User{ID: "any", DisplayName: user.DisplayName}); len(errs) > 0 {
		user.DisplayName = "" // no reason to keep somebody out
	}
	if errs := checkUser(&loom.User{ID: "any", Email: user.Email}); len(errs) > 0 {
		user.Email = ""
	}
	if errs := append(checkUser(&user), checkNewID(user.ID)...); len(errs) > 0 || strings.EqualFold(string(user.ID), string(loom.AdminUser)) {
		return loom.User{}, loom.NewError(loom.Forbidden, "“%s” names you “%.100s” (claim %s), which cannot be a user id in Loom. Ask an administrator to make you a user and to sign in with a password once; then press Connect in your account.",
			s.provider.Name, user.ID, s.provider.UserClaim)
	}
	taken, err := store.UserAlike(ctx, tx, tenant.ID, user.ID)
	if err != nil {
		return loom.User{}, err
	}
	if _, err := store.User(ctx, tx, tenant.ID, user.ID); err == nil {
		taken = user.ID
	} else if !isNotFound(err) {
		return loom.User{}, err
	}
	if taken != "" {
		return loom.User{}, loom.NewError(loom.Conflict, "There is a user “%s” in the tenant “%s” already. If that is you, sign in with your password and press Connect on the page “Sign-in” of your account.", taken, tenant.Name)
	}
	if _, err := store.InsertUser(ctx, tx, tenant.ID, user, ""); err != nil {
		return loom.User{}, err
	}
	if err := store.InsertIdentityUser(ctx, tx, tenant.ID, s.provider.ID, s.person.Subject, user.ID); err != nil {
		return loom.User{}, err
	}
	account := loom.Account{Tenant: tenant.ID, User: user.ID}
	if err := s.setMembers(ctx, tx, account); err != nil {
		return loom.User{}, err
	}
	stored, err := store.User(ctx, tx, tenant.ID, user.ID)
	if err != nil {
		return loom.User{}, err
	}
	if err := record(ctx, tx, s.actor(tenant, stored), "create", "user", string(user.ID), nil, shownUser(stored)); err != nil {
		return loom.User{}, err
	}
	return stored, store.InsertEvents(ctx, tx, userEvent(tenant.ID))
}

func (s *signingIn) actor(tenant loom.Tenant, user loom.User) loom.Actor {
	return loom.Actor{Tenant: tenant.ID, TenantName: tenant.Name, User: user.ID, Role: user.Role, Grants: user.Grants, Via: "session", Address: s.in.Address, AccessEpoch: user.AccessEpoch}
}

// begin begins the session.
func (s *signingIn) begin(ctx context.Context, tx *sqlx.Tx, tenant loom.Tenant, user loom.User) error {
	switch {
	case user.Disabled:
		return loom.NewError(loom.Forbidden, "Your user “%s” in the tenant “%s” is disabled. Ask an administrator of the tenant.", user.ID, tenant.Name)
	case !user.IsMember():
		s.belongsNowhere = true
		return nil
	}
	actor := s.actor(tenant, user)
	cookie, err := beginSession(ctx, tx, actor, newSession{previous: s.in.Session, agent: s.in.Agent, life: SessionLife})
	if err != nil {
		return err
	}
	sealed, err := s.accounts.ring.SealBytes(idTokenContext, []byte(s.person.Token.Reveal()))
	if err != nil {
		return err
	}
	if err := store.SetSessionProvider(ctx, tx, tenant.ID, hashOf(cookie.value), s.provider.ID, s.person.Session, sealed); err != nil {
		return err
	}
	s.done.Actor, s.done.Cookie, s.done.Expires = actor, cookie.value, cookie.expires
	return record(ctx, tx, actor, "sign_in", "session", string(user.ID), nil, map[string]any{"identityProvider": s.provider.Name, "subject": s.person.Subject, "rules": s.matched})
}

// connects reports whether a user who is signed in connects himself.
func (s *signingIn) connects() bool { return s.began.Connect != (loom.Account{}) }

// holdActor finds out that the user who connects himself is still signed in, and keeps him so.
func (s *signingIn) holdActor(ctx context.Context, tx *sqlx.Tx) error {
	actor, _, err := s.accounts.ActorBySession(ctx, s.in.Session, s.in.Address)
	if err != nil || actor.Account() != s.began.Connect || actor.ActsAsAnother() {
		return loom.NewError(loom.Invalid, "You signed in as somebody else in between. Press Connect again.")
	}
	s.connecting = actor
	return store.HoldActor(ctx, tx, actor)
}

// connect lets the user who began the attempt sign in with the identity from now on.
func (s *signingIn) connect(ctx context.Context, tx *sqlx.Tx) error {
	account, actor := s.began.Connect, s.connecting
	if !s.provider.Global() && s.provider.Tenant != account.Tenant {
		return loom.NewError(loom.NotFound, "There is no such identity provider in your tenant.")
	}
	if account.User == loom.AdminUser {
		return loom.NewError(loom.Conflict, "The built-in administrator signs in with a password alone.")
	}
	if slices.Contains(s.users, account) {
		return s.setMembers(ctx, tx, account)
	}
	if err := store.InsertIdentityUser(ctx, tx, account.Tenant, s.provider.ID, s.person.Subject, account.User); errors.Is(err, loom.Conflict) {
		return loom.NewError(loom.Conflict, "This account of “%s” is connected with another user of the tenant, or you with another account. Disconnect that first.", s.provider.Name)
	} else if err != nil {
		return err
	}
	if err := s.setMembers(ctx, tx, account); err != nil {
		return err
	}
	return record(ctx, tx, actor, "connect", "user", string(account.User), nil, map[string]any{"identityProvider": s.provider.Name, "subject": s.person.Subject})
}

// Disconnect ends that the actor signs in with the identity of a provider: its rules give him
// nothing any longer. Errors: Forbidden; NotFound; Conflict for somebody without a password, who
// could not sign in any longer.
func (a *Accounts) Disconnect(ctx context.Context, actor loom.Actor, provider string) error {
	if err := actor.May(loom.Self, actor.Mine()); err != nil {
		return err
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		if err := store.HoldActor(ctx, tx, actor); err != nil {
			return err
		}
		p, err := store.HoldIdentityProviderAllTenants(ctx, tx, clean(provider))
		if err != nil {
			return err
		}
		hash, err := store.PasswordHash(ctx, tx, actor.Tenant, actor.User)
		if err != nil {
			return err
		}
		if hash == "" {
			return loom.NewError(loom.Conflict, "You have no password and could not sign in any longer. Ask an administrator for one first.")
		}
		there, err := store.DeleteIdentityUser(ctx, tx, actor.Tenant, p, actor.User)
		if err != nil {
			return err
		}
		if !there {
			return loom.NewError(loom.NotFound, "You are not connected with this identity provider.")
		}
		if err := record(ctx, tx, actor, "disconnect", "user", string(actor.User), map[string]any{"identityProvider": p.Name}, nil); err != nil {
			return err
		}
		return store.InsertEvents(ctx, tx, groupEvent(actor.Tenant))
	})
}

// IdentityOf is an identity of a user with what the rules make of it.
type IdentityOf struct {
	loom.Identity
	Rules []RuleOf
}

// RuleOf is a rule with which of its conditions hold for an identity.
type RuleOf struct {
	loom.IdentityRule
	Holds []bool
}

// Matches reports whether all conditions of the rule hold.
func (r RuleOf) Matches() bool { return !slices.Contains(r.Holds, false) }

// Identities returns the identities that a user signs in with, with the rules about groups of his
// tenant: one's own, or those of anyone for an administrator. NotFound.
func (a *Accounts) Identities(ctx context.Context, actor loom.Actor, user loom.UserID) ([]IdentityOf, error) {
	if err := a.maySeeUser(actor, user); err != nil {
		return nil, err
	}
	identities, err := store.IdentitiesOf(ctx, a.db, actor.Tenant, user)
	if err != nil {
		return nil, err
	}
	all := make([]IdentityOf, len(identities))
	for i, identity := range identities {
		all[i].Identity = identity
		rules, err := store.IdentityRulesAllTenants(ctx, a.db, identity.Provider)
		if err != nil {
			return nil, err
		}
		for _, rule := range rules {
			if rule.Tenant != actor.Tenant {
				continue
			}
			of := RuleOf{IdentityRule: rule}
			for _, c := range rule.Conditions {
				of.Holds = append(of.Holds, c.Holds(identity.Claims))
			}
			all[i].Rules = append(all[i].Rules, of)
		}
	}
	return all, nil
}

// ProviderLogout ends the sessions that a logout token of an identity provider is about. API tokens
// stay: who signs out does not leave. Errors: NotFound, Invalid, Unavailable.
func (a *Accounts) ProviderLogout(ctx context.Context, provider, token string) error {
	p, err := a.enabledProvider(ctx, provider)
	if err != nil {
		return err
	}
	r, err := a.registration(ctx, a.db, p)
	if err != nil {
		return err
	}
	logout, err := a.Identity.VerifyLogout(ctx, r, token)
	if err != nil {
		return err
	}
	return store.Exec(ctx, a.db, func(tx *sqlx.Tx) error {
		once, err := store.UseTokenAllTenants(ctx, tx, p.ID, "logout:"+logout.ID, logout.Ends)
		if err == nil && !once {
			err = loom.NewError(loom.Invalid, "This logout token was used already.")
		}
		if err != nil {
			return err
		}
		ended, err := store.EndProviderSessionsAllTenants(ctx, tx, p.ID, logout.Subject, logout.Session)
		if err != nil {
			return err
		}
		for _, account := range ended {
			t, err := store.Tenant(ctx, tx, account.Tenant)
			if isNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
			actor := loom.SystemActor(t.ID, t.Name)
			if err := record(ctx, tx, actor, "sign_out", "session", string(account.User), nil, map[string]any{"identityProvider": p.Name}); err != nil {
				return err
			}
		}
		return nil
	})
}

// HasPassword reports whether the actor can sign in with a password.
func (a *Accounts) HasPassword(ctx context.Context, actor loom.Actor) (bool, error) {
	if err := actor.May(loom.Self.Reading(), actor.Mine()); err != nil {
		return false, err
	}
	hash, err := store.PasswordHash(ctx, a.db, actor.Tenant, actor.User)
	return hash != "", err
}

// ProviderOfSession returns the identity provider by which a session of the actor began, nil for none.
func (a *Accounts) ProviderOfSession(ctx context.Context, actor loom.Actor, cookie loom.Secret) (*loom.IdentityProvider, error) {
	id, _, err := store.SessionProvider(ctx, a.db, himself(actor).Tenant, hashOf(cookie))
	if isNotFound(err) || err == nil && id == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := a.enabledProvider(ctx, id)
	if isNotFound(err) {
		return nil, nil
	}
	return &p, err
}

// signOutURL returns where a session that began at an identity provider ends there too, "" for none.
// A provider that does not answer keeps nobody signed in.
func (a *Accounts) signOutURL(ctx context.Context, actor loom.Actor, cookie loom.Secret) (string, error) {
	id, sealed, err := store.SessionProvider(ctx, a.db, actor.Tenant, hashOf(cookie))
	if isNotFound(err) || err == nil && id == "" {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	p, err := a.enabledProvider(ctx, id)
	if isNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	r, err := a.registration(ctx, a.db, p)
	if err != nil {
		return "", err
	}
	token, err := a.ring.OpenBytes(idTokenContext, sealed)
	if err != nil {
		token = nil // sealed with a key that is gone
	}
	url, err := a.Identity.SignOutURL(ctx, r, loom.NewSecret(string(token)), a.PublicURL+"/login")
	if errors.Is(err, loom.Unavailable) {
		return "", nil
	}
	return url, err
}
