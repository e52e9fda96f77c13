package web_test

import (
	"net/http"
	"net/url"
	"testing"

	"loom/app/loom"
)

// Administrators hand clusters to other users of the tenant, one or several at once, and
// nobody else does.
func TestOwnersAreChanged(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin, user := r.signedIn("demo", "admin"), r.signedIn("demo", "user")
	var ids []int64
	if err := r.db.Select(&ids, `INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		SELECT t.id, 'user', n, s, 'x', 1, '{}', 'local', '{}', '{}' FROM tenants t, (VALUES ('bee', 'active'), ('ant', 'active'), ('gnat', 'terminated')) v (n, s) WHERE t.name = 'demo' RETURNING id`); err != nil {
		t.Fatal(err)
	}
	bee, ant, gnat := loom.ClusterID(ids[0]).String(), loom.ClusterID(ids[1]).String(), loom.ClusterID(ids[2]).String()
	ask := "/clusters/bulk/owner?id=" + bee
	user.get(ask).shows(t, 403)
	user.post("/clusters/bulk/owner", "id", bee+".1", "owner", "admin").shows(t, 403)
	user.get("/clusters").hides(t, "Change owner")
	admin.get("/clusters").shows(t, 200, "Change owner")
	admin.get("/clusters/"+bee).shows(t, 200, `href="`+ask+`"`)
	user.get("/clusters/"+bee).shows(t, 200).hides(t, "Change owner")

	admin.get(ask).shows(t, 200, "New owner", `<option value="admin"`, "bee", `value="`+bee+`.1"`, `href="/clusters/`+bee+`"`)
	admin.get(ask+"&id="+gnat).shows(t, 200, "It is terminated").hides(t, `value="`+gnat)
	admin.get("/clusters/bulk/owner").shows(t, 200, "No cluster is selected")
	admin.post("/clusters/bulk/owner", "id", bee+".1", "owner", " ").shows(t, 422, "No owner was changed.", "Choose who")
	admin.post("/clusters/bulk/owner", "id", bee+".1", "owner", "nobody").shows(t, 422, "There is no user “nobody” in this tenant")
	admin.post("/clusters/bulk/owner", "id", bee+".1", "id", ant+".1", "owner", "admin").shows(t, 200, "2 clusters changed owner", `<td data-label="Owner">admin</td>`)
	admin.post("/clusters/bulk/owner", "id", bee+".1", "owner", "user").shows(t, 200, "It has changed since it was shown")
	admin.post("/clusters/bulk/owner", "id", bee+".2", "owner", "admin").shows(t, 200, "belongs to admin already")
	user.get("/clusters/"+bee).shows(t, 404)
	admin.get("/admin/audit?kind=cluster&object="+bee).shows(t, 200, "changed cluster", "ownerId", "admin")
}

// Somebody who owns clusters is not deleted; the question leads to them.
func TestOwnersStay(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.create("shop", 2)
	w.get("admin", "/admin/users/ana/delete").is(200, "ana owns 1 cluster that is not terminated", "/clusters?owner=ana").lacks("danger-filled")
	w.post("admin", "/admin/users/ana/delete", url.Values{}).is(http.StatusConflict, "not terminated")
}
