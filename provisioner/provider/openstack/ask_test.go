package openstack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/standin"
	"loom/provisioner/standin/stack"
)

func TestManyPages(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	dialect.PageSize = 1
	for n := range 3 {
		l.Must(l.Spec(n), loom.ActionCreate, 0)
	}
	list, err := l.Provider.(provider.Lister).List(l.Context(), l.Call())
	if err != nil || len(list) != 3 {
		t.Errorf("list gave %d machines, %v", len(list), err)
	}
	l.Cloud.Inject(standin.Fault{Op: stack.List, Status: 403})
	if _, err := l.Provider.(provider.Lister).List(l.Context(), l.Call()); err == nil {
		t.Error("a list that is not whole is no error")
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	l.Fields["network_ids"], l.Fields["floating_ip"], l.Fields["floating_network"] = stack.LabNet, true, stack.ExternalName
	probe, err := l.Provider.(provider.Prober).Probe(l.Context(), l.Call())
	if err != nil || !probe.OK || len(probe.Checks) != 6 || len(probe.Flavors) != 2 || probe.Flavors[0] != (loom.ProbeFlavor{ID: stack.Flavor, Name: "small", VCPU: 1, RAM: 2048}) ||
		!slices.Equal(probe.Images, []loom.ProbeImage{{ID: stack.Image, Name: "debian-12"}}) {
		t.Errorf("probe gave %+v, %v", probe, err)
	}
	for field, c := range map[string]struct{ value, check string }{
		"api_password": {"wrong-password", "credentials"}, "ssh_keypair": {"absent", "key pair"}, "ssh_key_resource": {"absent", "SSH key"},
		"security_groups": {"default, absent", "security groups"}, "network_ids": {"absent", "networks"}, "floating_network": {"absent", "floating addresses"},
		"openstack_region": {"RegionNine", "settings"}, "endpoint_url": {"nonsense", "settings"},
	} {
		call := l.Call()
		call.Provider.Fields[field] = c.value
		probe, err := l.Provider.(provider.Prober).Probe(l.Context(), call)
		failed := ""
		for _, check := range probe.Checks {
			if !check.OK {
				failed += check.Name
			}
		}
		if err != nil || probe.OK || failed != c.check || strings.Contains(fmt.Sprint(probe), "wrong-password") {
			t.Errorf("%s %q: %+v, %v", field, c.value, probe.Checks, err)
		}
	}
}
