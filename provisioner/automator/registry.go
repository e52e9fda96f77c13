package automator

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"loom/app/loom"
)

// Registry finds the automator of a type. Once the process is set up only Extend
// changes it.
type Registry struct {
	automators map[string]Automator
	// added are those of external plugins; they win.
	mu    sync.RWMutex
	added map[string]Automator
	// declared are types that are known without a plugin to carry them out.
	declared map[string]loom.PluginType
}

// NewRegistry takes the automators of this process. Two of one type, or a type
// description that is not valid, are an error of kind loom.Invalid.
func NewRegistry(automators ...Automator) (*Registry, error) {
	r := &Registry{automators: map[string]Automator{}, declared: map[string]loom.PluginType{}}
	for _, p := range automators {
		t := p.Type()
		if errs := t.Validate(); len(errs) > 0 {
			return nil, fmt.Errorf("automator type %q: %w", t.Name, loom.InvalidFields(errs))
		}
		if _, ok := r.automators[t.Name]; ok {
			return nil, loom.NewError(loom.Invalid, "Automator type “%s” is declared twice; leave out one of the plugins.", t.Name)
		}
		r.automators[t.Name] = p
	}
	return r, nil
}

// Get finds the automator of a type.
func (r *Registry) Get(name string) (Automator, bool) {
	if r == nil {
		return nil, false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if p, ok := r.added[name]; ok {
		return p, true
	}
	p, ok := r.automators[name]
	return p, ok
}

// Extend takes the automators of external plugins in place of those of the call
// before. One of a type that is carried already replaces that; what runs keeps
// the automator it began with. Errors are those of NewRegistry, and change nothing.
func (r *Registry) Extend(automators ...Automator) error {
	fresh, err := NewRegistry(automators...)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.added = fresh.automators
	return nil
}

// carried are all types that can be run.
func (r *Registry) carried() map[string]Automator {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := maps.Clone(r.automators)
	maps.Copy(all, r.added)
	return all
}

// Declare adds types that the catalog shall know though this build carries no
// plugin for them; one that is carried stays as its plugin describes it. A type
// description that is not valid is an error of kind loom.Invalid.
func (r *Registry) Declare(types ...loom.PluginType) error {
	for _, t := range types {
		if errs := t.Validate(); len(errs) > 0 {
			return fmt.Errorf("automator type %q: %w", t.Name, loom.InvalidFields(errs))
		}
		if _, carried := r.automators[t.Name]; !carried {
			r.declared[t.Name] = t
		}
	}
	return nil
}

// Missing says, for a type that Get does not find, why nothing can be done.
func (r *Registry) Missing(name string) string {
	if r != nil {
		if _, ok := r.declared[name]; ok {
			return fmt.Sprintf("The automator plugin “%s” is missing: this build of Loom declares the type but does not carry its plugin; use another automator, or a build that has it.", name)
		}
	}
	return fmt.Sprintf("This provisioner has no automator of type %q; start one that carries its plugin.", name)
}

// Carried lists the types whose plugins this process can run, sorted.
func (r *Registry) Carried() []string {
	return slices.Sorted(maps.Keys(r.carried()))
}

// Types describes every type, carried or only declared, sorted by name, for
// registration in the catalog.
func (r *Registry) Types() []loom.PluginType {
	all := maps.Clone(r.declared)
	for name, p := range r.carried() {
		all[name] = p.Type()
	}
	types := make([]loom.PluginType, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		types = append(types, all[name])
	}
	return types
}
