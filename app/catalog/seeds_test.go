package catalog_test

import (
	"io/fs"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/seeds"
)

// What Loom brings along has no finding at all, and is said to be sound by an
// import.
func TestSeedsAreSound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.RegisterTypes(b.ctx, []loom.PluginType{{Base: loom.Base{Name: "local"}}}, []loom.PluginType{{Base: loom.Base{Name: "shell"}}}); err != nil {
		t.Fatal(err)
	}
	folder, err := fs.Sub(seeds.Catalog, "catalog")
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := catalog.DecodeFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	report, err := b.Import(b.ctx, b.admin, bundle, catalog.Merge)
	if err != nil || len(report.New) < 10 {
		t.Fatalf("%+v, %v", report, err)
	}
	found, err := b.Check(b.ctx, b.user, catalog.CheckInput{})
	if err != nil || len(found)+len(report.Findings) > 0 {
		t.Errorf("findings %+v %+v, %v", found, report.Findings, err)
	}
}
