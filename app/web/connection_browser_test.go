//go:build browser

package web_test

import (
	"strings"
	"testing"

	"loom/app/testkit/browser"
	"loom/provisioner/fakecloud/stack"
)

// TestConnectionByKeyboard tests what is typed before it is saved: steps come as they end,
// what the cloud has becomes choices of the fields, and nothing typed is lost.
func TestConnectionByKeyboard(t *testing.T) {
	t.Parallel()
	w := newWalker(t, browser.Options{})
	keystone := w.withStack()
	b, hands := w.b, w.b.PatientKeyboard(200)
	picture := func(name string) {
		t.Helper()
		b.Inspect(name, 390)
	}
	test := "button[formaction='/admin/tests']"
	b.Open(w.server.URL + "/admin/providers/new")
	hands.Fill("the name", "#f-name", "stack")
	chooseType(b, hands, "openstack")
	b.WaitFor("input[name='provisioner.openstack_auth_url']")
	for _, f := range [][2]string{{"openstack_auth_url", "http://127.0.0.1:1/v3"}, {"api_user", stack.User}, {"api_password", stack.Password}, {"openstack_tenant", stack.Project}} {
		hands.Fill(f[0], "input[name='provisioner."+f[0]+"']", f[1])
	}
	hands.Activate("test", test)
	b.WaitText("connection refused")
	picture("refused")
	hands.Fill("the address", "input[name='provisioner.openstack_auth_url']", keystone)
	hands.Activate("test", test)
	b.WaitText("Passed")
	b.WaitFor("#f-provisioner-ssh_keypair-list option[value='" + stack.KeyPair + "']")
	b.WaitFor("#f-provisioner-network_ids-list option[value='" + stack.LabNet + "']")
	if got := b.Value("input[name='provisioner.api_password']"); got != stack.Password {
		t.Errorf("the password that was typed is now %q", got)
	}
	picture("passed")
	hands.Fill("the key pair", "input[name='provisioner.ssh_keypair']", stack.KeyPair)
	hands.Fill("the key", "input[name='provisioner.ssh_key_resource']", "lab-key")
	hands.Activate("test", test)
	b.WaitText("which fits the private key")
	hands.Activate("save", "#editor .c-actions button[data-kind=primary]")
	b.WaitTrue("the provider", `location.pathname === "/admin/providers/stack" && document.readyState === "complete"`)
	b.Open(w.server.URL + "/admin/providers/stack/test")
	b.WaitText("Passed") // the test before saving
	b.Leave(func() { hands.Activate("test", "form[action='/admin/providers/stack/test'] button") })
	b.WaitText("Passed")
	b.Wait("the sizes, or the way to them", func() bool { // the page that was sent has them at once where the test was quick
		text := b.Text()
		return strings.Contains(text, "Show sizes and images") || strings.Contains(text, "Sizes, for hardware types")
	})
	b.Open(w.server.URL + "/admin/providers/stack/test")
	b.WaitText("Sizes, for hardware types")
	picture("page")
	b.Open(w.server.URL + "/admin/providers")
	b.WaitText("Passed")
	picture("list")
	b.Open(w.server.URL + "/admin/providers/stack/edit")
	b.WaitFor("#f-provisioner-ssh_keypair-list option[value='" + stack.KeyPair + "']")
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}
