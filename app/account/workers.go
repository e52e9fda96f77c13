package account

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// checkWorkers refuses workers in addition that the live provisioners do not
// have free, and says who holds the others: only superadmins ask for workers.
func (a *Accounts) checkWorkers(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, now, wanted int) error {
	if wanted <= now {
		return nil
	}
	capacity, others, err := store.WorkerCapacityAllTenants(ctx, tx, tenant)
	if err != nil {
		return err
	}
	free := max(capacity-others, 0)
	if wanted <= free {
		return nil
	}
	if capacity == 0 {
		return conflictAt(loom.NewError(loom.Conflict, "Wanted: %d, but no provisioner runs that serves all tenants; start one, or set “workers” to 0.", wanted), "workers")
	}
	tenants, err := store.TenantsAllTenants(ctx, tx)
	if err != nil {
		return err
	}
	return conflictAt(loom.NewError(loom.Conflict, "Wanted: %d, but the running provisioners have %d left for this tenant (capacity %d). %s",
		wanted, free, capacity, holders(tenants, tenant)), "workers")
}

// maxHolders is how many tenants a message names.
const maxHolders = 5

// holders says which tenants but one hold how many workers, those with most
// first, and what helps.
func holders(tenants []loom.Tenant, except loom.TenantID) string {
	tenants = slices.DeleteFunc(slices.Clone(tenants), func(t loom.Tenant) bool { return t.Workers == 0 || t.ID == except })
	const more = "more provisioners, or a higher LOOM_PROVISIONER_CAPACITY"
	if len(tenants) == 0 {
		return "No other tenant holds any; " + more + " would help."
	}
	slices.SortStableFunc(tenants, func(x, y loom.Tenant) int {
		return cmp.Or(cmp.Compare(y.Workers, x.Workers), strings.Compare(x.Name, y.Name))
	})
	var named []string
	for i, t := range tenants {
		if i == maxHolders {
			named = append(named, fmt.Sprintf("%d more tenants", len(tenants)-i))
			break
		}
		named = append(named, fmt.Sprintf("%s: %d", t.Name, t.Workers))
	}
	return "Others hold the rest (" + strings.Join(named, ", ") + "); lowering “workers” of one of them helps, and so do " + more + "."
}
