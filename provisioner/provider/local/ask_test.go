package local

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// checksOf returns the checks of a probe by name.
func checksOf(t *testing.T, b *bundle, tenant loom.TenantID, fields map[string]any) (loom.Probe, map[string]loom.ProbeCheck) {
	t.Helper()
	p, err := b.Probe(b.ctx, &loom.ProviderCall{Tenant: tenant, Provider: loom.Provider{Base: loom.Base{Name: "local"}, Type: TypeName, Fields: fields}})
	if err != nil {
		t.Fatal(err)
	}
	checks := map[string]loom.ProbeCheck{}
	for _, c := range p.Checks {
		if c.Message == "" {
			t.Errorf("%s says nothing", c.Name)
		}
		checks[c.Name] = c
	}
	return p, checks
}

// TestAsked: what this instance says of itself and lists, with and without a
// machine; another instance of the host lists none of it.
func TestAsked(t *testing.T) {
	t.Parallel()
	b, other := setUpLocal(t), openLocal(t, t.TempDir())
	p, checks := checksOf(t, b, "acme", map[string]any{"internet": "on"})
	if !p.OK || !checks["root"].OK || !checks["runtime"].OK || !checks["base roots"].OK || !strings.Contains(checks["addresses"].Message, "1021 machines") {
		t.Errorf("before the first machine: %+v", p)
	}
	if len(p.Flavors) == 0 || len(p.Images) == 0 {
		t.Errorf("flavors %v, images %v", p.Flavors, p.Images)
	}
	for _, f := range p.Flavors {
		if l, err := parseFlavor(f.ID); err != nil || l.Memory != int64(f.RAM)<<20 || f.VCPU < 1 {
			t.Errorf("flavor %+v: %+v, %v", f, l, err)
		}
	}
	for _, im := range p.Images {
		if _, err := parseImage(im.ID); err != nil {
			t.Errorf("image %+v: %v", im, err)
		}
	}
	spec := b.spec("acme", 1)
	spec.Ref.Operation.Cluster, spec.Flavor = 7, "mem=256m"
	m := b.create(t, spec)
	want := loom.TaggedMachine{ID: m.ID, Name: spec.Hostname, Node: spec.Node, Key: spec.IdempotencyKey, Cluster: "00000007", Tenant: "acme",
		State: loom.StateRunning, Flavor: spec.Flavor, Image: DefaultImage, Addresses: []string{m.Address}}
	machines, err := b.List(b.ctx, nil)
	if err != nil || len(machines) != 1 || !reflect.DeepEqual(machines[0], want) {
		t.Errorf("list: %+v, %v", machines, err)
	}
	if machines, err := other.List(b.ctx, nil); err != nil || len(machines) != 0 {
		t.Errorf("list of another instance: %+v, %v", machines, err)
	}
	if _, checks := checksOf(t, b, "acme", nil); !strings.HasPrefix(checks["addresses"].Message, "1020 of 1021") {
		t.Errorf("addresses: %+v", checks["addresses"])
	}
	for key, fields := range map[string]map[string]any{
		"ssh_user": {"ssh_user": "../root"}, "internet": {"internet": "maybe"}, "“prod”": {"ssh_key_resource": "prod"},
	} {
		if p, checks := checksOf(t, b, "acme", fields); p.OK || checks["settings"].OK || !strings.Contains(checks["settings"].Message, key) {
			t.Errorf("%v: %+v", fields, checks["settings"])
		}
	}
	files := t.TempDir()
	if err := os.Mkdir(filepath.Join(files, "ssh_keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "ssh_keys", "prod"), []byte(b.pem), 0o400); err != nil {
		t.Fatal(err)
	}
	b.ctx = provider.WithEnv(b.ctx, provider.Env{Files: files})
	if p, _ := checksOf(t, b, "acme", map[string]any{"ssh_key_resource": "prod"}); !p.OK {
		t.Errorf("with its key: %+v", p)
	}
	b.delete(t, spec)
	if machines, err := b.List(b.ctx, nil); err != nil || len(machines) != 0 {
		t.Errorf("list after the delete: %+v, %v", machines, err)
	}
}

func TestFlavorsOfThisHost(t *testing.T) {
	t.Parallel()
	for megabytes, want := range map[int]string{0: "mem=256m", 600: "mem=512m", 2048: "mem=2g", 64_000: "mem=16g"} {
		flavors := hostFlavors(megabytes, 2)
		if last := flavors[len(flavors)-1]; last.ID != want || last.VCPU != 2 {
			t.Errorf("%d MB: the largest is %+v, want %s", megabytes, last, want)
		}
	}
	if hostMemory() < 100 {
		t.Errorf("this host has %d MB", hostMemory())
	}
}
