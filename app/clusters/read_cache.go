package clusters

import (
	"context"
	"sync"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// readCacheKey is where a context keeps what was read in it.
type readCacheKey struct{}

// readCache is what was read in a context so far, by what was asked.
type readCache struct {
	mu     sync.Mutex
	values map[any]any
}

// WithReadCache returns a context in which whose a cluster is, what a tenant uses of its quota, an
// operation with its task counts and the groups of its tasks are read once, however many parts of a page ask: counting
// the tasks of a large operation is most of the work of its pages, and all parts of one
// agree. It is for requests that only read and end soon: what changes later is not seen.
func WithReadCache(ctx context.Context) context.Context {
	return context.WithValue(ctx, readCacheKey{}, &readCache{values: map[any]any{}})
}

// taskGroupsKey marks a context made by WithTaskGroups.
type taskGroupsKey struct{}

// WithTaskGroups returns a context, for use with WithReadCache, in which the groups of an operation's tasks
// will be asked for anyway as long as it has not ended: its counts are then taken from
// them, since to look at all tasks of a large operation twice is most of the work.
func WithTaskGroups(ctx context.Context) context.Context {
	return context.WithValue(ctx, taskGroupsKey{}, true)
}

// cached returns what was read under a key in a context made by WithReadCache, else reads it. Errors
// are not kept.
func cached[K comparable, V any](ctx context.Context, key K, read func() (V, error)) (V, error) {
	kept, _ := ctx.Value(readCacheKey{}).(*readCache)
	if kept == nil {
		return read()
	}
	kept.mu.Lock()
	had, ok := kept.values[key].(V)
	kept.mu.Unlock()
	if ok {
		return had, nil
	}
	v, err := read()
	if err == nil {
		kept.mu.Lock()
		kept.values[key] = v
		kept.mu.Unlock()
	}
	return v, err
}

// What is read once: each is a key of its own.
type (
	objectRead struct {
		tenant  loom.TenantID
		cluster loom.ClusterID
	}
	operationRead struct {
		tenant loom.TenantID
		ref    loom.OperationRef
	}
	quotaRead   loom.TenantID
	statusRead  operationRead
	nextTryRead operationRead
	groupsRead  operationRead
)

func objectOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.ClusterID) (loom.Object, error) {
	return cached(ctx, objectRead{tenant, id}, func() (loom.Object, error) { return store.ClusterObject(ctx, q, tenant, id) })
}

func operationOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (loom.Operation, error) {
	return cached(ctx, operationRead{tenant, ref}, func() (loom.Operation, error) {
		if ctx.Value(taskGroupsKey{}) == nil {
			return store.OperationByRef(ctx, q, tenant, ref)
		}
		op, err := store.OperationUncounted(ctx, q, tenant, ref)
		if err != nil {
			return op, err
		}
		if op.Status.Final() {
			return store.OperationByRef(ctx, q, tenant, ref)
		}
		groups, err := groupsOf(ctx, q, tenant, ref)
		for _, g := range groups {
			op.Tasks[g.Status] += g.Count
			op.Again += g.Again
		}
		return op, err
	})
}

// knownOperation returns an operation of a cluster that was read in the context already.
func knownOperation(ctx context.Context, tenant loom.TenantID, cluster loom.ClusterID) (loom.Operation, bool) {
	kept, _ := ctx.Value(readCacheKey{}).(*readCache)
	if kept == nil {
		return loom.Operation{}, false
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	for key, value := range kept.values {
		if read, ok := key.(operationRead); ok && read.tenant == tenant && read.ref.Cluster == cluster {
			op, ok := value.(loom.Operation)
			return op, ok
		}
	}
	return loom.Operation{}, false
}

func groupsOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) ([]TaskGroup, error) {
	return cached(ctx, groupsRead{tenant, ref}, func() ([]TaskGroup, error) { return store.TaskGroups(ctx, q, tenant, ref) })
}

// quotaUse counts what a tenant uses, not to be relied on.
func (u *Clusters) quotaUse(ctx context.Context, tenant loom.TenantID) (loom.QuotaUse, error) {
	return cached(ctx, quotaRead(tenant), func() (loom.QuotaUse, error) { return store.QuotaUse(ctx, u.kept, tenant) })
}
