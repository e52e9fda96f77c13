package store_test

import (
	"context"
	"maps"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// The node and the operation of the tenant whose rows are to stay its own.
var (
	ownNode      = loom.NodeID("00000000-0000-4000-8000-000000000001")
	ownOperation = loom.OperationRef{Cluster: 1, Number: 1}
)

// What reads nodes, operations and logs is held against the test of tenants as well.
func init() {
	maps.Copy(trespassers, map[string]trespasser{
		"NodesByTenant": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.NodesByTenant(ctx, tx, t, store.Viewer{}, loom.Page{})
		},
		"ClusterOfNode": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			o, err := store.ClusterOfNode(ctx, tx, t, ownNode)
			return o, err
		},
		"AddNodeHistory": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			nodes := []loom.Node{{ID: ownNode, Cluster: 1}}
			err := store.AddNodeHistory(ctx, tx, t, nodes, 10)
			return nodes[0].Actions, err
		},
		"ServicesOfClusters": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			all, err := store.ServicesOfClusters(ctx, tx, t, []loom.ClusterID{1})
			return leak(len(all) > 0), err
		},
		"LockNode": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.LockNode(ctx, tx, t, 1, ownNode)
		},
		"InsertNodeRecord": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return nil, store.InsertNodeRecord(ctx, tx, t, loom.Node{ID: "00000000-0000-4000-8000-000000000002", Cluster: 1, Number: 1001})
		},
		"UpdateNodeFacts": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.UpdateNodeFacts(ctx, tx, t, loom.Node{ID: ownNode, Cluster: 1, Hostname: "changed"})
		}),
		"DeleteNodeRecord": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.DeleteNodeRecord(ctx, tx, t, 1, ownNode)
		}),
		"NextNodeNumber": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			n, err := store.NextNodeNumber(ctx, tx, t, 1)
			return leak(n > loom.FirstNodeNumber), err
		},
		"NodesWritten": nothing(func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) error {
			return store.NodesWritten(ctx, tx, t, 1)
		}),
		"OperationsInRange": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.OperationsInRange(ctx, tx, t, 1, store.OperationFilter{}, store.NumberRange{})
		},
		"TasksInRange": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.TasksInRange(ctx, tx, t, ownOperation, store.TaskListFilter{}, store.NumberRange{})
		},
		"OperationStatus": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			status, err := store.OperationStatus(ctx, tx, t, ownOperation)
			return leak(status != ""), err
		},
		"StatusAroundNode": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			status, err := store.StatusAroundNode(ctx, tx, t, 1, ownNode)
			return leak(status != ""), err
		},
		"OperationLog": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.OperationLog(ctx, tx, t, ownOperation, store.OrderedRange{Limit: 10, Unsettled: true})
		},
		"NodeLog": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.NodeLog(ctx, tx, t, 1, ownNode, store.OrderedRange{Limit: 10, Unsettled: true})
		},
		"SkipTaskLog": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			_, lines, err := store.SkipTaskLog(ctx, tx, t, loom.Task{Row: 1}, store.LogRange{Attempt: 1}, nil, 0)
			return leak(lines > 0), err
		},
		"SkipOperationLog": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			_, lines, err := store.SkipOperationLog(ctx, tx, t, ownOperation, store.OrderedRange{}, 0)
			return leak(lines > 0), err
		},
		"SkipNodeLog": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			_, lines, err := store.SkipNodeLog(ctx, tx, t, 1, ownNode, store.OrderedRange{}, 0)
			return leak(lines > 0), err
		},
		"TaskGroups": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			groups, err := store.TaskGroups(ctx, tx, t, ownOperation)
			return leak(len(groups) > 0), err
		},
		"NodeCourses": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			nodes, err := store.NodeCourses(ctx, tx, t, ownOperation)
			return leak(len(nodes) > 0), err
		},
		"OperationNodes": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			nodes, err := store.OperationNodes(ctx, tx, t, ownOperation)
			return leak(len(nodes) > 0), err
		},
		"TasksOnNodes": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.TasksOnNodes(ctx, tx, t, ownOperation, []loom.NodeID{ownNode})
		},
		"AttemptsOnNodes": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			attempts, err := store.AttemptsOnNodes(ctx, tx, t, ownOperation, []loom.NodeID{ownNode})
			return leak(len(attempts) > 0), err
		},
		"RetriesOf": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			numbers, err := store.RetriesOf(ctx, tx, t, ownOperation)
			return leak(len(numbers) > 0), err
		},
		"TasksNumbered": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.TasksNumbered(ctx, tx, t, ownOperation, []int{1, 2, 3})
		},
		"TaskReady": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			at, err := store.TaskReady(ctx, tx, t, 1)
			return leak(!at.IsZero()), err
		},
		"CountLogLines": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			n, err := store.CountLogLines(ctx, tx, t, loom.Task{Row: 1}, 1, store.LogMatch{Limit: 10})
			return leak(n > 0), err
		},
		"FindLogLines": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			lines, _, err := store.FindLogLines(ctx, tx, t, loom.Task{Row: 1}, 1, store.LogMatch{Limit: 10})
			return lines, err
		},
		"OperationLogBack": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.OperationLogBack(ctx, tx, t, ownOperation, store.LogPlace{}, store.LogMatch{Limit: 10})
		},
		"NodeLogBack": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.NodeLogBack(ctx, tx, t, 1, ownNode, store.LogPlace{}, store.LogMatch{Limit: 10})
		},
		"QueueCounts": func(ctx context.Context, tx *sqlx.Tx, t loom.TenantID) (any, error) {
			return store.QueueCounts(ctx, tx, t)
		},
	})
}
