package api

import (
	"encoding/json"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/loom"
)

// TestTenantRoutes makes a tenant by bootstrap, changes it and deletes it.
func TestTenantRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.loadCatalog("superadmin")
	w.call(w.super, put, "/v2/partialtemplates/part", `{"name":"part","description":"A part"}`).want(200)
	w.call(w.super, put, "/v2/partialtemplates/part", `{"name":"part","description":"The newer part"}`).want(200)
	const scripts = "/v2/plugins/automatortypes/shell/scripts/web.sh"
	for _, body := range []string{"one", "two", "three"} {
		w.call(w.super, post, scripts, body).want(200)
	}
	w.call(w.super, post, scripts+"/versions/1/stage", "").want(200)
	w.call(w.super, post, "/v2/plugins/sync", "").want(200)
	w.call(w.super, post, scripts+"/versions/3/stage", "").want(200)
	w.exec(`INSERT INTO processes (id, kind, host, capacity, expires_at) VALUES ('p', 'provisioner', 'h', 10, now() + interval '1 hour')`)
	w.exec(`UPDATE tenants SET workers = 0`)

	w.call(w.admin, post, "/v2/tenants", `nonsense`).want(403)
	w.call(w.super, post, "/v2/tenants", `{"tenant":{"name":"lab","workers":"11"},"bootstrap":true}`).fails(409, "tenant.workers", "10 left")
	w.call(w.super, post, "/v2/tenants", `{"tenant":{"name":"lab","workers":"10","description":"Lab"},"bootstrap":true}`).want(200)
	w.call(w.super, put, "/v2/tenants/acme", `{"tenant":{"name":"acme","workers":1}}`).fails(409, "tenant.workers", "0 left for this tenant (capacity 10). Others hold the rest (lab: 10); taking some")
	lab := w.call(w.super, get, "/v2/tenants/lab", "").want(200).object()
	if lab["workers"] != 10.0 || lab["maxClusters"] != 2147483647.0 || lab["description"] != "Lab" {
		t.Errorf("lab %v", lab)
	}
	// The superadmin acts in it at once.
	in := func(method, path string) reply {
		t.Helper()
		return w.send(method, path, "", "Authorization", "Bearer "+w.super, headerTenant, "lab").want(200)
	}
	for kind, n := range map[string]int{"providers": 2, "hardwaretypes": 1, "imagetypes": 1, "services": 2, "clustertemplates": 1, "partialtemplates": 1} {
		if got := in(get, "/v2/"+kind).array(); len(got) != n || got[0]["version"] != 1.0 {
			t.Errorf("%s of lab: %v", kind, got)
		}
	}
	if part := in(get, "/v2/partialtemplates/part").object(); part["description"] != "The newer part" {
		t.Errorf("part %v", part)
	}
	var status []string
	for _, r := range in(get, scripts).array() {
		status = append(status, r["status"].(string))
	}
	if strings.Join(status, " ") != "inactive inactive active" { // the sync made the staged one live
		t.Errorf("resources of lab: %v", status)
	}
	status = nil
	for _, r := range w.call(w.super, get, scripts, "").want(200).array() {
		status = append(status, r["status"].(string))
	}
	if strings.Join(status, " ") != "recalled inactive staged" {
		t.Errorf("resources of the superadmin: %v", status)
	}

	w.exec(`INSERT INTO worker_assignments (tenant_id, process_id, workers) SELECT id, 'p', 10 FROM tenants WHERE name = 'lab'`)
	w.call(w.super, del, "/v2/tenants/lab", "").fails(409, "", "set “workers” to 0")
	w.call(w.super, put, "/v2/tenants/lab", `{"tenant":{"name":"lab","maxNodes":7}}`).want(200) // what is left out stays
	if lab := w.call(w.super, get, "/v2/tenants/lab", "").want(200).object(); lab["workers"] != 10.0 || lab["description"] != "Lab" || lab["maxNodes"] != 7.0 {
		t.Errorf("lab %v", lab)
	}
	w.call(w.super, put, "/v2/tenants/lab", `{"tenant":{"name":"lab","workers":0}}`).want(200)
	w.call(w.super, del, "/v2/tenants/lab", "").fails(409, "", "given back")
	w.exec(`DELETE FROM worker_assignments`)
	w.call(w.admin, del, "/v2/tenants/lab", "").want(403)
	w.call(w.super, del, "/v2/tenants/lab", "").want(200)
	w.call(w.super, del, "/v2/tenants/lab", "").want(200)
	w.call(w.super, get, "/v2/tenants/lab", "").want(404)
	w.send(get, "/v2/whoami", "", "Authorization", "Bearer "+w.super, headerTenant, "lab").want(404)
	w.call(w.super, put, "/v2/tenants/lab", `{"tenant":{"name":"lab"},"bootstrap":true}`).want(200) // made anew, without bootstrap
	if got := in(get, "/v2/providers").array(); len(got) != 0 {
		t.Errorf("PUT bootstraps: %v", got)
	}
	entries := w.call(w.super, get, "/v2/audit?tenant=other&limit=1", "").want(200).body
	w.call(w.super, del, "/v2/tenants/other", "").want(200)
	if got := w.call(w.super, get, "/v2/audit?tenant=other&limit=1", "").want(200).body; got != entries {
		t.Errorf("the audit of a deleted tenant is %s, before %s", got, entries)
	}
	w.call(w.foreign, get, "/v2/whoami", "").want(401)
}

// TestTenantMembers: a slip in a member is refused; the id that older clients send
// means nothing.
func TestTenantMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct{ method, path string }{{post, "/v2/tenants"}, {put, "/v2/tenants/lab"}} {
		w.call(w.super, c.method, c.path, `{"tenant":{"name":"lab","maxCluster":3}}`).fails(400, "tenant.maxCluster", "there are name, description, workers, workersFrom, maxClusters, maxNodes, privateNetworks, instanceRoles, providerTypesOff")
		w.call(w.super, c.method, c.path, `{"tenant":{"name":"lab","id":"7"}}`).want(200)
	}
}

// TestFirstAdministratorOverREST makes a tenant and gives its administrator a
// password, with nothing but requests.
func TestFirstAdministratorOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.super, post, "/v2/tenants", `{"tenant":{"name":"research"}}`).want(200)
	there := []string{"Authorization", "Bearer " + w.super, headerTenant, "research"}
	w.send(patch, "/v2/users/admin", `{"password":"correct horse battery"}`, there...).want(200)
	if _, _, _, err := w.deps.Accounts.SignIn(t.Context(), account.SignInInput{Tenant: "research", User: "admin", Password: loom.NewSecret("correct horse battery")}); err != nil {
		t.Error(err)
	}
	entry := w.send(get, "/v2/audit?verb=update&kind=user", "", there...).want(200).array()[0]
	if via := entry["via"].(string); !strings.HasPrefix(via, "token:") || !strings.HasSuffix(via, " by superadmin/admin") || entry["actor"] != "admin" {
		t.Errorf("the entry is %v", entry)
	}
	if whoami := w.send(get, "/v2/whoami", "", there...).want(200).object(); whoami["via"] != "token" {
		t.Errorf("acting is %v", whoami)
	}
	// Reading as somebody makes nobody.
	w.exec(`DELETE FROM users WHERE tenant_id = (SELECT id FROM tenants WHERE name = 'research')`)
	w.send(get, "/v2/clusters", "", there...).fails(404, "", "PUT /v2/tenants/research")
	w.call(w.super, put, "/v2/tenants/research", `{"tenant":{"name":"research"}}`).want(200)
	w.send(get, "/v2/clusters", "", there...).want(200)
}

func TestSettingsRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const usual = `{"leaseReminderHours":[24,1],"leaseGraceHours":0,"maxTokenDays":365,"requireLease":false,"automaticRepairs":true,"repairsPerDay":20,"localSignIn":"everyone"}`
	if got := w.call(w.user, get, "/v2/settings", "").want(200).body; strings.TrimSpace(got) != usual {
		t.Errorf("settings %s", got)
	}
	w.call(w.user, patch, "/v2/settings", `nonsense`).want(403)
	got := w.call(w.admin, patch, "/v2/settings", `{"requireLease":true,"maxTokenDays":null,"leaseReminderHours":["2",48],"automaticRepairs":false,"repairsPerDay":3}`).want(200).body
	if want := `{"leaseReminderHours":[48,2],"leaseGraceHours":0,"maxTokenDays":null,"requireLease":true,"automaticRepairs":false,"repairsPerDay":3,"localSignIn":"everyone"}`; strings.TrimSpace(got) != want {
		t.Errorf("changed %s", got)
	}
	w.exec(`UPDATE tokens SET expires_at = NULL`) // what a token makes ends with it
	if made := w.call(w.user, post, "/v2/tokens", `{"name":"x","scopes":["read"]}`).want(200).object(); made["expires"] != nil {
		t.Errorf("a token for ever: %v", made)
	}
	if got := w.call(w.foreign, get, "/v2/settings", "").want(200).body; strings.TrimSpace(got) != usual {
		t.Errorf("settings of another tenant %s", got)
	}

	// Every cluster has an end now, at create and when its lease changes.
	w.call(w.admin, put, "/v2/clustertemplates/free", `{"name":"free","description":"No lease","defaults":{"services":["web"],"provider":"lab","hardwaretype":"small","imagetype":"deb12"}}`).want(200)
	body := func(lease string) string {
		return `{"name":"x","clusterTemplate":"free","numMachines":1` + lease + `}`
	}
	w.call(w.user, post, "/v2/clusters", body("")).fails(400, "initialLeaseDuration", "requires an expiry")
	w.call(w.user, post, "/v2/clusters", body(`,"initialLeaseDuration":0`)).fails(400, "initialLeaseDuration", "requires an expiry")
	w.call(w.user, post, "/v2/previews", `{"kind":"create","request":`+body("")+`}`).fails(400, "request.initialLeaseDuration", "requires an expiry")
	id := w.call(w.user, post, "/v2/clusters", body(`,"initialLeaseDuration":3600000`)).want(200).object()["id"].(string)
	w.finish(id)
	w.call(w.user, post, "/v2/clusters/"+id, `{"expireTime":null}`).fails(400, "expireTime", "requires an expiry")
	w.call(w.admin, patch, "/v2/settings", `{"requireLease":false}`).want(200)
	preview := w.call(w.user, post, "/v2/previews", `{"kind":"create","request":`+body("")+`}`).want(200).object()
	w.call(w.admin, patch, "/v2/settings", `{"requireLease":true}`).want(200)
	w.call(w.user, post, "/v2/previews/"+preview["id"].(string)+"/apply", `{"hash":"`+preview["hash"].(string)+`"}`).fails(400, "initialLeaseDuration", "requires an expiry")
	w.call(w.admin, patch, "/v2/settings", `{"requireLease":false}`).want(200)
	w.call(w.user, post, "/v2/clusters/"+id, `{"expireTime":null}`).want(200)
}

func TestProfileRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.user, get, "/v2/profile", "").want(404)
	w.call(w.user, del, "/v2/profile", "").want(200)
	const written = `{"a":5.0,"b":[1e2,-0,123456789012345678901234567890],"ä":"<&>"}`
	w.call(w.user, put, "/v2/profile", written, "Content-Type", "text/plain").want(200)
	a := w.call(w.user, get, "/v2/profile", "").want(200)
	if strings.TrimSpace(a.body) != written {
		t.Errorf("came back as %s", a.body)
	}
	w.call(w.user, get, "/v2/profile", "", "If-None-Match", a.header.Get("ETag")).want(304)
	w.call(w.admin, get, "/v2/profile", "").want(404)
	// As deep as may be.
	deep := `{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`
	w.call(w.user, put, "/v2/profile", deep).want(200)
	if got := w.call(w.user, get, "/v2/profile", "").want(200).body; !json.Valid([]byte(got)) || strings.TrimSpace(got) != deep {
		t.Errorf("%d bytes came back", len(got))
	}
	w.call(w.user, del, "/v2/profile", "").want(200)
	w.call(w.user, get, "/v2/profile", "").want(404)
}

// TestTenantPermits: what a tenant may do with providers is the superadmin's to say. A client that
// does not know the members makes tenants with the defaults and changes nothing of them.
func TestTenantPermits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.loadCatalog("superadmin")
	is := func(name string, private, roles bool, off string) {
		t.Helper()
		got := w.call(w.super, get, "/v2/tenants/"+name, "").want(200).object()
		text, _ := json.Marshal(got["providerTypesOff"])
		if got["privateNetworks"] != private || got["instanceRoles"] != roles || string(text) != off {
			t.Errorf("%s: %v", name, got)
		}
	}
	is("superadmin", true, true, `[]`)
	w.call(w.super, post, "/v2/tenants", `{"tenant":{"name":"lab"}}`).want(200)
	is("lab", false, false, `["static"]`)
	w.call(w.super, put, "/v2/tenants/lab", `{"tenant":{"name":"lab","privateNetworks":true,"providerTypesOff":["shell-no","static"]}}`).fails(400, "tenant.providerTypesOff[0]", "There is no provider type “shell-no”")
	w.exec(`INSERT INTO catalog_versions (tenant_id, kind, name, version, body, created_by)
SELECT 'superadmin', 'providertypes', n, 1, jsonb_build_object('name', n, 'parameters', '{}'::jsonb, 'resourceTypes', '{}'::jsonb), 'admin' FROM unnest(ARRAY['planted', 'other']) AS n`)
	w.call(w.super, put, "/v2/tenants/lab", `{"tenant":{"name":"lab","privateNetworks":true,"providerTypesOff":["planted","other","planted","static"]}}`).want(200)
	is("lab", true, false, `["other","planted","static"]`)
	w.call(w.super, put, "/v2/tenants/lab", `{"tenant":{"name":"lab","description":"of an old client"}}`).want(200)
	is("lab", true, false, `["other","planted","static"]`)
	w.call(w.super, put, "/v2/tenants/lab", `{"tenant":{"name":"lab","instanceRoles":true,"providerTypesOff":[]}}`).want(200)
	is("lab", true, true, `[]`)
	w.call(w.super, put, "/v2/tenants/fresh", `{"tenant":{"name":"fresh","providerTypesOff":["other"],"privateNetworks":true}}`).want(200)
	is("fresh", true, false, `["other"]`)
	w.call(w.super, post, "/v2/tenants", `{"tenant":{"name":"bad","privateNetworks":"perhaps"}}`).fails(400, "tenant.privateNetworks", "")
	w.call(w.admin, put, "/v2/tenants/acme", `{"tenant":{"name":"acme","privateNetworks":true}}`).want(403)
	entry := w.call(w.super, get, "/v2/audit?kind=tenant&object=lab", "").want(200).body
	if !strings.Contains(entry, `"providerTypesOff":["other","planted","static"]`) || !strings.Contains(entry, `"privateNetworks":true`) {
		t.Errorf("the audit does not tell: %s", entry)
	}
	w.exec(`UPDATE tenants SET provider_types_off = '{planted}' WHERE name = 'acme'`)
	w.call(w.admin, put, "/v2/providers/mine", `{"name":"mine","providertype":"planted"}`).fails(400, "providertype", "ask the superadmin")
	w.call(w.admin, post, "/v2/import", `{"providers":[{"name":"mine","providertype":"planted"}]}`).want(400)
	w.call(w.admin, put, "/v2/providers/mine", `{"name":"mine","providertype":"other"}`).want(200)
}

// TestTenantTakesWorkers: workers move from one tenant to another in one request, which is
// refused at the field that names the giver.
func TestTenantTakesWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`INSERT INTO processes (id, kind, host, capacity, expires_at) VALUES ('p', 'provisioner', 'h', 10, now() + interval '1 hour')`)
	w.exec(`UPDATE tenants SET workers = CASE name WHEN 'acme' THEN 8 ELSE 0 END`)
	const path = "/v2/tenants"
	w.call(w.super, post, path, `{"tenant":{"name":"lab","workers":4,"workersFrom":"none"}}`).fails(400, "tenant.workersFrom", "There is no tenant “none”")
	w.call(w.super, post, path, `{"tenant":{"name":"lab","workers":4,"workersFrom":"superadmin"}}`).fails(409, "tenant.workersFrom", "has 0 workers, but 2 are missing")
	w.call(w.super, put, path+"/acme", `{"tenant":{"name":"acme","workers":9,"workersFrom":"acme"}}`).fails(400, "tenant.workersFrom", "another tenant")
	w.call(w.super, post, path, `{"tenant":{"name":"lab","workers":4,"workersFrom":"acme"}}`).want(200)
	w.call(w.super, put, path+"/lab", `{"tenant":{"name":"lab","workers":5,"workersFrom":"acme"}}`).want(200)
	for name, want := range map[string]float64{"acme": 5, "lab": 5} {
		if got := w.call(w.super, get, path+"/"+name, "").want(200).object()["workers"]; got != want {
			t.Errorf("%s has %v workers, want %v", name, got, want)
		}
	}
}
