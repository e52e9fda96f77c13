//go:build browser

package web_test

import (
	"testing"

	"loom/app/testkit/browser"
)

// TestSuggestionKeepsThePlace: what a suggestion changes is changed in the form that is
// there: the page stays where it is, and the advanced part open or closed.
func TestSuggestionKeepsThePlace(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	b, base := w.browse(t, "ana", browser.Options{})
	b.Open(base + "/clusters/new?for=web-cluster&clusterTemplate=web-cluster&name=shop&numMachines=3&servicesShown=1&services=haproxy")
	b.WaitFor("[data-set=form]")
	runOn(b, `(() => { document.querySelector("#form-rest details").open = true; document.body.dataset.same = "1"; return ""; })()`)
	b.WaitTrue("the fold to tell", `document.querySelector("[data-fold]").value === "1"`)
	runOn(b, `(() => { document.querySelector("[data-set=form]").click(); return ""; })()`)
	b.WaitTrue("the service", `document.querySelector("input[value=nginx]").checked`)
	if got := runOn(b, `[document.body.dataset.same, document.querySelector("#form-rest details").open, location.pathname].join()`); got != "1,true,/clusters/new" {
		t.Errorf("after the suggestion: %s", got)
	}
	b.WaitTrue("the answer", `document.querySelector("#check-line").dataset.state !== "cannot"`)
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}
