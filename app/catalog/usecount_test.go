package catalog_test

import (
	"testing"
	"time"

	"loom/app/catalog"
	"loom/app/loom"
)

// What a list counts is what the page of an entry lists, clusters left aside.
func TestUseCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, e := range []struct {
		kind loom.EntityKind
		body string
	}{
		{loom.KindService, `{"name": "a", "dependencies": {"provides": ["thing", "other"], "install": {"requires": ["a"]}}}`},
		{loom.KindService, `{"name": "b", "dependencies": {"install": {"requires": ["thing"], "uses": ["a"]}}}`},
		{loom.KindService, `{"name": "c", "dependencies": {"runtime": {"requires": ["other", "b"]}}}`},
		{loom.KindTemplate, `{"name": "t", "defaults": {"services": ["a", "c"]}, "compatibility": {"services": ["a"]}}`},
		{loom.KindTemplate, `{"name": "thing"}`},
	} {
		if _, _, err := b.Create(b.ctx, b.admin, e.kind, []byte(e.body), false); err != nil {
			t.Fatal(err)
		}
	}
	list, err := b.Entries(b.ctx, b.user, loom.KindService, catalog.ListInput{Counted: true})
	got := list.Facets.Uses
	if want := (map[string]int{"a": 3, "b": 1, "c": 1}); err != nil || got["a"] != want["a"] || got["b"] != want["b"] || got["c"] != want["c"] {
		t.Errorf("counts are %v (%v), want %v", got, err, want)
	}
	for _, name := range []string{"a", "b", "c"} {
		uses, err := b.Uses(b.ctx, b.admin, loom.KindService, name)
		users := map[string]bool{}
		for _, u := range uses {
			users[string(u.Kind)+"/"+u.Name] = true
		}
		if err != nil || len(users) != got[name] {
			t.Errorf("%s is used by %v (%v), counted are %d", name, users, err, got[name])
		}
	}
	stranger := b.admin
	stranger.Tenant = "t-2"
	if list, err := b.Entries(b.ctx, stranger, loom.KindService, catalog.ListInput{Counted: true}); err != nil || len(list.Facets.Uses) > 0 {
		t.Errorf("another tenant counts %v (%v)", list.Facets.Uses, err)
	}
}

func TestSealedFieldsAndNewest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, _, err := b.Create(b.ctx, b.admin, loom.KindProvider, []byte(`{"name": "p", "providertype": "ghost", "provisioner": {"api_token": "planted", "region": "r"}}`), false); err != nil {
		t.Fatal(err)
	}
	stamps, err := b.SealedFields(b.ctx, b.user, "p")
	if s := stamps["api_token"]; err != nil || len(stamps) != 1 || s.By != "admin" || time.Since(s.Time).Abs() > time.Hour {
		t.Errorf("sealed are %+v (%v)", stamps, err)
	}
	found, err := b.Newest(b.ctx, b.user, loom.KindProvider, loom.KindService)
	if err != nil || len(found[loom.KindProvider]) != 1 || len(found[loom.KindService]) != 0 {
		t.Errorf("newest are %+v (%v)", found, err)
	}
	if _, err := b.Newest(b.ctx, b.user, loom.KindAutomatorType); err == nil {
		t.Error("plugin types are listed for a tenant")
	}
	stranger := b.admin
	stranger.Tenant = "t-2"
	if stamps, err := b.SealedFields(b.ctx, stranger, "p"); err != nil || len(stamps) > 0 {
		t.Errorf("another tenant reads %v (%v)", stamps, err)
	}
	if found, err := b.Newest(b.ctx, stranger, loom.KindProvider); err != nil || len(found[loom.KindProvider]) > 0 {
		t.Errorf("another tenant reads %v (%v)", found, err)
	}
}
