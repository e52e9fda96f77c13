package system

import (
	"strings"
	"testing"

	"loom/app/loom"
)

// TestLocalParts: the status says of each host what its machines may have, or what it lacks.
func TestLocalParts(t *testing.T) {
	t.Parallel()
	parts := localParts([]loom.LocalHost{{Host: "one", Max: "mem=8g"}, {Host: "two", Max: "mem=8g", Lacks: []string{"No quotas.", "No control groups."}}})
	for i, want := range []struct{ name, word, text string }{{"on one", "Good", "mem=8g"}, {"on two", "Warning", "No quotas. No control groups."}} {
		if p := parts[i]; !strings.Contains(p.name, want.name) || p.state.Word != want.word || !strings.Contains(p.detail, want.text) {
			t.Errorf("%+v, want %+v", p, want)
		}
	}
}

// TestCertificatePart: plain HTTP is fine on its own host alone.
func TestCertificatePart(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{
		"https://loom.example": "Good", "http://127.0.0.1:8080": "Not used", "http://localhost:8080": "Not used", "http://[::1]:8080": "Not used",
		"http://loom.example": "Warning", "http://0.0.0.0:8080": "Warning", "http://192.0.2.1": "Warning", "": "Warning",
	} {
		if got := certificatePart(public).state.Word; got != want {
			t.Errorf("%q: %s, want %s", public, got, want)
		}
	}
}
