//go:build browser

package web_test

import (
	"testing"

	"loom/app/testkit/browser"
)

// TestTemplateFormFits: no part of the form of web-cluster is longer than a screen and a half, and
// its bar says what keeps it from being saved.
func TestTemplateFormFits(t *testing.T) {
	t.Parallel()
	w := newWalker(t, browser.Options{Width: 1440})
	for _, tab := range []string{"general", "compatibility", "defaults", "constraints", "includes"} {
		w.b.Open(w.server.URL + "/admin/templates/web-cluster/edit/" + tab)
		w.b.WaitFor("#save-state [data-tone=ok]")
		// The notice about the generated password is no part of the form, nor is the gap below it.
		_, bottom := boxOf(w.b, "footer")
		top, end := boxOf(w.b, "#banners")
		if high := bottom - (end - top) - 24; high > 1350 {
			t.Errorf("%s is %.0f px high", tab, high)
		}
	}
	for _, tab := range []string{"general", "compatibility", "defaults", "constraints"} {
		w.b.Open(w.server.URL + "/admin/templates/web-cluster/edit/" + tab)
		w.looks(tab)
	}
	w.b.Open(w.server.URL + "/admin/templates/web-cluster/edit/constraints")
	if beside := runOn(w.b, `document.querySelector(".l-side #coexist-picture").getBoundingClientRect().left > document.querySelector("#coexist-lists").getBoundingClientRect().right`); beside != "true" {
		t.Error("the table of placement is not at the side")
	}
	w.hands.Fill("a wrong size", "input[name='constraints.size.min']", "many")
	w.hands.Fill("another field", "input[name='constraints.size.max']", "500")
	w.b.WaitFor("#save-state a[href='#f-constraints-size-min']")
	w.b.WaitText("1 error")
}
