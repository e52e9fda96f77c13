package account_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"loom/app/account"
	"loom/app/loom"
)

func TestTenantSettings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got, err := b.Settings(b.ctx, b.user)
	if err != nil || !reflect.DeepEqual(got, loom.DefaultSettings()) {
		t.Fatalf("at first %+v, %v", got, err)
	}
	if _, err := b.UpdateSettings(b.ctx, b.user, account.SettingsChange{}); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user changes settings: %v", err)
	}
	for want, in := range map[string]account.SettingsChange{
		"leaseReminderHours[1]": {LeaseReminderHours: []int{1, 0}},
		"leaseReminderHours[0]": {LeaseReminderHours: []int{8761}},
		"leaseReminderHours":    {LeaseReminderHours: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		"leaseGraceHours":       {LeaseGraceHours: ptr(-1)},
		"maxTokenDays":          {MaxTokenDays: ptr(0)},
		"repairsPerDay":         {RepairsPerDay: ptr(1001)},
	} {
		if _, err := b.UpdateSettings(b.ctx, b.admin, in); !errors.Is(err, loom.Invalid) || fieldsOf(err) != want {
			t.Errorf("%s: %v", want, err)
		}
	}
	got, err = b.UpdateSettings(b.ctx, b.admin, account.SettingsChange{LeaseReminderHours: []int{1, 48, 1}, RequireLease: ptr(true), MaxTokenDays: ptr(10), AutomaticRepairs: ptr(false), RepairsPerDay: ptr(0)})
	want := loom.Settings{LeaseReminderHours: []int{48, 1}, MaxTokenDays: ptr(10), RequireLease: true, LocalSignIn: loom.LocalEveryone}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("changed %+v, %v", got, err)
	}
	token, _, err := b.CreateToken(b.ctx, b.user, account.NewToken{Name: "x", Scopes: []loom.Scope{loom.ScopeRead}})
	if days := time.Until(token.Expires).Hours() / 24; err != nil || days > 10.1 || days < 9.9 {
		t.Errorf("a token lives %.1f days, %v", days, err)
	}
	got, err = b.UpdateSettings(b.ctx, b.admin, account.SettingsChange{EndlessTokens: true, LeaseReminderHours: []int{}, LeaseGraceHours: ptr(3)})
	want = loom.Settings{LeaseReminderHours: []int{}, LeaseGraceHours: 3, RequireLease: true, LocalSignIn: loom.LocalEveryone}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("changed again %+v, %v", got, err)
	}
	if again, err := b.Settings(b.ctx, b.user); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("read again %+v, %v", again, err)
	}
	if other, err := b.Settings(b.ctx, b.super); err != nil || other.RequireLease {
		t.Errorf("settings of another tenant: %+v, %v", other, err)
	}
	if token, _, err = b.CreateToken(b.ctx, b.user, account.NewToken{Name: "x", Scopes: []loom.Scope{loom.ScopeRead}}); err != nil || !token.Expires.IsZero() {
		t.Errorf("a token for ever %+v, %v", token, err)
	}
}

func TestUserProfile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.Profile(b.ctx, b.user); !errors.Is(err, loom.NotFound) {
		t.Errorf("no profile: %v", err)
	}
	if err := b.SetProfile(b.ctx, b.user, nil); err != nil {
		t.Errorf("deleting none: %v", err)
	}
	written := `{"big":12345678901234567890123,"deep":[[1e3]],"five":5.0,"html":"<b>&","zero":-0}`
	var fields map[string]any
	d := json.NewDecoder(strings.NewReader(written))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		t.Fatal(err)
	}
	if err := b.SetProfile(b.ctx, b.user, fields); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Profile(b.ctx, b.user); err != nil || string(got) != written {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := b.Profile(b.ctx, b.admin); !errors.Is(err, loom.NotFound) {
		t.Errorf("the profile of another user: %v", err)
	}
	if err := b.SetProfile(b.ctx, b.user, map[string]any{"a": strings.Repeat("x", account.MaxProfile)}); !errors.Is(err, loom.Invalid) {
		t.Errorf("a profile that is too large: %v", err)
	}
	if err := b.SetProfile(b.ctx, scoped(b.user, loom.ScopeRead), nil); !errors.Is(err, loom.Forbidden) {
		t.Errorf("with the scope read: %v", err)
	}
	if err := b.SetProfile(b.ctx, b.user, map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Profile(b.ctx, b.user); err != nil || string(got) != "{}" {
		t.Errorf("an empty profile is %s, %v", got, err)
	}
	if err := b.SetProfile(b.ctx, b.user, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Profile(b.ctx, b.user); !errors.Is(err, loom.NotFound) {
		t.Errorf("after deleting: %v", err)
	}
}

func TestTenantDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `UPDATE tenants SET workers = 0`)
	b.exec(t, `INSERT INTO processes (id, kind, host, capacity, expires_at) VALUES ('p', 'provisioner', 'h', 50, now() + interval '1 hour'), ('dead', 'provisioner', 'h', 50, now() - interval '1 s')`)
	_, cookie := b.signIn(t, "demo", "user")
	_, secret, err := b.CreateToken(b.ctx, b.user, account.NewToken{Name: "t", Scopes: []loom.Scope{loom.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, `INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		VALUES (1, $1, 'user', 'c', 'pending', 't', 1, '{}', 'p', '{}', '{}')`, b.user.Tenant)
	refused := func(name string, actor loom.Actor, tenant string, want loom.Kind) {
		t.Helper()
		if err := b.DeleteTenant(b.ctx, actor, tenant); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused("by its administrator", b.admin, "demo", loom.Forbidden)
	refused("the built-in one", b.super, "superadmin", loom.Forbidden)
	refused("with a live cluster", b.super, "demo", loom.Conflict)
	b.exec(t, `UPDATE clusters SET status = 'terminated'`)
	b.exec(t, `INSERT INTO worker_assignments (tenant_id, process_id, workers) VALUES ($1, 'p', 2), ($1, 'dead', 2)`, b.user.Tenant)
	refused("with workers that are being given back", b.super, "demo", loom.Conflict)
	b.exec(t, `UPDATE tenants SET workers = 2 WHERE name = 'demo'`)
	refused("with workers", b.super, "demo", loom.Conflict)
	b.exec(t, `DELETE FROM worker_assignments WHERE process_id = 'p'`)
	if _, _, err := b.ActorBySession(b.ctx, cookie, ""); err != nil {
		t.Errorf("refused deletions ended a session: %v", err)
	}
	for range 2 { // the second finds nothing, which is no error
		if err := b.DeleteTenant(b.ctx, b.super, "demo"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.ActorBySession(b.ctx, cookie, ""); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("session of a deleted tenant: %v", err)
	}
	if _, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("token of a deleted tenant: %v", err)
	}
	if _, _, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: "user", Password: b.passwords["demo/user"]}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("sign-in to a deleted tenant: %v", err)
	}
	if _, err := b.ActorByHeaders(b.ctx, account.HeaderInput{User: "user", Tenant: "demo"}); !errors.Is(err, loom.NotFound) {
		t.Errorf("headers of a deleted tenant: %v", err)
	}
	if _, err := b.Tenant(b.ctx, b.super, "demo"); !errors.Is(err, loom.NotFound) {
		t.Errorf("a deleted tenant: %v", err)
	}
	again, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: "demo"})
	if err != nil || again.ID == b.user.Tenant {
		t.Fatalf("the name again: %+v, %v", again, err)
	}
	if _, _, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: "user", Password: b.passwords["demo/user"]}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("a user of the old tenant signs in to the new one: %v", err)
	}
	if _, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("a token of the old tenant: %v", err)
	}
}

// TestTenantWorkersAtOnce raises workers of many tenants at the same moment: no
// more are given than there are.
func TestTenantWorkersAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `UPDATE tenants SET workers = 0`)
	b.exec(t, `INSERT INTO processes (id, kind, host, capacity, expires_at) VALUES ('p', 'provisioner', 'h', 10, now() + interval '1 hour')`)
	names := []string{"a", "b", "c", "d", "e", "f"}
	ended := make(chan error, len(names))
	for _, name := range names {
		go func() {
			_, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: name, Workers: ptr(4)})
			ended <- err
		}()
	}
	made := 0
	for range names {
		switch err := <-ended; {
		case err == nil:
			made++
		case !errors.Is(err, loom.Conflict):
			t.Error(err)
		}
	}
	if made != 2 {
		t.Errorf("%d tenants got 4 of 10 workers each", made)
	}
}

// TestTenantAuditHoldsNoSecrets does everything that has to do with secrets and
// looks for them in the audit.
func TestTenantAuditHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var secrets []string
	keep := func(s loom.Secret) { secrets = append(secrets, s.Reveal()) }
	for _, password := range b.passwords {
		keep(password)
	}
	_, made, err := b.CreateUser(b.ctx, b.admin, account.UserInput{ID: "ana"})
	if err != nil {
		t.Fatal(err)
	}
	keep(made)
	b.passwords["demo/ana"] = made
	ana, cookie := b.signIn(t, "demo", "ana")
	keep(cookie)
	fresh := loom.NewSecret("a brand new password")
	keep(fresh)
	if err := b.ChangePassword(b.ctx, ana, made, fresh, cookie, false); err != nil {
		t.Fatal(err)
	}
	if ana, _, err = b.ActorBySession(b.ctx, cookie, ""); err != nil {
		t.Fatal(err)
	}
	token, secret, err := b.CreateToken(b.ctx, ana, account.NewToken{Name: "t", Scopes: []loom.Scope{loom.ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	keep(secret)
	if _, secret, err = b.RotateToken(b.ctx, ana, token.ID); err != nil {
		t.Fatal(err)
	}
	keep(secret)
	if _, err := b.UpdateSettings(b.ctx, b.admin, account.SettingsChange{MaxTokenDays: ptr(30)}); err != nil {
		t.Fatal(err)
	}
	if err := b.SetProfile(b.ctx, ana, map[string]any{"note": fresh.Reveal()}); err != nil {
		t.Fatal(err)
	}
	sessions, err := b.Sessions(b.ctx, ana)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		if err := b.EndSession(b.ctx, ana, s.ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.RevokeToken(b.ctx, ana, token.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.DeleteUser(b.ctx, b.admin, "ana"); err != nil {
		t.Fatal(err)
	}
	var hashes []string
	if err := b.db.SelectContext(b.ctx, &hashes, `SELECT password_hash FROM users WHERE password_hash IS NOT NULL`); err != nil {
		t.Fatal(err)
	}
	secrets = append(secrets, hashes...)
	var rows []string
	if err := b.db.SelectContext(b.ctx, &rows, `SELECT verb || ' ' || kind || ': ' || a::text FROM audit a`); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(rows, "\n")
	for _, s := range secrets {
		if len(s) < 10 || strings.Contains(all, s) {
			t.Errorf("the audit holds the secret %.9s…", s)
		}
	}
	if strings.Contains(all, "argon2id") {
		t.Error("the audit holds a hash")
	}
	for _, change := range []string{
		"create user", "update user", "delete user", "create token", "update token", "delete token", "sign_in session", "delete session",
		"update settings", "create profile", "create tenant",
	} {
		if !strings.Contains(all, change) {
			t.Errorf("the audit lacks %q in\n%s", change, all)
		}
	}
	var days string
	err = b.db.GetContext(b.ctx, &days, `SELECT concat(before->>'maxTokenDays', ' to ', after->>'maxTokenDays') FROM audit WHERE kind = 'settings'`)
	if err != nil || days != "365 to 30" {
		t.Errorf("the audit says that settings went from %s, %v", days, err)
	}
}
