package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// world is what a reference may point to: names by kind, and what services
// provide.
type world struct {
	names    map[loom.EntityKind]map[string]bool
	services map[string]loom.Service
	provided map[string]bool
}

// warnings says what of a saved entry would not work: names of nothing, circles
// of service dependencies, a template that does not resolve.
func (c *Catalog) warnings(ctx context.Context, tenant loom.TenantID, kind loom.EntityKind, entry loom.Entry) ([]string, error) {
	if kind.Global() {
		return nil, nil
	}
	w, err := c.world(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var found []string
	switch e := entry.(type) {
	case *loom.Provider:
		found = w.missing(found, loom.KindProviderType, "providertype", e.Type)
	case *loom.HardwareType:
		found = w.missing(found, loom.KindProvider, "providermap", slices.Sorted(maps.Keys(e.ProviderMap))...)
	case *loom.ImageType:
		found = w.missing(found, loom.KindProvider, "providermap", slices.Sorted(maps.Keys(e.ProviderMap))...)
	case *loom.Service:
		found = w.service(found, e)
	case *loom.PartialTemplate:
		found = w.template(found, e.Defaults, e.Compatibility, e.Constraints)
	case *loom.Template:
		found = w.template(found, e.Defaults, e.Compatibility, e.Constraints)
		if e.Extends != nil || len(e.Includes) > 0 {
			_, err := loom.MergeTemplate(*e, store.TemplateLookup(ctx, c.db, tenant))
			switch {
			case errors.Is(err, loom.Invalid), errors.Is(err, loom.NotFound):
				found = append(found, loom.AsError(err).Message)
			case err != nil:
				return nil, err
			}
		}
	}
	return found, nil
}

func (c *Catalog) world(ctx context.Context, tenant loom.TenantID) (world, error) {
	w := world{names: map[loom.EntityKind]map[string]bool{}, services: map[string]loom.Service{}, provided: map[string]bool{}}
	for _, kind := range loom.EntityKinds {
		w.names[kind] = map[string]bool{}
	}
	tenantEntries, err := store.NewestCatalogEntries(ctx, c.db, tenant, loom.TenantKinds...)
	if err != nil {
		return w, err
	}
	plugins, err := store.NewestCatalogEntries(ctx, c.db, loom.SuperTenant, loom.KindProviderType, loom.KindAutomatorType)
	if err != nil {
		return w, err
	}
	for _, stored := range append(tenantEntries, plugins...) {
		name := stored.Entry.Meta().Name
		w.names[stored.Kind][name] = true
		if s, ok := stored.Entry.(*loom.Service); ok {
			w.services[name] = *s
			w.provided[name] = true
			for _, p := range s.Dependencies.Provides {
				w.provided[p] = true
			}
		}
	}
	return w, nil
}

// missing adds a warning for each name that is no entry of the kind.
func (w world) missing(found []string, kind loom.EntityKind, field string, names ...string) []string {
	for _, name := range names {
		if name != "" && !w.names[kind][name] {
			found = append(found, fmt.Sprintf("%s: there is no %s “%s”.", field, kind.Word(), name))
		}
	}
	return found
}

func (w world) service(found []string, s *loom.Service) []string {
	for _, set := range []struct {
		field string
		names []string
	}{
		{"dependencies.install.requires", s.Dependencies.Install.Requires}, {"dependencies.install.uses", s.Dependencies.Install.Uses},
		{"dependencies.runtime.requires", s.Dependencies.Runtime.Requires}, {"dependencies.runtime.uses", s.Dependencies.Runtime.Uses},
		{"dependencies.conflicts", s.Dependencies.Conflicts}, {"follows", s.Follows},
	} {
		for _, name := range set.names {
			if !w.provided[name] {
				found = append(found, fmt.Sprintf("%s: no service is or provides “%s”.", set.field, name))
			}
		}
	}
	for _, action := range slices.Sorted(maps.Keys(s.Provisioner.Actions)) {
		found = w.missing(found, loom.KindAutomatorType, "provisioner.actions."+string(action)+".type", s.Provisioner.Actions[action].Type)
	}
	for _, cycle := range planner.CheckCycles(w.services) {
		if slices.Contains(cycle, s.Name) {
			found = append(found, "These services depend on each other in a circle: "+strings.Join(cycle, " → ")+".")
		}
	}
	return found
}

func (w world) template(found []string, d loom.Defaults, c loom.Compatibility, k loom.Constraints) []string {
	found = w.missing(found, loom.KindService, "defaults.services", d.Services...)
	found = w.missing(found, loom.KindProvider, "defaults.provider", d.Provider)
	found = w.missing(found, loom.KindHardwareType, "defaults.hardwaretype", d.HardwareType)
	found = w.missing(found, loom.KindImageType, "defaults.imagetype", d.ImageType)
	found = w.missing(found, loom.KindHardwareType, "compatibility.hardwaretypes", c.HardwareTypes...)
	found = w.missing(found, loom.KindImageType, "compatibility.imagetypes", c.ImageTypes...)
	found = w.missing(found, loom.KindService, "compatibility.services", c.Services...)
	found = w.missing(found, loom.KindService, "constraints.services", slices.Sorted(maps.Keys(k.Services))...)
	for i, set := range k.Layout.MustCoexist {
		found = w.missing(found, loom.KindService, fmt.Sprintf("constraints.layout.mustcoexist[%d]", i), set...)
	}
	for i, set := range k.Layout.CantCoexist {
		found = w.missing(found, loom.KindService, fmt.Sprintf("constraints.layout.cantcoexist[%d]", i), set...)
	}
	return found
}
