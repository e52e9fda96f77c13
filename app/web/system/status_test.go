package system

import (
	"strings"
	"testing"

	"loom/app/loom"
)

// TestLocalRows: the status says of each host what its machines may have, or what it lacks.
func TestLocalRows(t *testing.T) {
	t.Parallel()
	rows := localRows([]loom.LocalHost{{Host: "one", Max: "mem=8g"}, {Host: "two", Max: "mem=8g", Lacks: []string{"No quotas.", "No control groups."}}})
	for i, want := range []struct{ name, word, text string }{{"on one", "Good", "mem=8g"}, {"on two", "Needs attention", "No quotas. No control groups."}} {
		if cell := rows[i][0]; !strings.Contains(cell.Text, want.name) || cell.State.Word != want.word || !strings.Contains(cell.Sub, want.text) {
			t.Errorf("%+v, want %+v", cell, want)
		}
	}
}

// TestCertificateRow: plain HTTP is fine on its own host alone.
func TestCertificateRow(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{
		"https://loom.example": "Good", "http://127.0.0.1:8080": "Not used", "http://localhost:8080": "Not used", "http://[::1]:8080": "Not used",
		"http://loom.example": "Needs attention", "http://0.0.0.0:8080": "Needs attention", "http://192.0.2.1": "Needs attention", "": "Needs attention",
	} {
		if got := certificateRow(public)[0].State.Word; got != want {
			t.Errorf("%q: %s, want %s", public, got, want)
		}
	}
}
