package provisioner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"loom/app/loom"
	"loom/provisioner/provider"
	mockprovider "loom/provisioner/provider/mock"
)

// mute is a provider that can be asked nothing.
type mute struct{ provider.Provider }

// talker answers with functions of the test.
type talker struct {
	mockprovider.Provider
	probe func(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error)
	list  func(ctx context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, error)
}

// Type wants a field.
func (t talker) Type() loom.PluginType {
	p := t.Provider.Type()
	p.Parameters["admin"].Fields["token"] = loom.FieldSchema{Label: "Token", Type: "password"}
	p.Parameters["admin"] = loom.FieldGroup{Fields: p.Parameters["admin"].Fields, Required: [][]string{{"token"}}}
	return p
}

// Probe does what the test wants.
func (t talker) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	return t.probe(ctx, call)
}

// List does what the test wants.
func (t talker) List(ctx context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, error) {
	return t.list(ctx, call)
}

func asker(t *testing.T, p provider.Provider) *Runner {
	t.Helper()
	providers, err := provider.NewRegistry(p)
	if err != nil {
		t.Fatal(err)
	}
	return &Runner{Providers: providers, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

func call(kind string) *loom.ProviderCall {
	return &loom.ProviderCall{Tenant: "t1", Provider: loom.Provider{Base: loom.Base{Name: "p"}, Type: kind,
		Fields: map[string]any{"token": "hunter2!"}}, Sensitive: []string{"hunter2!"}}
}

func TestProbeOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		made   provider.Provider
		call   func(*loom.ProviderCall)
		ok     bool
		check  string
		phrase string
	}{
		{"a plugin that nobody knows", mockprovider.New(), func(c *loom.ProviderCall) { c.Provider.Type = "moon" }, false, "plugin", "moon"},
		{"a plugin that cannot be probed", mute{mockprovider.New()}, nil, false, "probe", "cannot say"},
		{"fields that are absent", talker{probe: func(context.Context, *loom.ProviderCall) (loom.Probe, error) { return loom.NewProbe(nil), nil }}, func(c *loom.ProviderCall) { c.Provider.Fields = map[string]any{"token": ""} }, false, "settings", "“Token”"},
		{"one that works", mockprovider.New(), nil, true, "connect", "works"},
		{"one that fails", mockprovider.New(), func(c *loom.ProviderCall) { c.Provider.Fields["fail_tasks"] = "probe" }, false, "connect", "fail_tasks"},
		{"trouble of the provisioner", talker{probe: func(context.Context, *loom.ProviderCall) (loom.Probe, error) {
			return loom.Probe{}, errors.New("disk full, said hunter2!")
		}}, nil, false, "probe", "disk full, said [redacted]"},
		{"a panic", talker{probe: func(context.Context, *loom.ProviderCall) (loom.Probe, error) { panic("hunter2! is no number") }}, nil, false, "probe", "crashed: [redacted] is no number"},
		{"secrets in what it says", talker{probe: func(context.Context, *loom.ProviderCall) (loom.Probe, error) {
			p := loom.Probe{OK: true, Flavors: []loom.ProbeFlavor{{ID: "hunter2!", Name: "hunter2!"}}, Images: []loom.ProbeImage{{ID: "hunter2!", Name: "hunter2!"}}}
			p.Check("hunter2!", true, "aHVudGVyMiE= is in")
			return p, nil
		}}, nil, true, "[redacted]", "[redacted] is in"},
	} {
		in := call("mock")
		if c.call != nil {
			c.call(in)
		}
		got, err := asker(t, c.made).Probe(t.Context(), in)
		if err != nil || got.OK != c.ok || len(got.Checks) == 0 || got.Checks[0].Name != c.check || !strings.Contains(got.Checks[0].Message, c.phrase) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		for _, f := range got.Flavors {
			if strings.Contains(f.ID+f.Name, "hunter2!") {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
		for _, im := range got.Images {
			if strings.Contains(im.ID+im.Name, "hunter2!") {
				t.Errorf("%s: %+v", c.name, im)
			}
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ends := errors.New("the process ends")
	wait := talker{probe: func(ctx context.Context, _ *loom.ProviderCall) (loom.Probe, error) {
		cancel(ends)
		<-ctx.Done()
		return loom.Probe{}, ctx.Err()
	}}
	if _, err := asker(t, wait).Probe(ctx, call("mock")); !errors.Is(err, ends) {
		t.Errorf("a process that ends: %v", err)
	}
}

// TestAnswersToProbesAreCleaned: an answer has few checks of bounded length, one that failed is
// never left out, and nothing in it is a secret or obeyed by a terminal.
func TestAnswersToProbesAreCleaned(t *testing.T) {
	t.Parallel()
	var heard []loom.ProbeCheck
	in := call("mock")
	in.Told = func(c loom.ProbeCheck) { heard = append(heard, c) }
	long := talker{probe: func(_ context.Context, call *loom.ProviderCall) (loom.Probe, error) {
		p := loom.NewProbe(call.Told)
		for i := range 40 {
			p.Check("step\x1b[31m", i != 39, strings.Repeat("é", 600)+"hunter2!")
		}
		for i := range 3000 {
			p.Offer("region", fmt.Sprint("r", i), "\x00hunter2!")
			p.Flavors = append(p.Flavors, loom.ProbeFlavor{ID: fmt.Sprint(i)})
		}
		p.Offer("zone", "bad\x00id", "")
		p.Offer("zone", strings.Repeat("x", 5000), "")
		return p, nil
	}}
	got, err := asker(t, long).Probe(t.Context(), in)
	failed, there := got.Failed()
	if err != nil || got.OK || !there || len(got.Checks) != loom.MaxProbeChecks || len(heard) != loom.MaxProbeChecks || failed.Name != "step[31m" || utf8.RuneCountInString(failed.Message) != loom.MaxProbeMessage {
		t.Errorf("%d checks, %d told, %+v, %v", len(got.Checks), len(heard), failed, err)
	}
	if len(got.Choices["region"]) != loom.MaxProbeChoices || len(got.Choices["zone"]) != 0 || len(got.Flavors) != loom.MaxProbeOffers || got.Choices["region"][0].Name != "[redacted]" {
		t.Errorf("%d regions, %d zones, %d sizes", len(got.Choices["region"]), len(got.Choices["zone"]), len(got.Flavors))
	}
	if text := fmt.Sprintf("%+v %+v", got, heard); strings.Contains(text, "hunter2") || strings.ContainsAny(text, "\x00\x1b") {
		t.Error("an answer holds what it should not")
	}
}

func TestMachinesAndTheirRemoval(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]provider.Provider{"mute": mute{mockprovider.New()}, "declared": mockprovider.New()} {
		in := call("mock")
		if name == "declared" {
			in.Provider.Type = "aws"
		}
		if _, listed, err := asker(t, p).Machines(t.Context(), in); listed || err != nil {
			t.Errorf("%s: %v, %v", name, listed, err)
		}
	}
	for name, list := range map[string]func(context.Context, *loom.ProviderCall) ([]loom.TaggedMachine, error){
		"error": func(context.Context, *loom.ProviderCall) ([]loom.TaggedMachine, error) {
			return nil, errors.New("hunter2! refused")
		},
		"domain error": func(context.Context, *loom.ProviderCall) ([]loom.TaggedMachine, error) {
			return nil, loom.NewError(loom.Unavailable, "hunter2! refused")
		},
		"panic": func(context.Context, *loom.ProviderCall) ([]loom.TaggedMachine, error) { panic("hunter2! refused") },
	} {
		_, listed, err := asker(t, talker{list: list}).Machines(t.Context(), call("mock"))
		if listed || err == nil || !strings.Contains(err.Error(), "[redacted] refused") || strings.Contains(err.Error(), "hunter2!") {
			t.Errorf("%s: %v, %v", name, listed, err)
		}
	}
	r := asker(t, mockprovider.New())
	spec := createSpec()
	spec.IdempotencyKey, spec.Hostname, spec.Tenant, spec.Flavor, spec.Image = "k", "web.lab", "t1", "small", "debian"
	spec.Ref.Operation.Cluster = 7
	if got := r.Run(t.Context(), spec, silent{}); got.Status != 0 {
		t.Fatal(got)
	}
	want := loom.TaggedMachine{ID: "mock-n1", Name: "web.lab", Node: "n1", Key: "k", Cluster: "00000007", Tenant: "t1",
		State: loom.StateRunning, Flavor: "small", Image: "debian", Addresses: []string{"198.51.100.173"}}
	machines, listed, err := r.Machines(t.Context(), call("mock"))
	if err != nil || !listed || len(machines) != 1 || !reflect.DeepEqual(machines[0], want) {
		t.Fatalf("machines: %+v, %v, %v", machines, listed, err)
	}
	own := want
	own.ID = "mock-own"
	if err := r.Remove(t.Context(), call("mock"), own, true); err != nil {
		t.Error(err)
	}
	if machines, _, err := r.Machines(t.Context(), call("mock")); err != nil || len(machines) != 1 {
		t.Errorf("after another with its key was removed alone: %+v, %v", machines, err)
	}
	refuses := call("mock")
	refuses.Provider.Fields["fail_tasks"] = "delete"
	if err := r.Remove(t.Context(), refuses, want, false); !errors.Is(err, loom.Unavailable) || !strings.HasSuffix(loom.AsError(err).Message, "fail_tasks asks for.") {
		t.Errorf("a removal that fails: %v", err)
	}
	if err := r.Remove(t.Context(), call("mock"), want, false); err != nil {
		t.Error(err)
	}
	if machines, _, err := r.Machines(t.Context(), call("mock")); err != nil || len(machines) != 0 {
		t.Errorf("left: %+v, %v", machines, err)
	}
	if err := r.Remove(t.Context(), call("aws"), want, false); !errors.Is(err, loom.Unavailable) || !strings.Contains(err.Error(), "start one that carries its plugin") {
		t.Errorf("without the plugin: %v", err)
	}
}

// TestMachinesAreBounded: what a list says comes from whoever may label machines there.
func TestMachinesAreBounded(t *testing.T) {
	t.Parallel()
	said := loom.TaggedMachine{ID: "m 1", Name: "hunter2!\x00\n" + strings.Repeat("n", 1000), Node: "a\xff", Key: strings.Repeat("k", 1000), Cluster: "7\x00", Tenant: "t\u202e1",
		State: "on fire", Flavor: strings.Repeat("f", 1000), Image: "im\xffage", Addresses: []string{"", "10.0.0.2", "10.0.0.1", "<b>", "fe80::1%eth0", "10.0.0.2"}}
	for i := range 50 {
		said.Addresses = append(said.Addresses, fmt.Sprint("10.1.0.", i))
	}
	list := func(machines ...loom.TaggedMachine) ([]loom.TaggedMachine, error) {
		given, _, err := asker(t, talker{list: func(context.Context, *loom.ProviderCall) ([]loom.TaggedMachine, error) { return machines, nil }}).Machines(t.Context(), call("mock"))
		return given, err
	}
	machines, err := list(said, loom.TaggedMachine{ID: "m2"})
	if err != nil || len(machines) != 2 || !reflect.DeepEqual(machines[1], loom.TaggedMachine{ID: "m2"}) {
		t.Fatalf("%+v, %v", machines, err)
	}
	m := machines[0]
	if m.ID != "m 1" || m.Node != "" || m.Key != "" || m.Cluster != "" || m.Tenant != "" || m.State != loom.StateOther || m.Image != "image" ||
		len([]rune(m.Name)) != loom.MaxMachineText || !strings.HasPrefix(m.Name, "[redacted] n") || len([]rune(m.Flavor)) != loom.MaxMachineText {
		t.Errorf("%+v", m)
	}
	if len(m.Addresses) != loom.MaxMachineAddresses-1 || !slices.IsSorted(m.Addresses) || m.Addresses[0] != "10.0.0.1" || !slices.Contains(m.Addresses, "fe80::1") {
		t.Errorf("addresses %v", m.Addresses)
	}
	for _, id := range []string{"m\x00", "m\xff", strings.Repeat("m", 1000)} {
		if machines, err := list(loom.TaggedMachine{ID: id}); !errors.Is(err, loom.Unavailable) {
			t.Errorf("id %.10q: %+v, %v", id, machines, err)
		}
	}
}

// TestProbeEndsInTime: a test of a connection ends after its time limit, even when the plugin does
// not, and says what it waited for and what it had found.
func TestProbeEndsInTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		told []loom.ProbeCheck
		want loom.ProbeCheck
	}{
		"no cause":        {[]loom.ProbeCheck{{Name: "connect", OK: true, Message: "Connected."}}, loom.ProbeCheck{Name: "time", Message: "The provider did not answer within 20s; look whether its API can be reached from the provisioner."}},
		"a cause it told": {[]loom.ProbeCheck{{Name: "connect", OK: true, Message: "Connected."}, {Name: "sign in", Message: "The token hunter2! is refused."}}, loom.ProbeCheck{Name: "sign in", Message: "The token [redacted] is refused."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				never := make(chan struct{})
				defer close(never)
				stuck := talker{probe: func(_ context.Context, call *loom.ProviderCall) (loom.Probe, error) {
					for _, check := range c.told {
						call.Told(check)
					}
					<-never
					return loom.Probe{OK: true}, nil
				}}
				began := time.Now()
				got, err := asker(t, stuck).Probe(t.Context(), call("mock"))
				if err != nil || got.OK || len(got.Checks) != 2 || got.Checks[0].Name != "connect" || got.Checks[1] != c.want {
					t.Errorf("%+v, %v", got, err)
				}
				if took := time.Since(began); took < loom.ProbeLimit || took > loom.ProbeLimit+time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
