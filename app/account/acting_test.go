package account_test

import (
	"errors"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/loom"
)

// as gives the actor of a new token of an actor, acting as another.
func (b *bundle) as(t *testing.T, owner loom.Actor, name, tenant, user string) loom.Actor {
	t.Helper()
	_, secret, err := b.CreateToken(b.ctx, owner, account.NewToken{Name: name, Scopes: []loom.Scope{loom.ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	actor, err := b.ActorByToken(b.ctx, account.TokenInput{Secret: secret, AsTenant: tenant, AsUser: user})
	if err != nil {
		t.Fatal(err)
	}
	return actor
}

// TestEntriesNameWhoReallyActed changes something as another user, and verifies
// the chain over what that wrote.
func TestEntriesNameWhoReallyActed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		owner             loom.Actor
		name, user, wants string
	}{
		{b.admin, "desk", "user", "token:desk by admin"},
		{b.super, "ops", "user", "token:ops by superadmin/admin"},
		{b.super, "ops 2", "admin", "token:ops 2 by superadmin/admin"},
		{b.user, "plain", "user", "token:plain"},
		// A name that looks as if somebody else had acted.
		{b.user, "x by admin", "user", "token:x “by” admin"},
		{b.user, "x\u00a0BY  superadmin/admin", "user", "token:x “BY” superadmin/admin"},
	} {
		actor := b.as(t, c.owner, c.name, "demo", c.user)
		if _, err := b.UpdateSelf(b.ctx, actor, account.SelfInput{DisplayName: ptr(c.name)}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := b.RecordRefused(b.ctx, actor, "create", "tenant", "tenants", "no"); err != nil {
			t.Fatal(err)
		}
		list, err := b.Audit(b.ctx, b.admin, account.AuditInput{Page: loom.Page{Limit: 1}, AuditFilter: account.AuditFilter{Verbs: []string{"update"}, Actors: []string{c.user}}})
		if err != nil || len(list.Items) != 1 || list.Items[0].Actor.Via != c.wants {
			t.Errorf("%s: %+v, %v; want via %q", c.name, list.Items, err, c.wants)
		}
	}
	// Refusals are limited for each one who acts, so none hides behind another: two
	// ways to be user, one of them by two tokens of his own, and one to be admin.
	for user, want := range map[string]int{"user": 3, "admin": 1} {
		if n := b.count(t, `SELECT count(*) FROM audit WHERE result = 'refused' AND actor = $1`, user); n != want {
			t.Errorf("%d refusals of %s, want %d", n, user, want)
		}
	}
	// Other databases of the server hold transactions open too: linking may wait.
	for range 400 {
		if err := b.LinkAudit(b.ctx); err != nil {
			t.Fatal(err)
		}
		if b.count(t, `SELECT count(*) FROM audit WHERE link IS NULL`) == 0 {
			break
		}
		b.exec(t, `SELECT pg_sleep(0.05)`)
	}
	report, err := b.VerifyAudit(b.ctx, account.AuditMark{})
	if err != nil || report.Broken != "" || report.Entries == 0 || report.Waiting != 0 {
		t.Errorf("the chain: %+v, %v", report, err)
	}
}

// TestFirstAdministrator: a tenant comes with its administrator, whom a superadmin
// gives a password.
func TestFirstAdministrator(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lab, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	const admins = `SELECT count(*) FROM users u JOIN tenants t ON t.id = u.tenant_id WHERE t.name = 'lab' AND u.id = 'admin' AND u.role = 'admin'`
	if n := b.count(t, admins+` AND u.password_hash IS NULL`); n != 1 {
		t.Fatalf("%d administrators without a password", n)
	}
	if n := b.count(t, `SELECT count(*) FROM audit WHERE tenant_id = $1 AND verb = 'create' AND kind = 'user' AND object = 'admin'`, lab.ID); n != 1 {
		t.Errorf("%d entries about the administrator", n)
	}
	super := b.as(t, b.super, "s", "lab", "")
	change := func(actor loom.Actor, text string, old *loom.Secret) error {
		password := loom.NewSecret(text)
		_, err := b.UpdateUser(b.ctx, actor, loom.AdminUser, account.UserChange{Password: &password, OldPassword: old})
		return err
	}
	for _, text := range []string{"the first password", "the second password"} { // also when there is one
		if err := change(super, text, nil); err != nil {
			t.Errorf("a superadmin from elsewhere: %v", err)
		}
	}
	if _, _, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "lab", User: "admin", Password: loom.NewSecret("the second password")}); err != nil {
		t.Errorf("sign-in: %v", err)
	}
	own := loom.Actor{Tenant: lab.ID, TenantName: "lab", User: loom.AdminUser, Role: loom.RoleAdmin, Via: "token:x"}
	wrong := loom.NewSecret("not the password")
	for name, err := range map[string]error{
		"his own without the present one": change(own, "a third password", nil),
		"his own with a wrong one":        change(own, "a third password", &wrong),
		"a superadmin's own":              change(b.super, "a third password", nil),
		"acting in the own tenant":        change(b.as(t, b.super, "t", "superadmin", "admin"), "a third password", nil),
	} {
		if !errors.Is(err, loom.Invalid) || fieldsOf(err) != "oldPassword" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Who has none stored needs none, and sets it once without.
	b.exec(t, `UPDATE users SET password_hash = NULL WHERE tenant_id = $1`, lab.ID)
	if err := change(own, "a third password", nil); err != nil {
		t.Errorf("the first password of his own: %v", err)
	}
	if err := change(own, "a fourth password", nil); fieldsOf(err) != "oldPassword" {
		t.Errorf("the next one: %v", err)
	}

	// An older release left tenants without: acting there makes nobody, changing the
	// tenant does.
	b.exec(t, `DELETE FROM users WHERE tenant_id = $1`, lab.ID)
	_, secret, err := b.CreateToken(b.ctx, b.super, account.NewToken{Name: "u", Scopes: []loom.Scope{loom.ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.ActorByToken(b.ctx, account.TokenInput{Secret: secret, AsTenant: "lab"})
	if !errors.Is(err, loom.NotFound) || !strings.Contains(loom.AsError(err).Message, "loom user create admin --tenant lab") || b.count(t, admins) != 0 {
		t.Errorf("acting as nobody: %v", err)
	}
	for range 2 {
		if _, err := b.UpdateTenant(b.ctx, b.super, "lab", account.TenantInput{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.count(t, admins); n != 1 {
		t.Errorf("%d administrators after a change of the tenant", n)
	}
	_, password, err := b.CreateTenantWithSignIn(b.ctx, b.super, account.TenantInput{Name: "field"})
	if right, e := b.PasswordUnused(b.ctx, "field", loom.AdminUser, password); err != nil || e != nil || !right {
		t.Errorf("a tenant with sign-in: %v, %v, %v", err, e, right)
	}
}

// TestUsersOfTheCommandLine: messages name the command that helps.
func TestUsersOfTheCommandLine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, _, tokenErr := b.CreateTokenFor(b.ctx, b.super, "demo", "eve", account.NewToken{Name: "x", Scopes: []loom.Scope{loom.ScopeRead}})
	_, passwordErr := b.SetPassword(b.ctx, "demo", "eve", loom.Secret{})
	for name, err := range map[string]error{"token": tokenErr, "password": passwordErr} {
		if !errors.Is(err, loom.NotFound) || !strings.Contains(loom.AsError(err).Message, "“loom user create eve --tenant demo”") {
			t.Errorf("%s: %v", name, err)
		}
	}
	password, err := b.CreateUserIn(b.ctx, "demo", "eve", loom.RoleAdmin)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "demo", User: "eve", Password: password}); err != nil {
		t.Errorf("sign-in: %v", err)
	}
	if _, err := b.CreateUserIn(b.ctx, "demo", "eve", ""); !errors.Is(err, loom.Conflict) || !strings.Contains(loom.AsError(err).Message, "“loom user password eve --tenant demo”") {
		t.Errorf("a second eve: %v", err)
	}
	if _, err := b.CreateUserIn(b.ctx, "nowhere", "eve", ""); !errors.Is(err, loom.NotFound) {
		t.Errorf("in no tenant: %v", err)
	}
}

// TestAuditOfDeletedTenants finds what was done in tenants that are no more.
func TestAuditOfDeletedTenants(t *testing.T) {
	t.Parallel()
	b := setup(t)
	create := func() {
		t.Helper()
		if _, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: "lab"}); err != nil {
			t.Fatal(err)
		}
	}
	entries := func(want int) {
		t.Helper()
		list, err := b.Audit(b.ctx, b.super, account.AuditInput{Tenant: "lab"})
		if err != nil || len(list.Items) != want {
			t.Fatalf("%d entries, %v; want %d", len(list.Items), err, want)
		}
		for _, e := range list.Items {
			if e.Actor.TenantName != "lab" || e.Object != "admin" {
				t.Errorf("entry %+v", e)
			}
		}
	}
	remove := func() {
		t.Helper()
		if err := b.DeleteTenant(b.ctx, b.super, "lab"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Audit(b.ctx, b.super, account.AuditInput{Tenant: "lab"}); !errors.Is(err, loom.NotFound) {
		t.Errorf("of a tenant that never was: %v", err)
	}
	create()
	entries(1)
	remove()
	entries(1)
	if _, err := b.Audit(b.ctx, b.admin, account.AuditInput{Tenant: "lab"}); !errors.Is(err, loom.Forbidden) {
		t.Errorf("by another tenant's administrator: %v", err)
	}
	create()
	entries(1) // the one that is there now
	remove()
	entries(2)
	page, err := b.Audit(b.ctx, b.super, account.AuditInput{Tenant: "lab", Page: loom.Page{Limit: 1}})
	if err != nil || len(page.Items) != 1 || page.Next == "" {
		t.Fatalf("a page: %+v, %v", page, err)
	}
	next, err := b.Audit(b.ctx, b.super, account.AuditInput{Tenant: "lab", Page: loom.Page{Limit: 1, After: page.Next}})
	if err != nil || len(next.Items) != 1 || next.Items[0].ID == page.Items[0].ID {
		t.Errorf("the next page: %+v, %v", next, err)
	}
}
