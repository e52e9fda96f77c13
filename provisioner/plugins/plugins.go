// Package plugins keeps the plugins of one kind, providers or automators, that a process
// can run, and finds them by type. It must not know what a plugin does.
package plugins

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"loom/app/loom"
)

// Plugin is what a registry knows of those it keeps.
type Plugin interface {
	Type() loom.PluginType
}

// Registry finds the plugin of a type. Once the process is set up only Extend
// changes it. A nil one finds nothing.
type Registry[P Plugin] struct {
	kind    Kind[P]
	plugins map[string]P
	// added are those of external plugins; they win.
	mu    sync.RWMutex
	added map[string]P
}

// Kind says what the plugins of a registry are.
type Kind[P Plugin] struct {
	// Word is "provider" or "automator".
	Word string
	// Describe returns the type of a plugin as the catalog knows it; nil leaves it as it is.
	Describe func(P) loom.PluginType
}

// New takes the plugins of this process. Two of one type, or a type description that
// is not valid, are an error of kind loom.Invalid.
func New[P Plugin](kind Kind[P], plugins ...P) (*Registry[P], error) {
	if kind.Describe == nil {
		kind.Describe = func(p P) loom.PluginType { return p.Type() }
	}
	r := &Registry[P]{kind: kind, plugins: map[string]P{}}
	for _, p := range plugins {
		t := p.Type()
		if errs := t.Validate(); len(errs) > 0 {
			return nil, fmt.Errorf("%s type %q: %w", kind.Word, t.Name, loom.InvalidFields(errs))
		}
		if _, ok := r.plugins[t.Name]; ok {
			word := strings.ToUpper(kind.Word[:1]) + kind.Word[1:]
			return nil, loom.NewError(loom.Invalid, "%s type “%s” is declared twice. Remove one of the plugins.", word, t.Name)
		}
		r.plugins[t.Name] = p
	}
	return r, nil
}

// Get finds the plugin of a type.
func (r *Registry[P]) Get(name string) (P, bool) {
	if r == nil {
		var none P
		return none, false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if p, ok := r.added[name]; ok {
		return p, true
	}
	p, ok := r.plugins[name]
	return p, ok
}

// Extend takes external plugins in place of those of the call before. One of a type
// that is carried already replaces that; what runs keeps the plugin it began with.
// Errors are those of New, and change nothing.
func (r *Registry[P]) Extend(plugins ...P) error {
	fresh, err := New(r.kind, plugins...)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.added = fresh.plugins
	return nil
}

// Missing says, for a type that Get does not find, why nothing can be done.
func (r *Registry[P]) Missing(name string) string {
	if r == nil {
		return fmt.Sprintf("This provisioner has no plugin of type %q; start one that carries it.", name)
	}
	return fmt.Sprintf("This provisioner has no %s of type %q; start one that carries its plugin.", r.kind.Word, name)
}

// all are the plugins that can be run.
func (r *Registry[P]) all() map[string]P {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := maps.Clone(r.plugins)
	maps.Copy(all, r.added)
	return all
}

// Carried lists the types whose plugins this process can run, sorted.
func (r *Registry[P]) Carried() []string {
	return slices.Sorted(maps.Keys(r.all()))
}

// Describe returns the type of a plugin that this process can run, as Types does.
func (r *Registry[P]) Describe(name string) (loom.PluginType, bool) {
	p, ok := r.Get(name)
	if !ok {
		return loom.PluginType{}, false
	}
	return r.kind.Describe(p), true
}

// Types describes every type, sorted by name, for registration in the catalog.
func (r *Registry[P]) Types() []loom.PluginType {
	all := r.all()
	types := make([]loom.PluginType, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		types = append(types, r.kind.Describe(all[name]))
	}
	return types
}
