package solver

import (
	"context"
	"slices"
	"testing"

	"loom/app/loom"
)

// Where a provider has no machines for the template, one that has is offered; the
// other way round, and without a list of providers, nothing is.
func TestProvidersAreSuggestedForGapsInTheirMaps(t *testing.T) {
	t.Parallel()
	entry := func(key string) map[string]map[string]string {
		return map[string]map[string]string{"full": {key: "x"}, "second": {key: "y"}}
	}
	in := Input{
		Template: loom.Template{Defaults: loom.Defaults{Services: []string{"web"}, Provider: "bare"}}, Machines: 2,
		Catalog:       map[string]loom.Service{"web": {Base: loom.Base{Name: "web"}}},
		HardwareTypes: []loom.HardwareType{{Base: loom.Base{Name: "h"}, ProviderMap: entry("flavor")}},
		ImageTypes:    []loom.ImageType{{Base: loom.Base{Name: "i"}, ProviderMap: entry("image")}},
		Providers:     []string{"bare", "empty", "full", "second"},
	}
	_, _, unsat, err := Create(context.Background(), in)
	if err != nil || unsat == nil {
		t.Fatalf("%v, %v", unsat, err)
	}
	var offered []string
	for _, s := range unsat.Suggestions {
		offered = append(offered, s.Label)
		if !oracleSolves(applied(t, in, s)) {
			t.Errorf("%+v does not help", s)
		}
	}
	if want := []string{"Choose provider full instead of bare", "Choose provider second instead of bare"}; !slices.Equal(offered, want) {
		t.Errorf("offered %q, want %q", offered, want)
	}
	in.Provider, in.Template.Constraints.Size = "full", loom.SizeConstraint{Min: 3}
	if _, _, unsat, err = Create(context.Background(), in); err != nil || unsat == nil {
		t.Fatalf("%v, %v", unsat, err)
	}
	for _, s := range unsat.Suggestions {
		if s.Provider != "" {
			t.Errorf("offered for a wrong size: %s", s.Label)
		}
	}
	in.Provider, in.Providers = "bare", nil
	if _, _, unsat, err = Create(context.Background(), in); err != nil || unsat == nil {
		t.Fatalf("%v, %v", unsat, err)
	}
	for _, s := range unsat.Suggestions {
		if s.Provider != "" {
			t.Errorf("offered though nobody said that it exists: %s", s.Label)
		}
	}
}
