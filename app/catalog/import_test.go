package catalog_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/store"
)

func TestProviderSecretsAreSealed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plain := func() string {
		var text string
		if err := b.db.GetContext(b.ctx, &text, `SELECT coalesce(string_agg(body::text, ' '), '') || coalesce((SELECT string_agg(coalesce(after::text, ''), ' ') FROM audit), '') FROM catalog_versions`); err != nil {
			t.Fatal(err)
		}
		return text
	}
	reveal := func(field string) string {
		sealed, err := store.Secrets(b.ctx, b.db, "t-1", "provider:lab")
		if err != nil {
			t.Fatal(err)
		}
		if sealed[field] == nil {
			return ""
		}
		s, err := b.ring.Open("t-1", "provider:lab", field, sealed[field])
		if err != nil {
			t.Fatal(err)
		}
		return s.Reveal()
	}

	// The type is not known yet: the look of the key decides.
	saved, _ := b.save(t, b.admin, loom.KindProvider, `{"name": "lab", "providertype": "cloud", "provisioner": {"api_password": "hunter2", "pin": "4711", "user": "ann"}}`)
	p := saved.(*loom.Provider)
	if !reflect.DeepEqual(p.Sealed, []string{"api_password"}) || !reflect.DeepEqual(p.Fields, map[string]any{"pin": "4711", "user": "ann"}) {
		t.Fatalf("saved %+v", p)
	}
	if strings.Contains(plain(), "hunter2") || reveal("api_password") != "hunter2" {
		t.Fatal("the password is in plain, or lost")
	}

	// The type says that pin is sensitive: what is stored is sealed then.
	cloud := loom.PluginType{Base: loom.Base{Name: "cloud"}, Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{
		"api_password": {Label: "Password", Type: "password"}, "pin": {Label: "PIN", Type: "text", Sensitive: true}, "token_name": {Label: "Name", Type: "text"},
	}}}}
	if err := b.RegisterTypes(b.ctx, []loom.PluginType{cloud}, nil); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plain(), "4711") || reveal("pin") != "4711" {
		t.Fatal("the pin stays in plain, or is lost")
	}

	// Absent and empty keep what is stored; a new value replaces it.
	saved, _ = b.save(t, b.admin, loom.KindProvider, `{"name": "lab", "providertype": "cloud", "provisioner": {"api_password": "", "pin": "1234567", "token_name": "x"}}`)
	p = saved.(*loom.Provider)
	if !reflect.DeepEqual(p.Sealed, []string{"api_password", "pin"}) || !reflect.DeepEqual(p.Fields, map[string]any{"token_name": "x"}) {
		t.Errorf("saved %+v", p)
	}
	if reveal("api_password") != "hunter2" || reveal("pin") != "1234567" {
		t.Error("empty does not keep, or a new value does not replace")
	}

	// An export into the same tenant loses nothing and holds no secret.
	exported, err := b.Export(b.ctx, b.user)
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Marshal(exported)
	if err != nil || strings.Contains(string(document), "hunter2") || strings.Contains(string(document), "1234567") {
		t.Fatalf("export: %s, %v", document, err)
	}
	again, err := catalog.DecodeBundle(document)
	if err != nil {
		t.Fatal(err)
	}
	report, err := b.Import(b.ctx, b.admin, again, catalog.Merge)
	if err != nil || len(report.Same) != 1 || len(report.Changed) != 0 {
		t.Errorf("import of the export: %+v, %v", report, err)
	}
	if _, err := b.Import(b.ctx, b.admin, again, catalog.Replace); err != nil {
		t.Fatal(err)
	}
	if reveal("api_password") != "hunter2" {
		t.Error("a replacing import lost the secret of a provider that remains")
	}
	same := decode(t, loom.KindProvider, `{"name": "lab", "providertype": "cloud", "provisioner": {"pin": "1234567", "token_name": "x"}}`)
	other := decode(t, loom.KindProvider, `{"name": "lab", "providertype": "cloud", "provisioner": {"pin": "7654321", "token_name": "x"}}`)
	for want, entry := range map[string]loom.Entry{"same": same, "changed": other} {
		report, err := b.CompareImport(b.ctx, b.admin, catalog.Bundle{Entries: map[loom.EntityKind][]loom.Entry{loom.KindProvider: {entry}}}, catalog.Merge)
		if err != nil || (want == "same") != (len(report.Same) == 1) || (want == "changed") != (len(report.Changed) == 1) {
			t.Errorf("%s: %+v, %v", want, report, err)
		}
	}
	if err := b.Delete(b.ctx, b.admin, loom.KindProvider, "lab", 0); err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT count(*) FROM secrets`); n != 0 {
		t.Errorf("%d secrets are left after the provider is gone", n)
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.save(t, b.admin, loom.KindService, `{"name": "old"}`)
	b.save(t, b.admin, loom.KindService, `{"name": "web"}`)
	b.save(t, b.admin, loom.KindService, `{"name": "same", "defaultConfig": {"n": 1000}}`)
	document := `{"services": [{"name": "web", "description": "new"}, {"name": "same", "defaultConfig": {"n": 1e3}}],
		"clustertemplates": [{"name": "t", "administration": {"leaseduration": {"max": 5}}}]}`
	in, err := catalog.DecodeBundle([]byte(document))
	if err != nil || len(in.Invalid) > 0 {
		t.Fatalf("%+v, %v", in.Invalid, err)
	}
	compared, err := b.CompareImport(b.ctx, b.admin, in, catalog.Replace)
	if err != nil {
		t.Fatal(err)
	}
	if n := b.count(t, `SELECT count(*) FROM catalog_versions`); n != 3 {
		t.Fatalf("a comparison changed something: %d versions", n)
	}
	service := func(names ...string) []catalog.EntryName {
		list := []catalog.EntryName{}
		for _, name := range names {
			list = append(list, catalog.EntryName{Kind: loom.KindService, Name: name})
		}
		return list
	}
	want := catalog.Report{New: []catalog.EntryName{{Kind: loom.KindTemplate, Name: "t"}}, Changed: service("web"), Same: service("same"), Invalid: []catalog.InvalidEntry{}, Removed: service("old")}
	if len(compared.Findings) != 2 || compared.Findings[0].Name != "t" || compared.Findings[0].Field != "/defaults/provider" {
		t.Errorf("findings %+v", compared.Findings)
	}
	if len(compared.Breaks) != 2 || compared.Breaks[0].Name != "t" {
		t.Errorf("breaks %+v", compared.Breaks)
	}
	if d := compared.Drafts; len(d) != 2 || d[0].Kind != loom.KindService || d[0].Entry.Meta().Name != "web" || d[1].Entry.Meta().Name != "t" {
		t.Errorf("drafts %+v", compared.Drafts)
	}
	if compared.Findings, compared.Breaks, compared.Drafts = nil, nil, nil; !reflect.DeepEqual(compared, want) {
		t.Errorf("comparison %+v, want %+v", compared, want)
	}
	merged, err := b.Import(b.ctx, b.admin, in, catalog.Merge)
	if len(merged.Findings) != 2 {
		t.Errorf("findings %+v", merged.Findings)
	}
	merged.Findings, merged.Drafts = nil, nil
	if want.Removed = service(); err != nil || !reflect.DeepEqual(merged, want) {
		t.Errorf("merge %+v, %v, want %+v", merged, err, want)
	}
	if e, _, err := b.Entry(b.ctx, b.user, loom.KindService, "web", 0); err != nil || e.Meta().Version != 2 {
		t.Errorf("web after the merge: %+v, %v", e, err)
	}
	if again, err := b.Import(b.ctx, b.admin, in, catalog.Merge); err != nil || len(again.Same) != 3 {
		t.Errorf("merging twice: %+v, %v", again, err)
	}
	if _, err := b.Import(b.ctx, b.admin, in, catalog.Replace); err != nil {
		t.Fatal(err)
	}
	if e, _, err := b.Entry(b.ctx, b.user, loom.KindService, "web", 0); err != nil || e.Meta().Version != 1 {
		t.Errorf("web after the replacement: %+v, %v", e, err)
	}
	if _, _, err := b.Entry(b.ctx, b.user, loom.KindService, "old", 0); !errors.Is(err, loom.NotFound) {
		t.Errorf("old after the replacement: %v", err)
	}

	bad, err := catalog.DecodeBundle([]byte(`{"services": [{"name": "a/b"}, {"name": "x", "links": [{}]}, 7, {"name": "y"}, {"name": "y"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Import(b.ctx, b.admin, bad, catalog.Replace)
	if !errors.Is(err, loom.Invalid) || len(loom.AsError(err).Fields) != 4 {
		t.Errorf("invalid import: %v", err)
	}
	if n := b.count(t, `SELECT count(*) FROM catalog_versions`); n != 3 {
		t.Errorf("a refused import changed something: %d versions", n)
	}
	if report, err := b.CompareImport(b.ctx, b.admin, bad, catalog.Merge); err != nil || len(report.Invalid) != 4 || len(report.New) != 1 {
		t.Errorf("comparison of an invalid import: %+v, %v", report, err)
	}
	if _, err := b.Import(b.ctx, b.admin, in, "other"); !errors.Is(err, loom.Invalid) {
		t.Errorf("unknown mode: %v", err)
	}
}

// A loader of the predecessor's provider types meets the types of our own plugins: they stay
// as the plugins declare them, and what only the loader knows becomes a field of
// administrators, also after the plugin registered again.
func TestLoadersReplaceNoBuiltInType(t *testing.T) {
	t.Parallel()
	b := setup(t)
	declared := func() loom.PluginType {
		return loom.PluginType{Base: loom.Base{Name: "cumulus", Description: "Ours"}, Parameters: map[string]loom.FieldGroup{
			"admin": {Fields: map[string]loom.FieldSchema{"key": {Label: "Key", Type: "password", Sensitive: true}}, Required: [][]string{{"key"}}},
			"user":  {Fields: map[string]loom.FieldSchema{"zone": {Label: "Zone", Type: "text"}}},
		}}
	}
	register := func() {
		t.Helper()
		if err := b.RegisterTypes(b.ctx, []loom.PluginType{declared()}, nil); err != nil {
			t.Fatal(err)
		}
	}
	register()
	entry, err := catalog.Decode(loom.KindProviderType, []byte(`{"name":"cumulus","classname":"x","description":"Theirs","timeouts":{"create":900},"parameters":{
		"admin":{"fields":{"key":{"label":"Key","type":"text","tip":""},"flags":{"label":"Flags","type":"text","tip":""}},"required":[["flags"]]},
		"user":{"fields":{"rack":{"label":"Rack","type":"text","tip":""}},"required":[["rack"]]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Save(b.ctx, b.super, loom.KindProviderType, catalog.SaveInput{Entry: entry}); err != nil {
		t.Fatal(err)
	}
	look := func(when string) {
		t.Helper()
		got, _, err := b.Entry(b.ctx, b.user, loom.KindProviderType, "cumulus", 0)
		if err != nil {
			t.Fatal(err)
		}
		p := got.(*loom.PluginType)
		key, _ := p.Schema("key")
		flags, _ := p.Schema("flags")
		if p.Description != "Ours" || !key.Sensitive || key.Extra || !flags.Extra || p.Timeouts["create"] != 900 ||
			len(p.Parameters["user"].Fields) != 1 || !p.Parameters["admin"].Fields["rack"].Extra || len(p.Parameters["user"].Required) != 0 {
			t.Errorf("%s: %+v", when, p)
		}
	}
	look("after the loader")
	register()
	look("after the plugin registered again")
}

func TestRegisterTypesWritesOnlyChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	shell := loom.PluginType{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{"scripts": {Format: "file"}}}
	var wg sync.WaitGroup
	for range 4 { // several provisioners start at once
		wg.Go(func() {
			if err := b.RegisterTypes(b.ctx, nil, []loom.PluginType{shell}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, _, err := b.Entry(b.ctx, b.user, loom.KindAutomatorType, "shell", 0); err != nil || got.Meta().Version != 1 {
		t.Fatalf("registered %+v, %v", got, err)
	}
	shell.Description = "changed"
	if err := b.RegisterTypes(b.ctx, nil, []loom.PluginType{shell}); err != nil {
		t.Fatal(err)
	}
	if got, _, err := b.Entry(b.ctx, b.user, loom.KindAutomatorType, "shell", 0); err != nil || got.Meta().Version != 2 {
		t.Errorf("registered %+v, %v", got, err)
	}
	err := b.RegisterTypes(b.ctx, []loom.PluginType{{Base: loom.Base{Name: "bad name"}}}, nil)
	if !errors.Is(err, loom.Invalid) || !strings.Contains(err.Error(), "bad name") {
		t.Errorf("a type with a bad name: %v", err)
	}
}
