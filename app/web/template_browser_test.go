//go:build browser

package web_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"loom/app/testkit/browser"
)

// TestNewTemplateByKeyboard writes a template with forms alone, tries it and previews a
// cluster of it, without pointing.
func TestNewTemplateByKeyboard(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	stackServices(r.signedIn("demo", "admin"))
	b := browser.New(t, browser.Options{})
	hands := b.Keyboard()
	b.Open(r.server.URL + "/login?tenant=demo")
	hands.Fill("the user name", "input[name=user]", "admin")
	hands.Fill("the password", "input[name=password]", r.passwords["demo/admin"].Reveal())
	hands.Activate("sign in", "form[action='/login'] button[type=submit]")
	b.Wait("the home page", func() bool { return b.URL() == r.server.URL+"/" })
	look := func(what string) {
		t.Helper()
		b.Inspect(what)
	}
	tab := func(name, shows string) {
		t.Helper()
		hands.Activate("the tab "+name, "button[formaction$='tab="+name+"']")
		b.WaitFor("button[formaction$='tab=" + name + "'][aria-current]")
		b.WaitFor(shows)
	}
	b.Open(r.server.URL + "/admin/templates/new")
	hands.Fill("the name", "input[name=name]", "shop")
	hands.Fill("the lease", "input[name='administration.leaseduration.initial']", "7d")
	look("general")
	tab("compatibility", "input[name='compatibility.services']")
	for _, service := range []string{"app", "front"} {
		hands.Fill("the service "+service, "input[name='compatibility.services'][value='"+service+"']", " ")
	}
	b.WaitText("Add required services")
	hands.Activate("what they require", "button[value='require:compatibility.services']")
	b.WaitText("tick mysql or pg")
	hands.Fill("a database", "input[name='compatibility.services'][value='pg']", " ")
	look("compatibility")
	tab("defaults", "input[name='defaults.services']")
	for _, service := range []string{"app", "base", "front", "java", "pg"} {
		hands.Fill("the service "+service, "input[name='defaults.services'][value='"+service+"']", " ")
	}
	hands.Fill("the provider", "select[name='defaults.provider']", kb.ArrowDown)
	look("defaults")
	tab("constraints", "[data-cell]")
	hands.Fill("a pair", "#matrix-0-1", kb.ArrowRight+"m")
	b.WaitFor("[data-mark=must] #matrix-0-2")
	hands.Fill("the same pair", "[data-cell]:focus", "c")
	b.WaitFor("[data-mark=cant] #matrix-0-2")
	b.WaitText("No node has both app and front.")
	look("constraints")
	tab("try", "#trial .c-sizes")
	b.WaitText("Working sizes")
	look("try")
	hands.Activate("save", ".c-actions button[data-kind=primary]")
	b.WaitText("Saved the template shop")
	b.Open(r.server.URL + "/clusters/new?template=shop")
	b.WaitText("Fits")
	hands.Activate("preview", ".c-actions button[data-kind=primary]")
	b.Wait("the preview", func() bool { return strings.Contains(b.URL(), "/previews/") })
	b.WaitFor(".c-effects li")
	look("preview")
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}
