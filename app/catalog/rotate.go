package catalog

import (
	"context"
	"strconv"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// FieldRotate is the field of a Conflict of Save that says that credentials would be
// replaced under operations at work.
const FieldRotate = "rotate"

// maxTold is how many operations are named to people.
const maxTold = 10

// ProviderUse is what is at work with a provider: Count operations, the first of which
// are named.
type ProviderUse struct {
	Count      int
	Operations []store.OpenOperation
}

// AtWork says which operations that have not ended use a provider of the actor's
// tenant. Their tasks take the credentials that are stored when each begins.
func (c *Catalog) AtWork(ctx context.Context, actor loom.Actor, provider string) (ProviderUse, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return ProviderUse{}, err
	}
	return atWork(ctx, c.db, actor.Tenant, provider)
}

func atWork(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, provider string) (ProviderUse, error) {
	found, err := store.OperationsOfProvider(ctx, q, tenant, provider, maxTold+1)
	if err != nil || len(found) <= maxTold {
		return ProviderUse{Count: len(found), Operations: found}, err
	}
	n, err := store.CountOperationsOfProvider(ctx, q, tenant, provider)
	return ProviderUse{Count: n, Operations: found[:maxTold]}, err
}

// mayRotate refuses another value of a sealed field, or none any more, while operations
// use the provider. A first value replaces nothing.
func (c *Catalog) mayRotate(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, provider string, s split) error {
	replaced := split{sealed: s.sealed, dropped: s.dropped, given: map[string]loom.Secret{}}
	for field, value := range s.given {
		if s.sealed[field] != nil {
			replaced.given[field] = value
		}
	}
	if c.sameSecrets(tenant, provider, replaced) {
		return nil
	}
	use, err := atWork(ctx, tx, tenant, provider)
	if err != nil || use.Count == 0 {
		return err
	}
	what := "One operation uses"
	if use.Count > 1 {
		what = strconv.Itoa(use.Count) + " operations use"
	}
	return &loom.Error{Kind: loom.Conflict, Message: "Running operations use the credentials of the provider “" + provider + "”.",
		Fields: []loom.FieldError{{Field: FieldRotate, Message: what + " these credentials now. Their next tasks would use the new ones. Confirm that, or wait until they end."}}}
}
