package account

import (
	"context"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

// QuotaUses says what tenants use of their quotas, with one question for all;
// superadmins only.
func (a *Accounts) QuotaUses(ctx context.Context, actor loom.Actor, tenants []loom.Tenant) (map[loom.TenantID]loom.QuotaUse, error) {
	if err := mayReadTenants(actor); err != nil {
		return nil, err
	}
	ids := make([]loom.TenantID, len(tenants))
	for i, t := range tenants {
		ids[i] = t.ID
	}
	return store.QuotaUsesAllTenants(ctx, a.db, ids)
}

// LastActivity says when something was last done in tenants, by anybody; those in which
// nothing ever was are left out. Forbidden.
func (a *Accounts) LastActivity(ctx context.Context, actor loom.Actor, tenants []loom.Tenant) (map[loom.TenantID]time.Time, error) {
	if err := mayReadTenants(actor); err != nil {
		return nil, err
	}
	ids := make([]loom.TenantID, len(tenants))
	for i, t := range tenants {
		ids[i] = t.ID
	}
	return store.LastActivityAllTenants(ctx, a.db, ids)
}
