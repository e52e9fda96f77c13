package provider

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"loom/app/loom"
)

// Registry finds the provider of a type. Once the process is set up only Extend
// changes it.
type Registry struct {
	providers map[string]Provider
	// added are those of external plugins; they win.
	mu    sync.RWMutex
	added map[string]Provider
	// declared are types that are known without a plugin to carry them out.
	declared map[string]loom.PluginType
}

// NewRegistry takes the providers of this process. Two of one type, or a type
// description that is not valid, are an error of kind loom.Invalid.
func NewRegistry(providers ...Provider) (*Registry, error) {
	r := &Registry{providers: map[string]Provider{}, declared: map[string]loom.PluginType{}}
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
	r.mu.RLock()
	defer r.mu.RUnlock()
	if p, ok := r.added[name]; ok {
		return p, true
	}
	p, ok := r.providers[name]
	return p, ok
}

// Extend takes the providers of external plugins in place of those of the call
// before. One of a type that is carried already replaces that; what runs keeps
// the provider it began with. Errors are those of NewRegistry, and change nothing.
func (r *Registry) Extend(providers ...Provider) error {
	fresh, err := NewRegistry(providers...)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.added = fresh.providers
	return nil
}

// carried are all types that can be run.
func (r *Registry) carried() map[string]Provider {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := maps.Clone(r.providers)
	maps.Copy(all, r.added)
	return all
}

// Describe gives the type of a plugin that this process can run, as Types does.
func (r *Registry) Describe(name string) (loom.PluginType, bool) {
	p, ok := r.Get(name)
	if !ok {
		return loom.PluginType{}, false
	}
	return describe(p), true
}

func describe(p Provider) loom.PluginType {
	if u, ok := p.(Unconnected); ok && u.Unconnected() {
		return p.Type()
	}
	return withCommon(p.Type())
}

// Declare adds types that the catalog shall know though this build carries no
// plugin for them; one that is carried stays as its plugin describes it. A type
// description that is not valid is an error of kind loom.Invalid.
func (r *Registry) Declare(types ...loom.PluginType) error {
	for _, t := range types {
		if errs := t.Validate(); len(errs) > 0 {
			return fmt.Errorf("provider type %q: %w", t.Name, loom.InvalidFields(errs))
		}
		if _, carried := r.providers[t.Name]; !carried {
			r.declared[t.Name] = t
		}
	}
	return nil
}

// Missing says, for a type that Get does not find, why nothing can be done.
func (r *Registry) Missing(name string) string {
	if r != nil {
		if _, ok := r.declared[name]; ok {
			return fmt.Sprintf("The provider plugin “%s” is missing: this build of Loom declares the type but does not carry its plugin; use another provider, or a build that has it.", name)
		}
	}
	return fmt.Sprintf("This provisioner has no provider of type %q; start one that carries its plugin.", name)
}

// Carried lists the types whose plugins this process can run, sorted.
func (r *Registry) Carried() []string {
	return slices.Sorted(maps.Keys(r.carried()))
}

// Types describes every type, carried or only declared, sorted by name, for
// registration in the catalog. Each has CommonFields besides its own, but for those
// that are Unconnected.
func (r *Registry) Types() []loom.PluginType {
	all := map[string]loom.PluginType{}
	for name, t := range r.declared {
		all[name] = withCommon(t)
	}
	for name, p := range r.carried() {
		all[name] = describe(p)
	}
	types := make([]loom.PluginType, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		types = append(types, all[name])
	}
	return types
}
