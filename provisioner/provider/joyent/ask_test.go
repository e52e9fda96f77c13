package joyent_test

import (
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/joyent"
	"loom/provisioner/standin"
	"loom/provisioner/standin/triton"
)

func TestManyPages(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false, "ecdsa", "")
	for n := range 5 {
		l.Must(l.Spec(n), loom.ActionCreate, 0)
	}
	// Pages that are full, and one that is not.
	for _, size := range []int{1, 2, 5, 6} {
		list, err := joyent.ListPaged(l.Context(), cloud.Options{Insecure: true}, l.Call(), size)
		if err != nil || len(list) != 5 {
			t.Errorf("pages of %d gave %d machines, %v", size, len(list), err)
		}
	}
	l.Cloud.Inject(standin.Fault{Op: triton.List, Status: 403})
	if _, err := l.Provider.(provider.Lister).List(l.Context(), l.Call()); err == nil {
		t.Error("a list that is refused is no error")
	}
}

// Versions before 7 call an image a dataset.
func TestOldVersion(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false, "ecdsa", "")
	l.Fields["joyent_version"] = "~6.5"
	l.Must(l.Spec(1), loom.ActionCreate, 0)
	if in := l.Cloud.Machines()[0].Request.(map[string]string); in["dataset"] != triton.Image || in["image"] != "" {
		t.Errorf("asked with %v", in)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false, "ecdsa", "")
	probe, err := l.Provider.(provider.Prober).Probe(l.Context(), l.Call())
	if err != nil || !probe.OK || len(probe.Flavors) != 1 || probe.Flavors[0] != (loom.ProbeFlavor{ID: triton.Package, Name: triton.Package, VCPU: 1, RAM: 1024}) ||
		len(probe.Images) != 1 || probe.Images[0].ID != triton.Image {
		t.Errorf("probe gave %+v, %v", probe, err)
	}
	for field, c := range map[string]struct{ value, check string }{
		"ssh_key_resource": {"wrong", "sign in"}, "ssh_keypair": {"other", "sign in"}, "joyent_api_url": {"nonsense", "settings"}, "api_user": {"", "sign in"},
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
		if err != nil || probe.OK || failed != c.check {
			t.Errorf("%s %q: %+v, %v", field, c.value, probe.Checks, err)
		}
	}
}

func TestInjectedHostKey(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false, "ecdsa", "")
	l.InjectsHostKey(func() string {
		machines := l.Cloud.Machines()
		return machines[len(machines)-1].Request.(map[string]string)["metadata.cloud-init:user-data"]
	}, false)
}
