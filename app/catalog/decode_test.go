package catalog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/testkit"
	"loom/app/testkit/golden"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// Each file of testdata/<kind> is read and written; the golden file beside it is
// what an answer of the API holds.
func TestDecodeGolden(t *testing.T) {
	t.Parallel()
	for _, kind := range loom.EntityKinds {
		files, err := filepath.Glob(filepath.Join("testdata", string(kind), "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no test data (%v)", kind, err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			entry, err := catalog.Decode(kind, body)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			got, err := json.MarshalIndent(entry, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(got, []byte(": null")) && !strings.Contains(string(body), "null") {
				t.Errorf("%s: the answer holds a null:\n%s", file, got)
			}
			golden.File(t, strings.TrimSuffix(file, ".json")+".golden", string(got)+"\n")
			again, err := catalog.Decode(kind, got)
			if err != nil {
				t.Errorf("%s: what was written is not read again: %v", file, err)
				continue
			}
			if twice, _ := json.MarshalIndent(again, "", "  "); !bytes.Equal(got, twice) {
				t.Errorf("%s: reading twice differs:\n%s", file, twice)
			}
			stored, err := loom.ReadEntry(kind, got)
			if err != nil {
				t.Fatal(err)
			}
			if back, _ := json.MarshalIndent(stored, "", "  "); !bytes.Equal(got, back) {
				t.Errorf("%s: the stored form differs:\n%s", file, back)
			}
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind   loom.EntityKind
		body   string
		fields []string
	}{
		{loom.KindService, `{"name": "a/b"}`, []string{"name"}},
		{loom.KindService, `{"name": "x", "provisioner": {"actions": {"Install": {"type": "shell"}, "start": {"fields": {}}}}}`,
			[]string{"provisioner.actions.Install", "provisioner.actions.start.type"}},
		{loom.KindService, `{"name": "x", "links": [{"label": "l"}], "dependencies": {"provides": "p"}}`, []string{"dependencies.provides", "links[0].url"}},
		{loom.KindService, `{"name": "x", "version": "new"}`, []string{"version"}},
		{loom.KindProvider, `{"name": "x"}`, []string{"providertype"}},
		{loom.KindProvider, `{"name": "x", "providertype": "t", "provisioner": []}`, []string{"provisioner"}},
		{loom.KindHardwareType, `{"name": "x", "providermap": {"p": {"flavor": {}}}}`, []string{"providermap.p.flavor"}},
		{loom.KindTemplate, `{"name": "x", "constraints": {"size": {"min": 0}}}`, []string{"constraints.size.min"}},
		{loom.KindTemplate, `{"name": "x", "constraints": {"size": {"min": 3, "max": 2}}}`, []string{"constraints.size.max"}},
		{loom.KindTemplate, `{"name": "x", "constraints": {"services": {"a": {"quantities": {"min": -1, "max": "x"}}}}}`,
			[]string{"constraints.services.a.quantities.max", "constraints.services.a.quantities.min"}},
		{loom.KindTemplate, `{"name": "x", "administration": {"leaseduration": {"initial": "1w", "max": -1, "step": 1.5}}}`,
			[]string{"administration.leaseduration.initial", "administration.leaseduration.max", "administration.leaseduration.step"}},
		{loom.KindTemplate, `{"name": "x", "administration": {"leaseduration": {"initial": "", "max": "99999999999999999d"}}}`,
			[]string{"administration.leaseduration.initial", "administration.leaseduration.max"}},
		{loom.KindTemplate, `{"name": "x", "administration": {"leaseduration": {"initial": 0, "max": 5}}}`, []string{"administration.leaseduration.initial"}},
		{loom.KindTemplate, `{"name": "x", "extends": {}, "includes": [{}]}`, []string{"extends.name", "includes[0].name"}},
		{loom.KindTemplate, `{"name": "x", "defaults": {"services": [{"config": {}}, ["a"]]}}`, []string{"defaults.services[0]", "defaults.services[1]"}},
		{loom.KindProviderType, `{"name": "x", "parameters": {"other": {}}}`, []string{"parameters.other"}},
		{loom.KindProviderType, `{"name": "x", "parameters": {"admin": {"fields": {"a": {}}, "required": [["b"]]}}}`,
			[]string{"parameters.admin.fields.a.label", "parameters.admin.fields.a.type", "parameters.admin.required[0]"}},
		{loom.KindAutomatorType, `{"name": "x", "resourceTypes": {"r": {"format": "FILE"}, "s": {"format": "archive", "permissions": "600"}}}`,
			[]string{"resourceTypes.r.format", "resourceTypes.s.permissions"}},
	} {
		_, err := catalog.Decode(c.kind, []byte(c.body))
		if !errors.Is(err, loom.Invalid) {
			t.Errorf("%s %s: error %v", c.kind, c.body, err)
			continue
		}
		var fields []string
		for _, f := range loom.AsError(err).Fields {
			fields = append(fields, f.Field)
			if f.Message == "" {
				t.Errorf("%s: no message at %s", c.body, f.Field)
			}
		}
		slices.Sort(fields)
		if !slices.Equal(fields, c.fields) {
			t.Errorf("%s %s: fields %q, want %q", c.kind, c.body, fields, c.fields)
		}
	}
	_, err := catalog.Decode(loom.KindService, []byte("{\n  \"name\" \"x\"\n}"))
	if !errors.Is(err, loom.Invalid) || !strings.Contains(err.Error(), "line 2, column 10") {
		t.Errorf("syntax error: %v", err)
	}
	if _, err := catalog.Decode("things", []byte(`{}`)); !errors.Is(err, loom.NotFound) {
		t.Errorf("unknown kind: %v", err)
	}
}

// A real catalog of the predecessor, where it is at hand, must be accepted whole.
func TestDecodeRealCatalog(t *testing.T) {
	t.Parallel()
	bundle, err := catalog.DecodeFolder(os.DirFS(testkit.Catalog(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, invalid := range bundle.Invalid {
		t.Errorf("%s %s: %v", invalid.Kind, invalid.Name, invalid.Fields)
	}
	n := 0
	for kind, entries := range bundle.Entries {
		n += len(entries)
		for _, entry := range entries {
			if fields := entry.Validate(); len(fields) > 0 {
				t.Errorf("%s %s: %v", kind, entry.Meta().Name, fields)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d entries were found", n)
	}
}
