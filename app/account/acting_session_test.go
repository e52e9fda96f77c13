package account_test

import (
	"errors"
	"testing"

	"loom/app/account"
	"loom/app/loom"
)

// TestActAsTenant: a superadmin acts as the administrator of a tenant within his
// session, on record in both tenants, until he ends it or half an hour is over.
func TestActAsTenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.SetPassword(b.ctx, "superadmin", "admin", loom.NewSecret("correct horse battery")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateTenant(b.ctx, b.super, account.TenantInput{Name: "lab"}); err != nil {
		t.Fatal(err)
	}
	_, cookie, _, err := b.SignIn(b.ctx, account.SignInInput{Tenant: "superadmin", User: "admin", Password: loom.NewSecret("correct horse battery")})
	if err != nil {
		t.Fatal(err)
	}
	now := func() loom.Actor {
		t.Helper()
		actor, session, err := b.ActorBySession(b.ctx, cookie, "")
		if err != nil {
			t.Fatal(err)
		}
		if acts := actor.By != (loom.Account{}); acts == session.ActingUntil.IsZero() {
			t.Errorf("acts %v until %v", acts, session.ActingUntil)
		}
		return actor
	}
	for name, c := range map[string]struct {
		actor  loom.Actor
		tenant string
		kind   loom.Kind
	}{
		"an administrator": {b.admin, "lab", loom.Forbidden}, "in no tenant": {b.super, "nowhere", loom.NotFound}, "in his own": {b.super, "superadmin", loom.Invalid},
	} {
		if _, err := b.ActAsTenant(b.ctx, c.actor, cookie, c.tenant, "ticket 7"); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if actor := now(); !actor.Role.May(loom.Install) {
		t.Fatalf("he is %+v", actor)
	}
	if _, err := b.ActAsTenant(b.ctx, now(), cookie, "lab", "ticket 7"); err != nil {
		t.Fatal(err)
	}
	actor := now()
	if actor.TenantName != "lab" || actor.User != loom.AdminUser || actor.Role != loom.RoleAdmin || actor.Via != "session by superadmin/admin" || !actor.ActsAbroad() {
		t.Fatalf("he acts as %+v", actor)
	}
	if _, err := b.Tenants(b.ctx, actor); !errors.Is(err, loom.Forbidden) {
		t.Errorf("the administrator of a tenant lists all: %v", err)
	}
	if _, err := b.ActAsTenant(b.ctx, actor, cookie, "demo", "ticket 7"); !errors.Is(err, loom.Forbidden) {
		t.Errorf("he goes on to another tenant: %v", err)
	}
	const entries = `SELECT count(*) FROM audit WHERE verb = 'act_as' AND tenant_id = $1`
	if own, there := b.count(t, entries, loom.SuperTenant), b.count(t, entries, actor.Tenant); own != 1 || there != 1 {
		t.Errorf("%d entries in his tenant, %d there", own, there)
	}

	// Half an hour later.
	b.exec(t, `UPDATE sessions SET acting_until = now() WHERE acting_tenant IS NOT NULL`)
	if actor := now(); !actor.Role.May(loom.Install) {
		t.Errorf("afterwards he is %+v", actor)
	}
	again := func() loom.Actor {
		t.Helper()
		if _, err := b.ActAsTenant(b.ctx, now(), cookie, "lab", "ticket 7"); err != nil {
			t.Fatal(err)
		}
		return now()
	}
	// The administrator is disabled meanwhile.
	again()
	b.exec(t, `UPDATE users SET disabled = true WHERE tenant_id = $1 AND id = 'admin'`, actor.Tenant)
	if actor := now(); !actor.Role.May(loom.Install) {
		t.Errorf("as somebody disabled he is %+v", actor)
	}
	b.exec(t, `UPDATE users SET disabled = false WHERE tenant_id = $1`, actor.Tenant)
	// By his own wish.
	if err := b.EndActing(b.ctx, now(), cookie); err != nil {
		t.Fatal(err)
	}
	if actor := now(); !actor.Role.May(loom.Install) {
		t.Errorf("in the end he is %+v", actor)
	}
	if err := b.EndActing(b.ctx, now(), cookie); err != nil {
		t.Errorf("once more: %v", err)
	}
	// Signing out while he acts ends his own session.
	if _, err := b.SignOut(b.ctx, again(), cookie); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.ActorBySession(b.ctx, cookie, ""); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("after signing out: %v", err)
	}
}
