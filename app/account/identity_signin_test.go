package account_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/account"
	"loom/app/idp"
	"loom/app/loom"
	"loom/app/testkit/idptest"
)

// office is an identity provider of demo, with a group of operators that rules lead to.
type office struct {
	bundle
	idp      *idptest.Provider
	provider loom.IdentityProvider
	group    loom.Group
}

// identity lets a bundle call identity providers on loopback.
func (b *bundle) identity() {
	b.Identity, b.PublicURL = idp.New(idp.Options{Reach: loom.Anywhere(), PlainHTTP: true}), "http://loom.example"
}

func (b *bundle) provider(t *testing.T, actor loom.Actor, p *idptest.Provider) loom.IdentityProvider {
	t.Helper()
	provider, err := b.CreateIdentityProvider(b.ctx, actor, account.IdentityProviderInput{
		Name: ptr("Example"), Issuer: &p.Issuer, ClientID: ptr(idptest.ClientID), Secret: ptr(loom.NewSecret(idptest.Secret)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return provider
}

func (b *bundle) groupWith(t *testing.T, actor loom.Actor, name string, role loom.Role) loom.Group {
	t.Helper()
	g, err := b.CreateGroup(b.ctx, actor, account.GroupInput{Name: &name})
	if err != nil {
		t.Fatal(err)
	}
	if role != "" {
		if _, err := b.Bind(b.ctx, actor, account.BindingInput{Group: g.ID, Role: role}); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func rule(claim, value string, group loom.Group) loom.IdentityRule {
	return loom.IdentityRule{Conditions: []loom.Condition{{Claim: claim, Op: loom.ConditionIs, Value: value}}, Group: group.ID}
}

// rules sets the rules of a provider by preview.
func (b *bundle) rules(t *testing.T, actor loom.Actor, provider string, rules ...loom.IdentityRule) account.RulesPreview {
	t.Helper()
	preview, err := b.PreviewIdentityRules(b.ctx, actor, provider, rules)
	if err == nil {
		_, err = b.SetIdentityRules(b.ctx, actor, provider, rules, preview.Hash)
	}
	if err != nil {
		t.Fatal(err)
	}
	return preview
}

func openOffice(t *testing.T) *office {
	t.Helper()
	o := &office{bundle: setup(t), idp: idptest.Start(t)}
	o.identity()
	o.provider = o.bundle.provider(t, o.admin, o.idp)
	o.group = o.groupWith(t, o.admin, "Operators", loom.RoleOperator)
	o.rules(t, o.admin, o.provider.ID, rule("groups", "ops", o.group))
	return o
}

var browser = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// visit goes to the provider and comes back with its answer, which the browser may still change.
func (b *bundle) visit(t *testing.T, provider string, want account.Attempt) account.ProviderAnswer {
	t.Helper()
	at, cookie, err := b.BeginAttempt(b.ctx, provider, want)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := browser.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	u, err := answer.Location()
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	return account.ProviderAnswer{Provider: provider, State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss"), Attempts: []loom.Secret{cookie.Value}, Address: "192.0.2.9", Agent: "test"}
}

// signInAs signs a person in at the provider.
func (o *office) signInAs(t *testing.T, claims map[string]any) (account.Finished, error) {
	t.Helper()
	o.idp.Become(claims)
	return o.FinishAttempt(o.ctx, o.visit(t, o.provider.ID, account.Attempt{Next: "/clusters"}))
}

func person(subject, name string, groups ...string) map[string]any {
	return map[string]any{"sub": subject, "preferred_username": name, "name": "Eve Example", "email": name + "@example.com", "email_verified": true, "groups": groups}
}

func kind(err error) loom.Kind {
	if err == nil {
		return ""
	}
	return loom.AsError(err).Kind
}

// A newcomer becomes a user with what his groups give; without them he loses it at once.
func TestSignInWithAProvider(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	done, err := o.signInAs(t, person("1", "eve", "ops"))
	if err != nil || done.Actor.User != "eve" || done.Next != "/clusters" {
		t.Fatalf("got %+v, %v", done, err)
	}
	actor, session, err := o.ActorBySession(o.ctx, done.Cookie, "192.0.2.9")
	if err != nil || actor.May(loom.Operate, actor.InTenant()) != nil || actor.May(loom.Administer, actor.InTenant()) == nil {
		t.Errorf("the session of %+v: %v", actor, err)
	}
	if left := time.Until(session.Expires); left > account.SessionLife || left < account.SessionLife-time.Minute {
		t.Errorf("the session lives for %s", left)
	}
	if user, err := o.User(o.ctx, o.admin, "eve"); err != nil || user.DisplayName != "Eve Example" || user.Email != "eve@example.com" || user.Role != loom.RoleNone {
		t.Errorf("the user is %+v, %v", user, err)
	}
	if n := o.count(t, `SELECT count(*) FROM audit WHERE verb = 'sign_in' AND object = 'eve' AND after->>'identityProvider' = 'Example' AND after->'rules' = '[0]'`); n != 1 {
		t.Errorf("%d entries of the audit name provider and rules", n)
	}
	first := loom.NewSecret("a password that would stay")
	if _, err := o.UpdateUser(o.ctx, actor, "eve", account.UserChange{Password: &first, OldPassword: ptr(loom.NewSecret("x"))}); kind(err) != loom.Forbidden {
		t.Errorf("somebody without a password sets one, which outlives the account at the provider: %v", err)
	}
	_, secret, err := o.CreateToken(o.ctx, actor, account.NewToken{Name: "ci", Scopes: []loom.Scope{loom.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	// The same person under another name stays the same user, whom the groups put out.
	if _, err := o.signInAs(t, person("1", "eva")); kind(err) != loom.Forbidden {
		t.Errorf("without a group: %v", err)
	}
	if _, _, err := o.ActorBySession(o.ctx, done.Cookie, "192.0.2.9"); kind(err) != loom.Unauthenticated {
		t.Errorf("the session goes on: %v", err)
	}
	if _, err := o.ActorByToken(o.ctx, account.TokenInput{Secret: secret}); kind(err) != loom.Unauthenticated {
		t.Errorf("the token works on: %v", err)
	}
	if done, err := o.signInAs(t, person("1", "eva", "ops")); err != nil || done.Actor.User != "eve" {
		t.Errorf("back again: %+v, %v", done, err)
	}
	if n := o.count(t, `SELECT count(*) FROM users WHERE id IN ('eve', 'eva')`); n != 1 {
		t.Errorf("there are %d users", n)
	}
}

// Who belongs nowhere gets no user and no session, and learns what the provider says of him.
func TestNobodysSignIn(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	empty := o.groupWith(t, o.admin, "Empty", "")
	o.rules(t, o.admin, o.provider.ID, rule("groups", "ops", o.group), rule("groups", "dev", empty))
	for _, groups := range [][]string{{}, {"dev"}} {
		done, err := o.signInAs(t, person("2", "bob", groups...))
		if kind(err) != loom.Forbidden || done.Claims.Text("name") != "Eve Example" || !done.Cookie.IsZero() {
			t.Errorf("got %+v, %v", done, err)
		}
	}
	if n := o.count(t, `SELECT (SELECT count(*) FROM users WHERE id = 'bob') + (SELECT count(*) FROM identity_users)`); n != 0 {
		t.Errorf("%d rows were left", n)
	}
	if n := o.count(t, `SELECT count(*) FROM identities`); n != 1 {
		t.Errorf("%d identities are known; previews need it", n)
	}
}

// No claim makes anybody the built-in administrator, Loom itself, or a user who is there already.
func TestTakenNames(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	for name, want := range map[string]loom.Kind{
		"admin": loom.Forbidden, "Admin": loom.Forbidden, "system": loom.Forbidden, "../x": loom.Forbidden, "": loom.Forbidden, "a/b": loom.Forbidden, "..": loom.Forbidden, " eve": loom.Forbidden,
		"user": loom.Conflict, "USER": loom.Conflict,
	} {
		done, err := o.signInAs(t, person("name "+name, name, "ops"))
		if kind(err) != want || !done.Cookie.IsZero() {
			t.Errorf("%q signs in: %v", name, err)
		}
	}
	if n := o.count(t, `SELECT count(*) FROM identity_users`); n != 0 {
		t.Errorf("%d users were connected", n)
	}
}

// An answer works once, in the browser that asked, at its provider.
func TestAttemptsAreBound(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	other := o.bundle
	elsewhere := idptest.Start(t)
	provider, err := o.CreateIdentityProvider(o.ctx, o.admin, account.IdentityProviderInput{Name: ptr("Other"), Issuer: &elsewhere.Issuer, ClientID: ptr(idptest.ClientID), Secret: ptr(loom.NewSecret(idptest.Secret))})
	if err != nil {
		t.Fatal(err)
	}
	o.idp.Become(person("1", "eve", "ops"))
	refuse := func(what string, in account.ProviderAnswer) {
		t.Helper()
		if done, err := other.FinishAttempt(o.ctx, in); err == nil || !done.Cookie.IsZero() {
			t.Errorf("%s: signed in", what)
		}
	}
	good := o.visit(t, o.provider.ID, account.Attempt{})
	stranger := good
	stranger.Attempts = nil
	refuse("without the cookie", stranger)
	stranger.Attempts = o.visit(t, o.provider.ID, account.Attempt{}).Attempts
	refuse("with the cookie of another attempt", stranger)
	wrong := good
	wrong.State = "other"
	refuse("with another state", wrong)
	wrong.State = ""
	refuse("without a state", wrong)
	wrong = good
	wrong.Provider = provider.ID
	refuse("at another provider", wrong)
	if _, err := o.FinishAttempt(o.ctx, good); err != nil {
		t.Errorf("its own: %v", err)
	}
	refuse("once more", good)
	forged := good
	forged.Attempts = []loom.Secret{loom.NewSecret("AAAA"), loom.NewSecret("")}
	refuse("with a forged cookie", forged)
	denied := o.visit(t, o.provider.ID, account.Attempt{})
	denied.Refused = "access_denied"
	refuse("refused by the provider", denied)
}

// Two first sign-ins at once make one user.
func TestFirstSignInsAtOnce(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	o.idp.Become(person("1", "eve", "ops"))
	answers := make([]account.ProviderAnswer, 5)
	for i := range answers {
		answers[i] = o.visit(t, o.provider.ID, account.Attempt{})
	}
	var all sync.WaitGroup
	for _, answer := range answers {
		all.Go(func() {
			if done, err := o.FinishAttempt(o.ctx, answer); err != nil || done.Actor.User != "eve" {
				t.Errorf("got %+v, %v", done.Actor, err)
			}
		})
	}
	all.Wait()
	if n := o.count(t, `SELECT count(*) FROM identity_users`); n != 1 {
		t.Errorf("%d users are connected", n)
	}
}

// A user connects himself, and nobody else; then he signs in by the provider too, until he disconnects.
func TestConnect(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	o.idp.Become(person("7", "someone", "ops"))
	user, cookie := o.signIn(t, "demo", "user")
	answer := o.visit(t, o.provider.ID, account.Attempt{Connect: user.Account()})
	_, another := o.signIn(t, "demo", "admin")
	stolen := answer
	stolen.Session = another
	if _, err := o.FinishAttempt(o.ctx, stolen); kind(err) != loom.Invalid {
		t.Errorf("another user’s session connects: %v", err)
	}
	answer = o.visit(t, o.provider.ID, account.Attempt{Connect: user.Account()})
	answer.Session = cookie
	if _, err := o.FinishAttempt(o.ctx, answer); err != nil {
		t.Fatal(err)
	}
	if done, err := o.signInAs(t, person("7", "someone", "ops")); err != nil || done.Actor.User != "user" {
		t.Errorf("signed in as %+v, %v", done.Actor, err)
	}
	admin, adminCookie := o.signIn(t, "demo", "admin")
	builtin := o.visit(t, o.provider.ID, account.Attempt{Connect: admin.Account()})
	builtin.Session = adminCookie
	if _, err := o.FinishAttempt(o.ctx, builtin); kind(err) != loom.Conflict {
		t.Errorf("the built-in administrator connects: %v", err)
	}
	if err := o.Disconnect(o.ctx, user, o.provider.ID); kind(err) != loom.Unauthenticated {
		t.Errorf("an actor whose roles changed: %v", err) // the rules gave him a role since
	}
	fresh, _, err := o.ActorBySession(o.ctx, cookie, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Disconnect(o.ctx, fresh, o.provider.ID); err != nil {
		t.Fatal(err)
	}
	if after, _, err := o.ActorBySession(o.ctx, cookie, "192.0.2.1"); err != nil || after.May(loom.Operate, after.InTenant()) == nil {
		t.Errorf("after that the rules still give %+v, %v", after.Grants, err)
	}
	if _, err := o.signInAs(t, person("7", "someone", "ops")); err != nil {
		t.Errorf("the person is a newcomer again: %v", err)
	}
	eve, err := o.signInAs(t, person("8", "eve", "ops"))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Disconnect(o.ctx, eve.Actor, o.provider.ID); kind(err) != loom.Conflict {
		t.Errorf("somebody without a password disconnects: %v", err)
	}
}

// A provider of the installation leads to several tenants, and people choose one; that of a tenant
// leads to its own groups only.
func TestProvidersOfTheInstallation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.identity()
	p := idptest.Start(t)
	made, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	lab := loom.SystemActor(made.ID, made.Name)
	inDemo, inLab := b.groupWith(t, b.admin, "Demo", loom.RoleUser), b.groupWith(t, lab, "Lab", loom.RoleReader)
	own, global := b.provider(t, b.admin, p), b.provider(t, b.super, p)
	if _, err := b.PreviewIdentityRules(b.ctx, b.admin, own.ID, []loom.IdentityRule{rule("groups", "x", inLab)}); kind(err) != loom.Invalid {
		t.Errorf("a rule of a tenant’s own provider names a foreign group: %v", err)
	}
	b.rules(t, b.super, global.ID, rule("groups", "demo", inDemo), rule("groups", "lab", inLab))
	if _, err := b.IdentityProvider(b.ctx, b.admin, global.ID); kind(err) != loom.NotFound {
		t.Errorf("an administrator of a tenant sees that of the installation: %v", err)
	}
	p.Become(person("1", "eve", "demo", "lab"))
	done, err := b.FinishAttempt(b.ctx, b.visit(t, global.ID, account.Attempt{}))
	if err != nil || strings.Join(done.Tenants, " ") != "demo lab" || !done.Cookie.IsZero() {
		t.Fatalf("got %+v, %v", done, err)
	}
	for _, tenant := range done.Tenants {
		if done, err := b.FinishAttempt(b.ctx, b.visit(t, global.ID, account.Attempt{Tenant: tenant})); err != nil || done.Actor.TenantName != tenant || done.Actor.User != "eve" {
			t.Errorf("in %s: %+v, %v", tenant, done.Actor, err)
		}
	}
	p.Become(person("1", "eve", "lab"))
	if done, err := b.FinishAttempt(b.ctx, b.visit(t, global.ID, account.Attempt{Tenant: "demo"})); err != nil || done.Actor.TenantName != "lab" {
		t.Errorf("once demo is over: %+v, %v", done.Actor, err)
	}
	if providers, err := b.SignInProviders(b.ctx, "demo"); err != nil || len(providers) != 2 {
		t.Errorf("demo signs in with %d providers, %v", len(providers), err)
	}
	if providers, err := b.SignInProviders(b.ctx, "lab"); err != nil || len(providers) != 1 {
		t.Errorf("lab signs in with %d providers, %v", len(providers), err)
	}
}

// A sign-in that ended at the provider ends here, by its session or for all of the person, once.
func TestProviderLogout(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	signIn := func(subject, name, sid string) (account.Finished, loom.Secret) {
		claims := person(subject, name, "ops")
		claims["sid"] = sid
		done, err := o.signInAs(t, claims)
		if err != nil {
			t.Fatal(err)
		}
		return done, done.Cookie
	}
	live := func(cookie loom.Secret) bool {
		_, _, err := o.ActorBySession(o.ctx, cookie, "192.0.2.9")
		return err == nil
	}
	_, first := signIn("1", "eve", "s1")
	_, second := signIn("1", "eve", "s2")
	_, other := signIn("2", "bob", "s3")
	token := o.idp.Logout("a", map[string]any{"sub": "1", "sid": "s1"})
	if err := o.ProviderLogout(o.ctx, o.provider.ID, token); err != nil || live(first) || !live(second) || !live(other) {
		t.Errorf("by session: %v, %v %v %v", err, live(first), live(second), live(other))
	}
	_, third := signIn("1", "eve", "s1")
	if err := o.ProviderLogout(o.ctx, o.provider.ID, token); kind(err) != loom.Invalid || !live(third) {
		t.Errorf("the token once more: %v", err)
	}
	if err := o.ProviderLogout(o.ctx, o.provider.ID, o.idp.Logout("b", map[string]any{"sub": "1"})); err != nil || live(second) || live(third) || !live(other) {
		t.Errorf("by subject: %v, %v %v %v", err, live(second), live(third), live(other))
	}
	if err := o.ProviderLogout(o.ctx, o.provider.ID, idptest.Start(t).Logout("c", map[string]any{"sub": "2"})); err == nil || !live(other) {
		t.Errorf("a token of another provider: %v", err)
	}
	done, cookie := signIn("2", "bob", "s4")
	leave, err := o.SignOut(o.ctx, done.Actor, cookie)
	if err != nil || !strings.HasPrefix(leave, o.idp.Issuer+"/end?") || !strings.Contains(leave, "id_token_hint=ey") || live(cookie) {
		t.Errorf("signing out leads to %q, %v", leave, err)
	}
}

// Tokens of people without a password work for some time after a sign-in.
func TestTokensLapse(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	done, err := o.signInAs(t, person("1", "eve", "ops"))
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := o.CreateToken(o.ctx, done.Actor, account.NewToken{Name: "ci", Scopes: []loom.Scope{loom.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	works := func() bool {
		_, err := o.ActorByToken(o.ctx, account.TokenInput{Secret: secret})
		if err != nil && kind(err) != loom.Unauthenticated {
			t.Fatal(err)
		}
		return err == nil
	}
	seen := func(days int) {
		o.exec(t, fmt.Sprintf(`UPDATE identities SET seen_at = now() - interval '%d days'`, days))
	}
	if seen(29); !works() {
		t.Error("after 29 days the token does not work")
	}
	if seen(31); works() {
		t.Error("after 31 days the token works")
	}
	if _, err := o.UpdateIdentityProvider(o.ctx, o.admin, o.provider.ID, account.IdentityProviderInput{MaxAgeDays: ptr(60)}); err != nil || !works() {
		t.Errorf("with 60 days the token does not work: %v", err)
	}
	seen(90)
	if _, err := o.signInAs(t, person("1", "eve", "ops")); err != nil || !works() {
		t.Errorf("after the next sign-in the token does not work: %v", err)
	}
	seen(90)
	if _, err := o.UpdateUser(o.ctx, o.admin, "eve", account.UserChange{Password: ptr(loom.NewSecret("a password of her own"))}); err != nil || !works() {
		t.Errorf("with a password the token does not work: %v", err)
	}
}

// Where passwords are off, the built-in administrator gets in, and nobody else.
func TestPasswordsOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.UpdateSettings(b.ctx, b.admin, account.SettingsChange{LocalSignIn: ptr("nobody")}); kind(err) != loom.Invalid {
		t.Errorf("an unknown value: %v", err)
	}
	if _, err := b.UpdateSettings(b.ctx, b.admin, account.SettingsChange{LocalSignIn: ptr(loom.LocalBuiltin)}); err != nil {
		t.Fatal(err)
	}
	b.signIn(t, "demo", "admin")
	if _, _, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: "user", Password: b.passwords["demo/user"], Address: "192.0.2.1"}); kind(err) != loom.Unauthenticated {
		t.Errorf("a user signs in: %v", err)
	}
}

// A preview says who gains and loses what, and applying it does exactly that.
func TestRulesArePreviewed(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	admins := o.groupWith(t, o.admin, "Heads", loom.RoleAdmin)
	for i, groups := range [][]string{{"ops"}, {"ops", "heads"}, {"ops"}} {
		if _, err := o.signInAs(t, person(fmt.Sprint(i), fmt.Sprint("p", i), groups...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.AddMember(o.ctx, o.admin, o.group.ID, "p2"); err != nil { // by hand: rules do not take that
		t.Fatal(err)
	}
	next := []loom.IdentityRule{rule("groups", "heads", admins)}
	preview, err := o.PreviewIdentityRules(o.ctx, o.admin, o.provider.ID, next)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, c := range preview.Roles {
		got += fmt.Sprint(c.Gained, " ", c.Role, " ", c.Users, "; ")
	}
	if want := "false operator [p0 p1]; true admin [p1]; "; got != want {
		t.Errorf("the preview says %q, want %q", got, want)
	}
	if len(preview.Nowhere) != 1 || preview.Nowhere[0].User != "p0" || preview.Known != 3 || preview.Matched != 1 {
		t.Errorf("got %+v", preview)
	}
	// Something moves: the same rules mean something else now.
	if _, err := o.Bind(o.ctx, o.admin, account.BindingInput{User: "p0", Role: loom.RoleReader}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.SetIdentityRules(o.ctx, o.admin, o.provider.ID, next, preview.Hash); kind(err) != loom.Conflict {
		t.Errorf("an old preview is applied: %v", err)
	}
	o.rules(t, o.admin, o.provider.ID, next...)
	for user, want := range map[loom.UserID]string{"p0": "reader", "p1": "admin", "p2": "operator"} {
		u, err := o.User(o.ctx, o.admin, user)
		words := loom.Actor{Role: u.Role, Grants: u.Grants}.RoleWords()
		if err != nil || words != want {
			t.Errorf("%s has %q, want %q (%v)", user, words, want, err)
		}
	}
	if err := o.DeleteGroup(o.ctx, o.admin, admins.ID); kind(err) != loom.Conflict {
		t.Errorf("a group that a rule names is deleted: %v", err)
	}
	if err := o.DeleteIdentityProvider(o.ctx, o.admin, o.provider.ID); err != nil {
		t.Fatal(err)
	}
	if n := o.count(t, `SELECT count(*) FROM group_members WHERE source <> 'hand'`) + o.count(t, `SELECT count(*) FROM secrets WHERE entity LIKE 'identity-provider:%'`); n != 0 {
		t.Errorf("%d rows of the provider are left", n)
	}
}

func TestIdentityProvidersAreChecked(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	if _, err := o.signInAs(t, person("1", "eve", "ops")); err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]account.IdentityProviderInput{
		"name": {Name: ptr("")}, "issuer": {Issuer: ptr("https://login.example/{tenantid}/v2.0"), Secret: ptr(loom.NewSecret("x"))}, "userClaim": {UserClaim: ptr(" ")},
		"maxAgeDays": {MaxAgeDays: ptr(0)}, "subjectClaim": {SubjectClaim: ptr("oid")}, "clientSecret": {Secret: ptr(loom.NewSecret(""))},
	} {
		_, err := o.UpdateIdentityProvider(o.ctx, o.admin, o.provider.ID, in)
		if e := loom.AsError(err); err == nil || e.Kind != loom.Invalid || e.Fields[0].Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := o.CreateIdentityProvider(o.ctx, o.admin, account.IdentityProviderInput{Name: ptr("EXAMPLE"), Issuer: &o.idp.Issuer, ClientID: ptr("x"), Secret: ptr(loom.NewSecret("x"))}); kind(err) != loom.Conflict {
		t.Errorf("two of a name: %v", err)
	}
	moved := idptest.Start(t)
	if _, err := o.UpdateIdentityProvider(o.ctx, o.admin, o.provider.ID, account.IdentityProviderInput{Issuer: &moved.Issuer, Secret: ptr(loom.NewSecret("x"))}); kind(err) != loom.Invalid {
		t.Errorf("the issuer moves under its users: %v", err)
	}
	if _, err := o.CreateIdentityProvider(o.ctx, o.user, account.IdentityProviderInput{}); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user makes an identity provider: %v", err)
	}
	if _, err := o.UpdateIdentityProvider(o.ctx, o.admin, o.provider.ID, account.IdentityProviderInput{Enabled: ptr(false)}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.BeginAttempt(o.ctx, o.provider.ID, account.Attempt{}); kind(err) != loom.NotFound {
		t.Errorf("a provider that is off is signed in with: %v", err)
	}
}
