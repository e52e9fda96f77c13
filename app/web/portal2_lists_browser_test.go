//go:build browser

package web_test

import (
	"testing"

	"loom/app/testkit/browser"
)

// TestDeprecateMany: deprecating a page of entries takes three presses.
func TestDeprecateMany(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]browser.Options{"wide": {Width: 1440}, "phone": {Width: 390}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalker(t, o)
			w.importSample()
			w.b.Open(w.server.URL + "/admin/services")
			w.looks("the list")
			hands := w.b.Mouse()
			hands.Activate("select all", "[data-select-all]")
			w.b.WaitText("25 services selected")
			hands.Activate("deprecate them", ".c-bulk [formaction='/admin/bulk/services/deprecate']")
			w.b.WaitText("Deprecate 25 services")
			w.looks("the question")
			hands.Activate("deprecate", "form[method=post] [data-kind=primary]")
			w.b.WaitText("Done: 25 services.")
			w.looks("the results")
			w.v.get("/admin/services?show=deprecated").shows(t, 200, "25 services")
		})
	}
}
