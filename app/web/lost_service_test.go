package web_test

import (
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/views/route"
)

// A form for a template that names a deleted service says that, and nothing else: in
// the page, beside it, and when a preview is asked for. The service stays ticked, so
// that it can be taken out.
func TestLostServiceInTheForm(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.must(w.catalog.Delete(w.ctx, loom.SystemActor(w.tenant.ID, w.tenant.Name), loom.KindService, "cache", 0))
	template := webTemplate()
	template.Name, template.Defaults.Services = "cached", []string{"nginx", "cache"}
	_, _, err := w.catalog.Save(w.ctx, loom.SystemActor(w.tenant.ID, w.tenant.Name), loom.KindTemplate, catalog.SaveInput{Entry: template})
	w.must(err)
	const cause = "The template cached uses the service cache, which does not exist. An administrator can create it, or remove it from the template."
	nonsense := []string{"Cannot fit", "do not go together", `name="suggest"`}
	w.get("ana", "/clusters/new?template=cached").is(200, cause, "This service does not exist.", `value="cache"`).lacks(nonsense...)
	v := createValues("shop-front", "1")
	v.Set("clusterTemplate", "cached")
	v.Set("for", "cached")
	v["services"] = []string{"nginx", "cache"}
	w.post("ana", route.ClusterCheck(), v).is(200, "Incomplete", cause).lacks(nonsense...)
	w.post("ana", route.Previews(), v).is(422, cause, `value="shop-front"`).lacks(nonsense...)
	v["services"] = []string{"nginx"}
	w.post("ana", route.ClusterCheck(), v).is(200, ">Fits<").lacks(cause)
}

// The form of a service names the templates and services that saving it would break, in
// the check beside it and with the order preview, whatever template that is for.
func TestWhatAnEditBreaks(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	for _, body := range []string{`{"name":"db","dependencies":{"provides":["store"]}}`, `{"name":"shop","dependencies":{"runtime":{"requires":["store"]}}}`} {
		v.post("/admin/services", "body", body)
	}
	v.post("/admin/templates", "body", `{"name":"site","defaults":{"provider":"local","services":["db","shop"]}}`).goes(t, "/admin/templates/site")
	lost := []string{"Others that this breaks", `href="/admin/services/shop/edit"`, "There is no service “store”, nor one that provides it.", `href="/admin/templates/site/edit"`, "Its service “shop” could no longer be in a cluster."}
	const edit, check = "/admin/services/db/edit", "/validate/services"
	v.post(check, "body", `{"name":"db"}`, "expected", "1", "entry", "db").shows(t, 200, lost...)
	v.post(check, "body", `{"name":"db","label":"Still","dependencies":{"provides":["store"]}}`, "expected", "1", "entry", "db").shows(t, 200, "Ready to save").hides(t, lost[0])
	v.post(check, "body", `{"name":"db2"}`).shows(t, 200).hides(t, lost[0])
	page := v.post(edit, "body", `{"name":"db"}`, "expected", "1", "do", "form").shows(t, 200, "Show the order")
	v.send(edit, press(t, page, "order:order")).shows(t, 200, lost[:4]...)
	v.send(edit, press(t, page, "discard")).goes(t, edit)
	values := press(t, v.get(edit), "order:order")
	values.Set("order.template", "site")
	v.send(edit, values).shows(t, 200).hides(t, lost[0])
}
