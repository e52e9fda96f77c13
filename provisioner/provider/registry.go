package provider

import (
	"fmt"
	"maps"
	"slices"

	"loom/app/loom"
)

// Registry finds the provider of a type. It does not change once made.
type Registry struct {
	providers map[string]Provider
}

// NewRegistry takes the providers of this process. Two of one type, or a type
// description that is not valid, are an error of kind loom.Invalid.
func NewRegistry(providers ...Provider) (*Registry, error) {
	r := &Registry{providers: map[string]Provider{}}
	for _, p := range providers {
		t := p.Type()
		if errs := t.Validate(); len(errs) > 0 {
			return nil, fmt.Errorf("provider type %q: %w", t.Name, loom.InvalidFields(errs))
		}
		if _, ok := r.providers[t.Name]; ok {
			return nil, loom.NewError(loom.Invalid, "Provider type “%s” is declared twice; leave out one of the plugins.", t.Name)
		}
		r.providers[t.Name] = p
	}
	return r, nil
}

// Get finds the provider of a type.
func (r *Registry) Get(name string) (Provider, bool) {
	if r == nil {
		return nil, false
	}
	p, ok := r.providers[name]
	return p, ok
}

// Types describes every type, sorted by name, for registration in the catalog.
func (r *Registry) Types() []loom.PluginType {
	types := make([]loom.PluginType, 0, len(r.providers))
	for _, name := range slices.Sorted(maps.Keys(r.providers)) {
		types = append(types, r.providers[name].Type())
	}
	return types
}
