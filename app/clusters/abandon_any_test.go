package clusters_test

import (
	"testing"

	"loom/app/loom"
)

// TestAbandonIn: superadmins alone give up leftovers of any tenant, and the tenant's
// audit says who it was.
func TestAbandonIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.leave()
	super := loom.Actor{Tenant: loom.SuperTenant, TenantName: "superadmin", User: "root", Role: loom.RoleSuperadmin, Via: "session"}
	tenant := loom.Tenant{ID: b.admin().Tenant, Name: b.admin().TenantName}
	wantKind(t, b.clusters.AbandonIn(b.ctx, b.admin(), tenant, id), loom.Forbidden)
	wantKind(t, b.clusters.AbandonIn(b.ctx, super, loom.Tenant{ID: loom.SuperTenant, Name: "superadmin"}, id), loom.NotFound)
	if err := b.clusters.AbandonIn(b.ctx, super, tenant, id); err != nil {
		t.Fatal(err)
	}
	if n := b.count(`SELECT count(*) FROM leftovers WHERE ending = 'abandoned'`); n != 2 {
		t.Errorf("%d leftovers were given up, want 2", n)
	}
	if n := b.count(`SELECT count(*) FROM audit WHERE verb = 'delete' AND kind = 'cluster' AND actor = 'admin' AND via = 'session by superadmin/root'`); n != 1 {
		t.Errorf("%d audit entries name the superadmin, want 1", n)
	}
}
