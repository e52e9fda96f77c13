package web_test

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/app/web/form"
	"loom/provisioner/automator"
	"loom/provisioner/automator/chefsolo"
	"loom/provisioner/automator/docker"
	automock "loom/provisioner/automator/mock"
	"loom/provisioner/automator/puppet"
	"loom/provisioner/automator/shell"
	"loom/provisioner/provider"
	"loom/provisioner/provider/aws"
	"loom/provisioner/provider/cloud"
	"loom/provisioner/provider/digitalocean"
	"loom/provisioner/provider/google"
	"loom/provisioner/provider/joyent"
	"loom/provisioner/provider/local"
	"loom/provisioner/provider/mock"
	"loom/provisioner/provider/openstack"
	"loom/provisioner/provider/rackspace"
	"loom/provisioner/provider/static"
	"loom/views/formview"
	"loom/views/route"
)

// everyType gives the plugin types that Loom ships, as the catalog has them.
func everyType(t *testing.T) []loom.PluginType {
	t.Helper()
	automators, err := automator.NewRegistry(chefsolo.New(), docker.New(), puppet.New(), shell.New(), automock.New())
	check(t, err)
	return append(everyProviderType(t), automators.Types()...)
}

func everyProviderType(t *testing.T) []loom.PluginType {
	t.Helper()
	o := cloud.Options{}
	providers, err := provider.NewRegistry(mock.New(), aws.New(o), digitalocean.New(o), google.New(o), joyent.New(o), openstack.New(o), rackspace.New(o), static.New(), &local.Local{})
	check(t, err)
	return providers.Types()
}

// TestSwitchesShowWhatIsInForce: every yes/no field of every type declares its default,
// and its box shows what a plugin makes of the value: of a new entry, of a stored one that
// says nothing, and of one that says it in any of the ways that are read.
func TestSwitchesShowWhatIsInForce(t *testing.T) {
	t.Parallel()
	switches := 0
	for _, made := range everyType(t) {
		for block, group := range made.Parameters {
			for name, f := range group.Fields {
				if f.Type != "checkbox" {
					continue
				}
				switches++
				usual, declared := f.Default.(bool)
				if !declared {
					t.Errorf("%s.%s of block %s has the default %v; declare true or false", made.Name, name, block, f.Default)
					continue
				}
				if f.IsMethod() {
					continue // it follows the choice of the method
				}
				for _, asText := range []bool{false, true} {
					part := form.PluginFields{Path: form.At("p"), AsText: asText, Group: loom.FieldGroup{Fields: map[string]loom.FieldSchema{name: f}}}
					for text, want := range map[string]bool{
						`{}`: usual, `{"p": {}}`: usual, `{"p": {"@": ""}}`: usual, `{"p": {"@": null}}`: usual, `{"p": {"@": true}}`: true, `{"p": {"@": "true"}}`: true,
						`{"p": {"@": "on"}}`: true, `{"p": {"@": false}}`: false, `{"p": {"@": "false"}}`: false, "new": usual,
					} {
						doc, err := form.Parse(strings.ReplaceAll(strings.Replace(text, "new", "{}", 1), "@", name))
						check(t, err)
						if text == "new" {
							part.Preset(doc)
						}
						if got := ticked(t, part, doc, name); got != want {
							t.Errorf("%s.%s, %s: the box is %t, in force is %t", made.Name, name, text, got, want)
						}
					}
				}
			}
		}
	}
	if switches < 20 {
		t.Errorf("%d switches are not all there are", switches)
	}
}

// TestSettingsHavePlaces: every field of every provider type of ours has a place, and
// what is open of each form, with the name of the provider, is nine fields at most.
func TestSettingsHavePlaces(t *testing.T) {
	t.Parallel()
	for _, made := range everyProviderType(t) {
		group := made.Parameters["admin"]
		open, orders := 1, map[int]string{}
		for _, s := range group.Sections() {
			used := group.MethodOf(s, func(string) bool { return false })
			for _, name := range s.Names {
				f := group.Fields[name]
				if f.Group == "" || f.Order == 0 || orders[f.Order] != "" {
					t.Errorf("%s.%s is under %q at %d, as does %q", made.Name, name, f.Group, f.Order, orders[f.Order])
				}
				orders[f.Order] = name
				if s.Title != loom.SectionAdvanced && (f.Method == "" || f.Method == used) {
					open++
				}
			}
		}
		if open > 9 {
			t.Errorf("%s: %d fields are open", made.Name, open)
		}
	}
}

// ticked reports whether the box of a switch is.
func ticked(t *testing.T, part form.Part, doc *form.Doc, name string) bool {
	t.Helper()
	var b strings.Builder
	shown := form.Form{Sections: []form.Section{{ID: "s", Title: "S", Parts: []form.Part{part}}}}.Show(doc, "/step", "", nil, form.Result{})
	check(t, formview.Sections(shown.Sections).Render(context.Background(), &b))
	return testkit.FormValues(t, "<form id=f>"+b.String()+"</form>", "f").Get("p."+name) == "true"
}

// TestCertificateSwitch: the box says what is done, through three saves.
func TestCertificateSwitch(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	check(t, r.catalog.RegisterTypes(r.ctx, []loom.PluginType{openstack.Type()}, nil))
	v := r.signedIn("demo", "admin")
	const box = "provisioner.openstack_ssl_verify_peer"
	in := func(page answer) url.Values { return testkit.FormValues(t, page.body, "editor") }
	page := v.send("/admin/providers/new", editorOf(t, v.get("/admin/providers/new"), "do", "refresh:", "name", "stack", "providertype", "openstack")).shows(t, 200)
	values := in(page)
	if values.Get(box) != "true" {
		t.Error("a new provider does not check certificates")
	}
	values.Del(box)
	for name, value := range map[string]string{"api_user": "u", "api_password": "p", "openstack_tenant": "lab", "openstack_auth_url": "https://keystone.example:5000/v3", "ssh_keypair": "k", "ssh_key_resource": "k"} {
		values.Set("provisioner."+name, value)
	}
	values.Set("do", "save")
	v.send("/admin/providers", values).goes(t, "/admin/providers/stack")
	edit := route.AdminEntryEdit(loom.KindProvider, "stack")
	for n, want := range []string{"", "true", ""} {
		stored := v.get("/admin/providers/stack?as=json").body
		values := in(v.get(edit).shows(t, 200))
		if values.Get(box) != want || strings.Contains(stored, fmt.Sprintf(`"openstack_ssl_verify_peer":%t`, want != "true")) {
			t.Errorf("save %d: the box says %q of %s", n, values.Get(box), stored)
		}
		if want == "" {
			values.Set(box, "true")
		} else {
			values.Del(box)
		}
		values.Set("provisioner.api_password", "p")
		values.Set("do", "save")
		v.send("/admin/providers/stack", values).goes(t, "/admin/providers/stack")
	}
}

var plainError = regexp.MustCompile(`(?s)provisioner\.openstack_auth_url.*?Use https://`)

// TestPlainHTTP: an address without HTTPS is an error of its field, in the form and over
// REST, unless the operator allows it.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	check(t, r.catalog.RegisterTypes(r.ctx, []loom.PluginType{openstack.Type()}, nil))
	v := r.signedIn("demo", "admin")
	const body = `{"name":"stack","providertype":"openstack","provisioner":{"openstack_auth_url":"http://keystone.example:5000/v3"}}`
	page := v.post("/admin/providers", "body", body).shows(t, 422)
	if !plainError.MatchString(page.body) {
		t.Error("the error is not at its field")
	}
	r.catalog.PlainHTTP = true
	v.post("/admin/providers", "body", body).goes(t, "/admin/providers/stack")
}
