//go:build browser

package web_test

import (
	"encoding/json"
	"testing"

	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/route"
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

// TestListsOnAPhone: a narrow window shows each row of a list of the catalog as a card, with everything
// that a wide one shows, and rows are found, labeled and sorted there.
func TestListsOnAPhone(t *testing.T) {
	t.Parallel()
	w := newWalker(t, browser.Options{Width: 390})
	w.importSample()
	w.v.post("/admin/hardware-types", "body", `{"name":"spare","label":"Spare","labels":{"team":"a-team-whose-name-is-long-and-has-no-space-for-breaks"}}`).goes(t, "/admin/hardware-types/spare")
	w.v.post("/admin/hardware-types", "body", `{"name":"gone"}`).goes(t, "/admin/hardware-types/gone")
	w.v.post(route.AdminBulk(loom.KindHardwareType, "delete"), "id", "1.gone", "confirm", "delete 1 hardware type").shows(t, 200, "Deleted.")
	complete := func(at string) {
		t.Helper()
		w.b.WaitLoaded() // without its styles a page is wider
		var lost []string
		check(t, json.Unmarshal([]byte(runOn(w.b, lostCells)), &lost))
		if overflow := w.b.Page().Overflow; len(lost) > 0 || overflow > 0 {
			t.Errorf("%s hides %q and is wider than the window by %d", at, lost, overflow)
		}
		if sideways := runOn(w.b, `String([...document.querySelectorAll(".c-table-region")].filter(r => r.checkVisibility() && r.scrollWidth > r.clientWidth).length)`); sideways != "0" {
			t.Errorf("%s scrolls a table sideways", at)
		}
	}
	for _, kind := range loom.TenantKinds {
		w.b.Open(w.server.URL + route.AdminKind(kind))
		complete(route.AdminKind(kind))
	}
	for _, at := range []string{route.AdminResources(), route.AdminUsers(), route.AdminHooks(), route.AdminAudit(), route.AdminQueue(), route.AdminUsage()} {
		w.b.Open(w.server.URL + at)
		complete(at)
	}

	hardware := w.server.URL + route.AdminKind(loom.KindHardwareType)
	w.b.Open(hardware + "?show=deleted")
	w.b.WaitText("gone")
	complete("deleted entries")
	w.b.Open(hardware)
	w.looks("hardware types")
	hands := w.b.Mouse()
	hands.Activate("sort", "#entries thead a[href*='sort=-updateTime']")
	w.b.WaitTrue("the entry saved last on top", `document.querySelector("#entries tbody th a").textContent === "spare"`)
	hands.Activate("a label", "#entries .c-chip")
	one := func(field string) {
		t.Helper()
		w.b.WaitTrue("one entry by "+field, `location.search.includes("`+field+`=") && document.querySelectorAll("#entries tbody th a").length === 1 && document.readyState === "complete"`)
	}
	one("label")
	hands.Activate("clear filters", ".c-toolbar a.c-button")
	w.b.WaitTrue("all entries", `location.href === `+jsText(hardware)+` && document.querySelectorAll("#entries tbody th a").length > 1 && document.readyState === "complete"`)
	runOn(w.b, `(f => { f.value = "unused"; f.dispatchEvent(new Event("change", {bubbles: true})) })(document.querySelector("select[name=use]"))`)
	one("use")
	hands.Activate("select all", "[data-select-all]")
	w.b.WaitText("1 hardware type selected")
	complete("the selection")
	hands.Activate("label it", ".c-bulk [formaction$='/label']")
	w.b.WaitText("Labels to add")
	complete("the question")
	hands.Fill("a label", "textarea[name=add]", "size=big")
	hands.Activate("save the labels", "form[method=post] [data-kind=primary]")
	w.b.WaitText("Labeled.")
	complete("the results")
	w.looks("the results")
}
