//go:build browser

package web_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"loom/app/testkit/browser"
)

// officeWalk is a way through the office: with the keyboard alone, or by forms without
// scripts.
type officeWalk struct {
	name    string
	options browser.Options
	hands   func(w *walker) browser.Hands
}

var officeWalks = []officeWalk{
	{"keyboard", browser.Options{}, func(w *walker) browser.Hands { return w.hands }},
	{"without scripts", browser.Options{NoScript: true}, func(w *walker) browser.Hands { return w.b.Mouse() }},
}

// submit is the button that sends the form that goes there.
func submit(action string) string { return "form[action='" + action + "'] button[type=submit]" }

// atItsField says that a form came back with an error that its control names, and the
// focus on what was wrong.
func (w *walker) atItsField(what, control string) {
	w.t.Helper()
	w.b.WaitFor(".c-summary a")
	w.summaryHasFocus()
	w.b.WaitFor(control + "[aria-invalid=true]")
	if !w.scripts {
		return // nothing can look at the page from inside
	}
	if faults := w.b.Faults(); len(faults) != 0 {
		w.t.Errorf("%s: %v", what, faults)
	}
}

// summaryHasFocus says that what was wrong has the focus, so that it is read and Tab goes
// on from there.
func (w *walker) summaryHasFocus() {
	w.t.Helper()
	if !w.scripts {
		w.b.WaitFor(".c-summary:focus")
		return
	}
	// A window that is not the foremost one has no :focus.
	w.b.Wait("the focus on the summary", func() bool {
		return browser.Get(w.b, "the focus", chromedp.Evaluate[bool](`document.activeElement !== null && document.activeElement.matches(".c-summary")`))
	})
}

// TestOfficeWalked makes and takes back a token, a hook and an import, after a mistake in
// each, in both ways.
func TestOfficeWalked(t *testing.T) {
	t.Parallel()
	for _, walk := range officeWalks {
		t.Run(walk.name, func(t *testing.T) {
			t.Parallel()
			w := newWalker(t, walk.options)
			hands := walk.hands(w)
			w.walkTokens(hands)
			w.walkHooks(hands)
			w.walkImport(hands)
			if complaints := w.b.Complaints(); len(complaints) != 0 {
				t.Errorf("the browser complains: %q", complaints)
			}
		})
	}
}

func (w *walker) walkTokens(hands browser.Hands) {
	w.t.Helper()
	b, page := w.b, w.server.URL+"/account/tokens"
	b.Open(page)
	hands.Fill("no name", "input[name=name]", " ") // the browser itself minds none at all
	hands.Activate("create a token without a name", submit("/account/tokens"))
	w.atItsField("a token without a name", "input[name=name]")
	hands.Fill("the name", "input[name=name]", "nightly")
	hands.Choose("the scope", "input[name=scopes][value=read]")
	hands.Activate("create", submit("/account/tokens"))
	b.WaitText("Loom shows it only once")
	hands.Activate("it is copied", "form[data-dirty] button[type=submit]")
	// The form is not dirty any longer as soon as it is sent; the page is still the same then.
	b.Wait("the page without the secret", func() bool {
		return !strings.Contains(b.Text(), "Loom shows it only once") && b.Has("#tokens a[href$='/revoke']")
	})
	hands.Activate("what can be done", "#tokens button[popovertarget]")
	hands.Activate("revoke", "#tokens a[href$='/revoke']")
	b.WaitFor("form[action$='/revoke'] button[type=submit]")
	hands.Activate("really", "form[action$='/revoke'] button[type=submit]")
	b.WaitText("No API tokens yet")
}

func (w *walker) walkHooks(hands browser.Hands) {
	w.t.Helper()
	b := w.b
	b.Open(w.server.URL + "/admin/hooks/new")
	hands.Fill("the name", "input[name=name]", "tell the monitoring")
	hands.Fill("the address", "input[name=url]", "nowhere")
	hands.Activate("create", "main form[method=post] button[data-kind=primary]")
	w.atItsField("a hook to nowhere", "input[name=url]")
	if got := b.Value("input[name=name]"); got != "tell the monitoring" {
		w.t.Errorf("the name is now %q", got)
	}
	hands.Fill("the address", "input[name=url]", "https://ci.example/loom")
	hands.Fill("the secret", "input[name=secret]", "sixteen-letters-or-more")
	hands.Activate("create", "main form[method=post] button[data-kind=primary]")
	b.WaitFor("button[popovertarget=page-menu]")
	hands.Activate("the menu", "button[popovertarget=page-menu]")
	hands.Activate("delete", "a[href$='/delete']")
	b.WaitFor("form[action$='/delete'] button[type=submit]")
	hands.Activate("really", "form[action$='/delete'] button[type=submit]")
	b.Wait("the list without it", func() bool {
		return b.URL() == w.server.URL+"/admin/hooks" && b.Has("main h1") && !b.Has("main a[href='/admin/hooks/1']")
	})
}

func (w *walker) walkImport(hands browser.Hands) {
	w.t.Helper()
	b := w.b
	for _, body := range []string{`{"name":"edge","dependencies":{"provides":["front"]}}`, `{"name":"shop","dependencies":{"runtime":{"requires":["front"]}}}`} {
		w.v.post("/admin/services", "body", body)
	}
	b.Open(w.server.URL + "/admin/transfer")
	hands.Fill("a broken bundle", "textarea[name=bundle]", `{"services": [`)
	hands.Activate("look at it", submit("/admin/transfer/preview"))
	w.atItsField("a broken bundle", "textarea[name=bundle]")
	hands.Fill("nothing", "textarea[name=bundle]", "")
	w.chooseFile("input[type=file][name=file]", "bundle.json", `{"hardwaretypes": [{"name": "walked", "label": "Walked", "providermap": {"local": {"flavor": "cpu=1"}}}],
		"services": [{"name": "edge", "description": "theirs"}]}`)
	hands.Activate("look at it", submit("/admin/transfer/preview"))
	b.WaitText("walked")
	b.WaitFor(submit("/admin/transfer/import"))
	// What is there is kept unless somebody says otherwise; a name is asked for where it is new.
	chosen := func(name, value string) {
		w.t.Helper()
		b.WaitFor(`select[name="do:` + name + `"] option[value=` + value + `]:checked`)
	}
	asksName := func() bool {
		return browser.Get(b, "the new name", chromedp.Evaluate[bool](`document.querySelector('input[name="name:services/edge"]').checkVisibility()`))
	}
	b.WaitText("breaks shop")
	chosen("services/edge", "skip")
	chosen("hardwaretypes/walked", "write")
	if asksName() {
		w.t.Error("a new name is asked for what is kept")
	}
	hands.Activate("overwrite all", "button[name=do][value=overwrite]")
	chosen("services/edge", "write")
	hands.Fill("a prefix", "input[name=prefix]", "their-")
	hands.Activate("prefix names", "button[name=do][value=prefix]")
	chosen("services/edge", "rename")
	if !asksName() || b.Value(`input[name="name:services/edge"]`) != "their-edge" {
		w.t.Error("the new name is not shown")
	}
	hands.Activate("keep all", "button[name=do][value=keep]")
	chosen("services/edge", "skip")
	if w.scripts {
		w.looks("an import before it is done")
	}
	hands.Activate("import", submit("/admin/transfer/import")+"[data-kind=primary]")
	b.Wait("what was imported", func() bool { return !b.Has(submit("/admin/transfer/import")) })
	w.v.get("/admin/services/edge?as=json").hides(w.t, "theirs")
	w.v.get("/admin/hardware-types/walked?as=json").shows(w.t, 200, `"Walked"`)
}
