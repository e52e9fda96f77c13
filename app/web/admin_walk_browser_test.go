//go:build browser

package web_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"loom/app/loom"
	"loom/app/testkit/browser"
)

// walker is somebody who keeps a catalog, in a browser of his own.
type walker struct {
	*rooms
	b     *browser.Browser
	hands browser.Hands
	v     *visitor
	// scripts says whether they run.
	scripts bool
}

// newWalker signs an administrator of demo in, by keyboard where scripts run and by mouse
// where they do not.
func newWalker(t *testing.T, o browser.Options) *walker { return newWalkerOf(t, o, "demo") }

// newWalkerOf begins as the administrator of a tenant.
func newWalkerOf(t *testing.T, o browser.Options, tenant string) *walker {
	t.Helper()
	r := newRooms(t)
	check(t, r.catalog.RegisterTypes(r.ctx, []loom.PluginType{keyed()}, nil))
	w := &walker{rooms: r, b: browser.New(t, o), v: r.signedIn(tenant, "admin"), scripts: !o.NoScript}
	w.hands = w.b.PatientKeyboard(200)
	w.b.Open(r.server.URL + "/login?tenant=" + tenant)
	w.hands.Fill("the user name", "input[name=user]", "admin")
	w.hands.Fill("the password", "input[name=password]", r.passwords[tenant+"/admin"].Reveal())
	w.hands.Activate("sign in", "form[action='/login'] button[type=submit]")
	w.b.Wait("the home page", func() bool { return w.b.URL() == r.server.URL+"/" })
	return w
}

// chooseFile gives a file to a control, as a dialog of the system does.
func (w *walker) chooseFile(selector, name, content string) {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), name)
	check(w.t, os.WriteFile(path, []byte(content), 0o600))
	w.b.Do("choose "+name, chromedp.SetUploadFiles(chromedp.CSS(selector), []string{path}))
}

// looks asks for faults and overflow in both colors and three widths.
func (w *walker) looks(what string) {
	w.t.Helper()
	w.b.Inspect(what, 390, 320)
}

// chooseType chooses the type of a new provider, whose fields then come.
func chooseType(b *browser.Browser, hands browser.Hands, name string) {
	const change = "button[value='change:providertype']"
	choose := "button[value='choose:providertype." + name + "']"
	hands.Activate("change the type", change)
	b.WaitFor(choose)
	hands.Activate("choose the type", choose)
	b.WaitFor(change)
}

// TestProviderWalkedByKeyboard makes a provider with a file of its own and a field that
// users may not change, and takes over a change from the JSON beside it; nothing is
// pointed at, and nothing typed is lost on the way.
func TestProviderWalkedByKeyboard(t *testing.T) {
	t.Parallel()
	w := newWalker(t, browser.Options{})
	b, hands := w.b, w.hands
	b.Open(w.server.URL + "/admin/providers/new")
	hands.Fill("the name", "#f-name", "far")
	chooseType(b, hands, "keyed")
	b.WaitFor("input[name='provisioner.secret']")
	hands.Fill("the place", "input[name='provisioner.place']", "the moon")
	hands.Fill("the secret", "input[name='provisioner.secret']", "hush-hush")
	hands.Activate("the fold", "#f-group-provisioner-key details > summary")
	b.WaitFor("#f-group-provisioner-key details[open]")
	hands.Activate("upload nothing", "button[value='upload:provisioner.key']")
	b.WaitText("Choose the file to upload.")
	b.WaitFor("#f-group-provisioner-key details[open]")
	w.chooseFile("#f-upload-key", "id.pem", "the key itself")
	w.looks("with a fold open")
	hands.Activate("upload", "button[value='upload:provisioner.key']")
	b.WaitText("Saved version 1 of id.pem and chose it here.")
	b.WaitFor("select[name='provisioner.key'] option[value='id.pem'][selected]")
	if got := b.Value("input[name='provisioner.secret']"); got != "hush-hush" {
		t.Errorf("the secret that was typed is now %q", got)
	}
	hands.Fill("users may not", "input[name='may-override.boot']", " ")
	hands.Activate("the pane", "#json-pane > summary")
	b.WaitFor("#json-pane[open]")
	b.Wait("the pane follows", func() bool {
		text := b.Value("#f-json")
		return strings.Contains(text, "id.pem") && strings.Contains(text, `"fixed"`)
	})
	if text := b.Value("#f-json"); strings.Contains(text, "hush-hush") {
		t.Errorf("the pane says %s", text)
	}
	hands.Fill("the JSON", "#f-json", strings.Join(strings.Fields(strings.Replace(b.Value("#f-json"), "the moon", "the sun", 1)), " "))
	b.Wait("the form follows", func() bool { return b.Value("input[name='provisioner.place']") == "the sun" })
	hands.Fill("the secret", "input[name='provisioner.secret']", "hush-hush") // it is not sent back with what was taken over
	hands.Activate("what else there is", "#about details > summary")
	hands.Fill("the label", "input[name=label]", "Far away"+kb.Enter) // saves: it presses no button of a row
	b.Wait("the provider", func() bool { return b.URL() == w.server.URL+"/admin/providers/far" })
	w.v.get("/admin/providers/far?as=json").shows(t, 200, `"key":"id.pem"`, `"place":"the sun"`, `"fixed":["boot"]`, `"label":"Far away"`)
	sealed, err := w.catalog.SealedFields(w.ctx, w.v.actor("demo"), "far")
	if _, there := sealed["secret"]; err != nil || !there {
		t.Errorf("sealed: %v, %v", sealed, err)
	}
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}

// TestProviderWalkedWithoutScripts does the same with forms alone.
func TestProviderWalkedWithoutScripts(t *testing.T) {
	t.Parallel()
	w := newWalker(t, browser.Options{NoScript: true})
	b, hands := w.b, w.b.Mouse()
	b.Open(w.server.URL + "/admin/providers/new")
	hands.Fill("the name", "#f-name", "far")
	chooseType(b, hands, "keyed")
	b.WaitText("Upload a file for SSH key")
	hands.Fill("the place", "input[name='provisioner.place']", "the moon")
	hands.Fill("the secret", "input[name='provisioner.secret']", "hush-hush")
	hands.Activate("the fold", "#f-group-provisioner-key details > summary")
	w.chooseFile("#f-upload-key", "my key.pem", "the key itself")
	b.Leave(func() { hands.Activate("upload", "button[value='upload:provisioner.key']") })
	b.WaitText("The file “my key.pem” was not stored.")
	b.WaitText("Secrets are not sent back to the browser.")
	if got := b.Value("input[name='provisioner.place']"); got != "the moon" {
		t.Errorf("the place is now %q", got)
	}
	hands.Fill("another name", "#f-upload-key-as", "id.pem")
	w.chooseFile("#f-upload-key", "my key.pem", "the key itself")
	b.Leave(func() { hands.Activate("upload", "button[value='upload:provisioner.key']") })
	b.WaitText("Saved version 1 of id.pem and chose it here.")
	hands.Activate("the pane", "#json-pane > summary")
	b.Leave(func() { hands.Activate("what the form says", "button[value=show]") })
	b.Wait("the pane follows", func() bool { return strings.Contains(b.Value("#f-json"), "id.pem") })
	hands.Fill("the secret", "input[name='provisioner.secret']", "hush-hush")
	hands.Activate("users may not", "input[name='may-override.boot']")
	// The button that saves takes a file as well: it would be lost.
	hands.Activate("the fold", "#f-group-provisioner-boot details > summary")
	w.chooseFile("#f-upload-boot", "boot.tgz", string(tarOf(t, "boot/a.sh")))
	hands.Activate("create", "#editor .c-actions button[data-kind=primary]")
	b.Wait("the provider", func() bool { return b.URL() == w.server.URL+"/admin/providers/far" })
	w.v.get("/admin/providers/far?as=json").shows(t, 200, `"key":"id.pem"`, `"boot":"boot.tgz"`, `"fixed":["boot"]`)
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}

// TestDeletedAndOfferedByKeyboard brings back an entry that was deleted, and takes a size
// that a provider offers into a hardware type, without pointing.
func TestDeletedAndOfferedByKeyboard(t *testing.T) {
	t.Parallel()
	w := newWalker(t, browser.Options{})
	b, hands := w.b, w.hands
	w.v.post("/admin/hardware-types", "body", `{"name":"tiny","label":"Tiny","providermap":{"local":{"flavor":"cpu=1"}}}`).goes(t, "/admin/hardware-types/tiny")
	w.v.post("/admin/hardware-types/tiny/delete").goes(t, "/admin/hardware-types")
	b.Open(w.server.URL + "/admin/hardware-types")
	hands.Fill("what was deleted", ".c-toolbar select[name=show]", kb.End)
	b.WaitFor("a[href*='?deleted=']")
	hands.Activate("the entry", "a[href*='?deleted=']")
	b.WaitFor("#editor")
	b.Wait("its label", func() bool { return b.Value("input[name=label]") == "Tiny" })
	hands.Fill("the label", "input[name=label]", "Tiny again"+kb.Enter)
	b.Wait("the type", func() bool { return b.URL() == w.server.URL+"/admin/hardware-types/tiny" })
	w.v.get("/admin/hardware-types/tiny?as=json").shows(t, 200, `"Tiny again"`)

	w.exec(`INSERT INTO provider_requests (tenant_id, provider_name, purpose, requested_by, started_at, ended_at, probe)
		SELECT id, 'local', 'probe', 'admin', now(), now(), '{"OK": true, "Flavors": [{"id": "cpu=8", "name": "Eight", "vcpu": 8, "ram": 512}]}' FROM tenants WHERE name = 'demo'`)
	b.Open(w.server.URL + "/admin/providers/local/test")
	hands.Activate("use it", "a[aria-label='Use cpu=8']")
	b.WaitFor("dialog[open]")
	b.Do("give up", chromedp.KeyEvent(kb.Escape))
	b.WaitGone("dialog[open]")
	b.Wait("the focus is where it was", func() bool { return b.Has("a[aria-label='Use cpu=8']:focus") })
	hands.Activate("use it", "a[aria-label='Use cpu=8']")
	b.WaitFor("dialog[open]")
	w.looks("where to use a size")
	hands.Choose("in tiny", "dialog[open] input[name=type][value=tiny]")
	hands.Activate("fill it in", "dialog[open] button[type=submit][data-kind=primary]")
	b.WaitFor("#editor")
	b.Wait("the size is in the form", func() bool { return b.Value("input[name='providermap.local.flavor']") == "cpu=8" })
	hands.Activate("save", "#editor .c-actions button[data-kind=primary]")
	b.Wait("the type", func() bool { return b.URL() == w.server.URL+"/admin/hardware-types/tiny" })
	w.v.get("/admin/hardware-types/tiny?as=json").shows(t, 200, `"cpu=8"`)
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}
