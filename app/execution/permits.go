package execution

import (
	"context"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

// permitsAge is how old the permits may be with which a machine that exists is worked
// on: reading them for every task would cost more than all else that a spec reads.
const permitsAge = time.Second

// maxPermits is of how many tenants they are kept.
const maxPermits = 1000

// permits gives what a tenant may: as it is now for a CREATE, else as it was a moment ago.
func (o *Operations) permits(ctx context.Context, tenant loom.TenantID, action loom.TaskAction) (loom.Permits, error) {
	read := func(ctx context.Context) (loom.Permits, error) { return store.Permits(ctx, o.db, tenant) }
	if action == loom.ActionCreate {
		return o.permitted.Renew(ctx, tenant, time.Now, read)
	}
	return o.permitted.Get(ctx, tenant, time.Now, read)
}
