package store_test

import (
	"context"
	"maps"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Which files services ran.
func init() {
	maps.Copy(trespassers, map[string]trespasser{
		"ChangedFiles": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.ChangedFiles(ctx, tx, t, false, 1)
		},
		"ReleasedFiles": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			files, err := store.ReleasedFiles(ctx, tx, t, loom.OperationRef{Cluster: 1, Number: 1})
			return leak(len(files) > 0), err
		},
		"FileUses": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			uses, err := store.FileUses(ctx, tx, t, ownRef)
			return leak(len(uses) > 0), err
		},
	})
}
