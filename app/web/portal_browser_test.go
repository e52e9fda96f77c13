//go:build browser

package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"loom/app/clusters"
	"loom/app/testkit/browser"
	"loom/views/route"
)

// wobbly serves the world, unless it is away: then nobody gets an answer.
func (w *clusterWorld) wobbly(t *testing.T) (url string, away *atomic.Bool) {
	t.Helper()
	away = new(atomic.Bool)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if away.Load() && !strings.HasPrefix(r.URL.Path, "/static/") {
			panic(http.ErrAbortHandler)
		}
		w.handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, away
}

// signInAgain answers the dialog that a page shows when its sign-in is over.
func signInAgain(b *browser.Browser, user string) {
	b.WaitFor("#session[open] input[type=password]:focus")
	pressKeys(b, "correct horse battery "+user)
	if b.Has("#session input[name=tenant]") {
		b.Do("the tenant", chromedp.Click(chromedp.CSS("#session input[name=tenant]")), chromedp.KeyEvent("acme"))
	}
	pressKeys(b, kb.Enter)
	b.WaitGone("#session[open]")
}

const aboutText = "#f-description"

// TestTextsInPlaceByKeyboard writes about a cluster where it is read, without pointing.
func TestTextsInPlaceByKeyboard(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 3)
	b, base := w.browse(t, "ana", browser.Options{})
	about := func() string { return runOn(b, `document.querySelector(".c-written")?.innerText ?? ""`) }
	b.Open(base + route.Cluster(id))
	b.WaitFor("#keys[data-ready]")
	pressKeys(b, "e")
	b.Wait("the field", focused(b, aboutText))
	b.WaitFor("#cluster-about[data-ready]")
	pressKeys(b, "For the fair", kb.Escape)
	b.Wait("the focus to return to the link", focused(b, "#cluster-about a[href$='/edit']"))
	if about() != "" || b.Has("#cluster-about form") {
		t.Errorf("Esc stored %q", about())
	}
	pressKeys(b, kb.Enter)
	b.Wait("the field again", focused(b, aboutText))
	b.WaitFor("#cluster-about[data-ready]")
	if faults := b.Faults(); len(faults) != 0 {
		t.Errorf("the form in place: %q", faults)
	}
	pressKeys(b, "For the fair")
	b.Do("a new line", chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(kb.ModifierShift)))
	pressKeys(b, "in May", kb.Tab, "team=web", kb.Enter, "tier=front")
	b.Do("save", chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(kb.ModifierCtrl)))
	b.Wait("what was written", func() bool { return about() == "For the fair\nin May" })
	b.Wait("the focus to return after saving", focused(b, "#cluster-about a[href$='/edit']"))
	b.WaitFor("#cluster-about a[href='/clusters?label=tier%3Dfront']")
	b.WaitText("Saved description and labels of shop.")

	// Somebody else writes meanwhile.
	pressKeys(b, kb.Enter)
	b.Wait("the field once more", focused(b, aboutText))
	b.WaitFor("#cluster-about[data-ready]")
	_, err := w.clusters.Edit(w.ctx, w.actor("admin"), id, clusters.EditInput{Description: new("Theirs")})
	w.must(err)
	refreshAll(b) // what is being written is not taken away
	pressKeys(b, ".", kb.Enter)
	b.WaitText("Your changes to theirs")
	if got := b.Value(aboutText); strings.TrimSpace(got) != "For the fair\nin May." {
		t.Errorf("after a conflict the field holds %q", got)
	}
	if faults := b.Faults(); len(faults) != 0 {
		t.Errorf("the conflict: %q", faults)
	}
	b.Keyboard().Activate("keep mine", "#cluster-about button[type=submit]") // a toast may cover it for a while
	b.Wait("mine", func() bool { return about() == "For the fair\nin May." })
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}

// TestTextsWithoutScripts does the same on a page of its own.
func TestTextsWithoutScripts(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 3)
	b, base := w.browse(t, "ana", browser.Options{NoScript: true})
	hands := b.Keyboard()
	b.Open(base + route.Cluster(id))
	hands.Activate("edit", "#cluster-about a[href$='/edit']")
	b.WaitText("Edit shop")
	hands.Fill("the description", "textarea[name=description]", "For the fair")
	hands.Activate("save", "main form button[type=submit]")
	b.Wait("the cluster", func() bool { return b.URL() == base+route.Cluster(id) })
	b.WaitText("For the fair")
}

// TestNothingTypedIsLost presses while Loom does not answer, and while the sign-in is
// over: what was typed stays, and pressing again does it.
func TestNothingTypedIsLost(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 3)
	base, away := w.wobbly(t)
	b := w.browseAt(t, base, "ana", browser.Options{})
	over := func() { w.db.MustExec(`UPDATE sessions SET expires_at = now() - interval '1 s'`) }

	// A part of a page.
	b.Open(base + route.Cluster(id))
	b.WaitFor("#keys[data-ready]")
	pressKeys(b, "e")
	b.Wait("the field", focused(b, aboutText))
	b.WaitFor("#cluster-about[data-ready]")
	away.Store(true)
	pressKeys(b, "For the fair", kb.Enter)
	b.WaitText("Loom does not answer. What stands here is kept")
	b.WaitFor("#cluster-about form[data-dirty] button[type=submit]:not([aria-disabled])")
	away.Store(false)
	over()
	pressKeys(b, kb.Enter)
	signInAgain(b, "ana")
	b.WaitText("Repeat your last step")
	// The driver of the browser types a line break even where the page refused the key.
	if got := strings.TrimSpace(b.Value(aboutText)); got != "For the fair" {
		t.Errorf("after signing in the field holds %q", got)
	}
	b.Wait("the focus is back in the field", focused(b, aboutText))
	pressKeys(b, kb.Enter)
	b.WaitText("Saved description and labels of shop.")

	// A form whose answer is another page.
	const name = "form[action='/account'] input[name=displayName]"
	b.Open(base + "/account")
	b.WaitFor("#keys[data-ready]")
	b.WaitLoaded()
	b.Do("type", chromedp.Click(chromedp.CSS(name)), chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent("Ana of the shop"))
	away.Store(true)
	pressKeys(b, kb.Enter)
	b.WaitText("Nothing was sent, and what stands here is kept")
	away.Store(false)
	over()
	pressKeys(b, kb.Enter)
	signInAgain(b, "ana")
	if got := b.Value(name); got != "Ana of the shop" {
		t.Errorf("after signing in the field holds %q", got)
	}
	b.Do("once more", chromedp.Click(chromedp.CSS("form[action='/account'] button[type=submit]")))
	b.WaitText("Saved your profile.") // on the page that comes then
	b.WaitLoaded()
	var stored string
	if w.must(w.db.Get(&stored, `SELECT display_name FROM users WHERE id = 'ana'`)); stored != "Ana of the shop" {
		t.Errorf("stored is %q", stored)
	}

	// A form that is checked while one types.
	b.Open(base + route.ClusterNewFrom("web-cluster"))
	b.WaitFor("#keys[data-ready]")
	b.WaitLoaded()
	b.Do("a number", chromedp.Click(chromedp.CSS("input[name=numMachines]")), chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent("3"))
	b.WaitText("Fits")
	away.Store(true)
	b.Do("another", chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)), chromedp.KeyEvent("1"))
	b.WaitText("the last change was not checked yet")
	away.Store(false)
	b.WaitText("Cannot fit") // asked again by itself
}

// TestTheSignInIsProlonged: two minutes before its end a page asks whether to go on.
func TestTheSignInIsProlonged(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	b, base := w.browse(t, "ana", browser.Options{})
	w.db.MustExec(`UPDATE sessions SET expires_at = now() + interval '122 s'`)
	b.Open(base + "/clusters")
	b.WaitFor("#session[open] button[type=submit]")
	b.WaitText("Your sign-in ends soon")
	if faults := b.Faults(); len(faults) != 0 {
		t.Errorf("the dialog: %q", faults)
	}
	b.Do("go on", chromedp.Click(chromedp.CSS("#session button[type=submit]")))
	b.WaitGone("#session[open]")
	b.WaitText("You stay signed in until")
	var left float64
	w.must(w.db.Get(&left, `SELECT extract(epoch FROM max(expires_at) - now())::float8 FROM sessions`))
	if left < 3600 {
		t.Errorf("the sign-in ends in %.0f s", left)
	}
}

// TestJSONFieldCopiesAndUnfolds presses the buttons below a field for JSON.
func TestJSONFieldCopiesAndUnfolds(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 3)
	b, base := w.browse(t, "ana", browser.Options{})
	b.Do("let the page read the clipboard", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{Permission: &cdpbrowser.PermissionDescriptor{Name: "clipboard-read"}, Setting: cdpbrowser.PermissionSettingGranted, Origin: base})
		return err
	}))
	b.Open(base + route.ClusterVerb(id, "reconfigure"))
	b.WaitFor(".c-editor-bar")
	const area, whole, copied = ".c-editor textarea", ".c-editor-bar button[aria-expanded]", ".c-editor-bar button[data-copy-from]"
	text := `{"a": [` + strings.Repeat("1,\n", 60) + `1]}`
	b.Do("write", chromedp.Click(chromedp.CSS(area)), chromedp.KeyEvent("a", chromedp.KeyModifiers(kb.ModifierCtrl)))
	runOn(b, `document.execCommand("insertText", false, `+strconv.Quote(text)+`)`)
	height := func() string {
		return runOn(b, `document.querySelector("`+area+`").clientHeight >= document.querySelector("`+area+`").scrollHeight`)
	}
	if height() != "false" {
		t.Fatal("the text is no longer than the field: nothing to unfold")
	}
	b.Do("expand", chromedp.Click(chromedp.CSS(whole)))
	b.WaitFor(whole + "[aria-expanded=true]")
	b.Wait("all of the text in sight", func() bool { return height() == "true" })
	if got := runOn(b, `document.querySelector("`+whole+`").textContent`); got != "Collapse" {
		t.Errorf("the button says %q", got)
	}
	if faults := b.Faults(); len(faults) != 0 {
		t.Errorf("unfolded: %q", faults)
	}
	b.Do("collapse", chromedp.Click(chromedp.CSS(whole)))
	b.Wait("the field as it was", func() bool { return height() == "false" })
	b.Do("copy", chromedp.Click(chromedp.CSS(copied)))
	b.WaitFor(copied + "[data-done]")
	b.WaitTrue("what is read aloud", `document.querySelector("#announce").textContent === "Copied the text"`)
	if got := browser.Get(b, "read the clipboard", chromedp.Evaluate[string](`navigator.clipboard.readText()`, chromedp.EvalAwaitPromise)); got != text {
		t.Errorf("the clipboard holds %.80q", got)
	}
}
