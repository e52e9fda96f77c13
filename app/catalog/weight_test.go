package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/places"
	"loom/app/store"
)

// TestCatalogsAreBounded: what a tenant's catalog takes in memory has a limit. A write that
// goes beyond is refused with the largest entries; less is stored, also where older
// releases let it grow.
func TestCatalogsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.save(t, b.admin, loom.KindService, `{"name": "web"}`)
	values := `[1` + strings.Repeat(",1", 9_999) + `]`
	b.save(t, b.admin, loom.KindTemplate, `{"name": "many", "defaults": {"config": {"a": %s}}}`, values)
	weigh := func() int64 {
		weight, err := store.CatalogWeight(b.ctx, b.db, b.admin.Tenant, loom.TenantKinds...)
		if err != nil {
			t.Fatal(err)
		}
		return weight
	}
	if got := weigh(); got < 10_000*(places.WeightOfValue+2) || got > 10_000*(places.WeightOfValue+3) {
		t.Errorf("10,000 values weigh %d", got)
	}
	set := func(weight int64) {
		if _, err := b.db.Exec(`UPDATE catalog_versions SET weight = $1 WHERE tenant_id = $2 AND name = 'many'`, weight, b.admin.Tenant); err != nil {
			t.Fatal(err)
		}
	}
	write := func(kind loom.EntityKind, body string) error {
		_, _, err := b.Save(b.ctx, b.admin, kind, catalog.SaveInput{Entry: decode(t, kind, "%s", body)})
		return err
	}
	load := func(body string, mode catalog.Mode) error {
		bundle, err := catalog.DecodeBundle([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Import(b.ctx, b.admin, bundle, mode)
		return err
	}
	longer := fmt.Sprintf(`{"name": "web", "description": %q}`, strings.Repeat("x", 1000))
	set(catalog.MaxCatalog - 900)
	for name, err := range map[string]error{"a save": write(loom.KindService, longer), "an import": load(`{"services": [`+longer+`]}`, catalog.Merge)} {
		if !errors.Is(err, loom.Exhausted) || !strings.Contains(err.Error(), "template “many” (32767 KiB)") || !strings.Contains(err.Error(), "plugin resources") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, info, err := b.Entry(b.ctx, b.admin, loom.KindService, "web", 0); err != nil || info.Version != 1 {
		t.Errorf("web is at version %d, %v", info.Version, err)
	}
	set(2 * catalog.MaxCatalog)
	if err := write(loom.KindTemplate, `{"name": "many", "description": "no config"}`); err != nil || weigh() > 10_000 {
		t.Errorf("smaller: %v, %d", err, weigh())
	}
	if err := load(`{"services": [`+longer+`]}`, catalog.Replace); err != nil {
		t.Errorf("a replacement: %v", err)
	}
}

// TestCatalogsAreReadFewAtOnce: requests read no more of catalogs at once than there is
// room for.
func TestCatalogsAreReadFewAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.save(t, b.admin, loom.KindService, `{"name": "web"}`)
	if _, err := b.db.Exec(`UPDATE catalog_versions SET weight = $1 WHERE tenant_id = $2`, places.RoomEach, b.admin.Tenant); err != nil {
		t.Fatal(err)
	}
	room := places.NewRoom()
	first, free := room.With(b.ctx)
	second, leave := room.With(b.ctx)
	defer leave()
	places.For(first, b.admin.Tenant)
	places.For(second, "another")
	if _, err := b.Export(first, b.admin); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Export(first, b.admin); err != nil {
		t.Errorf("a request that reads twice: %v", err)
	}
	if err := places.Hold(second, places.RoomEach/4); err != nil { // who holds some does not wait for more
		t.Fatal(err)
	}
	if _, err := b.Entries(second, b.admin, loom.KindService, catalog.ListInput{Page: loom.Page{Limit: 10}}); !errors.Is(err, loom.Throttled) {
		t.Errorf("a list while all is taken: %v", err)
	}
	free()
	for name, read := range map[string]func() error{
		"a list": func() error {
			_, err := b.Entries(second, b.admin, loom.KindService, catalog.ListInput{Page: loom.Page{Limit: 10}})
			return err
		},
		"an export": func() error { _, err := b.Export(second, b.admin); return err },
	} {
		if err := read(); err != nil {
			t.Errorf("%s once there is room: %v", name, err)
		}
	}
}
