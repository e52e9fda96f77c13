package account_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
	"loom/app/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const goodKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGxFqpl6X1gXHUXcYbYv0Zc7TtH0K0K0x1VYqZb8mQmN ana@laptop"

// bundle is an installation after its first start.
type bundle struct {
	*account.Accounts
	ctx       context.Context
	db        *testkit.Database
	ring      *secret.Ring
	passwords map[string]loom.Secret // "tenant/user"
	super     loom.Actor
	admin     loom.Actor // of demo
	user      loom.Actor // of demo
}

func empty(t *testing.T) bundle {
	t.Helper()
	return bundleOn(t, testkit.NewDatabase(t), secret.GenerateKey())
}

func bundleOn(t *testing.T, db *testkit.Database, key string) bundle {
	t.Helper()
	ring, err := secret.ParseKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	return bundle{Accounts: account.New(db.DB, ring), ctx: context.Background(), db: db, ring: ring, passwords: map[string]loom.Secret{}}
}

// started is the database after a first start, startedWith what belongs to it: passwords
// are hashed once, not in each test.
var (
	started     testkit.Template
	startedWith struct {
		key       string
		passwords map[string]loom.Secret
	}
)

func setup(t *testing.T) bundle {
	t.Helper()
	db := started.NewDatabase(t, func(db *testkit.Database) {
		startedWith.key = secret.GenerateKey()
		b := bundleOn(t, db, startedWith.key)
		supers, err := b.EnsureSuperadmin(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		demos, err := b.EnsureDemo(b.ctx, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range append(supers, demos...) {
			b.passwords[m.Tenant+"/"+string(m.User)] = m.Password
		}
		startedWith.passwords = b.passwords
	})
	b := bundleOn(t, db, startedWith.key)
	b.passwords = maps.Clone(startedWith.passwords)
	demo, err := store.TenantByNameAllTenants(b.ctx, b.db, "demo")
	if err != nil {
		t.Fatal(err)
	}
	b.super = loom.Actor{Tenant: loom.SuperTenant, TenantName: "superadmin", User: "admin", Role: loom.RoleSuperadmin, Via: "session"}
	b.admin = loom.Actor{Tenant: demo.ID, TenantName: "demo", User: "admin", Role: loom.RoleAdmin, Via: "session"}
	b.user = loom.Actor{Tenant: demo.ID, TenantName: "demo", User: "user", Role: loom.RoleUser, Via: "session"}
	return b
}

func (b bundle) signIn(t *testing.T, tenant, user string) (loom.Actor, loom.Secret) {
	t.Helper()
	actor, cookie, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: tenant, User: user, Password: b.passwords[tenant+"/"+user], Address: "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	return actor, cookie
}

func (b bundle) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := b.db.ExecContext(b.ctx, query, args...); err != nil {
		t.Fatal(err)
	}
}

func (b bundle) count(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	if err := b.db.GetContext(b.ctx, &n, query, args...); err != nil {
		t.Fatal(err)
	}
	return n
}

func fieldsOf(err error) string {
	var fields []string
	for _, f := range loom.AsError(err).Fields {
		fields = append(fields, f.Field)
	}
	return strings.Join(fields, " ")
}

func TestUsers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made, password, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "ana", DisplayName: "Ana", Email: "ana@example.org", SSHKeys: []string{" " + goodKey + "\n"}})
	if err != nil {
		t.Fatal(err)
	}
	if made.Role != loom.RoleUser || made.Tenant != b.admin.Tenant || len(made.SSHKeys) != 1 || made.SSHKeys[0] != goodKey || password.IsZero() {
		t.Errorf("made %+v, password %v", made, !password.IsZero())
	}
	b.passwords["demo/ana"] = password
	b.signIn(t, "demo", "ana")
	if _, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "ana"}); !errors.Is(err, loom.Conflict) || fieldsOf(err) != "id" {
		t.Errorf("a second ana: %v", err)
	}
	if _, _, err := b.CreateUser(b.ctx, b.user, account.UserInput{ID: "eve"}); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user makes users: %v", err)
	}
	for want, in := range map[string]account.UserInput{
		"id":          {ID: " "},
		"role":        {ID: "x", Role: loom.RoleSuperadmin},
		"email":       {ID: "x", Email: "no address"},
		"displayName": {ID: "x", DisplayName: strings.Repeat("x", 201)},
		"password":    {ID: "x", Password: loom.NewSecret("short")},
		"sshKeys[1]":  {ID: "x", SSHKeys: []string{goodKey, "ssh-ed25519 nonsense"}},
		"sshKeys[0]":  {ID: "x", SSHKeys: []string{`command="reboot" ` + goodKey}},
	} {
		if _, _, err := b.CreateUser(b.ctx, b.admin, in); !errors.Is(err, loom.Invalid) || fieldsOf(err) != want {
			t.Errorf("%s: fields %q, %v", want, fieldsOf(err), err)
		}
	}
	if _, _, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "x", SSHKeys: []string{"-----BEGIN OPENSSH PRIVATE KEY-----"}}); err == nil || !strings.Contains(err.Error(), "private key") {
		t.Errorf("a private key: %v", err)
	}

	name, mail := "User One", "one@example.org"
	u, err := b.UpdateSelf(b.ctx, b.user, account.SelfInput{DisplayName: &name, Email: &mail, SSHKeys: []string{goodKey}})
	if err != nil || u.DisplayName != name || u.Email != mail || len(u.SSHKeys) != 1 {
		t.Errorf("UpdateSelf: %+v, %v", u, err)
	}
	if u, err = b.UpdateSelf(b.ctx, b.user, account.SelfInput{SSHKeys: []string{}}); err != nil || len(u.SSHKeys) != 0 || u.Email != mail {
		t.Errorf("UpdateSelf without keys: %+v, %v", u, err)
	}
	if _, err := b.User(b.ctx, b.user, "ana"); !errors.Is(err, loom.NotFound) {
		t.Errorf("a user looks at another one: %v", err)
	}
	if u, err := b.User(b.ctx, b.admin, "ana"); err != nil || u.Email != "ana@example.org" {
		t.Errorf("an administrator looks at a user: %+v, %v", u, err)
	}

	yes := true
	_, cookie := b.signIn(t, "demo", "ana")
	ana := loom.Actor{Tenant: b.admin.Tenant, TenantName: "demo", User: "ana", Role: loom.RoleUser, Via: "session"}
	_, token, err := b.CreateToken(b.ctx, ana, account.NewToken{Name: "t", Scopes: []loom.Scope{loom.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.UpdateUser(b.ctx, b.admin, "ana", account.UserChange{Disabled: &yes}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.ActorBySession(b.ctx, cookie, ""); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("session of a disabled user: %v", err)
	}
	if _, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: token}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("token of a disabled user: %v", err)
	}
	if _, _, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: "ana", Password: password}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("sign-in of a disabled user: %v", err)
	}
	if _, err := b.UpdateUser(b.ctx, b.admin, "admin", account.UserChange{Disabled: &yes}); !errors.Is(err, loom.Conflict) {
		t.Errorf("disabling the built-in administrator: %v", err)
	}
}

func TestAnswersAreKeptForRepeatedRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begin := func(actor loom.Actor, key, path, body string) (*account.Answer, error) {
		return b.BeginOnce(b.ctx, actor, key, path, []byte(body))
	}
	if got, err := begin(b.user, "k", "/v2/clusters", "{}"); got != nil || err != nil {
		t.Fatalf("first: %v, %v", got, err)
	}
	if _, err := begin(b.user, "k", "/v2/clusters", "{}"); !errors.Is(err, loom.Conflict) || loom.AsError(err).RetryAfter == 0 {
		t.Errorf("while it is worked on: %v", err)
	}
	if got, err := begin(b.admin, "k", "/v2/clusters", "{}"); got != nil || err != nil {
		t.Errorf("another user's key of the same name: %v, %v", got, err)
	}
	if err := b.FinishOnce(b.ctx, b.user, "k", account.Answer{Status: 200, Response: []byte(`{"id":"1"}`)}); err != nil {
		t.Fatal(err)
	}
	if got, err := begin(b.user, "k", "/v2/clusters", "{}"); err != nil || got == nil || got.Status != 200 || string(got.Response) != `{"id":"1"}` {
		t.Errorf("repeated: %+v, %v", got, err)
	}
	for name, other := range map[string][2]string{"body": {"/v2/clusters", "{} "}, "path": {"/v2/tokens", "{}"}} {
		if _, err := begin(b.user, "k", other[0], other[1]); !errors.Is(err, loom.Conflict) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if err := b.ForgetOnce(b.ctx, b.admin, "k"); err != nil {
		t.Fatal(err)
	}
	if got, err := begin(b.admin, "k", "/other", ""); got != nil || err != nil {
		t.Errorf("a key given back: %v, %v", got, err)
	}
	b.exec(t, `UPDATE idempotency_keys SET created_at = now() - interval '25 hours'`)
	if got, err := begin(b.user, "k", "/other", ""); got != nil || err != nil {
		t.Errorf("a key of yesterday: %v, %v", got, err)
	}
	for _, key := range []string{"", strings.Repeat("x", 256), "a\nb", "ü"} {
		if _, err := begin(b.user, key, "/", ""); !errors.Is(err, loom.Invalid) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

func ptr[T any](v T) *T { return &v }
