package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
)

var deletedLink = regexp.MustCompile(`new\?deleted=[0-9]+`)

// A deleted entry comes back from the list of its kind, through the editor.
func TestRestoreDeleted(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.get("/admin/services?show=deleted").shows(t, 200, "No deleted entries").hides(t, "Restore ")
	v.post("/admin/services", "body", `{"name":"gone","label":"Was here","defaultConfig":{"port":81,"db":{"password":"planted-secret"}}}`).goes(t, "/admin/services/gone")
	v.post("/admin/providers", "body", `{"name":"far","providertype":"cloudy","provisioner":{"region":"north","access":"planted-secret"}}`).goes(t, "/admin/providers/far")
	v.get("/admin/services/gone/delete").shows(t, 200, "from the list of deleted entries")
	v.post("/admin/services/gone/delete").goes(t, "/admin/services")
	v.get("/admin/services").shows(t, 200, "Deleted the service gone.", "Restore it").hides(t, "Was here")
	v.post("/admin/providers/far/delete").goes(t, "/admin/providers")

	list := v.get("/admin/services?show=deleted").shows(t, 200, "Was here", "by admin", "Restore gone", "1 service").hides(t, "planted-secret", `href="/admin/services/gone"`)
	v.get("/admin/services?show=deleted&q=zzz").shows(t, 200, "No deleted entry matches").hides(t, "Was here")
	at := "/admin/services/" + deletedLink.FindString(list.body)
	page := v.get(at).shows(t, 200, "when admin deleted it", "defaultConfig.db.password", "Was here").hides(t, "planted-secret", "[redacted]")
	v.send("/admin/services", testkit.FormValues(t, page.body, "editor")).goes(t, "/admin/services/gone")
	v.get("/admin/services/gone?as=json").shows(t, 200, `"version":1`, `"port":81`, `"password":""`, "Was here")
	v.get("/admin/services?show=deleted").shows(t, 200, "No deleted entries")
	v.get(at).shows(t, 200, "Was here") // it is still on record, and a name that is taken is told on saving
	v.send("/admin/services", testkit.FormValues(t, page.body, "editor")).shows(t, 409, "There is a service “gone” already")

	list = v.get("/admin/providers?show=deleted").shows(t, 200, "far")
	v.get("/admin/providers/"+deletedLink.FindString(list.body)).shows(t, 200, "north", "Enter them again: access").hides(t, "planted-secret")
	for _, bad := range []string{"x", "99999", "-1"} {
		v.get("/admin/services/new?deleted="+bad).shows(t, 404)
	}
	r.signedIn("demo", "user").get(at).shows(t, 403)
	r.signedIn("superadmin", "admin").get(at).shows(t, 404)
}

// A provider that lists no sizes and images is asked for none: their names are typed.
func TestUseWhatAProviderDoesNotList(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	probe := func(ok string) {
		r.exec(`INSERT INTO provider_requests (tenant_id, provider_name, purpose, requested_by, started_at, ended_at, probe)
			SELECT id, 'local', 'probe', 'admin', now(), now(), jsonb_build_object('OK', $1::boolean) FROM tenants WHERE name = 'demo'`, ok)
	}
	probe("false")
	v.get("/admin/providers/local/test").shows(t, 200, "Failed").hides(t, "lists no sizes")
	probe("true")
	page := v.get("/admin/providers/local/test").shows(t, 200, "This provider lists no sizes or images.", "Use size", "Use image")
	for member, kind := range map[string]loom.EntityKind{"flavor": loom.KindHardwareType, "image": loom.KindImageType} {
		if !strings.Contains(page.body, `name="`+member+`"`) {
			t.Errorf("there is no field for %s", member)
		}
		v.get("/admin/providers/local/use?"+member+"=own%2F1").shows(t, 200, "A new "+kind.Word(), `value="own/1"`)
	}
}

// What a provider offers fills in the row of a type: of a new one, or of one that is
// there. Nothing is stored before its form is saved.
func TestUseWhatAProviderOffers(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	r.exec(`INSERT INTO provider_requests (tenant_id, provider_name, purpose, requested_by, started_at, ended_at, probe)
		SELECT id, 'local', 'probe', 'admin', now(), now(), '{"OK": true, "Flavors": [{"id": "tiny/1", "name": "Tiny", "vcpu": 2, "ram": 512}], "Images": [{"id": "trixie", "name": "Debian 13"}]}' FROM tenants WHERE name = 'demo'`)
	v.post("/admin/hardware-types", "body", `{"name":"bare","label":"Bare","providermap":{}}`).goes(t, "/admin/hardware-types/bare")
	v.get("/admin/providers/local/test").shows(t, 200, "Tiny", "/admin/providers/local/use?flavor=tiny%2F1", "/admin/providers/local/use?image=trixie")
	ask := v.get("/admin/providers/local/use?flavor=tiny%2F1").shows(t, 200, "A new hardware type", "local-small", "replaces mem=", "no row for local yet", `value="tiny/1"`)
	v.get("/admin/providers/local/use?flavor=tiny%2F1", "HX-Request", "true", "HX-Target", "dialog").shows(t, 200, "Fill in flavor").hides(t, "<main")
	if got := testkit.FormValues(t, ask.body, "").Get("flavor"); got != "tiny/1" {
		t.Errorf("the form carries %q", got)
	}
	v.get("/admin/providers/local/use?flavor=tiny%2F1&type=").goes(t, "/admin/hardware-types/new?flavor=tiny%2F1&provider=local")
	v.get("/admin/providers/local/use?flavor=tiny%2F1&type=local-small").goes(t, "/admin/hardware-types/local-small/edit?flavor=tiny%2F1&provider=local")

	page := v.get("/admin/hardware-types/local-small/edit?flavor=tiny%2F1&provider=local").shows(t, 200, "in place of mem=", "save to keep that", `value="tiny/1"`)
	got := testkit.FormValues(t, page.body, "editor")
	if got.Get("providermap.local.vcpu") != "2" || got.Get("providermap.local.ram") != "0.5" {
		t.Errorf("the row says %v", got)
	}
	v.get("/admin/hardware-types/local-small?as=json").hides(t, "tiny/1")
	v.send("/admin/hardware-types/local-small", got).goes(t, "/admin/hardware-types/local-small")
	v.get("/admin/hardware-types/local-small?as=json").shows(t, 200, "tiny/1")
	v.get("/admin/hardware-types/bare/edit?flavor=tiny%2F1&provider=local").shows(t, 200, "has the flavor tiny/1 now; save").hides(t, "in place of")
	v.get("/admin/image-types/new?image=trixie&provider=local").shows(t, 200, `value="trixie"`)
	v.get("/admin/image-types/debian12/edit?image=trixie&provider=local").shows(t, 200, "in place of bookworm", `value="trixie"`)
	v.get("/admin/providers/local/use").shows(t, 404, "which size or image")
	v.get("/admin/providers/none/use?flavor=x").shows(t, 404)
}

// An administrator says of each field that users may change whether they may for this
// provider.
func TestFieldsThatUsersMayOverride(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	check(t, r.catalog.RegisterTypes(r.ctx, []loom.PluginType{{Base: loom.Base{Name: "zoned"}, Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{
		"zone": {Label: "Zone", Type: "text", Override: true}, "plan": {Label: "Plan", Type: "text"}, "disk": {Label: "Disk", Type: "text", Override: true}}}}}}, nil))
	v := r.signedIn("demo", "admin")
	v.post("/admin/providers", "body", `{"name":"z","providertype":"zoned","provisioner":{"zone":"a"}}`).goes(t, "/admin/providers/z")
	page := v.get("/admin/providers/z/edit").shows(t, 200, `name="may-override.zone"`, `name="may-override.disk"`).hides(t, `name="may-override.plan"`, `"fixed"`)
	values := testkit.FormValues(t, page.body, "editor")
	if values.Get("may-override.zone") != "true" {
		t.Error("users may not override what nobody fixed")
	}
	values.Del("may-override.zone")
	v.send("/admin/providers/z", values).goes(t, "/admin/providers/z")
	v.get("/admin/providers/z?as=json").shows(t, 200, `"fixed":["zone"]`)
	if n := strings.Count(v.get("/admin/providers/z").shows(t, 200).body, "users may change"); n != 1 {
		t.Errorf("the page says of %d fields that users may change them", n)
	}
	values = testkit.FormValues(t, v.get("/admin/providers/z/edit").body, "editor")
	if values.Has("may-override.zone") || values.Get("may-override.disk") != "true" {
		t.Errorf("the form came back with %v", values)
	}
	values.Set("may-override.zone", "true")
	v.send("/admin/providers/z", values).goes(t, "/admin/providers/z")
	v.get("/admin/providers/z?as=json").shows(t, 200).hides(t, "fixed")
}

// Texts that name a plugin resource suggest those there are, and say which version is
// active.
func TestActionsSuggestResources(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	check(t, r.catalog.RegisterTypes(r.ctx, nil, []loom.PluginType{{Base: loom.Base{Name: "dolls"}, Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{
		"manifest": {Label: "Manifest", Type: "text", ResourceType: "manifests"}}}}, ResourceTypes: map[string]loom.ResourceType{"manifests": {Format: "file"}}}}))
	actor := loom.Actor{Tenant: r.tenantID("demo"), TenantName: "demo", User: "admin", Role: loom.RoleAdmin, Via: "session"}
	ref := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: "dolls", Type: "manifests", Name: "site.pp"}
	_, err := r.catalog.Upload(r.ctx, actor, ref, strings.NewReader("include nginx\n"), 1<<20)
	check(t, err)
	check(t, r.catalog.Stage(r.ctx, actor, ref, 1))
	check(t, r.catalog.Sync(r.ctx, actor))
	v := r.signedIn("demo", "admin")
	v.post("/admin/services", "body", `{"name":"doll","provisioner":{"actions":{"install":{"type":"dolls","fields":{"manifest":"site.pp"}}}}}`).goes(t, "/admin/services/doll")
	v.get("/admin/services/doll/edit").shows(t, 200, `<option value="site.pp">version 1, active</option>`, "Now site.pp, version 1, active.", `list="f-provisioner-actions-install-fields-manifest-list"`)
}

// The lists of all kinds are there as files, as they are filtered.
func TestCatalogListsAsFiles(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	for _, list := range []string{"providers", "hardware-types", "image-types", "services", "templates", "partials"} {
		w.get("admin", "/admin/"+list).is(http.StatusOK, "/admin/"+list+"?as=csv", "/admin/"+list+"?as=json-all")
		w.get("admin", "/admin/"+list+"?as=csv").is(http.StatusOK, "name,label,description,version,deprecated")
	}
	all := w.get("admin", "/admin/templates?as=csv").is(http.StatusOK, "web-cluster,Web cluster")
	if n := strings.Count(all.Body, "\n"); n < 2 {
		t.Errorf("the file has %d lines", n)
	}
	w.get("admin", "/admin/templates?q=shop&show=usable").is(http.StatusOK, "q=shop&amp;show=usable&amp;as=csv")
	w.get("admin", "/admin/templates?as=csv&q=zzzz").is(http.StatusOK).lacks("shop")
	w.get("admin", "/admin/templates?show=deleted").is(http.StatusOK).lacks("as=csv")
}

// TestProviderTypeSwitchedOff: the page says at its field that a type is off and who can switch
// it on, keeps what was typed, and a preview of an import says so too.
func TestProviderTypeSwitchedOff(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	_, err := r.db.Exec(`UPDATE tenants SET provider_types_off = '{cloudy}' WHERE name = 'demo'`)
	check(t, err)
	const body = `{"name":"far","description":"typed-before","providertype":"cloudy","provisioner":{"region":"north"}}`
	v.post("/admin/providers", "body", body).shows(t, 422, "The provider type “cloudy” is switched off for this tenant; ask the superadmin", "typed-before")
	v.get("/admin/providers/far").shows(t, 404)
	_, err = r.db.Exec(`UPDATE tenants SET provider_types_off = '{}' WHERE name = 'demo'`)
	check(t, err)
	v.post("/admin/providers", "body", body).goes(t, "/admin/providers/far")
}
