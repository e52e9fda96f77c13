package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
)

// TestFindIsTheListsOfAllKinds holds a search over all kinds against the list of each.
func TestFindIsTheListsOfAllKinds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, s := range [][2]string{{"web", "serves pages"}, {"web-old", "serves Pages, once"}, {"db", "keeps rows of pages"}, {"pages", ""}} {
		b.save(t, b.admin, loom.KindService, `{"name": %q, "description": %q, "provisioner": {"actions": {"start": {"type": "mock", "fields": {}}}}}`, s[0], s[1])
	}
	for _, name := range []string{"web-small", "web-old"} {
		b.save(t, b.admin, loom.KindTemplate, `{"name": %q, "label": "Web pages", "deprecated": %t, "compatibility": {"services": ["web"]}, "defaults": {"services": ["web"]}}`, name, name == "web-old")
	}
	// An older version that had the words is not found by them.
	b.save(t, b.admin, loom.KindService, `{"name": "db", "description": "keeps rows", "provisioner": {"actions": {"start": {"type": "mock", "fields": {}}}}}`)
	for _, text := range []string{"", "web", "WEB  pages", "pages", "old", "rows of", "100%", "w_b", "nothing", " "} {
		for _, actor := range []loom.Actor{b.admin, b.user, {Tenant: "t-2", TenantName: "two", User: "eve", Role: loom.RoleAdmin, Via: "session"}} {
			var want []string
			for _, kind := range loom.TenantKinds {
				if kind != loom.KindTemplate && !actor.Role.May(loom.Publish) {
					continue
				}
				list, err := b.Entries(b.ctx, actor, kind, catalog.ListInput{Page: loom.Page{Limit: 100}, Q: text})
				if err != nil {
					t.Fatal(err)
				}
				for _, item := range list.Items {
					if meta := item.Entry.Meta(); actor.Role.May(loom.Publish) || !meta.Deprecated {
						want = append(want, fmt.Sprint(kind, " ", meta.Name))
					}
				}
			}
			for _, limit := range []int{100, 2} {
				found, err := b.Find(b.ctx, actor, text, limit)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, f := range found {
					got = append(got, fmt.Sprint(f.Kind, " ", f.Name))
				}
				if !slices.Equal(got, want[:min(limit, len(want))]) {
					t.Errorf("%q for %s, %d at most: %v, want %v", text, actor.User, limit, got, want)
				}
			}
		}
	}
	if _, err := b.Find(b.ctx, b.admin, "a\x00b", 5); !errors.Is(err, loom.Invalid) {
		t.Errorf("a text that no entry can hold: %v", err)
	}
	if _, err := b.Find(b.ctx, loom.Actor{Tenant: "t-1", User: "ana", Role: loom.RoleUser, Via: "token", Scopes: []loom.Scope{}}, "web", 5); !errors.Is(err, loom.Forbidden) {
		t.Errorf("without the right to read: %v", err)
	}
}
