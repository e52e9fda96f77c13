package api

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/account"
	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
	"loom/app/testkit"
)

// worldTemplate is the database that worlds begin with, basis what they know of it: passwords
// are hashed once, not in each test.
var (
	worldTemplate testkit.Template
	basis         struct{ key, admin, user, second, foreign, super string }
)

// makeBasis makes the tenants, their users and the catalog.
func makeBasis(t *testing.T, db *testkit.Database) {
	t.Helper()
	ctx := t.Context()
	basis.key = secret.GenerateKey()
	w := &world{t: t, db: db}
	w.useCases()
	_, err := w.deps.Accounts.EnsureSuperadmin(ctx)
	w.must(err)
	basis.super = w.token("superadmin", "admin", loom.ScopeAdmin)
	for _, name := range []string{"acme", "other"} {
		tenant, err := w.deps.Accounts.CreateTenant(ctx, superActor, account.TenantInput{Name: name})
		w.must(err)
		for _, id := range []loom.UserID{"ana", "ben"} { // the administrator came with the tenant
			w.tx(func(tx *sqlx.Tx) error { // no password: nobody signs in with one
				_, err := store.InsertUser(ctx, tx, tenant.ID, loom.User{ID: id, Role: loom.RoleUser}, "")
				return err
			})
		}
	}
	basis.admin, basis.user = w.token("acme", "admin", loom.ScopeAdmin), w.token("acme", "ana", loom.ScopeAdmin)
	basis.second, basis.foreign = w.token("acme", "ben", loom.ScopeAdmin), w.token("other", "admin", loom.ScopeAdmin)
	w.loadCatalog("acme")
}

// useCases makes those that makeBasis needs, and gives the ring of all.
func (w *world) useCases() *secret.Ring {
	w.t.Helper()
	ring, err := secret.ParseKeys(basis.key)
	w.must(err)
	cat, err := catalog.New(w.db.DB, ring, "file://"+w.t.TempDir())
	w.must(err)
	w.t.Cleanup(func() { cat.Close() })
	accounts := account.New(w.db.DB, ring)
	accounts.Resources = cat
	w.deps.Accounts, w.deps.Catalog = accounts, cat
	return ring
}
