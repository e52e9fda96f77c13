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
	// dropped are fields whose sealed value goes: they are not sensitive now and came
	// with a plain one, or the provider's new type has no such field.
	dropped []string
	// sealed are the values stored so far.
	sealed map[string][]byte
	// before is the stored provider, empty for a new one.
	before loom.Provider
	// known says that the provider type is there, so that what is not sealed is
	// known to be harmless.
	known  bool
	plugin loom.PluginType
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
	plugin, known, err := c.providerType(ctx, tx, p.Type)
	if err != nil {
		return split{}, err
	}
	sealed, err := store.Secrets(ctx, tx, tenant, store.ProviderSecrets(p.Name))
	if err != nil {
		return split{}, err
	}
	before, err := store.Provider(ctx, tx, tenant, p.Name)
	if err != nil && !errors.Is(err, loom.NotFound) {
		return split{}, err
	}
	s := split{given: map[string]loom.Secret{}, sealed: sealed, before: before, known: known, plugin: plugin}
	for _, field := range slices.Sorted(maps.Keys(p.Fields)) {
		value := p.Fields[field]
		empty := value == nil || value == ""
		if !plugin.Seals(field) {
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
	if known && before.Type != "" && before.Type != p.Type {
		for _, field := range slices.Sorted(maps.Keys(sealed)) {
			if _, has := plugin.Schema(field); !has && s.given[field].IsZero() && !slices.Contains(s.dropped, field) {
				s.dropped = append(s.dropped, field)
			}
		}
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

// formats gives an error for each field of a provider that is no address to send
// credentials to, or no certificate, as its type says it has to be.
func (c *Catalog) formats(plugin loom.PluginType, p loom.Provider) []loom.FieldError {
	var errs []loom.FieldError
	for _, name := range slices.Sorted(maps.Keys(p.Fields)) {
		schema, _ := plugin.Schema(name)
		if wrong := schema.CheckFormat(p.Fields[name], c.PlainHTTP); wrong != "" {
			errs = append(errs, loom.FieldError{Field: "provisioner." + name, Message: wrong})
		}
	}
	return errs
}

// sealProvider is splitProvider and stores the sealed values. It gives the
// provider as the audit may keep it: as long as the type is unknown, any value
// may turn out to be a secret, and the audit is not rewritten. ask refuses to replace
// credentials that operations use. A test of what is saved becomes that of the provider.
func (c *Catalog) sealProvider(ctx context.Context, tx *sqlx.Tx, actor loom.Actor, p *loom.Provider, ask bool) (shown loom.Provider, err error) {
	tenant := actor.Tenant
	s, err := c.splitProvider(ctx, tx, tenant, p)
	if err != nil {
		return loom.Provider{}, err
	}
	if err := loom.InvalidFields(c.formats(s.plugin, *p)); err != nil {
		return loom.Provider{}, err
	}
	if err := c.mayReplace(ctx, tx, tenant, *p, s); err != nil {
		return loom.Provider{}, err
	}
	if ask {
		if err := c.mayRotate(ctx, tx, tenant, p.Name, s); err != nil {
			return loom.Provider{}, err
		}
	}
	if err := c.adoptTest(ctx, tx, actor, *p, s); err != nil {
		return loom.Provider{}, err
	}
	return shownProvider(*p, s.known), c.storeSplit(ctx, tx, tenant, p.Name, s, actor.User)
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
	_, known, err := c.providerType(ctx, q, p.Type)
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

// providerType gives a provider type. known is false while there is no such type.
func (c *Catalog) providerType(ctx context.Context, q sqlx.ExtContext, name string) (plugin loom.PluginType, known bool, err error) {
	plugin, err = store.ProviderType(ctx, q, name)
	if errors.Is(err, loom.NotFound) {
		return loom.PluginType{}, false, nil
	}
	return plugin, err == nil, err
}
