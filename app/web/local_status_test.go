package web

import (
	"strings"
	"testing"

	"loom/app/loom"
)

// TestLocalRows: the status says of each host what its machines may have, or what it lacks.
func TestLocalRows(t *testing.T) {
	t.Parallel()
	rows := localRows([]loom.LocalHost{{Host: "one", Max: "mem=8g"}, {Host: "two", Max: "mem=8g", Lacks: []string{"No quotas.", "No control groups."}}})
	for i, want := range []struct{ name, word, text string }{{"on one", "Good", "mem=8g"}, {"on two", "Needs a look", "No quotas. No control groups."}} {
		if cell := rows[i][0]; !strings.Contains(cell.Text, want.name) || cell.State.Word != want.word || !strings.Contains(cell.Sub, want.text) {
			t.Errorf("%+v, want %+v", cell, want)
		}
	}
}
