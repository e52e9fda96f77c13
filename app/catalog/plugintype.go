package catalog

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// PluginTypes lists the newest version of all provider types or automator types.
func (c *Catalog) PluginTypes(ctx context.Context, actor loom.Actor, kind loom.EntityKind) ([]loom.PluginType, error) {
	if !kind.Global() {
		return nil, loom.NewError(loom.NotFound, "Plugin types are %s and %s.", loom.KindProviderType, loom.KindAutomatorType)
	}
	if err := actor.Require(loom.ScopeRead); err != nil {
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
		if err := keepTimeouts(ctx, tx, kind, entry.(*loom.PluginType)); err != nil {
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

// keepTimeouts leaves a plugin that names no time limits those that somebody gave
// its type in the catalog.
func keepTimeouts(ctx context.Context, tx *sqlx.Tx, kind loom.EntityKind, plugin *loom.PluginType) error {
	if len(plugin.Timeouts) > 0 {
		return nil
	}
	stored, err := store.CatalogEntry(ctx, tx, loom.SuperTenant, kind, plugin.Name, 0)
	if errors.Is(err, loom.NotFound) {
		return nil
	}
	if err == nil {
		plugin.Timeouts = stored.Entry.(*loom.PluginType).Timeouts
	}
	return err
}

// sealEarlier seals what versions of providers hold in plain from the time
// before their type was known. The newest value of a field wins.
func (c *Catalog) sealEarlier(ctx context.Context, tx *sqlx.Tx, plugin loom.PluginType) error {
	declared := declaredFields(plugin)
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
			if !sensitive(declared, field) {
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
