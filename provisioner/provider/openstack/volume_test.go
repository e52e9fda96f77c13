package openstack_test

import (
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/fakecloud/stack"
)

// Machines boot from a volume of the size that the field names, which is nobody's
// once they are gone.
func TestBootVolume(t *testing.T) {
	t.Parallel()
	l, _ := lab(t, true)
	l.Fields["boot_volume_size_gb"] = "20"
	spec := l.Spec(1)
	l.Must(spec, loom.ActionCreate, 0)
	in := asked(t, l)
	want := []stack.WantedDisk{{Source: "image", UUID: stack.Image, Destination: "volume", Size: 20, Temporary: true}}
	if in.ImageRef != "" || !reflect.DeepEqual(in.Disks, want) {
		t.Errorf("asked for image %q and disks %+v, want %+v", in.ImageRef, in.Disks, want)
	}
	l.Must(spec, loom.ActionConfirm, 0)
	l.Must(spec, loom.ActionDelete, 0)

	for _, c := range []struct {
		size   any
		status int
		says   string
	}{
		{"", 0, ""}, {"0", 0, ""}, {float64(8), 0, ""}, {"large", 202, "boot_volume_size_gb"}, {"-1", 202, "boot_volume_size_gb"}, {"2", 202, "smaller than the minimum size"},
	} {
		spec := l.Spec(2)
		spec.Provider.Fields["boot_volume_size_gb"] = c.size
		r, _ := l.Must(spec, loom.ActionCreate, c.status)
		if !strings.Contains(r.Message, c.says) {
			t.Errorf("%v gave %+v", c.size, r)
		}
		l.Must(spec, loom.ActionDelete, 0)
	}
	if n := l.Cloud.Counts(); n.Live != 0 {
		t.Errorf("in the end %+v", n)
	}
}
