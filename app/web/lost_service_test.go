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
	const cause = "The template cached names the service cache, which does not exist (any more). An administrator can make it again, or take it out of the template."
	nonsense := []string{"Cannot fit", "do not go together", `name="suggest"`}
	w.get("ana", "/clusters/new?template=cached").is(200, cause, "This service does not exist (any more).", `value="cache"`).lacks(nonsense...)
	v := createValues("shop-front", "1")
	v.Set("clusterTemplate", "cached")
	v.Set("for", "cached")
	v["services"] = []string{"nginx", "cache"}
	w.post("ana", route.ClusterCheck(), v).is(200, "Incomplete", cause).lacks(nonsense...)
	w.post("ana", route.Previews(), v).is(422, cause, `value="shop-front"`).lacks(nonsense...)
	v["services"] = []string{"nginx"}
	w.post("ana", route.ClusterCheck(), v).is(200, ">Fits<").lacks(cause)
}
