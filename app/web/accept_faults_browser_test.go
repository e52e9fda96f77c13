//go:build browser

package web_test

import (
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/route"
)

// TestStatesOfPagesAreForEverybody scans pages as they are in use: dialogs and menus
// open, forms refused, requests that cannot be met, something selected, secrets shown.
// Neither in light nor in dark colours is there a fault of accessibility.
func TestStatesOfPagesAreForEverybody(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	shop, broken := w.create("shop", 2), w.create("broken", 2)
	w.finish(shop, loom.ClusterActive)
	w.fail(loom.TaskRef{Operation: broken, Number: 1}, "the script ended with status 1")
	b, base := w.browse(t, "admin", browser.Options{})
	scan := func(what string) {
		t.Helper()
		b.Inspect(what)
	}
	click := func(selector string) {
		t.Helper()
		b.WaitFor(selector)
		b.Do("click "+selector, chromedp.Click(chromedp.CSS(selector)))
	}
	at := route.Cluster(shop.Cluster)

	b.Open(base + at)
	click("button[popovertarget=cluster-menu]")
	click("a[href='" + at + "/delete'][hx-get]")
	b.WaitFor("#dialog[open] input[name=confirm]")
	scan("the dialog that deletes")
	click("#dialog [data-confirm]") // without the name nothing happens
	b.Do("the wrong name", chromedp.Click(chromedp.CSS("#dialog input[name=confirm]")), chromedp.KeyEvent("shap"))
	scan("the dialog with another name")
	b.Do("close", chromedp.KeyEvent(kb.Escape))
	b.WaitGone("#dialog[open]")
	click("button[popovertarget='cluster-menu']")
	b.WaitFor("#cluster-menu:popover-open")
	scan("the menu of a cluster")
	b.Do("close", chromedp.KeyEvent(kb.Escape))
	click("a[href='" + at + "/lease']")
	b.WaitFor("#dialog[open] form")
	scan("the dialog of the lease")
	b.Do("close", chromedp.KeyEvent(kb.Escape))
	click("button.l-user")
	scan("the menu of the account")

	b.Open(base + at)
	b.WaitFor("#palette[data-ready]")
	b.Do("open the palette", chromedp.KeyEvent("k", chromedp.KeyModifiers(kb.ModifierCtrl)))
	b.WaitText("Actions here")
	scan("the palette")
	pressKeys(b, "s", "h", "o", "p")
	b.WaitFor("#palette [role=option][aria-selected=true]")
	scan("the palette with results")
	b.Open(base + at)
	b.WaitFor("#keys[data-ready]")
	pressKeys(b, "?")
	b.WaitFor("#dialog[open]")
	scan("the help on keys")

	b.Open(base + "/clusters/new?template=web-cluster")
	b.Do("one node", chromedp.Click(chromedp.CSS("#f-numMachines")), chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent("1"))
	b.WaitFor("#check button[name=suggest]")
	scan("a request that cannot be met")
	b.Do("no name", chromedp.Click(chromedp.CSS("#f-name")), chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent("not a name"))
	click("form[action='/previews'] button[data-kind=primary]")
	b.WaitFor("#f-name[aria-invalid]")
	scan("a form for a cluster that was refused")
	b.Open(base + "/clusters?q=nonsense:1")
	scan("a list with a filter that is none")
	b.Open(base + "/clusters?q=nothing-is-called-so")
	scan("a list without matches")
	b.Open(base + "/clusters")
	b.WaitFor("[data-selects]") // the script that counts has come
	click("#clusters [data-select-all]")
	b.WaitText("2 clusters selected")
	scan("a list with rows selected")
	b.Open(base + route.Cluster(broken.Cluster))
	b.WaitText("the script ended with status 1")
	scan("a cluster whose making failed")

	for _, form := range []struct{ path, field, value string }{
		{"/admin/hooks/new", "url", "no address"}, {"/admin/services/new", "name", "not a name"}, {route.AccountPreferences(), "zone", "Nowhere/Else"},
		{"/admin/new-user", "id", "ana"}, {at + "/reconfigure", "config", "{"},
	} {
		b.Open(base + form.path)
		field := `main form[method=post] [name="` + form.field + `"]`
		b.WaitFor(field)
		b.Do("fill in "+form.field, chromedp.Evaluate[chromedp.Void](`(f => { f.value = `+strconv.Quote(form.value)+`; f.form.noValidate = true; f.form.requestSubmit(f.form.querySelector("button[data-kind=primary]")); })(document.querySelector(`+strconv.Quote(field)+`))`))
		b.WaitFor(".c-summary")
		scan("the form of " + form.path + ", refused")
	}
	b.Open(base + route.AccountTokens())
	b.Do("a token", chromedp.Click(chromedp.CSS("main form[method=post] input[name=name]")), chromedp.KeyEvent("laptop"+kb.Enter))
	b.WaitText("/v2/whoami")
	scan("a token that is shown once")
}
