package openstack_test

import (
	"fmt"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/stack"
	"loom/provisioner/provider"
)

// Where the cloud has several regions nothing is created before one is named; machines
// from before are found where they are. A probe lists them.
func TestRegions(t *testing.T) {
	t.Parallel()
	l, dialect := lab(t, false)
	before := l.Spec(1)
	l.Must(before, loom.ActionCreate, 0)
	dialect.Expire()
	dialect.Regions = []string{stack.Region, "RegionTwo"}
	// What a token was given with tells which catalog is known: these are new ones.
	dialect.UserDomain = "people"
	l.Fields["openstack_user_domain"] = "people"
	said := "name one of RegionOne, RegionTwo in provider field openstack_region"
	if r, _ := l.Must(l.Spec(2), loom.ActionCreate, 202); !strings.Contains(r.Message, said) || r.Retryable == nil || *r.Retryable {
		t.Errorf("without a region CREATE gave %+v", r)
	}
	probe, err := l.Provider.(provider.Prober).Probe(l.Context(), l.Call())
	if last := probe.Checks[len(probe.Checks)-1]; err != nil || probe.OK || last.Name != "region" || !strings.Contains(last.Message, said) {
		t.Errorf("a probe gave %+v, %v", probe, err)
	}
	before.Provider.Fields["openstack_user_domain"] = "people"
	l.Must(before, loom.ActionDelete, 0)
	l.Fields["openstack_region"] = stack.Region
	l.Must(l.Spec(2), loom.ActionCreate, 0)
	if probe, err := l.Provider.(provider.Prober).Probe(l.Context(), l.Call()); err != nil || !probe.OK || !strings.Contains(fmt.Sprint(probe.Checks), "The cloud's regions: RegionOne, RegionTwo.") {
		t.Errorf("a probe gave %+v, %v", probe, err)
	}
}

// Sizes and images go by what people call them, too.
func TestNames(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, false)
	for n := range 3 {
		spec := l.Spec(n)
		spec.Flavor, spec.Image = stack.FlavorName, stack.ImageName
		l.Must(spec, loom.ActionCreate, 0)
		if in := asked(t, l); in.FlavorRef != stack.Flavor || in.ImageRef != stack.Image {
			t.Errorf("asked for %s and %s", in.FlavorRef, in.ImageRef)
		}
	}
	if flavors, images := len(l.Cloud.Calls(stack.Flavors)), len(l.Cloud.Calls(stack.Images)); flavors != 1 || images != 1 {
		t.Errorf("flavors were listed %d times, images %d times", flavors, images)
	}
	spec := l.Spec(4)
	spec.Image = "debian-99"
	if r, _ := l.Must(spec, loom.ActionCreate, 202); !strings.Contains(r.Message, "no active image named “debian-99”") || r.Retryable == nil || *r.Retryable {
		t.Errorf("an image that is not there gave %+v", r)
	}
	spec = l.Spec(5)
	spec.Flavor = "giant"
	if r, _ := l.Must(spec, loom.ActionCreate, 202); !strings.Contains(r.Message, "Flavor giant could not be found. (the flavor of the hardware type)") {
		t.Errorf("a flavor that is not there gave %+v", r)
	}
	// Who may not list them gives ids.
	l.Cloud.Inject(fakecloud.Fault{Op: stack.Flavors, Status: 403, Times: -1})
	other := l.Spec(6)
	other.Tenant = "Other"
	l.Must(other, loom.ActionCreate, 0)
	l.Cloud.Heal()
}
