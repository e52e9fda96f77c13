package joyent_test

import (
	"testing"

	"loom/app/loom"
	"loom/provisioner/fakecloud"
	"loom/provisioner/fakecloud/triton"
	"loom/provisioner/provider"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/joyent"
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
	l.Cloud.Inject(fakecloud.Fault{Op: triton.List, Status: 403})
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
