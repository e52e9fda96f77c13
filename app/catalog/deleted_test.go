package catalog_test

import (
	"errors"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
)

// What was deleted can be read back from the audit, without what looks secret, until it
// is there again; nobody else sees it.
func TestDeletedEntries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	service := func(name, config string) {
		t.Helper()
		b.save(t, b.admin, loom.KindService, `{"name":%q,"label":%q,"defaultConfig":%s}`, name, "Old "+name, config)
	}
	remove := func(name string, version int) {
		t.Helper()
		if err := b.Delete(b.ctx, b.admin, loom.KindService, name, version); err != nil {
			t.Fatal(err)
		}
	}
	list := func(q string) []catalog.Deleted {
		t.Helper()
		found, err := b.DeletedEntries(b.ctx, b.admin, loom.KindService, q)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	service("first", `{"a":1.50,"db":{"password":"x"}}`)
	service("second", `{}`)
	service("third", `{}`)
	service("third", `{"b":2}`)
	remove("third", 1) // one version of several is no deleted entry
	remove("first", 0)
	remove("second", 0)
	found := list("")
	if len(found) != 2 || found[0].Entry.Meta().Name != "second" || found[1].Entry.Meta().Name != "first" {
		t.Fatalf("deleted are %+v", found)
	}
	first := found[1]
	s := first.Entry.(*loom.Service)
	if len(first.Lost) != 1 || first.Lost[0] != "defaultConfig.db.password" || s.Label != "Old first" || first.By != b.admin.User || first.Time.IsZero() {
		t.Errorf("the first is %+v: %+v", first, s)
	}
	if one := list("OLD fir"); len(one) != 1 {
		t.Errorf("a search finds %d", len(one))
	}
	if _, err := b.DeletedEntry(b.ctx, b.admin, loom.KindHardwareType, first.ID); !errors.Is(err, loom.NotFound) {
		t.Errorf("as another kind: %v", err)
	}
	if _, err := b.DeletedEntries(b.ctx, b.user, loom.KindService, ""); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user: %v", err)
	}
	other := b.admin
	other.Tenant = "t-2"
	if _, err := b.DeletedEntry(b.ctx, other, loom.KindService, first.ID); !errors.Is(err, loom.NotFound) {
		t.Errorf("another tenant: %v", err)
	}
	service("first", `{}`)
	if left := list(""); len(left) != 1 {
		t.Errorf("%d are left once it is there again", len(left))
	}
	again, err := b.DeletedEntry(b.ctx, b.admin, loom.KindService, first.ID)
	if err != nil || again.Entry.Meta().Label != "Old first" {
		t.Errorf("by its id: %+v, %v", again, err)
	}
}
