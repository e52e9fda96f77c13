package catalog

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// MaxCatalog is what the newest versions of a tenant's entries may take in memory, as
// store.CatalogWeight counts it: many a request reads them all.
const MaxCatalog = 32 << 20

// toldLargest is how many entries are named where a catalog is too large.
const toldLargest = 3

// weighed does a write and refuses it where the catalog becomes too large by it. One that
// is too large already may become smaller. Exhausted.
func weighed(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, write func() error) error {
	before, err := store.CatalogWeight(ctx, tx, tenant, loom.TenantKinds...)
	if err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	after, err := store.CatalogWeight(ctx, tx, tenant, loom.TenantKinds...)
	if err != nil || after <= MaxCatalog || after <= before {
		return err
	}
	largest, err := store.LargestCatalogEntries(ctx, tx, tenant, toldLargest, loom.TenantKinds...)
	if err != nil {
		return err
	}
	names := make([]string, len(largest))
	for i, e := range largest {
		names[i] = fmt.Sprintf("%s “%s” (%d KiB)", e.Kind.Word(), e.Name, e.Weight>>10)
	}
	return loom.NewError(loom.Exhausted, "The catalog of the tenant would take %d KiB of memory, and may take %d. The largest entries are %s. Take large texts and long lists out of their configs and fields, for example into plugin resources, or delete entries; nothing was stored.",
		after>>10, MaxCatalog>>10, loom.And(names))
}
