package store_test

import (
	"context"
	"maps"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// What reads and changes layouts for an undo, a retry and a rollback is held against
// the test of tenants as well.
func init() {
	maps.Copy(trespassers, map[string]trespasser{
		"PlansOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			plans, err := store.PlansOf(ctx, tx, t, loom.Operation{Ref: ownOperation})
			return []any{plans, leak(len(plans) > 0 && len(plans[0].Tasks) > 0)}, err
		},
		"LineageOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			l, err := store.LineageOf(ctx, tx, t, loom.Operation{Ref: ownOperation}, loom.Snapshot{})
			return []any{l, leak(l != nil && len(l.Plans) > 0 && len(l.Plans[0].Tasks) > 0)}, err
		},
		"RestoreLayout": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.RestoreLayout(ctx, tx, t, 1, loom.Snapshot{Nodes: []loom.Node{}})
		}),
		"ConfigDiffers": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			differs, err := store.ConfigDiffers(ctx, tx, t, 1, map[string]any{"none": true})
			return leak(differs), err
		},
		"SnapshotAfter": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.SnapshotAfter(ctx, tx, t, ownOperation)
		},
		"DropMade": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.DropMade(ctx, tx, t, 1)
		}),
		"TrimLayout": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.TrimLayout(ctx, tx, t, 1)
		}),
		"SettleNodes": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.SettleNodes(ctx, tx, t, 1, true)
		}),
		"NodesWithMachine": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			have, err := store.NodesWithMachine(ctx, tx, t, 1)
			return leak(len(have) > 0), err
		},
		"LatestOperations": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.LatestOperations(ctx, tx, t, []loom.ClusterID{1}, true)
		},
		"TaskStatuses": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.TaskStatuses(ctx, tx, t, loom.OperationRef{Cluster: 1, Number: 1})
		},
		"LatestSteps": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.LatestSteps(ctx, tx, t, 1, []loom.NodeID{ownNode})
		},
		"SkippedTasks": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.SkippedTasks(ctx, tx, t, 1, 10)
		},
	})
}
