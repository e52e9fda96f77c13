package store_test

import (
	"context"
	"errors"
	"maps"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// Rollouts: number 7 of the first tenant changes its cluster 1.
func init() {
	unseen := func(r loom.Rollout, err error) (any, error) {
		if errors.Is(err, loom.NotFound) {
			err = nil
		}
		return r, err
	}
	changed := loom.RolloutCluster{Cluster: 1, Status: loom.RolloutDone}
	maps.Copy(trespassers, map[string]trespasser{
		"InsertRollout": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.InsertRollout(ctx, tx, t, loom.Rollout{Kind: loom.ChangeUpdate, Request: []byte("{}"), Hash: "x", CreatedBy: "x"}, nil)
		},
		"OpenRollouts": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			n, err := store.OpenRollouts(ctx, tx, t)
			return leak(n > 0), err
		},
		"RolloutPlaces": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.RolloutPlaces(ctx, tx, t, 1)
		},
		"RolloutByNumber": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return unseen(store.RolloutByNumber(ctx, tx, t, 7))
		},
		"LockRollout": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return unseen(store.LockRollout(ctx, tx, t, 7))
		},
		"Rollouts": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.Rollouts(ctx, tx, t, nil, loom.Page{Limit: 10})
		},
		"RolloutCounts": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			counts, err := store.RolloutCounts(ctx, tx, t, 7)
			return leak(len(counts) > 0), err
		},
		"RolloutClusters": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.RolloutClusters(ctx, tx, t, 7, store.RolloutClusterFilter{}, loom.Page{Limit: 10})
		},
		"RolloutHeads": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.RolloutHeads(ctx, tx, t, 7, 10)
		},
		"ChangedByRollout": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			changed, err := store.ChangedByRollout(ctx, tx, t, 7)
			return leak(len(changed) > 0), err
		},
		"UpdateRollout": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.UpdateRollout(ctx, tx, t, loom.Rollout{Number: 7, Status: loom.RolloutAborted}, 0)
		}),
		"EndRolloutClusters": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			ended, err := store.EndRolloutClusters(ctx, tx, t, 7)
			return leak(len(ended) > 0), err
		},
		"RolloutClustersWith": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.RolloutClustersWith(ctx, tx, t, 7, loom.RolloutRuns, 0, 10)
		},
		"RolloutRunning": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.RolloutRunning(ctx, tx, t, 7)
		},
		"LockRolloutCluster": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			c, err := store.LockRolloutCluster(ctx, tx, t, 7, 1)
			if errors.Is(err, loom.NotFound) {
				err = nil
			}
			return c, err
		},
		"SetRolloutCluster": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.SetRolloutCluster(ctx, tx, t, 7, changed)
		}),
		"SkipRolloutClusters": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.SkipRolloutClusters(ctx, tx, t, 7, "x")
		}),
		"RetryRolloutClusters": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.RetryRolloutClusters(ctx, tx, t, 7)
		}),
		"HealthOfWave": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.HealthOfWave(ctx, tx, t, 7, 1)
		},
	})
}
