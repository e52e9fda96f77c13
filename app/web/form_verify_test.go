package web_test

import (
	"strings"
	"testing"

	"loom/app/testkit"
)

// The provider of one row is asked without saving anything; what it said, or why it could
// not be asked, stands beside the row.
func TestVerifyRows(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin := r.signedIn("demo", "admin")
	edit := "/admin/hardware-types/local-small/edit"
	page := admin.get(edit).shows(t, 200, `value="verify:providermap.local"`, "Verify the size with local").hides(t, "Verified", "Not confirmed")
	values := testkit.FormValues(t, page.body, "editor")
	values.Set("do", "verify:providermap.local")
	values.Set("providermap.local.flavor", "mem=77m")
	admin.send(edit, values).shows(t, 200, "Not confirmed", "No provisioner is running", `value="mem=77m"`)
	values.Set("providermap.local.flavor", " ")
	admin.send(edit, values).shows(t, 200, "Not confirmed", "Give the provider&#39;s id of the size first")
	values.Set("do", "verify:providermap.nowhere")
	admin.send(edit, values).shows(t, 200).hides(t, "Not confirmed")
	if _, err := r.db.Exec(`INSERT INTO provider_requests (tenant_id, provider_name, purpose, requested_by, started_at, ended_at, offer_kind, offer_id, probe)
		SELECT id, 'local', 'verify', 'admin', now(), now(), 'flavor', 'mem=77m', '{"OK": true, "Checks": [{"name": "flavor", "ok": true, "message": "Planted answer."}]}' FROM tenants WHERE name = 'demo'`); err != nil {
		t.Fatal(err)
	}
	values.Set("do", "refresh:")
	values.Set("providermap.local.flavor", "mem=77m")
	admin.send(edit, values).shows(t, 200, "Verified", "Planted answer.", "<code>mem=77m</code>")
	admin.get("/admin/image-types/debian12/edit").shows(t, 200, "Verify the image with local").hides(t, "Planted answer")
	if v := admin.get("/admin/hardware-types/local-small"); strings.Contains(v.body, "mem=77m") {
		t.Error("verifying saved the draft")
	}
}

// Who replaces a secret of a provider while operations use it is told so, and asked.
func TestRotationIsAsked(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin := r.signedIn("demo", "admin")
	const first, second = "planted-first-secret", "planted-second-secret"
	body := func(region, secret string) string {
		return `{"name":"far","providertype":"cloudy","provisioner":{"region":"` + region + `","access":"` + secret + `"}}`
	}
	admin.post("/admin/providers", "body", body("north", first)).goes(t, "/admin/providers/far")
	admin.get("/admin/providers/far/edit").shows(t, 200).hides(t, "Operations use these credentials")
	if _, err := r.db.Exec(`WITH c AS (INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
			SELECT id, 'user', 'busy-bee', 'pending', 'x', 1, '{}', 'far', '{}', '{}' FROM tenants WHERE name = 'demo' RETURNING id, tenant_id)
		INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by) SELECT tenant_id, id, 1, 'cluster_create', 'running', 'user' FROM c`); err != nil {
		t.Fatal(err)
	}
	page := admin.get("/admin/providers/far/edit").shows(t, 200, "Operations use these credentials", "busy-bee", "/operations/1", "Replace credentials all the same", "Running")
	values := testkit.FormValues(t, page.body, "editor")
	values.Set("provisioner.region", "south") // replaces no secret
	admin.send("/admin/providers/far", values).goes(t, "/admin/providers/far")

	page = admin.get("/admin/providers/far/edit")
	values = testkit.FormValues(t, page.body, "editor")
	values.Set("provisioner.access", first) // the same
	admin.send("/admin/providers/far", values).goes(t, "/admin/providers/far")
	values = testkit.FormValues(t, admin.get("/admin/providers/far/edit").body, "editor")
	values.Set("provisioner.access", second)
	admin.send("/admin/providers/far", values).shows(t, 409, "One operation uses these credentials", `href="#f-rotate"`, "busy-bee", "Secrets are not sent back").hides(t, second)
	admin.post("/admin/providers/far", "expected", values.Get("expected"), "body", body("south", second)).shows(t, 409, "One operation uses these credentials").hides(t, second)
	values.Set("rotate", "true")
	admin.send("/admin/providers/far", values).goes(t, "/admin/providers/far")
	admin.get("/admin/audit?kind=provider").shows(t, 200, "far").hides(t, first, second)
}
