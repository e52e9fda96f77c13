//go:build browser

package web_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/clusterview"
	"loom/views/route"
)

// browse opens a browser in which a user of the world is signed in.
func (w *clusterWorld) browse(t *testing.T, user string, o browser.Options) (*browser.Browser, string) {
	t.Helper()
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	return w.browseAt(t, server.URL, user, o), server.URL
}

// browseAt is the same with a server of the test.
func (w *clusterWorld) browseAt(t *testing.T, url, user string, o browser.Options) *browser.Browser {
	t.Helper()
	b := browser.New(t, o)
	hands := b.Keyboard()
	b.Open(url + "/login?tenant=acme")
	hands.Fill("the user name", "input[name=user]", user)
	hands.Fill("the password", "input[name=password]", "correct horse battery "+user)
	hands.Activate("sign in", "form[action='/login'] button[type=submit]")
	b.Wait("the home page", func() bool { return b.URL() == url+"/" })
	return b
}

// press sends keys, one after the other.
func pressKeys(b *browser.Browser, keys ...string) {
	for _, key := range keys {
		b.Do("press "+key, chromedp.KeyEvent(key))
	}
}

func focused(b *browser.Browser, selector string) func() bool {
	return func() bool { return b.Has(selector + ":focus") }
}

// TestKeysAndPalette goes about without pointing and without Tab.
func TestKeysAndPalette(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	shop, blog := w.create("shop", 2), w.create("blog", 2)
	w.finish(shop, loom.ClusterActive)
	w.finish(blog, loom.ClusterActive)
	b, base := w.browse(t, "ana", browser.Options{})
	at := func(path string) { b.Wait(path, func() bool { return b.URL() == base+path }) }
	ready := func() { b.WaitFor("#keys[data-ready]") }

	ready()
	pressKeys(b, "g", "c")
	at("/clusters")
	ready()
	pressKeys(b, "j", "j")
	b.Wait("the second row", focused(b, "#"+"clusters tbody tr:nth-child(2) th a"))
	pressKeys(b, "k")
	b.Wait("the first row", focused(b, "#clusters tbody tr:nth-child(1) th a"))
	pressKeys(b, "x")
	b.WaitText("1 cluster selected")
	pressKeys(b, "x")
	pressKeys(b, "/")
	b.Wait("the search field", focused(b, "input[name=q]"))
	pressKeys(b, "g", "c", "n") // typed, not done
	b.Wait("what was typed", func() bool { return strings.Contains(b.URL(), "gcn") })
	b.Open(base + "/clusters?sort=name")
	ready()
	pressKeys(b, "j", kb.Enter) // blog
	at("/clusters/" + blog.Cluster.String())

	b.WaitFor("#palette[data-ready]")
	b.Do("open the palette", chromedp.KeyEvent("k", chromedp.KeyModifiers(kb.ModifierCtrl)))
	b.WaitText("Actions here")
	pressKeys(b, "s", "h", "o", "p")
	b.WaitFor("#palette [role=option][href='/clusters/" + shop.Cluster.String() + "']")
	if faults := b.Faults(); len(faults) != 0 {
		t.Errorf("the palette: %q", faults)
	}
	b.Wait("the first result is chosen", func() bool {
		return b.Has("#palette [role=option][href='/clusters/" + shop.Cluster.String() + "'][aria-selected=true]")
	})
	pressKeys(b, kb.Enter)
	at("/clusters/" + shop.Cluster.String())
	ready()
	pressKeys(b, "?")
	b.WaitText("Keyboard help")
	b.WaitFor("#dialog[open]")
	pressKeys(b, "g", "c", kb.Escape)
	b.WaitGone("#dialog[open]")
	at("/clusters/" + shop.Cluster.String())
	pressKeys(b, "n")
	b.Wait("the new form", func() bool { return strings.HasPrefix(b.URL(), base+"/clusters/new") })

	// Whoever turned them off is left alone.
	w.must(w.accounts.SetPreferences(w.ctx, w.actor("ana"), loom.ViewPreferences{NoShortcuts: true}))
	b.Open(base + "/clusters")
	ready()
	pressKeys(b, "n", "?", "g", "a")
	if b.URL() != base+"/clusters" || b.Has("#dialog[open]") {
		t.Errorf("shortcuts work although they are off; at %s", b.URL())
	}
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}

// TestBulkAndSignInKeepWhatIsChosen selects rows that are fetched again, and signs in
// again over a form that is half filled in.
func TestBulkAndSignInKeepWhatIsChosen(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	one, two := w.create("one", 2), w.create("two", 2)
	w.finish(one, loom.ClusterActive)
	w.finish(two, loom.ClusterActive)
	b, base := w.browse(t, "ana", browser.Options{})
	b.Open(base + "/clusters")
	b.WaitFor("#clusters [data-select-all]")
	b.WaitFor("#list[data-selects], [data-selects]")
	b.Do("select all", chromedp.Click(chromedp.CSS("[data-select-all]")))
	b.WaitText("2 clusters selected")
	w.db.MustExec(`UPDATE clusters SET name = 'renamed' WHERE name = 'two'`)
	b.Do("a signal", chromedp.Evaluate[chromedp.Void](`document.querySelector("[data-live]").dispatchEvent(new CustomEvent("loom:live"))`))
	b.WaitText("renamed")
	b.WaitText("2 clusters selected")
	if !b.Has("tbody input[name=id]:checked") {
		t.Error("fetching the rows again forgot what was selected")
	}
	b.Do("extend", chromedp.Click(chromedp.CSS("#bulk button[formaction$=\"lease\"]")))
	b.WaitText("Extend by")
	b.WaitText("renamed")

	b.Open(base + "/clusters")
	b.WaitFor("#main[data-session-left]")
	b.WaitLoaded()
	b.Do("type", chromedp.Click(chromedp.CSS("input[name=q]")), chromedp.KeyEvent("half"))
	b.WaitText("No matches")
	// The dialog takes the focus when it opens, so it must not open while the test types.
	w.db.MustExec(`UPDATE sessions SET expires_at = now() - interval '1 s'`)
	b.Do("a signal", chromedp.Evaluate[chromedp.Void](`document.querySelector("[data-live]").dispatchEvent(new CustomEvent("loom:live"))`))
	b.WaitFor("#session[open] input[type=password]")
	b.Do("the password", chromedp.Click(chromedp.CSS("#session input[type=password]")), chromedp.KeyEvent("correct horse battery ana"))
	if b.Has("#session input[name=tenant]") {
		b.Do("the tenant", chromedp.Click(chromedp.CSS("#session input[name=tenant]")), chromedp.KeyEvent("acme"))
	}
	b.Do("sign in", chromedp.Click(chromedp.CSS("#session button[type=submit]")))
	b.WaitGone("#session[open]")
	if got := browser.Get(b, "what was typed", chromedp.Evaluate[string](`document.querySelector("main input[name=q]").value`)); got != "half" {
		t.Errorf("the field holds %q", got)
	}
}

// TestResultsOfManyAreLive: the page after a change of several clusters follows each of them.
func TestResultsOfManyAreLive(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	one, two := w.active("one", 2), w.active("two", 2)
	b, base := w.browse(t, "ana", browser.Options{})
	b.Open(base + route.Query(route.ClustersBulk("delete"), "id", one.String(), "id", two.String()))
	hands := b.Keyboard()
	hands.Fill("the words", "input[name=confirm]", "delete 2 clusters")
	hands.Activate("delete", "#bulk-form button[type=submit]")
	b.WaitText("The deletion of 2 clusters has begun.")
	state := func(id loom.ClusterID) string {
		return runOn(b, `document.querySelector("#`+clusterview.ListID+` a[href='`+route.Cluster(id)+`']").closest("tr").querySelector(".c-badge").textContent`)
	}
	for _, id := range []loom.ClusterID{one, two} {
		if got := state(id); !strings.Contains(got, "Deleting") {
			t.Errorf("cluster %s is shown as %q", id, got)
		}
	}
	w.finish(w.latest(one), loom.ClusterTerminated)
	w.finish(w.latest(two), loom.ClusterIncomplete)
	b.Do("a signal", chromedp.Evaluate[chromedp.Void](`document.querySelector("[data-live]").dispatchEvent(new CustomEvent("loom:live"))`))
	b.Wait("the end of both", func() bool {
		return strings.Contains(state(one), "Terminated") && strings.Contains(state(two), "Delete failed")
	})
}
