package ui_test

import (
	"context"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"loom/views/ui"
)

// TestCancelComesLast: the actions of dialogs, and of pages with the same content, begin with the
// primary one, as those of all forms do.
func TestCancelComesLast(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	act := ui.Button(ui.ButtonModel{Label: "Change expiry", Kind: ui.Primary, Submit: true})
	if err := ui.DialogFoot("/clusters/1").Render(templ.WithChildren(context.Background(), act), &out); err != nil {
		t.Fatal(err)
	}
	if first, last := strings.Index(out.String(), "Change expiry"), strings.Index(out.String(), "Cancel"); first < 0 || last < first {
		t.Errorf("the primary action is at %d, Cancel at %d", first, last)
	}
}
