package provider_test

import (
	"maps"
	"slices"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/aws"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/mock"
	"loom/provisioner/provider/rackspace"
	"loom/provisioner/provider/static"
)

// common is what every provider type has besides its own fields.
var common = []string{
	"admin connectivity_check text =none", "admin expose_credentials checkbox =false", "admin inject_host_key checkbox =false", "admin legacy_ssh_algorithms checkbox =false", "admin manage_hosts checkbox =false",
	"admin selinux_permissive checkbox =false", "admin ssh_host_ca textarea", "admin ssh_jump text", "admin ssh_jump_host_key textarea",
	"admin ssh_jump_key_resource resource", "admin ssh_key_passphrase password s", "file ssh_keys 0400",
}

// plain is a provider that has nothing but a type.
type plain struct {
	provider.Provider
	made loom.PluginType
}

// Type returns the type.
func (p plain) Type() loom.PluginType { return p.made }

// TestCommonFields: every type in the catalog has them, carried or not, but for
// the mock's; none loses what it declares itself.
func TestCommonFields(t *testing.T) {
	t.Parallel()
	bare := plain{made: loom.PluginType{Base: loom.Base{Name: "bare"}}}
	own := plain{made: loom.PluginType{Base: loom.Base{Name: "own"}, Parameters: map[string]loom.FieldGroup{"admin": {
		Fields: map[string]loom.FieldSchema{"ssh_jump": {Label: "Mine", Type: "number"}, "zone": {Label: "Zone", Type: "text"}}, Required: [][]string{{"zone"}}},
		"user": {Fields: map[string]loom.FieldSchema{"manage_hosts": {Label: "Mine", Type: "text"}}}}}}
	r, err := provider.NewRegistry(bare, own, mock.New(), aws.New(cloud.Options{}), rackspace.New(cloud.Options{}), static.New())
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]loom.PluginType{}
	for _, p := range r.Types() {
		types[p.Name] = p
		if errs := p.Validate(); len(errs) > 0 {
			t.Errorf("%s: %v", p.Name, errs)
		}
		for block, group := range p.Parameters {
			for name, f := range group.Fields {
				if f.Type == "resource" && p.ResourceTypes[f.ResourceType].Format == "" {
					t.Errorf("%s: %s of %s chooses among %s, of which there are none", p.Name, name, block, f.ResourceType)
				}
			}
		}
	}
	for _, name := range []string{"aws", "bare", "rackspace", "static"} {
		got := facts(types[name])
		for _, line := range common {
			if !slices.Contains(got, line) {
				t.Errorf("%s lacks %q", name, line)
			}
		}
	}
	if n := len(types["bare"].Parameters["admin"].Fields); n != len(provider.CommonFields()) || n != len(common)-1 {
		t.Errorf("%d common fields", n)
	}
	if got := facts(types["own"]); !slices.Contains(got, "admin ssh_jump number") || !slices.Contains(got, "need admin zone") || !slices.Contains(got, "user manage_hosts text") ||
		slices.Contains(got, "admin manage_hosts checkbox =false") || !slices.Contains(got, "admin ssh_host_ca textarea") {
		t.Errorf("a type's own fields: %v", got)
	}
	if mocked := types["mock"].Parameters["admin"].Fields; mocked["ssh_jump"].Label != "" || len(types["mock"].ResourceTypes) != 0 {
		t.Errorf("the mock has %v", slices.Sorted(maps.Keys(mocked)))
	}
	if len(own.made.Parameters["admin"].Fields) != 2 || own.made.ResourceTypes != nil || bare.made.Parameters != nil {
		t.Error("the plugin's own description was changed")
	}
	if described, ok := r.Describe("bare"); !ok || !described.Parameters["admin"].Fields["ssh_key_passphrase"].IsSensitive() {
		t.Errorf("%+v", described)
	}
	if _, ok := r.Describe("moon"); ok {
		t.Error("a type that is not there is described")
	}
}
