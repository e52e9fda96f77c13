package web_test

import (
	"net/url"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/provisioner/provider/openstack"
	"loom/views/route"
)

const cloudsYAML = `# from the dashboard
clouds:
  lab:
    auth:
      auth_url: https://keystone.lab.example:5000/v3
      username: "ana"
      password: planted-s3cret
      project_name: lab
      user_domain_name: People
      project_domain_id: default
    region_name: RegionTwo
    verify: false
    interface: public
    identity_api_version: 3
  other:
    auth_type: v3applicationcredential
    auth: {auth_url: https://other.example/v3, application_credential_id: a1, application_credential_secret: planted-t0ken}
`

// TestCloudsYAML: a pasted clouds.yaml fills in the settings of an OpenStack; what cannot
// be taken is said at it; its secrets are never shown.
func TestCloudsYAML(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	check(t, r.catalog.RegisterTypes(r.ctx, []loom.PluginType{openstack.Type()}, nil))
	v := r.signedIn("demo", "admin")
	fresh := func(name string) url.Values {
		page := v.send("/admin/providers/new", editorOf(t, v.get("/admin/providers/new"), "do", "refresh:", "name", name, "providertype", "openstack")).shows(t, 200, "Fill in from a clouds.yaml")
		values := testkit.FormValues(t, page.body, "editor")
		values.Set("provisioner.ssh_keypair", "k")
		values.Set("provisioner.ssh_key_resource", "k")
		values.Set("do", "save")
		return values
	}
	for text, says := range map[string]string{
		"clouds: [": "This is no clouds.yaml", "openrc: 1": "This is no clouds.yaml", cloudsYAML: "The file has the clouds lab, other.",
		strings.Repeat("# planted-s3cret\n", 1<<13):                                                                             "longer than 64 KiB",
		"clouds: {lab: {auth: {password: planted-s3cret}}}":                                                                     "has no auth_url",
		"clouds: {lab: {auth: {auth_url: https://a, user_domain_id: 7f3a, password: planted-s3cret}}}":                          "a domain by its id (user_domain_id)",
		"a: &a [x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a]\nclouds: [*b, *b, *b, *b, *b]":                                    "This is no clouds.yaml",
		"clouds: {lab: {auth: {auth_url: 'http://keystone.lab.example:5000/v3', username: u, password: p, project_name: lab}}}": "Use https://",
	} {
		values := fresh("stack")
		values.Set("clouds-yaml", text)
		v.send("/admin/providers", values).shows(t, 422, says).hides(t, "planted")
	}
	values := fresh("stack")
	values.Set("clouds-yaml", cloudsYAML)
	values.Set("clouds-name", "lab")
	v.send("/admin/providers", values).goes(t, "/admin/providers/stack")
	v.get("/admin/providers/stack?as=json").shows(t, 200, `"openstack_auth_url":"https://keystone.lab.example:5000/v3"`, `"api_user":"ana"`, `"openstack_tenant":"lab"`,
		`"openstack_user_domain":"People"`, `"openstack_project_domain":"Default"`, `"openstack_region":"RegionTwo"`, `"openstack_ssl_verify_peer":false`, `"sealed":["api_password"]`).hides(t, "planted")
	edit := v.get(route.AdminEntryEdit(loom.KindProvider, "stack")).shows(t, 200, "Fill in from a clouds.yaml").hides(t, "planted")
	values = testkit.FormValues(t, edit.body, "editor")
	values.Set("clouds-yaml", cloudsYAML)
	values.Set("clouds-name", "other")
	values.Set("provisioner.api_password", "p") // its address moves
	values.Set("do", "save")
	v.send("/admin/providers/stack", values).goes(t, "/admin/providers/stack")
	v.get("/admin/providers/stack?as=json").shows(t, 200, `"openstack_auth_url":"https://other.example/v3"`, `"application_credential_id":"a1"`, `application_credential_secret`).hides(t, "planted")
}
