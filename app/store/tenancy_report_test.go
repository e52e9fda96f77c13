package store_test

import (
	"context"
	"maps"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// What pages tell of the past, and acting in another tenant.
func init() {
	maps.Copy(trespassers, map[string]trespasser{
		"Activity": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			list, err := store.Activity(ctx, tx, t, store.ActivityFilter{Kinds: []string{"cluster", "operation", "service", "resource", "node", "user", "task"}}, loom.Page{Limit: 100})
			return list, err
		},
		"LiveClusters": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			counts, err := store.LiveClusters(ctx, tx, t)
			return leak(len(counts) > 0), err
		},
		"BeginActing": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			_, err := store.BeginActing(ctx, tx, t, ownHash, t, time.Hour)
			return nil, err
		},
		"EndActing": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.EndActing(ctx, tx, t, ownHash)
		}),
		"NoteResourceFetch": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.NoteResourceFetch(ctx, tx, t, mark, 3)
		}),
		"ResourceFetches": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			fetches, err := store.ResourceFetches(ctx, tx, t)
			return leak(len(fetches) > 0), err
		},
	})
}
