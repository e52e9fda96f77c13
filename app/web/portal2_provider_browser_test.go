//go:build browser

package web_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/provisioner/fakecloud/stack"
	"loom/views/route"
)

// openFields names the fields of an editor that are shown to be filled in.
func openFields(b *browser.Browser) []string {
	var names []string
	text := runOn(b, `JSON.stringify([...document.querySelectorAll("#editor :is(input:is([type=text], [type=password]), select, textarea)")].filter(e => e.checkVisibility() && e.getBoundingClientRect().width > 1).map(e => e.name))`)
	if err := json.Unmarshal([]byte(text), &names); err != nil {
		names = []string{err.Error()}
	}
	return names
}

// TestProviderFormFits: of an OpenStack provider at most nine fields are open on at most
// 1,400 pixels, and only those of the chosen way to sign in, with scripts and without.
func TestProviderFormFits(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]browser.Options{"scripts": {Width: 1440}, "no scripts": {Width: 1440, NoScript: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalker(t, o)
			w.withStack()
			b, hands := w.b, w.hands
			b.Open(w.server.URL + "/admin/providers/new")
			chooseType(b, hands, "openstack")
			b.WaitFor("input[name='provisioner.openstack_auth_url']")
			if !o.NoScript {
				b.Wait("the focus in the first setting", func() bool { return b.Has("input[name='provisioner.openstack_auth_url']:focus") })
			}
			fields := strings.Join(openFields(b), " ")
			if n := len(strings.Fields(fields)); n > 9 || !strings.Contains(fields, "api_password") || strings.Contains(fields, "application_credential") {
				t.Errorf("%d fields are open: %s", n, fields)
			}
			if _, bottom := boxOf(b, "body"); bottom > 1400 {
				t.Errorf("the page is %.0f px high", bottom)
			}
			if !o.NoScript { // axe is a script
				b.Inspect("the form", 390, 320)
				b.Size(1440)
			}
			hands.Choose("the other way to sign in", "input[value='Application credential']")
			b.Wait("its fields", func() bool {
				fields := strings.Join(openFields(b), " ")
				return strings.Contains(fields, "application_credential_secret") && !strings.Contains(fields, "api_user")
			})
		})
	}
}

// TestCertificateBox: the box that verifies certificates says what is stored and in force,
// through three saves; while it is off, form and page warn.
func TestCertificateBox(t *testing.T) {
	t.Parallel()
	w := newWalker(t, browser.Options{Width: 1440})
	keystone := w.withStack()
	w.v.post("/admin/providers", "body", `{"name":"stack","providertype":"openstack","provisioner":{"openstack_auth_url":"`+keystone+`","api_user":"u","api_password":"p","openstack_tenant":"lab","ssh_keypair":"k","ssh_key_resource":"lab-key"}}`).goes(t, "/admin/providers/stack")
	b, hands := w.b, w.b.PatientKeyboard(200)
	const box = "input[name='provisioner.openstack_ssl_verify_peer']"
	const atField = "While this is off: Anyone on the network path can read the credentials."
	const warning = "“Verify TLS certificates” is off"
	for n, verified := range []bool{true, false, true, false} {
		b.Open(w.server.URL + route.AdminEntryEdit(loom.KindProvider, "stack"))
		if verified {
			hands.Activate("what is advanced", ".c-settings-fold > summary")
		}
		b.WaitFor(".c-settings-fold[open] " + box)
		if got := strings.Contains(b.Text(), atField); got == verified {
			t.Errorf("before save %d the form warns: %t", n+1, got)
		}
		if got := b.Has(box + ":checked"); got != verified {
			t.Errorf("before save %d the box says %t", n+1, got)
		}
		if n == 3 {
			b.Inspect("the warning", 390, 320)
			break
		}
		hands.Fill("the box", box, " ")
		hands.Activate("replace the password", ".c-setting:has(input[name='provisioner.api_password']) summary")
		hands.Fill("the password", "input[name='provisioner.api_password']", "p")
		if verified {
			b.WaitText(warning)
		}
		hands.Activate("save", "#editor .c-actions button[data-kind=primary]")
		b.WaitText(fmt.Sprintf("Saved the provider stack as version %d.", n+2))
		stored := w.v.get("/admin/providers/stack?as=json").body
		if off := strings.Contains(stored, `"openstack_ssl_verify_peer":false`); off != verified {
			t.Errorf("save %d stored %s", n+1, stored)
		}
		if got := strings.Contains(b.Text(), warning); got != verified {
			t.Errorf("after save %d the page warns: %t", n+1, got)
		}
	}
}

// TestProviderPageSaysWhatItsFormSays: the page of a provider has the headings and labels of
// the form and no raw names, and leads to the next step and to a test.
func TestProviderPageSaysWhatItsFormSays(t *testing.T) {
	t.Parallel()
	w := newWalker(t, browser.Options{Width: 1440})
	keystone := w.withStack()
	w.v.post("/admin/providers", "body", `{"name":"stack","providertype":"openstack","fixed":["security_groups"],"provisioner":{"openstack_auth_url":"`+keystone+`","api_user":"`+stack.User+`","api_password":"`+stack.Password+`","openstack_tenant":"`+stack.Project+`","ssh_keypair":"`+stack.KeyPair+`","ssh_key_resource":"lab-key"}}`).goes(t, "/admin/providers/stack")
	b, hands := w.b, w.hands
	b.Open(w.server.URL + "/admin/providers/stack")
	text := b.TextOf("main")
	for _, said := range []string{"Credentials", "User and password", "Keystone URL", "Password", "never shown", "Network", "Machines", "SSH key", "Not tested", "users may change", "no image type uses this provider yet", "Map sizes and images"} {
		if !strings.Contains(text, said) {
			t.Errorf("the page does not say %q: %s", said, text)
		}
	}
	for _, raw := range []string{"openstack_auth_url", "api_user", "ssh_keypair", "network_ids", "security_groups"} {
		if strings.Contains(text, raw) {
			t.Errorf("the page says %s", raw)
		}
	}
	b.Inspect("the page", 390, 320)
	hands.Activate("map", "main a[href='/admin/providers/stack/test'].c-button, .c-banner a[href='/admin/providers/stack/test']")
	b.Wait("the test", func() bool { return b.URL() == w.server.URL+"/admin/providers/stack/test" })
	hands.Activate("test", "form[action='/admin/providers/stack/test'] button")
	b.WaitText("Passed")
	b.Open(w.server.URL + "/admin/providers/stack")
	b.WaitText("Passed")
}
