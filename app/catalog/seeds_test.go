package catalog_test

import (
	"io/fs"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/provisioner/automator/shell"
	"loom/provisioner/provider/local"
	"loom/seeds"
)

// What Loom brings along has no finding at all once its scripts are there, and
// nothing but them is missing before.
func TestSeedsAreSound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.RegisterTypes(b.ctx, []loom.PluginType{(&local.Local{}).Type()}, []loom.PluginType{shell.Shell{}.Type()}); err != nil {
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
	if err != nil || len(report.New) < 10 || len(report.Findings) == 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	for _, f := range report.Findings {
		if f.Code != loom.FindingDangling || f.Kind != loom.KindService {
			t.Errorf("without scripts %+v", f)
		}
	}
	scripts, err := fs.Glob(seeds.Scripts, "scripts/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range scripts {
		content, err := fs.ReadFile(seeds.Scripts, file)
		if err != nil {
			t.Fatal(err)
		}
		ref := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: "shell", Type: "scripts", Name: file[len("scripts/"):]}
		if _, err := b.EnsureResource(b.ctx, b.admin, ref, content); err != nil {
			t.Fatal(err)
		}
	}
	// They are staged; live they are there as well.
	for range 2 {
		if found, err := b.Check(b.ctx, b.user, catalog.CheckInput{}); err != nil || len(found) > 0 {
			t.Errorf("findings %+v, %v", found, err)
		}
		if err := b.Sync(b.ctx, b.admin); err != nil {
			t.Fatal(err)
		}
	}
	again, err := b.Import(b.ctx, b.admin, bundle, catalog.Merge)
	if err != nil || len(again.Findings) > 0 {
		t.Errorf("findings %+v, %v", again.Findings, err)
	}
}
