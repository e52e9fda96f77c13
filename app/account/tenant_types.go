package account

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/app/store"
)

// ProviderTypes lists the provider types of this installation by name, for superadmins:
// those that a tenant can be refused.
func (a *Accounts) ProviderTypes(ctx context.Context, actor loom.Actor) ([]loom.PluginType, error) {
	if err := mayReadTenants(actor); err != nil {
		return nil, err
	}
	return a.providerTypes(ctx)
}

func (a *Accounts) providerTypes(ctx context.Context) ([]loom.PluginType, error) {
	entries, err := store.NewestCatalogEntries(ctx, a.db, loom.SuperTenant, loom.KindProviderType)
	if err != nil {
		return nil, err
	}
	types := make([]loom.PluginType, 0, len(entries))
	for _, e := range entries {
		if t, ok := e.Entry.(*loom.PluginType); ok {
			types = append(types, *t)
		}
	}
	slices.SortFunc(types, func(a, b loom.PluginType) int { return strings.Compare(a.Name, b.Name) })
	return types, nil
}

// checkTypes finds provider types to be switched off that there are not; had are those
// that are off already.
func (a *Accounts) checkTypes(ctx context.Context, in TenantInput, had []string) error {
	if in.TypesOff == nil {
		return nil
	}
	types, err := a.providerTypes(ctx)
	if err != nil {
		return err
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name
	}
	var errs []loom.FieldError
	for i, name := range *in.TypesOff {
		if !slices.Contains(names, name) && !slices.Contains(had, name) {
			errs = append(errs, loom.FieldError{Field: "providerTypesOff[" + strconv.Itoa(i) + "]", Message: fmt.Sprintf("There is no provider type “%.40s”; types are %s.", name, strings.Join(names, ", "))})
		}
	}
	return loom.InvalidFields(errs)
}
