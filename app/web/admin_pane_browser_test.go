//go:build browser

package web_test

import (
	"strings"
	"testing"

	"loom/app/testkit/browser"
)

// TestJSONPaneFollows types into the form and sees the JSON follow, and the other way
// round.
func TestJSONPaneFollows(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	b := browser.New(t, browser.Options{})
	hands := b.Mouse()
	b.Open(r.server.URL + "/login?tenant=demo")
	hands.Fill("the user name", "input[name=user]", "admin")
	hands.Fill("the password", "input[name=password]", r.passwords["demo/admin"].Reveal())
	hands.Activate("sign in", "form[action='/login'] button[type=submit]")
	b.Wait("the home page", func() bool { return b.URL() == r.server.URL+"/" })
	b.Open(r.server.URL + "/admin/services/new")
	hands.Activate("the pane", "#json-pane > summary")
	b.WaitFor("#json-pane[open]")
	hands.Fill("the name", "input[name=name]", "piped")
	b.Wait("the pane follows", func() bool { return strings.Contains(b.Value("#f-json"), `"name": "piped"`) })
	hands.Activate("what it provides", "#dependencies .c-folds > details:first-child > summary")
	b.WaitFor("#dependencies .c-folds > details:first-child[open]")
	hands.Fill("the JSON", "#f-json", `{"name":"piped","label":"By JSON","provisioner":{"actions":{"start":{"type":"shell","fields":{"script":"x.sh"}}}}}`)
	b.Wait("the form follows", func() bool { return b.Value("input[name=label]") == "By JSON" })
	b.WaitGone("input[name='provisioner.actions.install.fields.script']")
	b.WaitFor("#dependencies .c-folds > details:first-child[open]")
	hands.Fill("broken JSON", "#f-json", `{"name":`)
	b.WaitFor("#json-said .c-error")
	if got := b.Value("input[name=label]"); got != "By JSON" {
		t.Errorf("the form says %q", got)
	}
	hands.Fill("the JSON again", "#f-json", `{"name":"piped","label":"In the end"}`)
	b.Wait("the form follows again", func() bool { return b.Value("input[name=label]") == "In the end" })
	hands.Fill("the description", "textarea[name=description]", "By the form")
	b.Wait("the pane follows again", func() bool { return strings.Contains(b.Value("#f-json"), "By the form") })
	b.Inspect("the form and its JSON", 390, 320)
	hands.Activate("create", "#editor .c-actions button[data-kind=primary]")
	b.WaitText("Saved the service piped as version 1.")
	v.get("/admin/services/piped?as=json").shows(t, 200, "In the end", "By the form")
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}
