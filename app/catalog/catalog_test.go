package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
	"loom/app/testkit"
)

// bundle is a catalog with a tenant of its own.
type bundle struct {
	*catalog.Catalog
	ctx   context.Context
	db    *testkit.Database
	ring  *secret.Ring
	admin loom.Actor
	user  loom.Actor
	super loom.Actor
}

func setup(t *testing.T) bundle {
	t.Helper()
	return setupAt(t, "file://"+t.TempDir()+"/bucket")
}

func setupAt(t *testing.T, bucketURL string) bundle {
	t.Helper()
	db := testkit.NewDatabase(t)
	ring, err := secret.ParseKeys(secret.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	c, err := catalog.New(db.DB, ring, bucketURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b := bundle{Catalog: c, ctx: context.Background(), db: db, ring: ring}
	b.super = loom.Actor{Tenant: loom.SuperTenant, TenantName: "superadmin", User: "admin", Role: loom.RoleSuperadmin, Via: "session"}
	b.admin = loom.Actor{Tenant: "t-1", TenantName: "one", User: "admin", Role: loom.RoleAdmin, Via: "session"}
	b.user = loom.Actor{Tenant: "t-1", TenantName: "one", User: "ana", Role: loom.RoleUser, Via: "session"}
	err = store.Exec(b.ctx, db.DB, func(tx *sqlx.Tx) error {
		if err := store.EnsureSuperTenant(b.ctx, tx); err != nil {
			return err
		}
		for i, id := range []loom.TenantID{"t-1", "t-2"} {
			if _, err := store.InsertTenantAllTenants(b.ctx, tx, loom.Tenant{ID: id, Name: []string{"one", "two"}[i], MaxClusters: 5, MaxNodes: 5}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(t *testing.T, kind loom.EntityKind, format string, args ...any) loom.Entry {
	t.Helper()
	entry, err := catalog.Decode(kind, []byte(fmt.Sprintf(format, args...)))
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

func (b bundle) save(t *testing.T, actor loom.Actor, kind loom.EntityKind, format string, args ...any) (loom.Entry, []loom.Finding) {
	t.Helper()
	saved, found, err := b.Save(b.ctx, actor, kind, catalog.SaveInput{Entry: decode(t, kind, format, args...)})
	if err != nil {
		t.Fatal(err)
	}
	return saved, found
}

func (b bundle) count(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	if err := b.db.GetContext(b.ctx, &n, query, args...); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestVersionsAreNumberedAndGuarded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for want := 1; want <= 3; want++ {
		saved, _ := b.save(t, b.admin, loom.KindService, `{"name": "web", "version": 99, "description": "v%d"}`, want)
		if saved.Meta().Version != want {
			t.Fatalf("version %d, want %d", saved.Meta().Version, want)
		}
	}
	old, info, err := b.Entry(b.ctx, b.user, loom.KindService, "web", 2)
	if err != nil || old.Meta().Description != "v2" || old.Meta().Version != 2 || info.Author != "admin" || info.Time.IsZero() {
		t.Fatalf("version 2 is %+v, %+v, %v", old, info, err)
	}
	infos, err := b.Versions(b.ctx, b.user, loom.KindService, "web")
	if err != nil || len(infos) != 3 || infos[0].Version != 3 {
		t.Fatalf("versions %+v, %v", infos, err)
	}

	two, three := 2, 3
	entry := decode(t, loom.KindService, `{"name": "web", "description": "mine"}`)
	_, _, err = b.Save(b.ctx, b.admin, loom.KindService, catalog.SaveInput{Entry: entry, Expected: &two})
	var conflict *catalog.VersionConflict
	if !errors.Is(err, loom.Conflict) || !errors.As(err, &conflict) {
		t.Fatalf("saving over a newer version: %v", err)
	}
	if conflict.Stored.Meta().Description != "v3" || conflict.Given.Meta().Description != "mine" || conflict.StoredInfo.Version != 3 {
		t.Errorf("the conflict carries %+v", conflict)
	}
	if _, _, err = b.Save(b.ctx, b.admin, loom.KindService, catalog.SaveInput{Entry: entry, OnlyNew: true}); !errors.Is(err, loom.Conflict) {
		t.Errorf("POST of a name that exists: %v", err)
	}
	if saved, _, err := b.Save(b.ctx, b.admin, loom.KindService, catalog.SaveInput{Entry: entry, Expected: &three}); err != nil || saved.Meta().Version != 4 {
		t.Errorf("saving from the newest version: %v", err)
	}
	if entry.Meta().Version != 0 {
		t.Error("Save changed the entry it was given")
	}

	if err := b.Delete(b.ctx, b.admin, loom.KindService, "web", 4); err != nil {
		t.Fatal(err)
	}
	if saved, _ := b.save(t, b.admin, loom.KindService, `{"name": "web"}`); saved.Meta().Version != 4 {
		t.Errorf("the number of a deleted newest version is used again, got %d", saved.Meta().Version)
	}
	for range 2 { // what is gone is no error
		if err := b.Delete(b.ctx, b.admin, loom.KindService, "web", 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.Entry(b.ctx, b.user, loom.KindService, "web", 0); !errors.Is(err, loom.NotFound) {
		t.Errorf("a deleted entry: %v", err)
	}
	if _, _, err := b.Save(b.ctx, b.admin, loom.KindService, catalog.SaveInput{Entry: entry, Expected: &three}); !errors.Is(err, loom.Conflict) {
		t.Errorf("saving over a deleted entry: %v", err)
	}
	if saved, _ := b.save(t, b.admin, loom.KindService, `{"name": "web"}`); saved.Meta().Version != 1 {
		t.Errorf("numbering restarts at 1, got %d", saved.Meta().Version)
	}
	if n := b.count(t, `SELECT count(*) FROM audit WHERE tenant_id = 't-1' AND kind = 'service' AND object LIKE 'web%'`); n != 8 {
		t.Errorf("%d audit rows, want 8", n)
	}
	if n := b.count(t, `SELECT count(*) FROM events WHERE tenant_id = 't-1' AND ids = '{services/web}'`); n != 8 {
		t.Errorf("%d events, want 8", n)
	}
}

func TestConcurrentSavesGetNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 12
	versions := make([]int, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			saved, _, err := b.Save(b.ctx, b.admin, loom.KindImageType, catalog.SaveInput{Entry: &loom.ImageType{Base: loom.Base{Name: "img"}}})
			if err != nil {
				t.Error(err)
				return
			}
			versions[i] = saved.Meta().Version
		})
	}
	wg.Wait()
	seen := map[int]bool{}
	for _, v := range versions {
		seen[v] = true
	}
	for v := 1; v <= n; v++ {
		if !seen[v] {
			t.Errorf("no save got version %d: %v", v, versions)
		}
	}
}

func TestOnlyThoseWhoMayReadAndWrite(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := catalog.SaveInput{Entry: decode(t, loom.KindService, `{"name": "x"}`)}
	reader := b.admin
	reader.Scopes = []loom.Scope{loom.ScopeRead}
	for name, actor := range map[string]loom.Actor{"user": b.user, "token without the scope": reader} {
		if _, _, err := b.Save(b.ctx, actor, loom.KindService, in); !errors.Is(err, loom.Forbidden) {
			t.Errorf("%s saves: %v", name, err)
		}
		if err := b.Delete(b.ctx, actor, loom.KindService, "x", 0); !errors.Is(err, loom.Forbidden) {
			t.Errorf("%s deletes: %v", name, err)
		}
		if _, err := b.Import(b.ctx, actor, catalog.Bundle{}, catalog.Replace); !errors.Is(err, loom.Forbidden) {
			t.Errorf("%s imports: %v", name, err)
		}
		if err := b.Sync(b.ctx, actor); !errors.Is(err, loom.Forbidden) {
			t.Errorf("%s syncs: %v", name, err)
		}
	}
	plugin := catalog.SaveInput{Entry: decode(t, loom.KindProviderType, `{"name": "cloud"}`)}
	if _, _, err := b.Save(b.ctx, b.admin, loom.KindProviderType, plugin); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a tenant's administrator saves a plugin type: %v", err)
	}
	if _, _, err := b.Save(b.ctx, b.super, loom.KindProviderType, plugin); err != nil {
		t.Error(err)
	}
	if types, err := b.PluginTypes(b.ctx, b.user, loom.KindProviderType); err != nil || len(types) != 1 || types[0].Name != "cloud" {
		t.Errorf("everyone reads plugin types: %v, %v", types, err)
	}
	if _, _, err := b.Save(b.ctx, b.admin, "things", in); !errors.Is(err, loom.NotFound) {
		t.Errorf("unknown kind: %v", err)
	}
	if _, _, err := b.Save(b.ctx, b.admin, loom.KindProvider, in); !errors.Is(err, loom.Invalid) {
		t.Errorf("a service among the providers: %v", err)
	}
	if _, _, err := b.Save(b.ctx, b.admin, loom.KindService, catalog.SaveInput{Entry: &loom.Service{}}); !errors.Is(err, loom.Invalid) || len(loom.AsError(err).Fields) == 0 {
		t.Errorf("an entry without name: %v", err)
	}
}

// Saving and trying out say the same of an entry, and then what its change does to
// the templates that are made from it.
func TestSaveTellsFindings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cloud := loom.PluginType{Base: loom.Base{Name: "cloud"}, Parameters: map[string]loom.FieldGroup{"admin": {
		Fields: map[string]loom.FieldSchema{"token": {Label: "Token", Type: "password"}}, Required: [][]string{{"token"}}}}}
	if err := b.RegisterTypes(b.ctx, []loom.PluginType{cloud}, nil); err != nil {
		t.Fatal(err)
	}
	told := func(found []loom.Finding) []string {
		texts := []string{}
		for _, f := range found {
			texts = append(texts, fmt.Sprintf("%s %s/%s %s", f.Code, f.Kind, f.Name, f.Field))
		}
		return texts
	}
	for _, c := range []struct {
		kind loom.EntityKind
		body string
		want []string
	}{
		{loom.KindProvider, `{"name": "lab", "providertype": "cloud"}`, []string{"incomplete providers/lab /provisioner"}},
		{loom.KindProvider, `{"name": "lab", "providertype": "cloud", "provisioner": {"token": "t"}}`, []string{}},
		{loom.KindProvider, `{"name": "lab", "providertype": "cloud", "provisioner": {"token": ""}}`, []string{}}, // sealed already
		{loom.KindHardwareType, `{"name": "small", "providermap": {"lab": {"flavor": "s"}}}`, []string{}},
		{loom.KindImageType, `{"name": "deb12", "providermap": {"lab": {"image": "i"}}}`, []string{}},
		{loom.KindService, `{"name": "db", "dependencies": {"runtime": {"requires": ["web"]}}}`, []string{"dangling services/db /dependencies/runtime/requires/0"}},
		{loom.KindService, `{"name": "web", "dependencies": {"runtime": {"requires": ["db"]}}}`, []string{"cycle services/web /dependencies/runtime/requires/0"}},
		{loom.KindService, `{"name": "web"}`, []string{}},
		{loom.KindPartialTemplate, `{"name": "part"}`, []string{}},
		{loom.KindTemplate, `{"name": "base", "includes": [{"name": "part"}], "defaults": {"provider": "lab", "services": ["web"]}}`, []string{}},
		{loom.KindTemplate, `{"name": "child", "extends": {"name": "base"}, "defaults": {"config": {"key": 1}}}`, []string{}},
		{loom.KindTemplate, `{"name": "grandchild", "extends": {"name": "child"}}`, []string{}},
		{loom.KindPartialTemplate, `{"name": "part", "immutable": true, "defaults": {"config": {"key": "%no%"}}}`,
			[]string{"macro partialtemplates/part /defaults/config/key", "immutable clustertemplates/child /defaults/config/key"}},
		{loom.KindTemplate, `{"name": "base", "defaults": {"provider": "lab", "services": ["gone"]}}`, []string{"dangling clustertemplates/base /defaults/services/0"}},
		{loom.KindTemplate, `{"name": "base", "defaults": {"services": ["web"]}}`,
			[]string{"unsolvable clustertemplates/grandchild /defaults/provider"}},
	} {
		before := b.count(t, `SELECT count(*) FROM catalog_versions`)
		tried, err := b.CheckEntry(b.ctx, b.user, c.kind, decode(t, c.kind, "%s", c.body))
		if err != nil || b.count(t, `SELECT count(*) FROM catalog_versions`) != before {
			t.Fatalf("trying %s: %v, or it was stored", c.body, err)
		}
		_, found := b.save(t, b.admin, c.kind, "%s", c.body)
		if got := told(found); !slices.Equal(got, c.want) || !slices.Equal(got, told(tried)) {
			t.Errorf("%s: saved %q, tried %q, want %q", c.body, got, told(tried), c.want)
		}
	}
	for _, in := range []catalog.CheckInput{{Kinds: []loom.EntityKind{loom.KindProviderType}}, {Severities: []loom.FindingSeverity{"fatal"}}} {
		if _, err := b.Check(b.ctx, b.user, in); !errors.Is(err, loom.Invalid) {
			t.Errorf("%+v: %v", in, err)
		}
	}
}

func TestListsArePaged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		b.save(t, b.admin, loom.KindHardwareType, `{"name": "%s", "label": "Size %s", "deprecated": %v}`, name, name, name == "c")
	}
	b.save(t, b.admin, loom.KindHardwareType, `{"name": "b", "label": "Size b"}`)
	for sort, want := range map[string]string{"name": "abcde", "-updateTime": "bedca"} {
		var got, back string
		in := catalog.ListInput{Page: loom.Page{Limit: 2, Sort: sort}}
		var last catalog.List
		for pages := 0; pages < 5; pages++ {
			list, err := b.Entries(b.ctx, b.user, loom.KindHardwareType, in)
			if err != nil {
				t.Fatal(err)
			}
			if list.Total != 5 {
				t.Errorf("total %d", list.Total)
			}
			for _, item := range list.Items {
				got += item.Entry.Meta().Name
			}
			last = list
			if in.After = list.Next; list.Next == "" {
				break
			}
		}
		in.After = ""
		for in.Before = last.Prev; in.Before != ""; {
			list, err := b.Entries(b.ctx, b.user, loom.KindHardwareType, in)
			if err != nil {
				t.Fatal(err)
			}
			page := ""
			for _, item := range list.Items {
				page += item.Entry.Meta().Name
			}
			back = page + back
			in.Before = list.Prev
		}
		if got != want || back != want[:4] {
			t.Errorf("by %s: forwards %q, backwards %q, want %q and %q", sort, got, back, want, want[:4])
		}
	}
	yes, no := true, false
	for want, in := range map[string]catalog.ListInput{
		"c":     {Deprecated: &yes},
		"abde":  {Deprecated: &no, Page: loom.Page{Limit: -1}},
		"d":     {Q: " size  D "},
		"":      {Q: "100%_"},
		"abcde": {},
	} {
		list, err := b.Entries(b.ctx, b.user, loom.KindHardwareType, in)
		got := ""
		for _, item := range list.Items {
			got += item.Entry.Meta().Name
		}
		if err != nil || got != want || list.Next != "" || list.Prev != "" {
			t.Errorf("%+v: got %q (next %q, prev %q), %v, want %q", in, got, list.Next, list.Prev, err, want)
		}
	}
	for _, page := range []loom.Page{{Sort: "size"}, {After: "x", Before: "y"}, {After: "!!"}, {Limit: 501}, {After: loom.Cursor{Sort: "-updateTime", Keys: []string{"a", "b"}}.Encode()}} {
		if _, err := b.Entries(b.ctx, b.user, loom.KindHardwareType, catalog.ListInput{Page: page}); !errors.Is(err, loom.Invalid) {
			t.Errorf("%+v: %v", page, err)
		}
	}
}
