package catalog

import (
	"context"

	"loom/app/loom"
	"loom/app/store"
)

// SealedFields tells who set which sealed field of a provider, and when; never the
// values. Empty for a provider that has none, or is not there.
func (c *Catalog) SealedFields(ctx context.Context, actor loom.Actor, provider string) (map[string]store.SecretStamp, error) {
	tenant, err := readTenant(actor, loom.KindProvider)
	if err != nil {
		return nil, err
	}
	return store.SecretStamps(ctx, c.db, tenant, store.ProviderSecrets(provider))
}
