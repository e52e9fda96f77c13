package provisioner_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"loom/app/loom"
	"loom/provisioner"
	"loom/provisioner/provider"
)

// atlas is a provider whose machines are in regions; asked are those that CREATE asked for.
type atlas struct {
	machines map[string][]loom.TaggedMachine // by region
	down     string                          // a region that does not answer
	asked    []string
}

func (a *atlas) Type() loom.PluginType {
	return loom.PluginType{Base: loom.Base{Name: "atlas"}, Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{
		"region": {Label: "Region", Type: "text", Default: "north", Role: loom.RolePlace}, "disk": {Label: "Disk", Type: "text"}}}}}
}

func (a *atlas) Create(_ context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	region, _ := spec.Provider.Fields["region"].(string)
	for _, m := range a.machines[region] {
		if m.Key == spec.IdempotencyKey {
			return loom.TaskResult{Result: map[string]any{"providerid": m.ID}}, nil
		}
	}
	if err := sink.Fact(map[string]any{loom.PlaceFact: spec.Place}); err != nil {
		return loom.TaskResult{}, err
	}
	a.asked = append(a.asked, region)
	return loom.TaskResult{Result: map[string]any{"providerid": "new in " + region}}, nil
}

func (a *atlas) Confirm(context.Context, *loom.TaskSpec, loom.Sink) (loom.TaskResult, error) {
	return loom.TaskResult{}, nil
}

func (a *atlas) Delete(context.Context, *loom.TaskSpec, loom.Sink) (loom.TaskResult, error) {
	return loom.TaskResult{}, nil
}

func (a *atlas) List(_ context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, error) {
	region, _ := call.Provider.Fields["region"].(string)
	if region == a.down {
		return nil, errors.New("no answer")
	}
	return a.machines[region], nil
}

// facts keeps what a task reports before it ends.
type facts struct{ reported map[string]any }

func (f *facts) Log(string, string)                {}
func (f *facts) Fact(results map[string]any) error { f.reported = results; return nil }

// TestCreateLooksWhereItAskedBefore: the first CREATE of a node keeps where it asks. When
// the provider names another region since, a machine that a lost answer left in the first
// one is taken; where there is none the node gets one in the new region; where nobody can
// tell, none is made.
func TestCreateLooksWhereItAskedBefore(t *testing.T) {
	t.Parallel()
	const key = "0c1d0000-0000-4000-8000-000000000001"
	lost := map[string][]loom.TaggedMachine{"north": {{ID: "other", Key: "x"}, {ID: "lost", Key: key}}}
	for _, c := range []struct {
		what     string
		machines map[string][]loom.TaggedMachine
		results  map[string]any
		region   any
		down     string
		id       any // "" where CREATE fails
		place    any // reported before a machine was asked for, nil where none is
	}{
		{"the first time", nil, nil, nil, "", "new in north", map[string]any{"region": "north"}},
		{"again, at the same place", lost, map[string]any{"place": map[string]any{"region": "north"}}, "north", "", "lost", nil},
		{"again, and the default says the same", lost, map[string]any{"place": map[string]any{"region": "north"}}, "", "", "lost", nil},
		{"the region changed, and there is a machine in the first", lost, map[string]any{"place": map[string]any{"region": "north"}}, "south", "", "lost", nil},
		{"the region changed, and there is none", nil, map[string]any{"place": map[string]any{"region": "north"}}, "south", "", "new in south", map[string]any{"region": "south"}},
		{"the region changed, and the first does not answer", lost, map[string]any{"place": map[string]any{"region": "north"}}, "south", "north", "", nil},
		{"the region changed after the machine was known", lost, map[string]any{"place": map[string]any{"region": "north"}, "providerid": "lost"}, "south", "south", "lost", nil},
	} {
		a := &atlas{machines: c.machines, down: c.down}
		providers, err := provider.NewRegistry(a)
		if err != nil {
			t.Fatal(err)
		}
		r := &provisioner.Runner{Providers: providers}
		sink := &facts{}
		spec := &loom.TaskSpec{Action: loom.ActionCreate, IdempotencyKey: key, Results: c.results,
			Provider: loom.Provider{Type: "atlas", Fields: map[string]any{"region": c.region, "disk": "10"}}}
		result := r.Run(t.Context(), spec, sink)
		if c.id == "" {
			if result.Status == 0 || len(a.asked) > 0 {
				t.Errorf("%s: %+v, asked for one in %v", c.what, result, a.asked)
			}
			continue
		}
		if result.Status != 0 || result.Result["providerid"] != c.id {
			t.Errorf("%s: %+v", c.what, result)
		}
		var reported any
		if sink.reported != nil {
			reported = sink.reported[loom.PlaceFact]
		}
		if !reflect.DeepEqual(reported, c.place) {
			t.Errorf("%s: %v was kept as the place, want %v", c.what, reported, c.place)
		}
	}
}
