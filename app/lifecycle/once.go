package lifecycle

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
	groupsRead operationRead
)

func ownerOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.ClusterID) (loom.Account, error) {
	return once(ctx, ownerRead{tenant, id}, func() (loom.Account, error) { return store.ClusterOwner(ctx, q, tenant, id) })
}

func operationOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (loom.Operation, error) {
	return once(ctx, operationRead{tenant, ref}, func() (loom.Operation, error) { return store.OperationByRef(ctx, q, tenant, ref) })
}

// quotaUse counts what a tenant uses, not to be relied on.
func (u *Clusters) quotaUse(ctx context.Context, tenant loom.TenantID) (loom.QuotaUse, error) {
	return once(ctx, quotaRead(tenant), func() (loom.QuotaUse, error) { return store.QuotaUse(ctx, u.db, tenant) })
}
