package external

import (
	"reflect"
	"testing"

	"loom/provisioner/automator"
	"loom/provisioner/automator/shell"
	"loom/provisioner/provider"
)

// TestExtend: external plugins come to the registries and go again, and give back
// what they replaced.
func TestExtend(t *testing.T) {
	t.Parallel()
	h := host(t)
	dir := plant(t, KindAutomator, "exit 0", func(m map[string]any) {
		m["types"] = map[string]any{"shell": map[string]any{"kind": KindAutomator, "label": "Another shell"}, "unit": map[string]any{"kind": KindAutomator}}
		m["replaces"] = []string{"shell"}
	})
	p := load(t, h, dir)
	r, err := automator.NewRegistry(shell.New())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Extend(h.Automator(p, "shell"), h.Automator(p, "unit")); err != nil {
		t.Fatal(err)
	}
	if a, ok := r.Get("shell"); !ok || a.Type().Label != "Another shell" || !reflect.DeepEqual(r.Carried(), []string{"shell", "unit"}) || len(r.Types()) != 2 {
		t.Errorf("carried: %v", r.Carried())
	}
	if err := r.Extend(h.Automator(p, "unit"), h.Automator(p, "unit")); err == nil {
		t.Error("two of one type are taken")
	}
	if _, ok := r.Get("unit"); !ok {
		t.Error("a failed Extend changed something")
	}
	if err := r.Extend(); err != nil {
		t.Fatal(err)
	}
	if a, ok := r.Get("shell"); !ok || a.Type().Label != "Shell" || !reflect.DeepEqual(r.Carried(), []string{"shell"}) {
		t.Errorf("carried in the end: %v", r.Carried())
	}
	providers, err := provider.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	metal := load(t, h, plant(t, KindProvider, "exit 0", nil))
	if err := providers.Extend(h.Provider(metal, "lab-provider")); err != nil || !reflect.DeepEqual(providers.Carried(), []string{"lab-provider"}) {
		t.Errorf("providers: %v, %v", providers.Carried(), err)
	}
}
