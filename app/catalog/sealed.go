package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// split is a provider taken apart: what is sealed, and what of the sealed fields
// changes.
type split struct {
	// given are sensitive values in the request, by field.
	given map[string]loom.Secret
	// dropped are fields that have a sealed value but are not sensitive any more
	// and came with a plain one.
	dropped []string
	// sealed are the values stored so far.
	sealed map[string][]byte
	// known says that the provider type is there, so that what is not sealed is
	// known to be harmless.
	known bool
}

// splitProvider takes the sensitive fields out of p, which then holds what may be
// stored and shown, and names in p.Sealed what will be sealed. Absent and empty
// ones keep the stored value.
func (c *Catalog) splitProvider(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, p *loom.Provider) (split, error) {
	// A type that is being registered seals what it finds; this write must not slip
	// in behind it by the old rule.
	if err := store.ShareCatalogName(ctx, tx, loom.SuperTenant, loom.KindProviderType, p.Type); err != nil {
		return split{}, err
	}
	isSensitive, known, err := c.sensitivity(ctx, tx, p.Type)
	if err != nil {
		return split{}, err
	}
	sealed, err := store.Secrets(ctx, tx, tenant, store.ProviderSecrets(p.Name))
	if err != nil {
		return split{}, err
	}
	s := split{given: map[string]loom.Secret{}, sealed: sealed, known: known}
	for _, field := range slices.Sorted(maps.Keys(p.Fields)) {
		value := p.Fields[field]
		empty := value == nil || value == ""
		if !isSensitive(field) {
			if _, stored := sealed[field]; stored && !empty {
				s.dropped = append(s.dropped, field)
			}
			continue
		}
		delete(p.Fields, field)
		if empty {
			continue
		}
		text, ok := value.(string)
		if !ok {
			raw, err := json.Marshal(value)
			if err != nil {
				return split{}, err
			}
			text = string(raw)
		}
		s.given[field] = loom.NewSecret(text)
	}
	names := map[string]bool{}
	for field := range sealed {
		names[field] = !slices.Contains(s.dropped, field)
	}
	for field := range s.given {
		names[field] = true
	}
	maps.DeleteFunc(names, func(_ string, keep bool) bool { return !keep })
	p.Sealed = slices.Sorted(maps.Keys(names))
	return s, nil
}

// sealProvider is splitProvider and stores the sealed values. It gives the
// provider as the audit may keep it: as long as the type is unknown, any value
// may turn out to be a secret, and the audit is not rewritten. ask refuses to replace
// credentials that operations use.
func (c *Catalog) sealProvider(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, p *loom.Provider, by loom.UserID, ask bool) (shown loom.Provider, err error) {
	s, err := c.splitProvider(ctx, tx, tenant, p)
	if err != nil {
		return loom.Provider{}, err
	}
	if err := c.mayKeep(ctx, tx, tenant, *p, s); err != nil {
		return loom.Provider{}, err
	}
	if ask {
		if err := c.mayRotate(ctx, tx, tenant, p.Name, s); err != nil {
			return loom.Provider{}, err
		}
	}
	return shownProvider(*p, s.known), c.storeSplit(ctx, tx, tenant, p.Name, s, by)
}

func shownProvider(p loom.Provider, known bool) loom.Provider {
	if !known {
		fields := make(map[string]any, len(p.Fields))
		for field := range p.Fields {
			fields[field] = loom.NewSecret("")
		}
		p.Fields = fields
	}
	return p
}

// shown gives a stored version of an entry, 0 for the newest, as the audit may
// keep it; see sealProvider. NotFound.
func (c *Catalog) shown(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, name string, version int) (any, error) {
	stored, err := store.CatalogEntry(ctx, q, tenant, kind, name, version)
	if err != nil {
		return nil, err
	}
	p, ok := stored.Entry.(*loom.Provider)
	if !ok {
		return stored.Entry, nil
	}
	_, known, err := c.sensitivity(ctx, q, p.Type)
	return shownProvider(*p, known), err
}

func (c *Catalog) storeSplit(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, provider string, s split, by loom.UserID) error {
	entity := store.ProviderSecrets(provider)
	sealed := make(map[string][]byte, len(s.given))
	for field, value := range s.given {
		bytes, err := c.ring.Seal(tenant, entity, field, value)
		if err != nil {
			return err
		}
		sealed[field] = bytes
	}
	if err := store.PutSecrets(ctx, tx, tenant, entity, by, sealed); err != nil {
		return err
	}
	if len(s.dropped) == 0 {
		return nil
	}
	return store.DeleteSecrets(ctx, tx, tenant, entity, s.dropped...)
}

// sameSecrets reports whether the given values are the stored ones already.
func (c *Catalog) sameSecrets(tenant loom.TenantID, provider string, s split) bool {
	for field, value := range s.given {
		stored, err := c.ring.Open(tenant, store.ProviderSecrets(provider), field, s.sealed[field])
		if err != nil || stored.Reveal() != value.Reveal() {
			return false
		}
	}
	return len(s.dropped) == 0
}

// sensitivity gives the rule for the fields of a provider type: its schema, and
// for what the schema does not know the look of the key. known is false while
// there is no such type.
func (c *Catalog) sensitivity(ctx context.Context, q sqlx.ExtContext, typeName string) (sensitive func(field string) bool, known bool, err error) {
	plugin, err := store.ProviderType(ctx, q, typeName)
	if errors.Is(err, loom.NotFound) {
		return loom.LooksSecret, false, nil
	}
	return sensitiveFields(plugin), true, err
}

func sensitiveFields(plugin loom.PluginType) func(field string) bool {
	declared := map[string]bool{}
	for _, group := range plugin.Parameters {
		for name, field := range group.Fields {
			declared[name] = declared[name] || field.IsSensitive()
		}
	}
	return func(field string) bool {
		if sensitive, known := declared[field]; known {
			return sensitive
		}
		return loom.LooksSecret(field)
	}
}
