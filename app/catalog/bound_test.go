package catalog

import (
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// TestEntriesThatCannotBeReadAreBounded: of a bundle of a thousand broken entries a
// hundred are listed, and how many more there are.
func TestEntriesThatCannotBeReadAreBounded(t *testing.T) {
	t.Parallel()
	b, err := DecodeBundle([]byte(`{"services":[` + strings.Repeat("7,", 999) + `7]}`))
	if err != nil {
		t.Fatal(err)
	}
	last := b.Invalid[len(b.Invalid)-1]
	if len(b.Invalid) != maxInvalid+1 || !strings.HasPrefix(last.Fields[0].Message, "900 more entries are invalid.") {
		t.Errorf("%d entries, the last %+v", len(b.Invalid), last)
	}
	if e := loom.AsError(invalidBundle(b.Invalid)); len(e.Fields) > loom.MaxFieldErrors+1 {
		t.Errorf("the error has %d fields", len(e.Fields))
	}
}

// TestBundlesThatAreTooDeep are refused whole, and a file of a folder by itself.
func TestBundlesThatAreTooDeep(t *testing.T) {
	t.Parallel()
	deep := `{"name":"web","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`
	if _, err := DecodeBundle([]byte(`{"services":[` + deep + `]}`)); err == nil || !strings.Contains(err.Error(), "100 levels deep") {
		t.Errorf("a document: %v", err)
	}
	if _, err := Decode(loom.KindService, []byte(deep)); err == nil || !strings.Contains(err.Error(), "100 levels deep") {
		t.Errorf("an entry: %v", err)
	}
	b := newBundle()
	b.addFile(loom.KindService, "web", []byte(deep))
	if len(b.Invalid) != 1 || !strings.Contains(b.Invalid[0].Fields[0].Message, "100 levels deep") {
		t.Errorf("a file: %+v", b.Invalid)
	}
}

// TestImportedAddressesHoldNoPassword: a bundle is refused with the field named.
func TestImportedAddressesHoldNoPassword(t *testing.T) {
	t.Parallel()
	b, err := DecodeBundle([]byte(`{"providers":[{"name":"p","providertype":"openstack","provisioner":{"openstack_auth_url":"https://u:p@host/v3"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Invalid) != 1 || len(b.Invalid[0].Fields) != 1 || b.Invalid[0].Fields[0].Field != "providers[0].provisioner.openstack_auth_url" {
		t.Errorf("%+v", b.Invalid)
	}
}

// TestFindingsOfMacrosAreBounded: a config and the links of an entry give a hundred
// findings each, and a value too long is one.
func TestFindingsOfMacrosAreBounded(t *testing.T) {
	t.Parallel()
	links := make([]loom.Link, 300)
	for i := range links {
		links[i] = loom.Link{URL: "http://%x%/"}
	}
	for _, test := range []struct {
		name  string
		entry loom.Service
		want  int
	}{
		{"one value", loom.Service{DefaultConfig: map[string]any{"a": strings.Repeat("%x%", 5000)}}, 100},
		{"many values", loom.Service{DefaultConfig: map[string]any{"a": slices.Repeat([]any{"%x%"}, 5000)}}, 100},
		{"a long value", loom.Service{DefaultConfig: map[string]any{"a": strings.Repeat("%x%", 50_000)}}, 1},
		{"links", loom.Service{Links: links}, 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFinder()
			test.entry.Name = "web"
			f.add(loom.KindService, &test.entry)
			found, err := f.find(t.Context(), func(loom.EntityKind, string) bool { return true })
			found = slices.DeleteFunc(found, func(f loom.Finding) bool { return f.Code != loom.FindingMacro })
			if err != nil || len(found) != test.want {
				t.Errorf("%d findings, %v", len(found), err)
			}
		})
	}
}
