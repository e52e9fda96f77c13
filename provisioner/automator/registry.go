package automator

import (
	"fmt"
	"maps"
	"slices"

	"loom/app/loom"
)

// Registry finds the automator of a type. It does not change once made.
type Registry struct {
	automators map[string]Automator
}

// NewRegistry takes the automators of this process. Two of one type, or a type
// description that is not valid, are an error of kind loom.Invalid.
func NewRegistry(automators ...Automator) (*Registry, error) {
	r := &Registry{automators: map[string]Automator{}}
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
	p, ok := r.automators[name]
	return p, ok
}

// Types describes every type, sorted by name, for registration in the catalog.
func (r *Registry) Types() []loom.PluginType {
	types := make([]loom.PluginType, 0, len(r.automators))
	for _, name := range slices.Sorted(maps.Keys(r.automators)) {
		types = append(types, r.automators[name].Type())
	}
	return types
}
