package web_test

import (
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/automator/shell"
	"loom/views/route"
)

// Nothing is a mistake before its field was left; what is missing is told once, by name.
func TestNothingScoldsBeforeAFieldWasLeft(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	check(t, r.catalog.RegisterTypes(r.ctx, nil, []loom.PluginType{shell.New().Type()}))
	v := r.signedIn("demo", "admin")
	verdict := route.AdminValidate(loom.KindService)
	page := v.get("/admin/services/new")
	values := press(t, page, "")
	values.Set("label", "A letter")
	values.Set("left", "f-label")
	v.send(verdict, values).shows(t, 200, "Still needed: ", `<a href="#f-name">Name</a>`).hides(t, "error:", "is required", "Ready to save")
	// A name that is not right yet is no mistake while it is typed, and one behind it.
	values.Set("name", "my web")
	v.send(verdict, values).shows(t, 200, "Still needed: ", `<a href="#f-name">Name</a>`).hides(t, "error:")
	values.Set("left", "f-label f-name")
	v.send(verdict, values).shows(t, 200, "1 error:", "This name has a space").hides(t, `<a href="#f-name">Name</a>`)
	v.post("/admin/services", "body", `{"name":"taken"}`)
	values.Set("name", "taken")
	values.Set("left", "f-label")
	v.send(verdict, values).shows(t, 200).hides(t, "already; choose another name")
	values.Set("left", "f-label f-name")
	v.send(verdict, values).shows(t, 200, "already; choose another name")
	// What several actions lack is one line, and no warning.
	values.Set("name", "my-web")
	answer := v.send(verdict, values).shows(t, 200, "Still needed: ", "Script of install, configure, start and stop").hides(t, "error:", "Ready to save", "Warning:", "is incomplete")
	if n := strings.Count(answer.body, "Script of"); n != 1 {
		t.Errorf("the script is asked for %d times", n)
	}
	// Whoever presses Save has been everywhere.
	page = v.send("/admin/services", press(t, page, "")).shows(t, 422, "A name is required.", `name="left" value="*"`)
	v.send(verdict, press(t, page, "")).shows(t, 200, "5 errors:").hides(t, `<a href="#f-name">Name</a>`, "Warning:", "is incomplete")
	// Without scripts nobody says what was left.
	page = v.get("/admin/templates/new")
	v.send("/admin/templates/new", press(t, page, "refresh:x")).shows(t, 200).hides(t, "1 error")
}

// The title of a fold says what was picked in it: in the check while it is open, and in
// the page that comes back without scripts.
func TestFoldTitlesFollow(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	page := v.get("/admin/services/new").shows(t, 200, "Services: none", "Provides: none")
	values := press(t, page, "")
	values["relation.dependencies.install.requires"] = []string{"nginx", "haproxy"}
	values.Set("dependencies.provides+", "front")
	v.send(route.AdminValidate(loom.KindService), values).shows(t, 200, `<span id="f-fold-dependencies" hx-swap-oob="true">Services: install requires haproxy, nginx</span>`,
		`<span id="f-fold-dependencies-provides" hx-swap-oob="true">Provides: front</span>`)
	v.send("/admin/services", values).shows(t, 422, "Services: install requires haproxy, nginx", "Provides: front")
	values.Set("do", "refresh:picture")
	v.send("/admin/services/new", values).shows(t, 200, "Services: install requires haproxy, nginx")
}
