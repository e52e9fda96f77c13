package catalog

import (
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
