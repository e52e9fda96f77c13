//go:build browser

package web_test

import (
	"strconv"
	"testing"

	"loom/app/testkit/browser"
)

// TestOverviewFixes: an administrator fixes a group of findings from the overview, by keyboard
// where scripts run and by mouse where they do not.
func TestOverviewFixes(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]browser.Options{"wide": {Width: 1440}, "phone": {Width: 390}, "no scripts": {Width: 1440, NoScript: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalker(t, o)
			w.importSample()
			w.b.Open(w.server.URL + "/admin")
			if n, err := strconv.Atoi(runOn(w.b, `document.querySelectorAll(".c-findings > li").length`)); err != nil || n > 10 || n < 5 {
				t.Errorf("%d groups, %v", n, err)
			}
			if w.scripts {
				w.looks("the overview")
			}
			const remove = "[aria-label='Remove references: Provider aws-us-west-1 does not exist']"
			w.hands.Activate("remove the references", remove)
			w.b.WaitFor("form[method=post][action='/admin/fix']")
			if w.scripts {
				w.looks("the fix")
			}
			w.hands.Activate("apply it", "form[method=post][action='/admin/fix'] [data-kind=primary]")
			w.b.Wait("the overview", func() bool { return w.b.URL() == w.server.URL+"/admin" })
			if w.b.Has(remove) {
				t.Error("the group is still there")
			}
		})
	}
}
