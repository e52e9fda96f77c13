package web_test

import (
	"strings"
	"testing"

	"loom/app/loom"
)

// store puts an entry into the catalog of the demo tenant.
func (r *rooms) storeService(body string) {
	r.t.Helper()
	v := r.signedIn("demo", "admin")
	if a := v.post("/admin/services", "body", body); a.status != 303 {
		r.t.Fatalf("%s was not stored: %d %s", body, a.status, a.body)
	}
}

func TestServicePictures(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin, user := r.signedIn("demo", "admin"), r.signedIn("demo", "user")

	user.get("/catalog/services/counter-front").shows(t, 200, "Dependencies", "<svg", `role="group"`, "<title", "Table",
		`href="/catalog/services/counter-app"`, `class="dag-edge tie is-`, "Direct relations").hides(t, "style=", "Open in admin", "/admin/")
	user.get("/catalog/services/counter-front?hops=2").shows(t, 200, "redis-primary")
	user.get("/catalog/services/counter-front?hops=9").shows(t, 200, "counter-app")
	user.get("/catalog/services/counter-front?as=json").shows(t, 200, `"name":"counter-front"`)
	user.get("/catalog/services/none").shows(t, 404, "There is no service")
	user.get("/catalog/visit-counter").shows(t, 200, "Dependencies", `href="/catalog/services/counter-front"`, "in a new cluster")

	admin.get("/catalog/services/nginx").shows(t, 200, `href="/admin/services/nginx"`)
	admin.get("/admin/services/counter-front").shows(t, 200, `href="/admin/services/counter-app"`, "When its actions run", `<option value="visit-counter"`).hides(t, "Stages of a new cluster")
	admin.get("/admin/templates/visit-counter").shows(t, 200, "Dependencies", `href="/admin/services/counter-front"`)
	page := admin.get("/admin/services/counter-front?template=visit-counter").shows(t, 200, "Stages of a new cluster of visit-counter", "bootstrap")
	for _, action := range []string{"install", "configure", "start"} {
		if !strings.Contains(page.body, ">"+action+"</") && !strings.Contains(page.body, "<span>"+action) {
			t.Errorf("the order does not show %s of the service", action)
		}
	}
	admin.get("/admin/services/counter-front?template=redis-replicated").shows(t, 200, "does not allow all of these services yet", "Added because it is required")
	admin.get("/admin/services/counter-front?template=none").shows(t, 200, "There is no template")
}

func TestCirclesAreDrawnAndNamed(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	for _, body := range []string{
		`{"name":"left","dependencies":{"runtime":{"requires":["right"]}}}`,
		`{"name":"right","dependencies":{"provides":["hand"],"conflicts":["nginx"],"runtime":{"uses":["left","ghost"]}}}`,
	} {
		r.storeService(body)
	}
	v := r.signedIn("demo", "user")
	v.get("/catalog/services/left").shows(t, 200, "wait for each other in a circle when they start and stop: left → right → left", "is-circle").hides(t, "ghost")
	v.get("/catalog/services/right").shows(t, 200, "ghost", "not in the catalog", "hand", "provided name", "is-conflicts", `href="/catalog/services/nginx"`)
	admin := r.signedIn("demo", "admin")
	admin.get("/admin/services/left?template=visit-counter").shows(t, 200, "depend on each other in a circle")
}

// TestPicturesOfManyServices sees that a page with very many services is one page, and
// makes no query for each of them.
func TestPicturesOfManyServices(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	var names []string
	admin := r.signedIn("demo", "admin")
	for i := range 70 {
		name := "svc-" + string(rune('a'+i%26)) + strings.Repeat("x", 1+i/26)
		requires := ""
		if i > 0 {
			requires = `"` + names[i/3] + `"`
		}
		r.storeService(`{"name":"` + name + `","dependencies":{"install":{"requires":[` + requires + `]}}}`)
		names = append(names, name)
	}
	body := `{"name":"huge","defaults":{"services":["` + names[0] + `"],"provider":"local"},"compatibility":{"services":["` + strings.Join(names, `","`) + `"]}}`
	admin.post("/admin/templates", "body", body).goes(t, "/admin/templates/huge")
	page := r.signedIn("demo", "user").get("/catalog/huge").shows(t, 200, "70 services with 69 relations", `role="region"`)
	if n := strings.Count(page.body, `class="dag-node`); n != 70 {
		t.Errorf("%d boxes, want 70", n)
	}
	if n := strings.Count(page.body, `data-from="`); n != 69 {
		t.Errorf("%d lines, want 69", n)
	}
}

// TestClusterServicesPicture draws the services as the cluster has them; one that the
// catalog forgot leads to its row in the table.
func TestClusterServicesPicture(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("pictured", 3)
	target := "/clusters/" + id.String() + "/services"
	page := w.get("ana", target)
	for _, text := range []string{"Dependencies", "Services of the cluster pictured", `href="/catalog/services/nginx"`, "Table", "on 2 nodes"} {
		if page.Code != 200 || !strings.Contains(page.Body, text) {
			t.Errorf("status %d; the tab does not say %q", page.Code, text)
		}
	}
	w.must(w.catalog.Delete(w.ctx, w.actor("admin"), loom.KindService, "nginx", 0))
	if page := w.get("ana", target); strings.Contains(page.Body, `href="/catalog/services/nginx"`) || !strings.Contains(page.Body, `href="#f-relations-nginx"`) || !strings.Contains(page.Body, `id="f-relations-nginx"`) {
		t.Error("a service that the catalog forgot still leads there")
	}
}
