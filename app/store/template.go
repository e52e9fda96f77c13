package store

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// TemplateLookup finds the newest parts of templates in a tenant's catalog, for
// loom.ResolveTemplate and loom.MergeTemplate.
func TemplateLookup(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) loom.TemplateLookup {
	return loom.TemplateLookup{
		Template: func(name string) (loom.Template, error) {
			return entryOf[loom.Template](ctx, q, tenant, loom.KindTemplate, name)
		},
		Partial: func(name string) (loom.PartialTemplate, error) {
			return entryOf[loom.PartialTemplate](ctx, q, tenant, loom.KindPartialTemplate, name)
		},
	}
}

// Provider reads the newest version of a provider, without its sealed fields.
// NotFound.
func Provider(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, name string) (loom.Provider, error) {
	return entryOf[loom.Provider](ctx, q, tenant, loom.KindProvider, name)
}

// ProviderType reads the newest version of a provider type. NotFound.
func ProviderType(ctx context.Context, q sqlx.ExtContext, name string) (loom.PluginType, error) {
	return entryOf[loom.PluginType](ctx, q, loom.SuperTenant, loom.KindProviderType, name)
}

// AutomatorType reads the newest version of an automator type. NotFound.
func AutomatorType(ctx context.Context, q sqlx.ExtContext, name string) (loom.PluginType, error) {
	return entryOf[loom.PluginType](ctx, q, loom.SuperTenant, loom.KindAutomatorType, name)
}

// Services reads the newest version of all services of a tenant by name.
func Services(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (map[string]loom.Service, error) {
	list, err := NewestCatalogEntries(ctx, q, tenant, loom.KindService)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]loom.Service, len(list))
	for _, stored := range list {
		byName[stored.Entry.Meta().Name] = *stored.Entry.(*loom.Service)
	}
	return byName, nil
}

// entryOf reads a newest version as its own type; T belongs to kind.
func entryOf[T any](ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, name string) (T, error) {
	var zero T
	stored, err := CatalogEntry(ctx, q, tenant, kind, name, 0)
	if err != nil {
		return zero, err
	}
	return *any(stored.Entry).(*T), nil
}
