//go:build browser

package web_test

import (
	"testing"

	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/provisioner/provider/openstack"
	"loom/views/route"
)

// TestOpenStackForm: the form of an OpenStack provider, with its fold for a clouds.yaml,
// fits and has no faults in either color.
func TestOpenStackForm(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	check(t, r.catalog.RegisterTypes(r.ctx, []loom.PluginType{openstack.Type()}, nil))
	r.signedIn("demo", "admin").post("/admin/providers", "body", `{"name":"stack","providertype":"openstack","provisioner":{"openstack_auth_url":"https://keystone.example:5000/v3"}}`).goes(t, "/admin/providers/stack")
	b := browser.New(t, browser.Options{})
	hands := b.Keyboard()
	b.Open(r.server.URL + "/login?tenant=demo")
	hands.Fill("the user name", "input[name=user]", "admin")
	hands.Fill("the password", "input[name=password]", r.passwords["demo/admin"].Reveal())
	hands.Activate("sign in", "form[action='/login'] button[type=submit]")
	b.Wait("the home page", func() bool { return b.URL() == r.server.URL+"/" })
	b.Open(r.server.URL + route.AdminEntryEdit(loom.KindProvider, "stack"))
	b.Mouse().Activate("open the fold", "details:has(textarea[name='clouds-yaml']) > summary")
	b.Inspect("the form", 390)
}
