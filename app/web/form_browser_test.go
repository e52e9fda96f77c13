//go:build browser

package web_test

import (
	"strings"
	"testing"

	"loom/app/testkit/browser"
)

// TestFormByKeyboard makes a hardware type with scripts, by keyboard: rows come and go
// without the rest of the form being touched, the draft is checked and kept, and the
// form has no faults in either colours.
func TestFormByKeyboard(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.post("/admin/providers", "body", `{"name":"far.away","label":"Far","providertype":"cloudy","provisioner":{"region":"r","access":"x"}}`).goes(t, "/admin/providers/far.away")
	b := browser.New(t, browser.Options{})
	hands := b.Keyboard()
	b.Open(r.server.URL + "/login?tenant=demo")
	hands.Fill("the user name", "input[name=user]", "admin")
	hands.Fill("the password", "input[name=password]", r.passwords["demo/admin"].Reveal())
	hands.Activate("sign in", "form[action='/login'] button[type=submit]")
	b.Wait("the home page", func() bool { return b.URL() == r.server.URL+"/" })

	b.Open(r.server.URL + "/admin/hardware-types/new")
	hands.Fill("the name", "#f-name", "local-large")
	hands.Fill("the label", "#f-label", "Typed before")
	b.WaitText("There is a hardware type “local-large” already")
	hands.Fill("the name", "#f-name", "huge")
	hands.Activate("add a provider", "button[value='add:providermap']")
	b.WaitFor("input[name='providermap.far.away.flavor']")
	b.Wait("the new row has the focus", func() bool { return b.Has("input[name='providermap.far.away.flavor']:focus") })
	hands.Fill("the flavor", "input[name='providermap.far.away.flavor']", "xxl")
	hands.Activate("remove a provider", "button[value='remove:providermap.local']")
	b.WaitGone("input[name='providermap.local.flavor']")
	if !b.Has("input[name='providermap.far.away.flavor'][value='xxl']") {
		t.Error("what was typed is gone from the row that stayed")
	}
	b.WaitText("Ready to save")
	b.Inspect("the form", 390, 320)
	hands.Activate("save", "#editor .c-actions button[data-kind=primary]")
	b.Wait("the new type", func() bool { return b.URL() == r.server.URL+"/admin/hardware-types/huge" })
	if got := v.get("/admin/hardware-types/huge?as=json").body; !strings.Contains(got, `"Typed before"`) || !strings.Contains(got, `"xxl"`) || strings.Contains(got, `"local"`) {
		t.Errorf("stored is %s", got)
	}
	// Another type of provider has other fields.
	b.Open(r.server.URL + "/admin/providers/new")
	hands.Fill("the name", "#f-name", "near")
	chooseType(b, hands, "cloudy")
	b.WaitFor("input[name='provisioner.access']")
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}
