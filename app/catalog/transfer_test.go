package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"loom/app/catalog"
	"loom/app/loom"
)

var entryName = func(kind loom.EntityKind, name string) catalog.EntryName {
	return catalog.EntryName{Kind: kind, Name: name}
}

const transferBundle = `{
	"services": [{"name": "web", "description": "new text"}, {"name": "app", "dependencies": {"runtime": {"requires": ["web"]}}}, {"name": "old"}],
	"clustertemplates": [{"name": "shop", "defaults": {"services": ["web", "app"], "provider": "lab"}, "compatibility": {"services": ["web", "app"]},
		"constraints": {"layout": {"cantcoexist": [["web", "app"]]}, "services": {"web": {"quantities": {"min": 1, "max": 3}}}}}],
	"providers": [{"name": "lab", "providertype": "cloud", "provisioner": {"api_password": "hunter2", "region": "north"}}]}`

// TestTransfer: a bundle is previewed without a trace, and imported as chosen.
func TestTransfer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	b.save(t, b.admin, loom.KindService, `{"name": "web", "description": "old text"}`)
	b.save(t, b.admin, loom.KindService, `{"name": "old"}`)

	if _, err := b.PreviewKept(b.ctx, b.admin, now); !errors.Is(err, loom.NotFound) {
		t.Fatalf("nothing is kept: %v", err)
	}
	if err := b.KeepBundle(b.ctx, b.user, []byte(transferBundle), now); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user keeps a bundle: %v", err)
	}
	if err := b.KeepBundle(b.ctx, b.admin, []byte(`{"servises": []}`), now); !errors.Is(err, loom.Invalid) {
		t.Errorf("a bundle with a mistake: %v", err)
	}
	if err := b.KeepBundle(b.ctx, b.admin, []byte(transferBundle), now); err != nil {
		t.Fatal(err)
	}
	var plain int
	if err := b.db.GetContext(b.ctx, &plain, `SELECT count(*) FROM secrets WHERE position('hunter2'::bytea IN sealed) > 0`); err != nil || plain != 0 {
		t.Errorf("the kept bundle is in plain: %d, %v", plain, err)
	}
	p, err := b.PreviewKept(b.ctx, b.admin, now)
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]catalog.TransferState{}
	for _, e := range p.Entries {
		states[e.Name] = e.State
		if text := fmt.Sprint(e.Changes); strings.Contains(text, "hunter2") {
			t.Errorf("the changes of %s hold the password: %s", e.Name, text)
		}
		if e.Name == "web" && (len(e.Changes) != 1 || e.Changes[0].Path != "/description" || e.Version != 1) {
			t.Errorf("the changes of web are %v from version %d", e.Changes, e.Version)
		}
	}
	want := map[string]catalog.TransferState{"web": "changed", "app": "new", "old": "same", "shop": "new", "lab": "new"}
	if fmt.Sprint(states) != fmt.Sprint(want) {
		t.Errorf("states %v, want %v", states, want)
	}
	if _, err := b.PreviewKept(b.ctx, b.super, now); !errors.Is(err, loom.NotFound) {
		t.Errorf("another tenant sees the bundle: %v", err)
	}
	if _, err := b.PreviewKept(b.ctx, b.admin, now.Add(61*time.Minute)); !errors.Is(err, loom.NotFound) {
		t.Errorf("after an hour: %v", err)
	}

	all := map[catalog.EntryName]catalog.Choice{}
	for _, e := range p.Entries {
		all[e.EntryName] = catalog.Choice{Action: catalog.ChoiceWrite}
	}
	in := catalog.KeptInput{Seen: p.Seen, Choices: all}
	all[entryName(loom.KindService, "web")] = catalog.Choice{Action: catalog.ChoiceRename, Name: "old"}
	if _, err := b.ImportKept(b.ctx, b.admin, in, now); !errors.Is(err, loom.Invalid) || fieldNames(err) != "name:services/web" {
		t.Errorf("a name that is taken: %v", err)
	}
	all[entryName(loom.KindService, "web")] = catalog.Choice{Action: catalog.ChoiceRename, Name: "no name"}
	if _, err := b.ImportKept(b.ctx, b.admin, in, now); !errors.Is(err, loom.Invalid) || fieldNames(err) != "name:services/web" {
		t.Errorf("a name that is none: %v", err)
	}
	if _, err := b.ImportKept(b.ctx, b.admin, catalog.KeptInput{Seen: p.Seen}, now); !errors.Is(err, loom.Invalid) {
		t.Errorf("nothing chosen: %v", err)
	}
	if entries, err := b.Export(b.ctx, b.admin); err != nil || len(entries.Entries[loom.KindProvider]) != 0 {
		t.Errorf("something was stored: %v, %v", entries, err)
	}

	all[entryName(loom.KindService, "web")] = catalog.Choice{Action: catalog.ChoiceRename, Name: "web-2"}
	report, err := b.ImportKept(b.ctx, b.admin, in, now)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.New) != 4 || len(report.Changed) != 0 || len(report.Same) != 1 {
		t.Errorf("report %+v", report)
	}
	entry, _, err := b.Entry(b.ctx, b.admin, loom.KindTemplate, "shop", 0)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(entry)
	if strings.Contains(string(text), `"web"`) || strings.Count(string(text), `"web-2"`) != 4 {
		t.Errorf("the template names the old name: %s", text)
	}
	if entry, _, err = b.Entry(b.ctx, b.admin, loom.KindService, "web", 0); err != nil || entry.Meta().Description != "old text" || entry.Meta().Version != 1 {
		t.Errorf("what was there is %+v, %v", entry, err)
	}
	if _, err := b.PreviewKept(b.ctx, b.admin, now); !errors.Is(err, loom.NotFound) {
		t.Errorf("the bundle is kept after its import: %v", err)
	}
}

// TestTransferStaleAndInvalid: what changed since the preview stops the import, and
// so does what is invalid, unless it is left out.
func TestTransferStaleAndInvalid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	keep := func(text string) catalog.Transfer {
		t.Helper()
		if err := b.KeepBundle(b.ctx, b.admin, []byte(text), now); err != nil {
			t.Fatal(err)
		}
		p, err := b.PreviewKept(b.ctx, b.admin, now)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	write := map[catalog.EntryName]catalog.Choice{entryName(loom.KindService, "web"): {Action: catalog.ChoiceWrite}}
	p := keep(`{"services": [{"name": "web"}]}`)
	b.save(t, b.admin, loom.KindService, `{"name": "web", "description": "meanwhile"}`)
	if _, err := b.ImportKept(b.ctx, b.admin, catalog.KeptInput{Seen: p.Seen, Choices: write}, now); !errors.Is(err, loom.Conflict) {
		t.Errorf("the catalog changed: %v", err)
	}
	p = keep(`{"services": [{"name": "web", "description": "mine"}, {"name": "not a name"}]}`)
	if len(p.Invalid) != 1 {
		t.Errorf("invalid %+v", p.Invalid)
	}
	in := catalog.KeptInput{Seen: p.Seen, Choices: write}
	if _, err := b.ImportKept(b.ctx, b.admin, in, now); !errors.Is(err, loom.Invalid) {
		t.Errorf("with what is invalid: %v", err)
	}
	in.LeaveInvalid = true
	if report, err := b.ImportKept(b.ctx, b.admin, in, now); err != nil || len(report.Changed) != 1 {
		t.Errorf("without: %+v, %v", report, err)
	}
}

// An import tells what it breaks in the whole catalog, whether what is there is kept or
// overwritten, and which of its entries do that.
func TestTransferBreaks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	b.save(t, b.admin, loom.KindService, `{"name": "balancer", "dependencies": {"provides": ["front"]}}`)
	b.save(t, b.admin, loom.KindService, `{"name": "calm"}`)
	b.save(t, b.admin, loom.KindService, `{"name": "same"}`)
	b.save(t, b.admin, loom.KindService, `{"name": "site", "dependencies": {"runtime": {"requires": ["front"]}}}`)
	b.save(t, b.admin, loom.KindService, `{"name": "lost", "dependencies": {"runtime": {"requires": ["nowhere", "never"]}}}`)
	bundle := []byte(`{"services": [{"name": "calm", "label": "Calm"}, {"name": "a-new", "dependencies": {"runtime": {"requires": ["edge", "gone"]}}}, {"name": "same"},
		{"name": "balancer", "dependencies": {"provides": ["edge"]}}, {"name": "lost", "dependencies": {"runtime": {"requires": ["never"]}}}, {"name": "bad name"}]}`)
	if err := b.KeepBundle(b.ctx, b.admin, bundle, now); err != nil {
		t.Fatal(err)
	}
	p, err := b.PreviewKept(b.ctx, b.admin, now)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, e := range p.Entries {
		order = append(order, fmt.Sprintf("%s %s %v", e.Name, e.State, e.Breaks))
	}
	if got, want := strings.Join(order, "; "), "a-new new []; balancer changed [{services site}]; calm changed []; lost changed []; same same []"; got != want {
		t.Errorf("the entries are\n%s, want\n%s", got, want)
	}
	var found []string
	for _, f := range p.Findings {
		found = append(found, fmt.Sprintf("%s %s breaks=%v kept=%v overwritten=%v by %v", f.Name, f.Value, f.Breaks(), f.Kept, f.Overwritten, f.By))
	}
	if got, want := strings.Join(found, "; "), "site front breaks=true kept=false overwritten=true by [{services balancer}]; "+
		"a-new gone breaks=false kept=true overwritten=true by []; a-new edge breaks=false kept=true overwritten=false by []"; got != want {
		t.Errorf("the findings are\n%s, want\n%s", got, want)
	}
	read, err := catalog.ReadBundle(bundle)
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[catalog.Mode]string{catalog.Merge: "a-new gone; site front", catalog.Replace: "a-new gone"} {
		report, err := b.CompareImport(b.ctx, b.admin, read, mode)
		if err != nil {
			t.Fatal(err)
		}
		var breaks []string
		for _, f := range report.Breaks {
			breaks = append(breaks, f.Name+" "+f.Value)
		}
		if got := strings.Join(breaks, "; "); got != want {
			t.Errorf("%s breaks %s, want %s", mode, got, want)
		}
	}
	if entry, _, err := b.Entry(b.ctx, b.admin, loom.KindService, "balancer", 0); err != nil || entry.Meta().Version != 1 {
		t.Errorf("a preview left %+v, %v", entry, err)
	}
}

// TestExportOf takes along what the chosen entries need, and nothing else.
func TestExportOf(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.save(t, b.admin, loom.KindProvider, `{"name": "lab", "providertype": "cloud"}`)
	b.save(t, b.admin, loom.KindProvider, `{"name": "other", "providertype": "cloud"}`)
	b.save(t, b.admin, loom.KindHardwareType, `{"name": "small", "providermap": {"lab": {"flavor": "s"}, "other": {"flavor": "t"}}}`)
	b.save(t, b.admin, loom.KindService, `{"name": "web", "dependencies": {"runtime": {"requires": ["db"]}, "conflicts": ["unwanted"]}}`)
	b.save(t, b.admin, loom.KindService, `{"name": "postgres", "dependencies": {"provides": ["db"]}}`)
	b.save(t, b.admin, loom.KindService, `{"name": "unwanted"}`)
	b.save(t, b.admin, loom.KindTemplate, `{"name": "shop", "defaults": {"services": ["web"], "provider": "lab", "hardwaretype": "small"}, "compatibility": {"services": ["web"], "hardwaretypes": ["small"]}}`)
	names := func(needs bool) string {
		t.Helper()
		found, err := b.ExportOf(b.ctx, b.user, []catalog.EntryName{entryName(loom.KindTemplate, "shop"), entryName(loom.KindService, "nothing")}, needs)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, kind := range loom.TenantKinds {
			for _, e := range found.Entries[kind] {
				all = append(all, e.Meta().Name)
			}
		}
		return strings.Join(all, " ")
	}
	if got := names(false); got != "shop" {
		t.Errorf("alone: %s", got)
	}
	if got := names(true); got != "lab small postgres web shop" {
		t.Errorf("with needs: %s", got)
	}
}

func fieldNames(err error) string {
	var names []string
	for _, f := range loom.AsError(err).Fields {
		names = append(names, f.Field)
	}
	return strings.Join(names, " ")
}
