package store_test

import (
	"context"
	"maps"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// What pages count, and nodes without what was learned of them.
func init() {
	maps.Copy(trespassers, map[string]trespasser{
		"OperationUncounted": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.OperationUncounted(ctx, tx, t, ownOperation)
		},
		"NodesBriefly": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			nodes, err := store.NodesBriefly(ctx, tx, t, 1)
			return leak(len(nodes) > 0), err
		},
		"OperationsWithoutOne": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.OperationsInRange(ctx, tx, t, 1, store.OperationFilter{Uncounted: 1}, store.NumberRange{Down: true, Limit: 5})
		},
	})
}
