package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// PluginTypes lists the newest version of all provider types or automator types.
func (c *Catalog) PluginTypes(ctx context.Context, actor loom.Actor, kind loom.EntityKind) ([]loom.PluginType, error) {
	if !kind.Global() {
		return nil, loom.NewError(loom.NotFound, "Plugin types are %s and %s.", loom.KindProviderType, loom.KindAutomatorType)
	}
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return nil, err
	}
	stored, err := store.NewestCatalogEntries(ctx, c.db, loom.SuperTenant, kind)
	if err != nil {
		return nil, err
	}
	types := make([]loom.PluginType, len(stored))
	for i, s := range stored {
		types[i] = *s.Entry.(*loom.PluginType)
	}
	return types, nil
}

// RegisterTypes stores the types of the plugins that a process can run, as new
// versions where they differ from what is stored. All processes may call it at
// once. Plain values of fields that a type declares sensitive, stored before the
// type was known, are sealed. Invalid names the plugin and the field.
func (c *Catalog) RegisterTypes(ctx context.Context, providers, automators []loom.PluginType) error {
	actor := loom.SystemActor(loom.SuperTenant, string(loom.SuperTenant))
	for _, group := range []struct {
		kind  loom.EntityKind
		types []loom.PluginType
	}{{loom.KindProviderType, providers}, {loom.KindAutomatorType, automators}} {
		for i := range group.types {
			if err := c.register(ctx, actor, group.kind, &group.types[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Catalog) register(ctx context.Context, actor loom.Actor, kind loom.EntityKind, plugin *loom.PluginType) error {
	entry, fields, err := normalize(kind, plugin)
	if err != nil {
		return err
	}
	for i := range fields {
		fields[i].Field = kind.Word() + " " + plugin.Name + ": " + fields[i].Field
	}
	if err := loom.InvalidFields(fields); err != nil {
		return err
	}
	return store.Exec(ctx, c.db, func(tx *sqlx.Tx) error {
		if err := store.EnsureSuperTenant(ctx, tx); err != nil {
			return err
		}
		if err := store.LockCatalogName(ctx, tx, loom.SuperTenant, kind, plugin.Name); err != nil {
			return err
		}
		if err := keepGiven(ctx, tx, kind, entry.(*loom.PluginType)); err != nil {
			return err
		}
		same, err := store.CatalogUnchanged(ctx, tx, loom.SuperTenant, kind, entry)
		if err != nil || same {
			return err
		}
		if _, err := c.put(ctx, tx, actor, loom.SuperTenant, kind, entry, SaveInput{}); err != nil {
			return err
		}
		if kind == loom.KindAutomatorType {
			return nil
		}
		return c.sealEarlier(ctx, tx, *entry.(*loom.PluginType))
	})
}

// keepGiven leaves a plugin what clients gave its type in the catalog: time limits, where
// it names none, and extra fields.
func keepGiven(ctx context.Context, tx *sqlx.Tx, kind loom.EntityKind, plugin *loom.PluginType) error {
	stored, err := store.CatalogEntry(ctx, tx, loom.SuperTenant, kind, plugin.Name, 0)
	if errors.Is(err, loom.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	before := stored.Entry.(*loom.PluginType)
	if len(plugin.Timeouts) == 0 {
		plugin.Timeouts = before.Timeouts
	}
	for name, field := range before.Parameters["admin"].Fields {
		if field.Extra {
			addField(plugin, name, field)
		}
	}
	return nil
}

// registered is the author of the types that plugins of this installation declare.
const registered = loom.UserID("system")

// amend turns what a client gives as the type of a plugin of this installation into what
// may be stored of it: the plugin's own declaration stays, since the plugin works by it.
// Time limits count, and fields that the plugin does not know become extra fields of
// administrators.
func amend(ctx context.Context, tx *sqlx.Tx, kind loom.EntityKind, given *loom.PluginType) error {
	versions, err := store.CatalogVersions(ctx, tx, loom.SuperTenant, kind, given.Name, false)
	if err != nil || !slices.ContainsFunc(versions, func(v loom.VersionInfo) bool { return v.Author == registered }) {
		return err
	}
	stored, err := store.CatalogEntry(ctx, tx, loom.SuperTenant, kind, given.Name, 0)
	if err != nil {
		return err
	}
	kept := *stored.Entry.(*loom.PluginType)
	if len(given.Timeouts) > 0 {
		kept.Timeouts = given.Timeouts
	}
	for _, group := range given.Parameters {
		for name, field := range group.Fields {
			field.Extra = true
			addField(&kept, name, field)
		}
	}
	*given = kept
	return nil
}

// addField adds a field of administrators to a type that does not know its name.
func addField(t *loom.PluginType, name string, field loom.FieldSchema) {
	if _, known := t.Schema(name); known {
		return
	}
	admin := t.Parameters["admin"]
	fields := maps.Clone(admin.Fields)
	if fields == nil {
		fields = map[string]loom.FieldSchema{}
	}
	fields[name] = field
	admin.Fields = fields
	groups := maps.Clone(t.Parameters)
	groups["admin"] = admin
	t.Parameters = groups
}

// sealEarlier seals what versions of providers hold in plain from the time
// before their type was known. The newest value of a field wins.
func (c *Catalog) sealEarlier(ctx context.Context, tx *sqlx.Tx, plugin loom.PluginType) error {
	versions, err := store.ProviderVersionsAllTenants(ctx, tx, plugin.Name)
	if err != nil {
		return err
	}
	for _, v := range versions { // newest first
		p := v.Provider
		sealed, err := store.Secrets(ctx, tx, v.Tenant, store.ProviderSecrets(p.Name))
		if err != nil {
			return err
		}
		s := split{given: map[string]loom.Secret{}}
		touched := false
		for field, value := range p.Fields {
			if !plugin.Seals(field) {
				continue
			}
			touched = true
			delete(p.Fields, field)
			if text, ok := value.(string); ok && text != "" && sealed[field] == nil {
				s.given[field] = loom.NewSecret(text)
			}
		}
		if !touched {
			continue
		}
		if err := c.storeSplit(ctx, tx, v.Tenant, p.Name, s, "system"); err != nil {
			return err
		}
		for field := range s.given {
			p.Sealed = append(p.Sealed, field)
		}
		if err := store.ReplaceProviderVersion(ctx, tx, v.Tenant, p); err != nil {
			return err
		}
	}
	return nil
}
