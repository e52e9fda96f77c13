package store_test

import (
	"context"
	"maps"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// What ends clusters and leases, and why operations wait, is held against the test
// of tenants as well.
func init() {
	end := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	ref := loom.OperationRef{Cluster: 1, Number: 1}
	maps.Copy(trespassers, map[string]trespasser{
		"Leftovers": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.Leftovers(ctx, tx, t, 1)
		},
		"PutLeftovers": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.PutLeftovers(ctx, tx, t, 1)
		}),
		"SettleLeftovers": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.SettleLeftovers(ctx, tx, t, 1, true)
		}),
		"TriedLeftover": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			done, err := store.TriedLeftover(ctx, tx, t, loom.Leftover{ID: 996, Cluster: 1}, "")
			return leak(done), err
		},
		"AbandonLeftovers": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.AbandonLeftovers(ctx, tx, t, 1)
		}),
		"Remains": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			remains, err := store.Remains(ctx, tx, t, 1)
			return leak(remains), err
		},
		"TerminateCluster": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			c := loom.Cluster{ID: 1, Status: loom.ClusterIncomplete, LatestOperation: 1}
			return store.TerminateCluster(ctx, tx, loom.SystemActor(t, "x"), t, c, nil)
		}),
		"LeaseEndOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			e, _, err := store.LeaseEndOf(ctx, tx, t, 1)
			return e, err
		},
		"LeaseReminded": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			noted, err := store.LeaseReminded(ctx, tx, t, 1, end, 1)
			return leak(noted), err
		},
		"LeaseTried": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			noted, err := store.LeaseTried(ctx, tx, t, 1, end, true, time.Hour, "why")
			return leak(noted), err
		},
		"QueueingOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			q, err := store.QueueingOf(ctx, tx, t, ref)
			return leak(q.Ready > 0), err
		},
		"NextTryOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			try, _, err := store.NextTryOf(ctx, tx, t, ref)
			return try, err
		},
		"NextTriesOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.NextTriesOf(ctx, tx, t, ref, 10)
		},
	})
}
