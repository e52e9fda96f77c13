//go:build browser

package web_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"loom/app/testkit/browser"
	"loom/views/route"
)

// TestTemplatePageFitsTheWindow: Create and the picture are on the first screen; the picture
// follows the number of nodes, and a wrong one is said at the field.
func TestTemplatePageFitsTheWindow(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	at := route.CatalogTemplate("web-cluster")
	for _, width := range []int{390, 1440} {
		b, base := w.browse(t, "ana", browser.Options{Width: width})
		b.Open(base + at)
		for _, selector := range []string{"h1", ".l-page-head [data-kind=primary]", "#f-nodes", ".c-layout-picture svg[role=img]"} {
			if _, bottom := boxOf(b, selector); bottom < 0 || bottom > 900 {
				t.Errorf("%d wide: %s ends at %.0f", width, selector, bottom)
			}
		}
		if open := runOn(b, `document.querySelector("#rules").open`); open != "false" {
			t.Error("the rules are open")
		}
		if p := b.Page(); p.Overflow > 0 {
			t.Errorf("%d wide: the page is wider by %d", width, p.Overflow)
		}
		if faults := b.Faults(); len(faults) != 0 {
			t.Errorf("%d wide: %q", width, faults)
		}
	}
	b, base := w.browse(t, "ana", browser.Options{Width: 1440})
	b.Open(base + at)
	b.WaitFor("#keys[data-ready]")
	enter := func(text string) {
		b.Do("enter "+text, chromedp.Click(chromedp.CSS("#f-nodes")), chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent(text))
	}
	enter("7")
	b.Wait("7 nodes", func() bool {
		return runOn(b, `document.querySelector("#example").textContent.includes("6 ×")`) == "true"
	})
	enter("x")
	b.WaitFor("#example-error:not([hidden])")
	if !b.Has("#f-nodes:focus") {
		t.Error("the field lost the focus")
	}
}

// TestTemplatePageWithoutScripts takes the size from the address.
func TestTemplatePageWithoutScripts(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	at := route.CatalogTemplate("web-cluster")
	w.get("ana", route.Query(at, "nodes", "7")).is(200, "6 ×", `value="7"`, "Show")
	w.get("ana", route.Query(at, "nodes", "99999")).is(200, "Enter ").lacks("c-layout-picture")
}
