package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/processes"
	"loom/views/route"
)

// systemPages are the pages of the area that a fresh installation can open.
var systemPages = []string{"/system", "/system/tenants", "/system/tenants/new", "/system/tenants/demo", "/system/tenants/demo/delete", "/system/audit",
	"/system/clusters", "/system/usage", "/system/activity", "/system/status", "/system/tenants/demo/act-as", "/system/workers", "/system/queues", "/system/queues/jobs", "/system/queues/jobs?state=completed", "/system/plugins", "/system/orphans"}

func TestSystemPages(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	super, admin := r.signedIn("superadmin", "admin"), r.signedIn("demo", "admin")
	for _, page := range systemPages {
		a := super.get(page).shows(t, 200, "<html", "<h1", `href="/system/workers"`).hides(t, "style=", "onclick", "<script>")
		if t.Failed() {
			t.Fatalf("%s: %s", page, a.body)
		}
		super.get(page, "HX-Request", "true").shows(t, 200, "<main").hides(t, "<html")
		// An error keeps the navigation, and tells no more than before.
		admin.get(page).shows(t, 403, "superadmin", `href="/clusters"`, `href="/admin"`).hides(t, `href="/system"`)
		r.visitor().get(page).goes(t, route.Login(page))
	}
	super.get("/system/workers", "HX-Request", "true", "HX-Target", "live").shows(t, 200, `id="live"`, "hx-trigger=").hides(t, "<main", "<html")
	super.get("/system/nothing").shows(t, 404, `href="/system/tenants"`, "There is no page")
	admin.get("/admin/nothing").shows(t, 404, `href="/admin/audit"`)
	admin.get("/").hides(t, `href="/system"`)
}

func TestUserPage(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin, user := r.signedIn("demo", "admin"), r.signedIn("demo", "user")
	admin.get("/admin/users/nobody").shows(t, 404)
	admin.get("/admin/users/user/dance").shows(t, 404)
	admin.get("/admin/users?q=use").shows(t, 200, `href="/admin/users/user"`).hides(t, `href="/admin/users/admin"`)
	admin.get("/admin/users?q=zzz").shows(t, 200, "No user matches", "Clear filters")
	admin.post("/admin/users/user", "role", "user", "displayName", "Una", "email", "una").shows(t, 422, "The user was not changed.", `value="una"`)
	admin.post("/admin/users/user", "role", "admin", "displayName", "Una", "email", "una@example.org").goes(t, "/admin/users/user")
	admin.get("/admin/users/user").shows(t, 200, "Una", "Saved user.", "una@example.org")
	admin.post("/admin/users/user", "role", "user", "displayName", "Una", "email", "").goes(t, "/admin/users/user")

	made := user.post("/account/tokens", "name", "nightly", "scopes", "read", "expires", "30").shows(t, 200, "Token nightly")
	secret := cut(made.body, `id="token-secret">`, `</code>`)
	page := admin.get("/admin/users/user").shows(t, 200, "nightly", "read").hides(t, secret)
	if !strings.Contains(page.body, "/tokens/") || !strings.Contains(page.body, "/sessions/") {
		t.Fatalf("the page has no way to revoke: %s", page.body)
	}
	token := "/admin/users/user/tokens/" + cut(page.body, "/admin/users/user/tokens/", "/revoke\"") + "/revoke"
	admin.get("/admin/users/admin/tokens/1/revoke").shows(t, 404)
	admin.get(token).shows(t, 200, "Revoke token nightly")
	admin.post(token).goes(t, "/admin/users/user")
	admin.get("/admin/users/user").hides(t, "/tokens/")
	session := "/admin/users/user/sessions/" + cut(page.body, "/admin/users/user/sessions/", "/end\"") + "/end"
	admin.get(session).shows(t, 200, "ends at once")
	admin.post(session).goes(t, "/admin/users/user")
	user.get("/").goes(t, route.Login("/"))

	admin.get("/admin/users/user/password", "HX-Request", "true", "HX-Target", "dialog").shows(t, 200, "dialog-title").hides(t, "<html")
	shown := admin.post("/admin/users/user/password").shows(t, 200, "New password of user", "Loom shows it only once")
	password := cut(shown.body, `data-copy="`, `" aria-label="Copy password"`)
	r.visitor().post("/login", "tenant", "demo", "user", "user", "password", password).goes(t, "/")
	admin.post("/admin/users/admin/password").shows(t, 409, "Your own password is changed in your account")
	admin.post("/admin/users/admin/disable").shows(t, 409)
	admin.post("/admin/users/user/disable").goes(t, "/admin/users/user")
	r.visitor().post("/login", "tenant", "demo", "user", "user", "password", password).shows(t, 401)
	admin.get("/admin/users?state=disabled").shows(t, 200, "Disabled", `href="/admin/users/user"`)
	admin.post("/admin/users/user/enable").goes(t, "/admin/users/user")
	admin.post("/admin/users/user/delete").goes(t, "/admin/users")
	admin.get("/admin/users/user").shows(t, 404)
}

// What one tenant has is not there for another, superadmins included.
func TestOfficeOfForeignTenants(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin, super := r.signedIn("demo", "admin"), r.signedIn("superadmin", "admin")
	admin.post("/admin/users", "id", "planted-eve", "role", "user").shows(t, 200)
	admin.post("/admin/hooks", "name", "planted-hook", "url", "http://127.0.0.1:9/x", "enabled", "true").shows(t, 200, "Hook planted-hook was created")
	hook := cut(admin.get("/admin/hooks").body, `href="/admin/hooks/`, `">planted-hook`)
	for _, page := range []string{"/admin/users/planted-eve", "/admin/users/planted-eve/delete", "/admin/hooks/" + hook, "/admin/hooks/" + hook + "/edit", "/admin/hooks/" + hook + "/delete", "/admin/hooks/" + hook + "/deliveries/1"} {
		super.get(page).shows(t, 404).hides(t, "planted-hook")
	}
	for _, page := range []string{"/admin/users/planted-eve", "/admin/users/planted-eve/disable", "/admin/users/planted-eve/password", "/admin/users/planted-eve/delete",
		"/admin/hooks/" + hook, "/admin/hooks/" + hook + "/test", "/admin/hooks/" + hook + "/delete", "/admin/hooks/" + hook + "/deliveries/1/replay"} {
		super.post(page, "name", "x", "url", "http://127.0.0.1:9/y").shows(t, 404)
	}
	for _, page := range []string{"/admin/users", "/admin/hooks", "/admin/audit"} {
		super.get(page).shows(t, 200).hides(t, "planted-")
	}
	admin.get("/admin/users/planted-eve").shows(t, 200).hides(t, "Disabled")
	admin.get("/admin/hooks/"+hook).shows(t, 200, "planted-hook")
	super.get("/system/audit?tenant=demo").shows(t, 200, "planted-eve")
	admin.get("/admin/audit?tenant=superadmin").shows(t, 200, "planted-eve") // the tenant is that of the session
}

func TestHooksPages(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	var got []string
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		got = append(got, req.Header.Get("X-Loom-Event")+" "+string(body))
		if req.Header.Get("X-Loom-Signature") == "" {
			t.Error("the test is not signed")
		}
		if req.URL.Path == "/bad" {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, "<b>thanks</b>")
	}))
	t.Cleanup(endpoint.Close)
	v := r.signedIn("demo", "admin")
	v.get("/admin/hooks").shows(t, 200, "There are no hooks yet")
	v.post("/admin/hooks", "name", "", "url", "ftp://x", "templates", "a/b", "secret", "short").
		shows(t, 422, "The hook was not created.", "A hook has a name", "begins with http", "or omit the secret", `href="#f-templates"`).hides(t, `value="short"`)
	v.post("/admin/hooks", "name", "all", "url", endpoint.URL, "global", "true").shows(t, 403)
	made := v.post("/admin/hooks", "name", "ci", "url", endpoint.URL+"/ok", "events", "start", "events", "failure", "enabled", "true").shows(t, 200, "Hook ci was created", "shows it only once")
	secret := cut(made.body, `data-copy="`, `" aria-label="Copy secret"`)
	hook := "/admin/hooks/" + cut(v.get("/admin/hooks").body, `href="/admin/hooks/`, `">ci`)
	v.get(hook).shows(t, 200, "Start, Failure", "Nothing was sent yet").hides(t, secret)
	v.get(hook+"/edit").shows(t, 200, `value="ci"`).hides(t, secret)
	v.post(hook+"/test").shows(t, 200, "The endpoint answered 200 OK", "&lt;b&gt;thanks", "request body")
	if len(got) != 1 || !strings.HasPrefix(got[0], "test {") || !strings.Contains(got[0], `"tenant":"demo"`) {
		t.Errorf("the endpoint got %q", got)
	}
	v.post(hook, "name", "ci", "url", endpoint.URL+"/bad").goes(t, hook)
	v.get(hook).shows(t, 200, "Off", "Saved the hook ci.")
	v.post(hook+"/test").shows(t, 200, "The endpoint answered 418")
	v.post(hook, "name", "ci", "url", "").shows(t, 422, "The hook was not changed.")
	v.get(hook+"/deliveries/99").shows(t, 404)
	v.post(hook+"/deliveries/99/replay").shows(t, 409)
	v.get(hook+"/delete").shows(t, 200, "Delete hook ci")
	v.post(hook+"/delete").goes(t, "/admin/hooks")
	v.get(hook).shows(t, 404)
	v.get("/admin/audit?kind=hook").shows(t, 200, "created hook", "tested hook", "deleted hook", "<ins>").hides(t, secret)
}

func TestAuditPages(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.post("/admin/settings", "leaseReminderHours", "48 2", "leaseGraceHours", "5", "repairsPerDay", "20", "maxTokenDays", "", "requireLease", "true").goes(t, "/admin/settings")
	v.get("/admin/audit?kind=settings").shows(t, 200, "changed the settings", "requireLease", "<del>", "<ins>true</ins>")
	v.get("/admin/audit?verb=none").shows(t, 200, "No entry matches")
	v.get("/admin/audit?since=yesterday").shows(t, 422, "Enter a day as year-month-day")
	v.get("/admin/audit?since=2199-01-01").shows(t, 200, "No entry matches")
	for range 13 {
		v.post("/admin/users/user/disable")
		v.post("/admin/users/user/enable")
	}
	first := v.get("/admin/audit?kind=user").shows(t, 200, `rel="next"`).hides(t, `rel="prev"`)
	next := strings.ReplaceAll(cut(first.body, `href="`, `" rel="next"`), "&amp;", "&")
	v.get(next).shows(t, 200, `rel="prev"`)
	super := r.signedIn("superadmin", "admin")
	super.get("/system/audit").shows(t, 200, "demo · ", "superadmin · ")
	super.get("/system/audit?tenant=nowhere").shows(t, 422, "there never was one")
}

func TestSettingsPage(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("demo", "admin")
	v.get("/admin/settings").shows(t, 200, "Require expiry", "Quotas", "no limit")
	v.post("/admin/settings", "leaseReminderHours", "soon", "leaseGraceHours", "-1", "repairsPerDay", "20").shows(t, 422, "The settings were not saved.", "This is “soon”; it must be a whole number", `value="soon"`)
	v.post("/admin/settings").shows(t, 422, "The settings were not saved.")
	v.post("/admin/settings", "leaseReminderHours", "1", "leaseGraceHours", "-1", "repairsPerDay", "20").shows(t, 422, "is no number of hours from 0")
	v.post("/admin/settings", "leaseReminderHours", "48, 2", "leaseGraceHours", "5", "repairsPerDay", "20", "maxTokenDays", "30").goes(t, "/admin/settings")
	v.get("/admin/settings").shows(t, 200, `value="48 2"`, `value="5"`, `value="30"`, "Saved the settings.")
	got, err := r.accounts.Settings(r.ctx, loom.SystemActor(r.tenant("demo").ID, "demo"))
	check(t, err)
	if got.RequireLease || got.LeaseGraceHours != 5 || got.MaxTokenDays == nil || *got.MaxTokenDays != 30 || len(got.LeaseReminderHours) != 2 {
		t.Errorf("settings are %+v", got)
	}
}

func (r *rooms) tenant(name string) loom.Tenant {
	r.t.Helper()
	tenant, err := r.accounts.Tenant(r.ctx, loom.Actor{Tenant: loom.SuperTenant, Role: loom.RoleSuperadmin}, name)
	check(r.t, err)
	return tenant
}

func TestTenantsPages(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("superadmin", "admin")
	v.post("/system/tenants", "name", "a b", "workers", "x").shows(t, 422, "The tenant was not created.", "This is “x”; it must be a whole number")
	v.post("/system/tenants", "name", "a b", "workers", "0").shows(t, 422, "Use letters without accents")
	v.post("/system/tenants", "name", "acme", "workers", "3").shows(t, 409, "no provisioner runs")
	made := v.post("/system/tenants", "name", "acme", "description", "Acme Inc", "workers", "0", "maxClusters", "4", "parts", "providers", "parts", "resources").shows(t, 200, "Tenant acme was created", "Copy the password")
	password := cut(made.body, `data-copy="`, `" aria-label="Copy password"`)
	r.visitor().post("/login", "tenant", "acme", "user", "admin", "password", password).goes(t, "/")
	v.get("/system/tenants?q=acme").shows(t, 200, "Acme Inc", "of 4", "no limit").hides(t, `href="/system/tenants/demo"`)
	v.get("/system/tenants/acme").shows(t, 200, "0 of 4").hides(t, password)
	v.get("/system/tenants/acme/edit").shows(t, 200, `value="4"`)
	v.post("/system/tenants/acme", "description", "Acme", "workers", "0", "maxClusters", "", "maxNodes", "7").goes(t, "/system/tenants/acme")
	v.get("/system/tenants/acme").shows(t, 200, "0, no limit", "0 of 7", "Saved the tenant acme.")
	v.post("/system/tenants/acme", "workers", "99").shows(t, 409, "The tenant was not changed.", `value="99"`)
	v.get("/system/tenants/superadmin/delete").shows(t, 200, "cannot be deleted").hides(t, `name="confirm"`)
	v.get("/system/tenants/demo/delete").shows(t, 200, "set workers to 0 first").hides(t, `name="confirm"`)
	v.post("/system/tenants/demo/delete", "confirm", "demo").hides(t, "Deleted")
	v.get("/system/tenants/acme/delete").shows(t, 200, `name="confirm"`, "Delete tenant acme")
	v.post("/system/tenants/acme/delete", "confirm", "acm").shows(t, 422, "exactly.", `value="acm"`)
	v.post("/system/tenants/acme/delete", "confirm", "acme").goes(t, "/system/tenants")
	v.get("/system/tenants/acme").shows(t, 404)
}

func TestWorkersPages(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	id, err := r.processes.Register(r.ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Version: "v9", Capacity: 1, Plugins: []string{"shell"}})
	check(t, err)
	v, admin := r.signedIn("superadmin", "admin"), r.signedIn("demo", "admin")
	worker := "/system/workers/" + string(id)
	v.get("/system/workers").shows(t, 200, string(id), "Works", "demo 1", "0 of 1", "Start another provisioner")
	v.get("/system/plugins").shows(t, 200, "1 process", "cloudy", "access")
	v.get(worker+"/drain").shows(t, 200, "Drain "+string(id), "continue: none")
	v.get(worker+"/dance").shows(t, 404)
	v.get("/system/workers/none/drain").shows(t, 404)
	admin.post(worker+"/drain").shows(t, 403)
	v.post(worker+"/drain").goes(t, "/system/workers")
	v.get("/system/workers").shows(t, 200, "Draining", "Resume")
	v.post(worker+"/resume").goes(t, "/system/workers")
	v.get("/system/workers").shows(t, 200, "Works").hides(t, "Draining")
	v.get("/system").shows(t, 200, "None runs. Start one: loom scheduler")
	v.get("/system/status").shows(t, 200, "1 alive")
	admin.get("/admin/queue").shows(t, 200, "No task waits for a worker.", "Workers assigned")
	admin.get("/admin/providers/local/test").shows(t, 200, "was not tested yet", "Test connection")
	admin.post("/admin/providers/local/test").goes(t, "/admin/providers/local/test")
	admin.get("/admin/providers/local/test").shows(t, 200, "Waiting for a provisioner", `id="live"`, "Testing").hides(t, "Test connection", "was not tested yet")
	answer := func(statement string) {
		t.Helper()
		if _, err := r.db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	answer(`UPDATE provider_requests SET created_at = created_at - interval '1 minute' WHERE purpose = 'probe'`)
	admin.get("/admin/providers/local/test").shows(t, 200, "No provisioner has taken the test for 1 min")
	answer(`UPDATE provider_requests SET started_at = now() WHERE purpose = 'probe'`)
	admin.get("/admin/providers/local/test").shows(t, 200, "Testing")
	answer(`UPDATE provider_requests SET ended_at = now(), probe = '{"OK": true, "Checks": [{"name": "root", "ok": true, "message": "Planted."}],
		"Flavors": [{"id": "mem=1g", "name": "One GB"}, {"id": "mem=2g", "name": "Two GB"}], "Images": [{"id": "bookworm", "name": "Debian"}]}' WHERE purpose = 'probe'`)
	admin.get("/admin/providers/local/test", "HX-Request", "true", "HX-Target", "live").shows(t, 200, "Planted.", "Show sizes and images", "Passed").hides(t, "<main")
	admin.get("/admin/providers/local/test").shows(t, 200, "Planted.", "mem=1g", "mem=2g", "bookworm", "Test connection", `role="search"`)
	admin.get("/admin/providers/local/test?q=TWO+gb").shows(t, 200, "mem=2g", "Clear filters", "None matches.").hides(t, "mem=1g", "bookworm")
}

func TestJobsPage(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	var id int64
	check(t, r.db.Get(&id, `INSERT INTO river_job (state, queue, kind, args, attempt, max_attempts, scheduled_at, finalized_at, errors)
VALUES ('discarded', 'control', 'trim_events', '{"n": 7}', 25, 25, now(), now(), ARRAY['{"error": "planted trouble", "trace": "at planted.go"}'::jsonb]) RETURNING id`))
	var task int64
	check(t, r.db.Get(&task, `INSERT INTO river_job (state, queue, kind, args, attempt, max_attempts, scheduled_at, finalized_at)
VALUES ('discarded', 'tenant_demo', 'run_task', '{"task_id": 1}', 1, 1, now(), now()) RETURNING id`))
	v := r.signedIn("superadmin", "admin")
	v.get("/system/queues/jobs").shows(t, 200, "planted trouble", "Discarded", "25 of 25").hides(t, "run_task")
	v.get("/system/queues/jobs/"+loomID(id)).shows(t, 200, "planted trouble", "at planted.go")
	v.get("/system/queues/jobs?state=running").shows(t, 200).hides(t, "planted trouble")
	v.get("/system/queues/jobs?state=asleep").shows(t, 422, "is none of")
	v.post("/system/queues/jobs/"+loomID(task)+"/retry").shows(t, 409)
	v.post("/system/queues/jobs/"+loomID(id)+"/retry").goes(t, "/system/queues/jobs/"+loomID(id))
	v.post("/system/queues/jobs/"+loomID(id)+"/retry").shows(t, 409, "there is nothing to retry")
	v.get("/system/queues/jobs").shows(t, 200, "Waiting", "25 of 26")
	v.get("/system/audit?kind=river_job").shows(t, 200, "retried River job")
}

func loomID(n int64) string { return strconv.FormatInt(n, 10) }
