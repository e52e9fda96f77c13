package cloud

import (
	"context"
	"strings"
	"testing"

	"loom/app/loom"
)

// oneMachine is a cloud that has one machine, or none.
type oneMachine struct {
	Driver
	id string
}

func (d *oneMachine) Get(_ context.Context, id string) (Machine, error) {
	if id != d.id {
		return Machine{}, Errorf(NotFound, "there is no machine %s", id)
	}
	return Machine{ID: id}, nil
}

func (d *oneMachine) Delete(_ context.Context, id string) error {
	if id != d.id {
		return Errorf(NotFound, "there is no machine %s", id)
	}
	d.id = ""
	return nil
}

// TestMachinesOfAnotherCloud: a cloud that the provider leads to by now does not say that
// machines of another one are gone.
func TestMachinesOfAnotherCloud(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, made, now, has string
		gone                 bool
	}{
		{"the same cloud", "old.example:5000", "https://old.example:5000/v3", "m1", true},
		{"the same cloud without the machine", "old.example:5000", "https://old.example:5000/v3", "", true},
		{"another path", "old.example:5000", "https://OLD.example:5000/identity/v3", "", true},
		{"another name of the cloud", "old.example:5000", "https://new.example/v3", "m1", true},
		{"another cloud", "old.example:5000", "https://new.example/v3", "", false},
		{"a machine made before that was recorded", "", "https://new.example/v3", "", true},
	} {
		fields := map[string]any{"endpoint_url": c.now}
		facts := map[string]any{"providerid": "m1"}
		if c.made != "" {
			facts[endpointFact] = c.made
		}
		spec := &loom.TaskSpec{Tenant: "elsewhere", Provider: loom.Provider{Fields: fields}, Results: facts, Reach: loom.Anywhere(), Alone: true}
		s := Options{Insecure: true}.Begin(gatedType, spec, nil, FromNetwork)
		got, err := s.delete(t.Context(), spec, &oneMachine{id: c.has})
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if gone := got.Status == 0; gone != c.gone || gone != (got.Result != nil) {
			t.Errorf("%s: status %d, %q, results %v", c.what, got.Status, got.Message, got.Result)
		}
		if !c.gone && (!strings.Contains(got.Message, "old.example:5000") || !strings.Contains(got.Message, "new.example")) {
			t.Errorf("%s: the message names not both: %q", c.what, got.Message)
		}
	}
}
