//go:build browser

package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/route"
)

// boxOf is where an element is on the page, in CSS pixels from its top.
func boxOf(b *browser.Browser, selector string) (top, bottom float64) {
	var box struct{ Top, Bottom float64 }
	text := runOn(b, `(() => { const e = document.querySelector(`+jsText(selector)+`)?.getBoundingClientRect(); return JSON.stringify(e ? {Top: e.top + scrollY, Bottom: e.bottom + scrollY} : {Top: -1, Bottom: -1}) })()`)
	if err := json.Unmarshal([]byte(text), &box); err != nil {
		b.Do("read where "+selector+" is: "+err.Error(), chromedp.WaitReady(chromedp.CSS("#none")))
	}
	return box.Top, box.Bottom
}

func jsText(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

func heightOf(b *browser.Browser, selector string) float64 {
	top, bottom := boxOf(b, selector)
	return bottom - top
}

// slow serves the world, and what has that end of its path only once it may come.
func (w *clusterWorld) slow(t *testing.T, late string) (url string, come chan struct{}) {
	t.Helper()
	come = make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, late) {
			select {
			case <-come:
			case <-r.Context().Done():
				return
			}
		}
		w.handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, come
}

// TestPaletteOpensBeforeItsModuleComes: what is typed right after Ctrl+K is not lost.
func TestPaletteOpensBeforeItsModuleComes(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	url, come := w.slow(t, "/palette.js")
	b := w.browseAt(t, url, "ana", browser.Options{})
	b.WaitFor("#keys[data-ready]")
	b.Do("open the palette", chromedp.KeyEvent("k", chromedp.KeyModifiers(kb.ModifierCtrl)))
	b.WaitFor("#palette[open]")
	pressKeys(b, "n", "e", "w")
	close(come)
	b.WaitFor("#palette [role=option][aria-selected=true]")
	if got := b.Value("#palette input"); got != "new" {
		t.Errorf("the palette holds %q", got)
	}
}

// TestHeadersAreEqual: the header is one line on phones, and headings begin at one height.
func TestHeadersAreEqual(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 3)
	for _, width := range []int{390, 1440} {
		b, base := w.browse(t, "ana", browser.Options{Width: width})
		first := -1.0
		for _, at := range []string{"/", "/clusters", route.Cluster(id), route.Catalog(), route.Services(), "/activity", "/usage"} {
			b.Open(base + at)
			if h := heightOf(b, ".l-header"); h != 56 {
				t.Errorf("%d wide, %s: the header is %.0f px high", width, at, h)
			}
			top, _ := boxOf(b, ".l-place")
			if first < 0 {
				first = top
			}
			if top != first || heightOf(b, ".l-place") > 40 {
				t.Errorf("%d wide, %s: the line above the heading is at %.0f, %.0f high; elsewhere at %.0f", width, at, top, heightOf(b, ".l-place"), first)
			}
		}
	}
}

// TestHomeShowsClustersFirst: the first row is near the top, and what needs attention has a fix.
func TestHomeShowsClustersFirst(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.db.MustExec(`UPDATE tenants SET workers = 10 WHERE id = $1`, w.tenant.ID)
	w.active("shop", 3)
	b, base := w.browse(t, "ana", browser.Options{Width: 1440})
	b.Open(base + "/")
	top, _ := boxOf(b, ".c-cluster-rows > li")
	banners := heightOf(b, ".l-banners")
	if top < 0 || top-banners >= 216 {
		t.Errorf("the first cluster is at %.0f, below notices of %.0f", top, banners)
	}
	broken := w.create("broken", 2)
	w.fail(loom.TaskRef{Operation: broken, Number: 1}, "There is no image bookworm.")
	pending := w.create("soon", 2)
	w.db.MustExec(`UPDATE clusters SET expires_at = created_at + interval '10 minutes' WHERE id = $1`, pending.Cluster)
	b.Open(base + "/")
	if n := runOn(b, `document.querySelectorAll(".c-notice").length`); n != "2" {
		t.Errorf("%s lines of attention, want that of the failed cluster and that of the lease", n)
	}
	if n := runOn(b, `[...document.querySelectorAll(".c-notice")].filter((e) => !e.querySelector(".c-button")).length`); n != "0" {
		t.Errorf("%s lines of attention have no button", n)
	}
}

// TestOverviewFitsTheWindow: name, state, Open, layout and the first SSH line are seen at once.
func TestOverviewFitsTheWindow(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 3)
	b, base := w.browse(t, "ana", browser.Options{Width: 1440})
	b.Open(base + route.Cluster(id))
	for _, selector := range []string{"h1", "h1 + .c-badge", ".l-page-head [data-open]", ".c-nodebox", "#connect code"} {
		if _, bottom := boxOf(b, selector); bottom < 0 || bottom > 900 {
			t.Errorf("%s ends at %.0f", selector, bottom)
		}
	}
	if n := runOn(b, `document.querySelectorAll(".l-page-head [data-kind=primary]").length`); n != "1" {
		t.Errorf("%s primary buttons in the head", n)
	}
	// The menu of a failed cluster says its reason once, and fits.
	broken := w.create("broken", 2)
	w.fail(loom.TaskRef{Operation: broken, Number: 1}, "There is no image bookworm.")
	b.Open(base + route.Cluster(broken.Cluster))
	b.Do("the menu", chromedp.Click(chromedp.CSS("button[popovertarget=cluster-menu]")))
	b.WaitFor("#cluster-menu:popover-open .c-menu-why")
	why := strings.TrimSpace(runOn(b, `document.querySelector(".c-menu-why").textContent`))
	if n := strings.Count(runOn(b, `document.querySelector("#cluster-menu").textContent`), why); why == "" || n != 1 {
		t.Errorf("the reason %q is in the menu %d times", why, n)
	}
	if h := heightOf(b, "#cluster-menu"); h > 900 {
		t.Errorf("the menu is %.0f px high", h)
	}
}

// TestPreviewsAreShort: a preview says each thing once, so that it needs no scrolling, and its
// button is always in view.
func TestPreviewsAreShort(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.db.MustExec(`UPDATE tenants SET max_nodes = 1000 WHERE id = $1`, w.tenant.ID)
	wide := webTemplate()
	wide.Constraints.Size.Max = 500
	w.save(loom.KindTemplate, wide)
	id := w.active("shop", 3)
	b, base := w.browse(t, "ana", browser.Options{Width: 1440})
	for what, p := range map[string]struct {
		in   clusters.PreviewInput
		most float64
	}{
		"create of 3":   {clusters.PreviewInput{Kind: loom.ChangeCreate, Create: loom.CreateInput{Name: "blog", Template: "web-cluster", Machines: 3, LeaseMillis: loom.TemplateLease}}, 1350},
		"create of 50":  {clusters.PreviewInput{Kind: loom.ChangeCreate, Create: loom.CreateInput{Name: "farm", Template: "web-cluster", Machines: 50, LeaseMillis: loom.TemplateLease}}, 1350},
		"create of 500": {clusters.PreviewInput{Kind: loom.ChangeCreate, Create: loom.CreateInput{Name: "field", Template: "web-cluster", Machines: 500, LeaseMillis: loom.TemplateLease}}, 1350},
		"scale up by 2": {clusters.PreviewInput{Kind: loom.ChangeExpand, Cluster: id, Change: clusters.ChangeInput{Machines: 5}}, 900},
	} {
		v, err := w.clusters.Preview(w.ctx, w.actor("ana"), p.in)
		w.must(err)
		b.Open(base + route.Preview(v.ID))
		if _, bottom := boxOf(b, "#main"); bottom > p.most {
			t.Errorf("%s: the page is %.0f px high, more than %.0f", what, bottom, p.most)
		}
		if seen := runOn(b, `(() => { const e = document.querySelector(".c-bar [type=submit]").getBoundingClientRect(); return e.top >= 0 && e.bottom <= innerHeight })()`); seen != "true" {
			t.Errorf("%s: the button is not in view", what)
		}
		if faults := b.Faults(); len(faults) != 0 {
			t.Errorf("%s: %q", what, faults)
		}
	}
}

// TestNeverFitsWhileChecking: while an answer is on its way, that to the old text is none.
func TestNeverFitsWhileChecking(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	url, come := w.slow(t, route.ClusterCheck())
	b := w.browseAt(t, url, "ana", browser.Options{})
	b.Open(url + "/clusters/new?template=web-cluster")
	b.WaitText("Fits")
	b.WaitFor("#keys[data-ready]")
	b.Do("another number", chromedp.Click(chromedp.CSS("#f-numMachines")), chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent("4"))
	b.WaitFor("#check[aria-busy=true]")
	word := func() string {
		return runOn(b, `document.querySelector("#check .c-check-head span").getBoundingClientRect().width`)
	}
	if w := word(); w != "0" {
		t.Errorf("while it is checked the old answer is %s px wide", w)
	}
	close(come)
	b.WaitText("4 nodes, 2 services")
	b.Wait("the answer", func() bool { return word() != "0" })
}
