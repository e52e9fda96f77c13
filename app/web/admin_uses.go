package web

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
)

// reference is a name of an entry in another one.
type reference struct {
	kind        loom.EntityKind
	name, field string
}

// references lists what an entry names.
func references(entry loom.Entry) []reference {
	switch e := entry.(type) {
	case *loom.Provider:
		return named(nil, loom.KindProviderType, "providertype", e.Type)
	case *loom.HardwareType:
		return named(nil, loom.KindProvider, "providermap", slices.Sorted(maps.Keys(e.ProviderMap))...)
	case *loom.ImageType:
		return named(nil, loom.KindProvider, "providermap", slices.Sorted(maps.Keys(e.ProviderMap))...)
	case *loom.Service:
		return serviceReferences(e)
	case *loom.PartialTemplate:
		return templateReferences(e.Defaults, e.Compatibility, e.Constraints)
	case *loom.Template:
		found := templateReferences(e.Defaults, e.Compatibility, e.Constraints)
		if e.Extends != nil {
			found = named(found, loom.KindTemplate, "extends", e.Extends.Name)
		}
		for i, part := range e.Includes {
			found = named(found, loom.KindPartialTemplate, fmt.Sprintf("includes[%d]", i), part.Name)
		}
		return found
	}
	return nil
}

func named(found []reference, kind loom.EntityKind, field string, names ...string) []reference {
	for _, name := range names {
		if name != "" {
			found = append(found, reference{kind, name, field})
		}
	}
	return found
}

func serviceReferences(s *loom.Service) []reference {
	d := s.Dependencies
	found := named(nil, loom.KindService, "dependencies.install.requires", d.Install.Requires...)
	found = named(found, loom.KindService, "dependencies.install.uses", d.Install.Uses...)
	found = named(found, loom.KindService, "dependencies.runtime.requires", d.Runtime.Requires...)
	found = named(found, loom.KindService, "dependencies.runtime.uses", d.Runtime.Uses...)
	found = named(found, loom.KindService, "dependencies.conflicts", d.Conflicts...)
	found = named(found, loom.KindService, "follows", s.Follows...)
	for _, action := range slices.Sorted(maps.Keys(s.Provisioner.Actions)) {
		found = named(found, loom.KindAutomatorType, "provisioner.actions."+string(action), s.Provisioner.Actions[action].Type)
	}
	return found
}

func templateReferences(d loom.Defaults, c loom.Compatibility, k loom.Constraints) []reference {
	found := named(nil, loom.KindService, "defaults.services", d.Services...)
	found = named(found, loom.KindProvider, "defaults.provider", d.Provider)
	found = named(found, loom.KindHardwareType, "defaults.hardwaretype", d.HardwareType)
	found = named(found, loom.KindImageType, "defaults.imagetype", d.ImageType)
	found = named(found, loom.KindHardwareType, "compatibility.hardwaretypes", c.HardwareTypes...)
	found = named(found, loom.KindImageType, "compatibility.imagetypes", c.ImageTypes...)
	found = named(found, loom.KindService, "compatibility.services", c.Services...)
	for _, name := range slices.Sorted(maps.Keys(k.Services)) {
		at := "constraints.services." + name
		found = named(found, loom.KindService, at, name)
		found = named(found, loom.KindHardwareType, at, k.Services[name].HardwareTypes...)
		found = named(found, loom.KindImageType, at, k.Services[name].ImageTypes...)
	}
	for _, set := range k.Layout.MustCoexist {
		found = named(found, loom.KindService, "constraints.layout.mustcoexist", set...)
	}
	for _, set := range k.Layout.CantCoexist {
		found = named(found, loom.KindService, "constraints.layout.cantcoexist", set...)
	}
	return found
}

// knowledge is a tenant's whole catalog with the plugin types.
type knowledge struct {
	entries map[loom.EntityKind][]loom.Entry
	plugins map[loom.EntityKind]map[string]loom.PluginType
	names   map[reference]bool // without fields
}

func (s *Server) knowledge(ctx context.Context, actor loom.Actor) (knowledge, error) {
	k := knowledge{plugins: map[loom.EntityKind]map[string]loom.PluginType{}, names: map[reference]bool{}}
	bundle, err := s.Catalog.Export(ctx, actor)
	if err != nil {
		return k, err
	}
	k.entries = bundle.Entries
	for _, kind := range []loom.EntityKind{loom.KindProviderType, loom.KindAutomatorType} {
		types, err := s.Catalog.PluginTypes(ctx, actor, kind)
		if err != nil {
			return k, err
		}
		k.plugins[kind] = map[string]loom.PluginType{}
		for _, t := range types {
			k.plugins[kind][t.Name] = t
			k.names[reference{kind: kind, name: t.Name}] = true
		}
	}
	for kind, entries := range bundle.Entries {
		for _, entry := range entries {
			k.add(kind, entry)
		}
	}
	return k, nil
}

func (k knowledge) add(kind loom.EntityKind, entry loom.Entry) {
	k.names[reference{kind: kind, name: entry.Meta().Name}] = true
	if service, ok := entry.(*loom.Service); ok {
		for _, name := range service.Dependencies.Provides {
			k.names[reference{kind: kind, name: name}] = true
		}
	}
}

// uses lists the entries that name an entry.
func (k knowledge) uses(kind loom.EntityKind, name string) []adminview.Use {
	var found []adminview.Use
	for _, from := range loom.TenantKinds {
		for _, entry := range k.entries[from] {
			for _, r := range references(entry) {
				if r.kind == kind && r.name == name {
					user := entry.Meta().Name
					found = append(found, adminview.Use{Kind: from.Word(), Name: user, Href: route.AdminEntry(from, user), Field: r.field})
				}
			}
		}
	}
	return found
}

// lacks says what of an entry would not work, each in a sentence.
func (k knowledge) lacks(entry loom.Entry) []string {
	var found []string
	for _, r := range references(entry) {
		if !k.names[reference{kind: r.kind, name: r.name}] {
			found = append(found, fmt.Sprintf("There is no %s “%s” (%s).", r.kind.Word(), r.name, r.field))
		}
	}
	switch e := entry.(type) {
	case *loom.Provider:
		found = append(found, k.incomplete(e)...)
	case *loom.HardwareType:
		found = append(found, unmapped(e.ProviderMap, "flavor")...)
	case *loom.ImageType:
		found = append(found, unmapped(e.ProviderMap, "image")...)
	case *loom.Template:
		if alone := e.Extends == nil && len(e.Includes) == 0; alone && e.Defaults.Provider == "" {
			found = append(found, "It names no default provider.")
		} else if alone && len(e.Defaults.Services) == 0 {
			found = append(found, "It names no default services.")
		}
	}
	return found
}

// incomplete says which settings a provider still needs; sealed ones count as
// given.
func (k knowledge) incomplete(p *loom.Provider) []string {
	present := maps.Clone(p.Fields)
	if present == nil {
		present = map[string]any{}
	}
	for _, field := range p.Sealed {
		present[field] = true
	}
	sets := k.plugins[loom.KindProviderType][p.Type].Parameters["admin"].Missing(present)
	if len(sets) == 0 {
		return nil
	}
	var ways []string
	for _, set := range sets {
		ways = append(ways, and(slices.Sorted(maps.Keys(set))))
	}
	return []string{"It is incomplete: set " + or(ways) + "."}
}

func unmapped(providers map[string]map[string]string, key string) []string {
	for _, terms := range providers {
		if terms[key] != "" {
			return nil
		}
	}
	return []string{"No provider can use it: give “" + key + "” for at least one in providermap."}
}
