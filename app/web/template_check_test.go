package web_test

import (
	"context"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/views/route"
)

// The check of a template is in the page at once, on every tab, and counts mistakes on
// the tabs where they are; so does a check while one types.
func TestCheckStaysOnEveryTab(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	stackServices(v)
	v.post("/admin/templates", "body", gapsTemplate).goes(t, "/admin/templates/gaps")
	const edit, waits = "/admin/templates/gaps/edit", "Loom checks the draft while you type"
	v.get("/admin/templates/new").shows(t, 200, waits)
	for _, tab := range []string{"", "/general", "/compatibility", "/defaults", "/constraints", "/includes", "/try"} {
		page := v.get(edit+tab).shows(t, 200, "Ready to save").hides(t, waits, "1 error")
		v.send(edit+"/general", press(t, page, "tab:")).shows(t, 200, "Ready to save").hides(t, waits)
	}
	page := v.get(edit + "/constraints")
	values := press(t, page, "tab:")
	values.Set("constraints.size.min", "12")
	page = v.send(edit+"/defaults", values).shows(t, 200, "1 error:", "The maximum (9) is below the minimum (12).", "1 error",
		`formaction="/admin/templates/gaps/edit/constraints#`).hides(t, waits, "Ready to save")
	values = press(t, page, "")
	v.send(route.AdminValidate(loom.KindTemplate), values).shows(t, 200, "1 error:", `id="tab-errors-constraints" hx-swap-oob="true"`, "1 error").hides(t, "<html")
	values.Set("base", strings.Replace(values.Get("base"), `"min": 12`, `"min": 2`, 1))
	v.send(route.AdminValidate(loom.KindTemplate), values).shows(t, 200, "Ready to save", `id="tab-errors-constraints" hx-swap-oob="true"`).hides(t, "1 error")
	// A part of the page does not ask again: the page around it does.
	v.send(edit+"/defaults", press(t, page, "tab:"), "HX-Request", "true", "HX-Target", "default-services").hides(t, "1 error:")
	v.post("/admin/partials", "body", `{"name":"part","defaults":{"services":["none-such"]}}`).goes(t, "/admin/partials/part")
	v.get("/admin/partials/part/edit").shows(t, 200, "Ready to save", "Warning:").hides(t, waits)
}

// A template that names a deleted service is not tried, and has no order of actions: the
// service is named, with links to where that is mended.
func TestMissingServicesAreNamed(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	stackServices(v)
	v.post("/admin/templates", "body", gapsTemplate).goes(t, "/admin/templates/gaps")
	page := v.get("/admin/templates/gaps/edit/try").shows(t, 200, "Working sizes")
	remove := func(name string) {
		check(t, r.catalog.Delete(context.Background(), v.actor("demo"), loom.KindService, name, 0))
	}
	remove("pg")
	nonsense := []string{"Cannot fit", "No layout", "Working sizes"}
	const named, link = "uses the service pg, which does not exist.", `href="/admin/services/new?name=pg"`
	v.get("/admin/templates/gaps/try").shows(t, 200, "Something that it needs is missing", "The template gaps "+named, link, `href="/admin/templates/gaps/edit/defaults"`).hides(t, nonsense...)
	v.get("/admin/templates/gaps/try?try.chosen=1&try.services=front&try.services=base").shows(t, 200, "Working sizes").hides(t, named)
	v.send("/admin/templates/gaps/edit/try", press(t, page, "try:")).shows(t, 200, "The template "+named, link).hides(t, nonsense...)
	page = v.send("/admin/templates/gaps/edit/try", press(t, page, "try:")).shows(t, 200, "Take pg out of the template")
	taken := press(t, page, "")
	taken.Set("try.apply", `{"defaults":{"services":["front","base"]},"compatibility":{"services":["front","base"]}}`)
	v.send("/admin/templates/gaps/edit/try", taken).shows(t, 200, "Working sizes").hides(t, named)
	v.get("/admin/services/front?template=gaps").shows(t, 200, "There is no plan for a cluster of gaps", named, link).hides(t, "order-stages", "No cluster of gaps can have it")
	v.get("/admin/services/new?name=pg").shows(t, 200, `value="pg"`, `data-dirty="1"`)
	v.get("/admin/services/new?name=a%20b").shows(t, 200).hides(t, `data-dirty="1"`)

	// What a service requires and nobody offers is told with the service.
	v.post("/admin/templates", "body", `{"name":"apps","defaults":{"services":["app","base"],"provider":"local"}}`).goes(t, "/admin/templates/apps")
	remove("java")
	remove("mysql")
	v.get("/admin/templates/apps/try").shows(t, 200, "The service app requires java, which does not exist", "The service app requires database, which", `href="/admin/services/app/edit"`, `href="/admin/services/new?name=java"`).hides(t, nonsense...)
	v.get("/admin/services/app?template=apps").shows(t, 200, "The service app requires java").hides(t, `href="/admin/services/app/edit">Edit the service`)
}
