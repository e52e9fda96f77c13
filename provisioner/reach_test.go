package provisioner

import (
	"context"
	"net/netip"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// housing is a provider with machines of this host: 10.200.0.7 is that of the node n1.
type housing struct{ scripted }

var _ provider.LocalMachines = housing{}

// Type returns the type.
func (housing) Type() loom.PluginType {
	return loom.PluginType{Base: loom.Base{Name: "house"}, Parameters: map[string]loom.FieldGroup{}}
}

// Networks returns the networks of all machines.
func (housing) Networks() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16")}
}

// Address gives that of n1.
func (housing) Address(spec *loom.TaskSpec) netip.Addr {
	if spec.Node == "n1" {
		return netip.MustParseAddr("10.200.0.7")
	}
	return netip.Addr{}
}

// Load says nothing.
func (housing) Load(*loom.TaskSpec) loom.Load { return loom.NoLoad }

// Adopted says that all machines are in order.
func (housing) Adopted(context.Context, *loom.TaskSpec) error { return nil }

// TestRunnerReach: what a task reaches is what its tenant may and what the installation
// says, and on top of it the machine of this host that it is about, for nobody else.
func TestRunnerReach(t *testing.T) {
	t.Parallel()
	var got loom.Reach
	note := func(_ context.Context, spec *loom.TaskSpec, _ loom.Sink) (loom.TaskResult, error) {
		got = spec.Reach
		return loom.TaskResult{}, nil
	}
	r := runner(t, note)
	var err error
	if r.Providers, err = provider.NewRegistry(scripted{create: note}, housing{scripted{create: note}}); err != nil {
		t.Fatal(err)
	}
	networks, err := loom.ParseReach("127.0.0.1,!192.168.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	r.Networks = networks
	for _, c := range []struct {
		kind    string
		node    loom.NodeID
		private bool
		yes, no []string
	}{
		{"mock", "n1", false, []string{"127.0.0.1", "8.8.8.8"}, []string{"10.0.0.1", "10.200.0.7", "127.0.0.2", "192.168.0.1"}},
		{"mock", "n1", true, []string{"127.0.0.1", "8.8.8.8", "10.0.0.1"}, []string{"10.200.0.7", "10.200.0.8", "192.168.0.1"}},
		{"house", "n1", false, []string{"10.200.0.7"}, []string{"10.200.0.8", "10.0.0.1"}},
		{"house", "n2", true, []string{"10.0.0.1"}, []string{"10.200.0.7", "10.200.0.8"}},
	} {
		spec := createSpec()
		spec.Node, spec.Provider.Type = c.node, c.kind
		// A spec cannot bring what only this process says.
		spec.Reach = loom.Reach{Private: c.private, Networks: loom.Anywhere().Networks, Machine: netip.MustParseAddr("127.0.0.9")}
		if result := r.Run(t.Context(), spec, silent{}); result.Status != 0 {
			t.Fatalf("%+v", result)
		}
		for may, list := range map[bool][]string{true: c.yes, false: append(c.no, "127.0.0.9", "169.254.169.254")} {
			for _, addr := range list {
				if got.May(netip.MustParseAddr(addr)) != may {
					t.Errorf("%s of %s, private %t: %s is not %t", c.kind, c.node, c.private, addr, may)
				}
			}
		}
	}
}

// TestProbesReach: questions outside of tasks reach what tasks do.
func TestProbesReach(t *testing.T) {
	t.Parallel()
	networks, err := loom.ParseReach("127.0.0.1,!10.9.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{Networks: networks}
	if r.Providers, err = provider.NewRegistry(housing{}); err != nil {
		t.Fatal(err)
	}
	reach := r.reaching(&loom.ProviderCall{Reach: loom.Reach{Private: true, Networks: loom.Anywhere().Networks}}).Reach
	for addr, may := range map[string]bool{"127.0.0.1": true, "10.0.0.1": true, "10.9.0.1": false, "10.200.0.7": false, "127.0.0.2": false} {
		if reach.May(netip.MustParseAddr(addr)) != may {
			t.Errorf("%s is not %t", addr, may)
		}
	}
}
