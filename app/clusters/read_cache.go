package clusters

import (
	"context"
	"sync"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// onceKey is where a context keeps what was read in it.
type onceKey struct{}

// readings is what was read in a context so far, by what was asked.
type readings struct {
	mu  sync.Mutex
	had map[any]any
}

// Once gives a context in which whose a cluster is, what a tenant uses of its quota, an
// operation with its task counts and the groups of its tasks are read once, however many parts of a page ask: counting
// the tasks of a large operation is most of the work of its pages, and all parts of one
// tell the same. It is for requests that only read and end soon: within it nothing new
// is heard of.
func Once(ctx context.Context) context.Context {
	return context.WithValue(ctx, onceKey{}, &readings{had: map[any]any{}})
}

// groupedKey marks a context made by Grouped.
type groupedKey struct{}

// Grouped gives a context, for use with Once, in which the groups of an operation's tasks
// will be asked for anyway as long as it has not ended: its counts are then taken from
// them, since to look at all tasks of a large operation twice is most of the work.
func Grouped(ctx context.Context) context.Context {
	return context.WithValue(ctx, groupedKey{}, true)
}

// once gives what was read under a key in a context made by Once, else reads it. Errors
// are not kept.
func once[K comparable, V any](ctx context.Context, key K, read func() (V, error)) (V, error) {
	kept, _ := ctx.Value(onceKey{}).(*readings)
	if kept == nil {
		return read()
	}
	kept.mu.Lock()
	had, ok := kept.had[key].(V)
	kept.mu.Unlock()
	if ok {
		return had, nil
	}
	v, err := read()
	if err == nil {
		kept.mu.Lock()
		kept.had[key] = v
		kept.mu.Unlock()
	}
	return v, err
}

// What is read once: each is a key of its own.
type (
	ownerRead struct {
		tenant  loom.TenantID
		cluster loom.ClusterID
	}
	operationRead struct {
		tenant loom.TenantID
		ref    loom.OperationRef
	}
	quotaRead  loom.TenantID
	statusRead operationRead
	triesRead  operationRead
	groupsRead operationRead
)

func ownerOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.ClusterID) (loom.Account, error) {
	return once(ctx, ownerRead{tenant, id}, func() (loom.Account, error) { return store.ClusterOwner(ctx, q, tenant, id) })
}

func operationOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (loom.Operation, error) {
	return once(ctx, operationRead{tenant, ref}, func() (loom.Operation, error) {
		if ctx.Value(groupedKey{}) == nil {
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

// knownOperation gives an operation of a cluster that was read in the context already.
func knownOperation(ctx context.Context, tenant loom.TenantID, cluster loom.ClusterID) (loom.Operation, bool) {
	kept, _ := ctx.Value(onceKey{}).(*readings)
	if kept == nil {
		return loom.Operation{}, false
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	for key, value := range kept.had {
		if read, ok := key.(operationRead); ok && read.tenant == tenant && read.ref.Cluster == cluster {
			op, ok := value.(loom.Operation)
			return op, ok
		}
	}
	return loom.Operation{}, false
}

func groupsOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) ([]TaskGroup, error) {
	return once(ctx, groupsRead{tenant, ref}, func() ([]TaskGroup, error) { return store.TaskGroups(ctx, q, tenant, ref) })
}

// quotaUse counts what a tenant uses, not to be relied on.
func (u *Clusters) quotaUse(ctx context.Context, tenant loom.TenantID) (loom.QuotaUse, error) {
	return once(ctx, quotaRead(tenant), func() (loom.QuotaUse, error) { return store.QuotaUse(ctx, u.kept, tenant) })
}
