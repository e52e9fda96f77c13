package store_test

import (
	"context"
	"maps"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// What the audit keeps of deleted entries is held against the test of tenants as well.
func init() {
	maps.Copy(trespassers, map[string]trespasser{
		"FindCatalog": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.FindCatalog(ctx, tx, t, loom.EntityKinds, "", true, 100)
		},
		"DeletedCatalogEntries": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			found, err := store.DeletedCatalogEntries(ctx, tx, t, loom.KindService, "", 10)
			return leak(len(found) > 0), err
		},
		"CatalogWeight": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			weight, err := store.CatalogWeight(ctx, tx, t, loom.EntityKinds...)
			return leak(weight > 0), err
		},
		"LargestCatalogEntries": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.LargestCatalogEntries(ctx, tx, t, 10, loom.EntityKinds...)
		},
		"DeletedCatalogEntry": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.DeletedCatalogEntry(ctx, tx, t, loom.KindService, 998)
		},
	})
}
