//go:build browser

package web_test

import (
	"testing"

	"loom/app/testkit/browser"
	"loom/views/route"
)

// TestSettingsByKeyboard creates a cluster with a setting wrong, then right, without a mouse:
// the error comes to the field while it is typed, and nothing that is typed is lost.
func TestSettingsByKeyboard(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.withSettings()
	b, base := w.browse(t, "ana", browser.Options{})
	keys := b.Keyboard()
	b.Open(base + "/clusters/new?template=web-cluster")
	b.WaitFor("#keys[data-ready]")
	if b.Has("#f-setting-web-title-error") {
		t.Error("a field that nobody has come to has an error")
	}
	keys.Fill("the PIN", "#f-setting-web-pin", "planted-marker-24")
	keys.Fill("the workers", "#f-setting-web-workers", "12")
	b.WaitFor("#f-setting-web-workers-error")
	if got := b.Value("#f-setting-web-pin"); got != "planted-marker-24" {
		t.Errorf("the PIN became %q", got)
	}
	keys.Activate("preview", "#main form .c-form-bar button")
	b.Wait("the focus on the title, which is missing", focused(b, "#f-setting-web-title"))
	keys.Fill("the title", "#f-setting-web-title", "Blog")
	keys.Activate("preview", "#main form .c-form-bar button")
	b.WaitFor(".c-summary a[href='#f-setting-web-workers']")
	if faults := b.Faults(); len(faults) != 0 {
		t.Errorf("faults %q", faults)
	}
	b.WaitFor("#keys[data-ready]")
	keys.Fill("the workers", "#f-setting-web-workers", "3")
	b.WaitGone("#f-setting-web-workers-error")
	b.WaitText("Fits")
	keys.Activate("preview", "#main form .c-form-bar button")
	b.WaitText("Create web-cluster-ana-1?")
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}

// TestSettingsOfATickedService: ticking a service brings its fields.
func TestSettingsOfATickedService(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.withSettings()
	b, base := w.browse(t, "ana", browser.Options{})
	b.Open(base + "/clusters/new?for=web-cluster&clusterTemplate=web-cluster&name=shop&numMachines=1&servicesShown=1&services=haproxy&advanced=1&config=%7B%7D")
	b.WaitFor("#keys[data-ready]")
	if b.Has("#f-setting-web-title") {
		t.Error("the fields of a service that is not chosen are there")
	}
	b.Mouse().Activate("nginx", "input[name=services][value=nginx]")
	b.WaitFor("#f-setting-web-title")
	if got := b.Value("#f-setting-web-workers"); got != "2" {
		t.Errorf("the default of the workers is %q", got)
	}
	if n := runOn(b, `document.querySelectorAll("[name=config]").length`); n != "1" {
		t.Errorf("the config is in the form %s times", n)
	}
}

// TestSettingsWithoutScripts does the same with forms alone, and changes a setting later.
func TestSettingsWithoutScripts(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.withSettings()
	b, base := w.browse(t, "ana", browser.Options{NoScript: true})
	hands := b.Mouse()
	b.Open(base + "/clusters/new?template=web-cluster")
	hands.Fill("the title", "#f-setting-web-title", "A title that is far too long")
	hands.Activate("preview", "#main form .c-form-bar button")
	b.WaitText("at most 20 characters")
	hands.Fill("the title", "#f-setting-web-title", "Blog")
	hands.Activate("preview", "#main form .c-form-bar button")
	b.WaitText("Create web-cluster-ana-1?")

	b.Open(base + route.ClusterVerb(w.made("shop"), "reconfigure"))
	hands.Activate("JSON", "button[value=edit-json]")
	b.WaitFor("textarea[name=config]")
	hands.Activate("fields", "button[value=edit-fields]")
	hands.Fill("the title", "#f-setting-web-title", "News")
	hands.Activate("preview", "#main form .c-form-bar button")
	b.WaitText("/web/title")
}
