package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loom/app/loom"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	l := &Local{baseDir: t.TempDir()}
	built, err := parseImage("bookworm")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(l.baseRoot(built), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(l.baseRoot(built)), "image"), []byte(built.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind   loom.OfferKind
		id     string
		ok     bool
		phrase string
	}{
		{loom.OfferFlavor, "mem=256m,cpu=100", true, "can be made"},
		{loom.OfferFlavor, "mem=much", false, "mem"},
		{loom.OfferImage, "bookworm", true, "is built."},
		{loom.OfferImage, "trixie:nginx-light", true, "first machine"},
		{loom.OfferImage, "../x", false, "x"},
	} {
		probe, err := l.Verify(t.Context(), &loom.ProviderCall{Ask: loom.Offer{Kind: c.kind, ID: c.id}})
		if err != nil || probe.OK != c.ok || len(probe.Checks) != 1 || !strings.Contains(probe.Checks[0].Message, c.phrase) {
			t.Errorf("%s %s: %+v, %v", c.kind, c.id, probe, err)
		}
	}
}
