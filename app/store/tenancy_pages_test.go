package store_test

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// What pages keep and tell is held against the test of tenants as well.
func init() {
	maps.Copy(trespassers, map[string]trespasser{
		"SetPreferences": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.SetPreferences(ctx, tx, t, ownUser, loom.ViewPreferences{Rows: 50})
		}),
		"ExtendSession": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.ExtendSession(ctx, tx, t, ownHash, 2*time.Hour, 24*time.Hour)
		},
		"NoticesFor": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.NoticesFor(ctx, tx, t, ownUser, 10000*time.Hour)
		},
		"SearchNodes": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.SearchNodes(ctx, tx, t, store.Viewer{}, strings.ToLower(mark), 10)
		},
		"SearchFewLetters": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			nodes, clusters, err := store.SearchFewLetters(ctx, tx, t, store.Viewer{}, mark[:2], 10)
			return []any{nodes, leak(len(clusters) > 0)}, err
		},
	})
}
