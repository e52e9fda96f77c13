package store_test

import (
	"context"
	"maps"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// What the editors of the catalog read and keep is held against the test of
// tenants as well.
func init() {
	maps.Copy(trespassers, map[string]trespasser{
		"SecretStamps": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			stamps, err := store.SecretStamps(ctx, tx, t, "provider:"+mark)
			return leak(len(stamps) > 0), err
		},
		"NewestProbes": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			probes, err := store.NewestProbes(ctx, tx, t)
			return leak(len(probes) > 0), err
		},
		"Draft": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			sealed, _, err := store.Draft(ctx, tx, t, "provider:"+mark, "pin", time.Hour)
			return leak(len(sealed) > 0), err
		},
	})
}
