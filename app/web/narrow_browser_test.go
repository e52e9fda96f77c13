//go:build browser

package web_test

import (
	"testing"

	"loom/app/testkit/browser"
	"loom/views/route"
)

// TestNarrowPages: a phone shows the names of clusters on one line, and pictures of dependencies in a box of their own.
func TestNarrowPages(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.active("load-balanced-shop-front", 3)
	b, base := w.browse(t, "ana", browser.Options{Width: 390})
	still := func(page string) {
		t.Helper()
		if p := b.Page(); p.Overflow > 0 {
			t.Errorf("%s scrolls sideways by %d px", page, p.Overflow)
		}
	}
	b.Open(base + route.Home())
	still("Home")
	if lines := runOn(b, `document.querySelector(".c-cluster-rows li > div > a").getClientRects().length`); lines != "1" {
		t.Errorf("a name takes %s lines", lines)
	}
	b.Open(base + route.CatalogService("nginx"))
	still("a service")
	if seen := runOn(b, `(() => { const box = document.querySelector(".c-ties"), svg = box.querySelector("svg"); return box.scrollWidth <= box.clientWidth || getComputedStyle(box).overflowX === "auto" && svg.querySelector(".is-middle").getBoundingClientRect().right <= box.getBoundingClientRect().right })()`); seen != "true" {
		t.Error("the picture hides the service that it is about")
	}
}
