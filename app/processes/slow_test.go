package processes_test

import (
	"context"
	"errors"
	"testing"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/store"
)

// TestSlowProvidersHoldUpNobodyElse: looks at providers that do not answer take half of the
// workers for such requests; those of other tenants go on.
func TestSlowProvidersHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	ask := func(tenant loom.TenantID) (id int64) {
		a.must(a.db.Get(&id, `INSERT INTO provider_requests (tenant_id, provider_name, purpose, requested_by) VALUES ($1, 'lab', 'sweep', 'admin') RETURNING id`, string(tenant)))
		return id
	}
	ctx, cancel := context.WithCancel(a.ctx)
	began, ended := make(chan struct{}), make(chan error, store.SlowRequestsOfATenant)
	silent := &cloud{before: func(ctx context.Context) error { began <- struct{}{}; <-ctx.Done(); return context.Cause(ctx) }}
	for range store.SlowRequestsOfATenant {
		id := ask("t1")
		go func() { ended <- a.WorkRequest(ctx, a.process, id, silent) }()
		<-began
	}
	next := ask("t1")
	if err := a.WorkRequest(a.ctx, a.process, next, &cloud{}); !errors.Is(err, processes.ErrNotForUs) {
		t.Errorf("one more of the tenant: %v", err)
	}
	if err := a.WorkRequest(a.ctx, a.process, ask("t2"), &cloud{}); errors.Is(err, processes.ErrNotForUs) {
		t.Errorf("one of another tenant: %v", err)
	}
	cancel()
	for range store.SlowRequestsOfATenant {
		<-ended
	}
	if err := a.WorkRequest(a.ctx, a.process, next, &cloud{}); errors.Is(err, processes.ErrNotForUs) {
		t.Errorf("when the others have ended: %v", err)
	}
}
