package execution

import (
	"context"
	"sync"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

// permitsAge is how old the permits may be with which a machine that exists is worked
// on: reading them for every task would cost more than all else that a spec reads.
const permitsAge = time.Second

// permits remembers what tenants may.
type permits struct {
	mu sync.Mutex
	of map[loom.TenantID]agedPermits
}

type agedPermits struct {
	loom.Permits
	read time.Time
}

// permits gives what a tenant may: as it is now for a CREATE, else as it was a moment ago.
func (o *Operations) permits(ctx context.Context, tenant loom.TenantID, action loom.TaskAction) (loom.Permits, error) {
	o.permitted.mu.Lock()
	known, ok := o.permitted.of[tenant]
	o.permitted.mu.Unlock()
	if ok && action != loom.ActionCreate && time.Since(known.read) < permitsAge {
		return known.Permits, nil
	}
	now := time.Now()
	p, err := store.Permits(ctx, o.db, tenant)
	if err != nil {
		return p, err
	}
	o.permitted.mu.Lock()
	defer o.permitted.mu.Unlock()
	if o.permitted.of == nil {
		o.permitted.of = map[loom.TenantID]agedPermits{}
	}
	o.permitted.of[tenant] = agedPermits{p, now}
	return p, nil
}
