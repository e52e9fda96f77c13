package web_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/app/web"
	"loom/jobs"
)

// TestActivityPages: each sees what concerns him, bursts are one line, filters work.
func TestActivityPages(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	super, admin, user := r.signedIn("superadmin", "admin"), r.signedIn("demo", "admin"), r.signedIn("demo", "user")
	user.get("/activity").shows(t, 200, "No activity yet.", "Activity")
	demo := r.tenantID("demo")
	mine := r.past(demo, "user", "web-cluster", "small", 2, time.Hour, 0)
	theirs := r.past(demo, "admin", "redis-secret", "small", 1, 2*time.Hour, 0)
	r.exec(`UPDATE operations SET status = 'failed', message = 'the disk is full' WHERE cluster_id = $1`, mine)
	r.exec(`UPDATE clusters SET status = 'incomplete' WHERE id = $1`, mine)
	r.exec(`UPDATE tasks SET status = 'failed' WHERE cluster_id = $1`, mine)
	for _, name := range []string{"one", "two", "three"} {
		admin.post("/admin/services", "body", `{"name": "`+name+`"}`).goes(t, "/admin/services/"+name)
	}
	r.exec(`INSERT INTO audit (tenant_id, actor, via, verb, kind, object, result, before, after) VALUES
		($1, 'admin', 'session', 'update', 'cluster', $2, 'ok', '{"expireTime": 0}', '{"expireTime": 1780000000000}'),
		($1, 'admin', 'session', 'reveal', 'node', $2 || '/x', 'ok', null, '{}')`, demo, loom.ClusterID(mine).String())

	page := user.get("/activity").shows(t, 200, "tried to create", ">web-cluster</a>", "with 2 nodes", "the disk is full", "created 3 services", "changed expiry of", "downloaded the key of", `href="/clusters/`+loom.ClusterID(mine).String()+`/operations/1"`, "/operations/1/retry").
		hides(t, "redis-secret", "style=", "onclick")
	if strings.Count(page.body, "<h2>") == 0 {
		t.Error("there are no days")
	}
	if n := strings.Count(feedOf(page), `data-fact="operation `); n != 1 {
		t.Errorf("the operation has %d lines", n)
	}
	admin.get("/activity").shows(t, 200, ">redis-secret</a>", ">web-cluster</a>", ">user</strong>", "Complete in")
	for filter, want := range map[string]struct{ has, lacks string }{
		"about=catalog": {"created 3 services", "web-cluster"},
		"result=failed": {"web-cluster", "redis-secret"},
		"result=ok":     {"redis-secret", "tried to create"},
		"action=create": {"web-cluster", "changed expiry of"},
		"action=reveal": {"downloaded the key of", "redis-secret"},
		"user=user":     {"web-cluster", "redis-secret"},
		"period=1h":     {"created 3 services", "redis-secret"},
		"period=24h":    {"redis-secret", "No matches."},
		"cluster=" + loom.ClusterID(theirs).String():  {"redis-secret", "web-cluster"},
		"cluster=web-cluster&action=restart_services": {"Clear filters", ">web-cluster<"},
		"result=running": {"No matches.", "web-cluster"},
	} {
		feed := feedOf(admin.get("/activity?"+filter).shows(t, 200))
		if !strings.Contains(feed, want.has) || strings.Contains(feed, want.lacks) {
			t.Errorf("%s: the list has %q: %v, and %q: %v", filter, want.has, strings.Contains(feed, want.has), want.lacks, strings.Contains(feed, want.lacks))
		}
	}
	// Each filter that is chosen is among its choices.
	admin.get("/activity?cluster=web-cluster&action=restart_services&user=gone").shows(t, 200, `<option value="web-cluster" selected>`, `<option value="restart_services" selected>`, `<option value="gone" selected>`)
	user.get("/activity").shows(t, 200, `<option value="user">You`, `<option value="system">Loom`).hides(t, `<option value="admin"`)
	admin.get("/activity?period=x").shows(t, 422, "The range is 1h, 24h or 7d.")
	admin.get("/activity?cluster=no+name&about=weather&action=dance&result=odd").shows(t, 422, "is neither a name nor an id of a cluster", "is none of clusters, catalog", "There is no action “dance”", "A result is running, ok, refused or failed.")
	admin.get("/system/activity").shows(t, 403, "superadmin")
	super.get("/system/activity").shows(t, 200, "redis-secret", "of demo")
	super.get("/system/activity?tenant=demo&about=clusters").shows(t, 200, "redis-secret")
	super.get("/system/activity?tenant=nowhere").shows(t, 422, "nowhere")
	super.get("/activity").hides(t, "redis-secret") // his own tenant
	r.visitor().get("/activity").goes(t, "/login?next=%2Factivity")

	// Page by page, each entry once.
	for i := range 60 {
		r.past(demo, "user", "many-"+strconv.Itoa(i), "small", 1, time.Duration(i+3)*time.Hour, 0)
	}
	admin.get("/activity?cluster=many-7").shows(t, 200, ">many-7</a>").hides(t, ">many-8</a>")
	seen, at := map[string]int{}, "/activity?about=clusters"
	for range 5 {
		a := admin.get(at).shows(t, 200)
		for i := range 60 {
			seen[strconv.Itoa(i)] += strings.Count(a.body, ">many-"+strconv.Itoa(i)+"</a>")
		}
		if nextLink(a.body) == "" {
			break
		}
		at = strings.ReplaceAll(nextLink(a.body), "&amp;", "&")
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("many-%s is shown %d times", name, n)
		}
	}
}

// feedOf is the list of a page of activity, without its filters.
func feedOf(a answer) string {
	_, feed, _ := strings.Cut(a.body, `id="feed"`)
	return feed
}

// nextLink gives the address of the next page of a list.
func nextLink(body string) string {
	at := strings.Index(body, `rel="next"`)
	if at < 0 {
		return ""
	}
	start := strings.LastIndex(body[:at], "<a ")
	_, rest, _ := strings.Cut(body[start:], `href="`)
	href, _, _ := strings.Cut(rest, `"`)
	return href
}

// sendFile sends a form with a file.
func (v *visitor) sendFile(path, field, name, content string, pairs ...string) answer {
	v.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i+1 < len(pairs); i += 2 {
		check(v.t, form.WriteField(pairs[i], pairs[i+1]))
	}
	if name != "" {
		part, err := form.CreateFormFile(field, name)
		check(v.t, err)
		_, err = part.Write([]byte(content))
		check(v.t, err)
	}
	check(v.t, form.Close())
	req, err := http.NewRequestWithContext(v.ctx, http.MethodPost, v.server.URL+path, &body)
	check(v.t, err)
	req.Header.Set("Content-Type", form.FormDataContentType())
	return v.do(req)
}

// TestTransferPages: export, preview, choices, heavy confirmation, report.
func TestTransferPages(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin, user := r.signedIn("superadmin", "admin"), r.signedIn("demo", "user")
	user.get("/admin/transfer").shows(t, 403, "the role “publisher”")
	admin.get("/admin/transfer").shows(t, 200, "Download everything", "Services", "Preview import").hides(t, "style=")
	all := admin.get("/admin/transfer/export")
	if got := all.header.Get("Content-Disposition"); got != `attachment; filename="catalog-superadmin.json"` || !strings.Contains(all.body, `"clustertemplates"`) {
		t.Errorf("the export is %q: %.80s", got, all.body)
	}
	admin.post("/admin/transfer/export").shows(t, 422, "Choose at least one entry")
	some := admin.post("/admin/transfer/export", "entry", "services/nginx", "needs", "true")
	if !strings.Contains(some.body, `"nginx"`) || strings.Contains(some.body, `"redis-primary"`) {
		t.Errorf("the export of one holds %.300s", some.body)
	}

	admin.get("/admin/transfer/preview").goes(t, "/admin/transfer")
	admin.sendFile("/admin/transfer/preview", "file", "", "").shows(t, 422, "Choose a file, or paste a bundle.")
	admin.sendFile("/admin/transfer/preview", "file", "x.json", `{"servises": []}`).shows(t, 422, "did you mean “services”")
	admin.sendFile("/admin/transfer/preview", "file", "", "", "bundle", `{"services": [`).shows(t, 422, "The bundle was not read.")
	bundle := `{"services": [{"name": "nginx", "description": "mine"}, {"name": "fresh"}, {"name": "no name"}],
		"providers": [{"name": "far", "providertype": "cloudy", "provisioner": {"region": "north", "access": "hunter2"}}]}`
	admin.sendFile("/admin/transfer/preview", "file", "b.json", bundle).goes(t, "/admin/transfer/preview")
	page := admin.get("/admin/transfer/preview").shows(t, 200, "Breaks 0 · Changed 1 · New 2 · Same 0 · Invalid 1", "Keep mine", "Overwrite", "Invalid entries", "Type superadmin to overwrite", "fresh").hides(t, "hunter2", "style=")
	_, rest, _ := strings.Cut(page.body, `name="seen" value="`)
	seen, _, _ := strings.Cut(rest, `"`)
	write := []string{"seen", seen, "do:services/nginx", "write", "do:services/fresh", "write", "do:providers/far", "skip"}
	admin.post("/admin/transfer/import", write...).shows(t, 422, "1 entry would be overwritten; type “superadmin”")
	write = append(write, "confirm", "superadmin")
	admin.post("/admin/transfer/import", write...).shows(t, 422, "Nothing was imported.", "no name")
	write = append(write, "leave", "true")
	admin.post("/admin/transfer/import", append([]string{"seen", "old"}, write[2:]...)...).shows(t, 409, "changed since this preview")
	admin.get("/admin/services/fresh").shows(t, 404)
	admin.post("/admin/transfer/import", write...).goes(t, "/admin/transfer/import")
	admin.get("/admin/transfer/import").shows(t, 200, `href="/admin/services/fresh"`, `href="/admin/services/nginx"`, "New version", "Created").hides(t, "far")
	admin.get("/admin/services/nginx").shows(t, 200, "mine")
	admin.get("/admin/providers/far").shows(t, 404)
	admin.get("/admin/transfer/preview").goes(t, "/admin/transfer")
}

// TestTransferKeepsAndBreaks: what is there is kept unless somebody says otherwise, and what
// an import breaks is told first, with the entries that do it.
func TestTransferKeepsAndBreaks(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin := r.signedIn("demo", "admin")
	const preview, do = "/admin/transfer/preview", "/admin/transfer/import"
	pressed := func(page answer, do string) url.Values {
		t.Helper()
		values := testkit.FormValues(t, page.body, "import")
		values.Set("do", do)
		return values
	}
	give := func(bundle string) answer {
		t.Helper()
		admin.sendFile(preview, "file", "b.json", bundle).goes(t, preview)
		return admin.get(preview).shows(t, 200, "Preview of the import")
	}
	for _, body := range []string{`{"name":"edge","dependencies":{"provides":["front"]}}`, `{"name":"shop","dependencies":{"runtime":{"requires":["front"]}}}`} {
		admin.post("/admin/services", "body", body)
	}
	page := give(`{"services":[{"name":"edge","description":"from afar"},{"name":"brand-new"},{"name":"second","dependencies":{"runtime":{"requires":["nobody"]}}},{"name":"third","dependencies":{"runtime":{"requires":["nobody"]}}}]}`)
	page.shows(t, 200, "Breaks 1 · Changed 1 · New 3 · Same 0 · Invalid 0", "breaks shop", "if edge is overwritten", "Service front does not exist", "Other findings", "in any case", "2 services")
	if n := strings.Count(page.body, "Service nobody does not exist"); n != 1 {
		t.Errorf("what two entries lack is told %d times", n)
	}
	if edge, fresh := strings.Index(page.body, `name="do:services/edge"`), strings.Index(page.body, `name="do:services/brand-new"`); edge < 0 || fresh < edge {
		t.Errorf("what differs is at %d, behind what is new at %d", edge, fresh)
	}
	// Enter, and the button, keep what is there.
	admin.send(do, pressed(page, "")).goes(t, do)
	admin.get("/admin/services/edge").shows(t, 200).hides(t, "from afar")
	admin.get("/admin/services/brand-new").shows(t, 200)

	page = give(`{"services":[{"name":"edge","description":"from afar"},{"name":"brand-new","description":"more"}]}`)
	page = admin.send(do, pressed(page, "overwrite")).shows(t, 200, `<option value="write" selected>Overwrite`).hides(t, `value="skip" selected`)
	page = admin.send(do, pressed(page, "keep")).shows(t, 200, `<option value="skip" selected>Keep mine`).hides(t, `value="write" selected`)
	admin.send(do, pressed(page, "prefix")).shows(t, 422, "Give what the names are to begin with")
	values := pressed(page, "prefix")
	values.Set("prefix", "their-")
	page = admin.send(do, values).shows(t, 200, `value="their-edge"`, `value="their-brand-new"`, `<option value="rename" selected>`)
	admin.send(do, pressed(page, "")).goes(t, do)
	admin.get("/admin/services/their-edge").shows(t, 200, "from afar")
	admin.post(do, "do", "nonsense").goes(t, "/admin/transfer")
}

// TestResourcePages: content, differences, the outcome of a sync, and who fetched it.
func TestResourcePages(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin, user := r.signedIn("demo", "admin"), r.signedIn("demo", "user")
	const kind, of = "automatortypes/shell/scripts", "kind=automatortypes&plugin=shell&type=scripts&name=hello.sh"
	up := func(version, text string) {
		t.Helper()
		admin.sendFile("/admin/resources/save?do=stage", "file", "hello.sh", text, "plugin", kind, "name", "").goes(t, "/admin/resources/show?kind=automatortypes&name=hello.sh&plugin=shell&type=scripts&version="+version)
	}
	admin.get("/admin/resources/sync").shows(t, 200, "Nothing to release.", "No provisioner has fetched anything yet")
	up("1", "echo one\necho same\n")
	admin.get("/admin/resources/sync").shows(t, 200, "hello.sh", "Added", "Releasing…")
	admin.post("/admin/resources/sync").goes(t, "/admin/resources/sync")
	up("2", "echo two\necho same\n")
	admin.get("/admin/resources/show?"+of+"&version=2").shows(t, 200, "echo two", "Differences from v1", "− echo one", "+ echo two", "v2 staged").hides(t, "+ echo same", "style=")
	admin.get("/admin/resources/show?"+of+"&version=1").shows(t, 200, "echo one", "v1 withdrawn").hides(t, "echo two")
	admin.get("/admin/resources/show?"+of+"&version=9").shows(t, 404)
	admin.get("/admin/resources/sync").shows(t, 200, "Replaced", "v1 → v2")
	check(t, r.catalog.NoteFetched(r.ctx, r.tenantID("demo"), "host-7", 1))
	admin.get("/admin/resources/sync").shows(t, 200, "host-7", "Has it")
	admin.post("/admin/resources/sync").goes(t, "/admin/resources/sync")
	admin.get("/admin/resources/sync").shows(t, 200, "host-7", "With its next task").hides(t, "Releasing…")
	check(t, r.catalog.NoteFetched(r.ctx, r.tenantID("demo"), "host-7", 2))
	admin.get("/admin/resources/sync").shows(t, 200, "Has it")
	admin.get("/admin/resources").shows(t, 200, "/admin/resources/show?")
	admin.get("/admin/resources/new").shows(t, 200, `data-module="/static/`, "data-upload")
	user.get("/admin/resources/sync").shows(t, 403, "the role “publisher”")
	r.signedIn("superadmin", "admin").get("/admin/resources/show?"+of+"&version=1").shows(t, 404) // of another tenant
}

// TestActingPages: a superadmin acts in a tenant, sees it said on each page, and ends
// it.
func TestActingPages(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	super, admin := r.signedIn("superadmin", "admin"), r.signedIn("demo", "admin")
	admin.get("/system/tenants/demo/act-as").shows(t, 403, "superadmin")
	admin.post("/system/tenants/superadmin/act-as").shows(t, 403)
	super.get("/system/tenants/nowhere/act-as").shows(t, 404)
	super.get("/system/tenants/superadmin/act-as").shows(t, 200, "already")
	super.get("/system/tenants/demo").shows(t, 200, `href="/system/tenants/demo/act-as"`, "Quotas")
	super.get("/system/tenants/demo/act-as").shows(t, 200, "For half an hour", "Act as administrator of demo")
	super.post("/system/tenants/demo/act-as", "cluster", "00000042").shows(t, 422, "Enter a reason", `value="00000042"`)
	super.post("/system/tenants/demo/act-as", "reason", "ticket 7").goes(t, "/admin")
	super.get("/admin/users").shows(t, 200, "You act in tenant demo as its administrator", `action="/act/end"`, `href="/admin/users/user"`)
	super.get("/system").shows(t, 403, "You act in tenant demo")
	super.post("/admin/services", "body", `{"name": "mine"}`).goes(t, "/admin/services/mine")
	admin.get("/admin/audit?object=mine").shows(t, 200, "session by superadmin/admin")
	super.post("/act/end").goes(t, "/system/tenants/demo")
	super.get("/system/tenants/demo").shows(t, 200, "You act for yourself again.").hides(t, "You act in tenant")
	super.get("/system/tenants/demo/activity").shows(t, 200, "acted as user", "ticket 7")
	admin.post("/act/end").goes(t, "/")
}

// TestRiverJobPages: lists with filters, details, and what may be done with which.
func TestRiverJobPages(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	super, admin := r.signedIn("superadmin", "admin"), r.signedIn("demo", "admin")
	insert := func(state, queue, kind, args string) string {
		t.Helper()
		var id int64
		check(t, r.db.GetContext(r.ctx, &id, `INSERT INTO river_job (state, queue, kind, args, max_attempts, attempt, errors, finalized_at, attempted_at)
			VALUES ($1::river_job_state, $2, $3, $4::jsonb, 25, 1, ARRAY['{"at": "2026-01-02T03:04:05Z", "attempt": 1, "error": "it broke", "trace": "line 7"}'::jsonb],
			CASE WHEN $1 IN ('discarded', 'completed', 'cancelled') THEN now() END, now()) RETURNING id`, state, queue, kind, args))
		return strconv.FormatInt(id, 10)
	}
	cluster := r.past(r.tenantID("demo"), "user", "web", "small", 1, time.Hour, 0)
	var task string
	check(t, r.db.GetContext(r.ctx, &task, `SELECT id::text FROM tasks WHERE cluster_id = $1`, cluster))
	gone, hook := insert("discarded", "control", "end_operation", `{"operation_id": 7}`), insert("scheduled", "hook", "deliver", `{"delivery_id": 8}`)
	ofTask := insert("completed", jobs.TenantQueue(r.tenantID("demo")), jobs.KindRunTask, `{"task_id": `+task+`}`)

	super.get("/system/queues/jobs").shows(t, 200, "end_operation", "deliver", "it broke").hides(t, ">"+ofTask+"<", "style=")
	super.get("/system/queues/jobs?queue=hook").shows(t, 200, "deliver").hides(t, "end_operation<")
	super.get("/system/queues/jobs?kind=deliver").shows(t, 200, ">"+hook+"<").hides(t, ">"+gone+"<")
	super.get("/system/queues/jobs?id="+gone).shows(t, 200, ">"+gone+"<").hides(t, ">"+hook+"<")
	super.get("/system/queues/jobs?tenant=demo&state=completed").shows(t, 200, ">"+ofTask+"<").hides(t, ">"+hook+"<")
	for query, says := range map[string]string{"state=odd": "is none of available", "queue=mine": "is none of control", "id=x": "is no number", "tenant=nowhere": "There is no tenant"} {
		super.get("/system/queues/jobs?"+query).shows(t, 422, says)
	}
	super.get("/system/queues/jobs/"+gone).shows(t, 200, "Discarded", "it broke", "line 7", "operation_id", "Retry", "Delete").hides(t, ">Cancel<")
	super.get("/system/queues/jobs/"+ofTask).shows(t, 200, loom.ClusterID(cluster).String()+"-001, task 1", `href="/system/tenants/demo"`).hides(t, ">Retry<", ">Delete<")
	super.get("/system/queues/jobs/99999999").shows(t, 404)
	super.get("/system/queues/jobs/"+gone+"/dance").shows(t, 404)
	admin.get("/system/queues/jobs/"+gone).shows(t, 403, "superadmin")
	admin.post("/system/queues/jobs/"+gone+"/delete").shows(t, 403)

	for _, verb := range []string{"retry", "cancel", "delete"} {
		super.post("/system/queues/jobs/"+ofTask+"/"+verb).shows(t, 409, "that of a task")
	}
	super.get("/system/queues/jobs/"+hook+"/cancel").shows(t, 200, "a hook may not be called")
	super.post("/system/queues/jobs/"+hook+"/cancel").goes(t, "/system/queues/jobs/"+hook)
	super.get("/system/queues/jobs/"+hook).shows(t, 200, "Canceled", "was canceled.")
	super.post("/system/queues/jobs/"+gone+"/retry").goes(t, "/system/queues/jobs/"+gone)
	super.post("/system/queues/jobs/"+gone+"/delete").goes(t, "/system/queues/jobs")
	super.get("/system/queues/jobs/"+gone).shows(t, 404)
	super.get("/system/audit?kind=river_job").shows(t, 200, "retried River job", "canceled River job", "deleted River job")

	insert("scheduled", "hook", "deliver", `{}`)
	_, err := r.db.ExecContext(r.ctx, `UPDATE operations SET ended_at = now() WHERE cluster_id = $1`, cluster)
	check(t, err)
	_, err = r.db.ExecContext(r.ctx, `UPDATE tasks SET status = 'complete', started_at = now() - interval '2 minutes', ended_at = now() - interval '1 minute' WHERE cluster_id = $1 AND NOT gate`, cluster)
	check(t, err)
	super.get("/system/queues").shows(t, 200, "River jobs by queue", "hook deliveries", "Done within five minutes", "Wait for a worker")
	super.get("/system/queues", "HX-Request", "true", "HX-Target", "live").shows(t, 200, `id="live"`).hides(t, "Done within five minutes")
}

// TestStatusPage tells of every part.
func TestStatusPage(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	r.signedIn("superadmin", "admin").get("/system/status").shows(t, 200, "PostgreSQL", "Migrations", "Clocks", "Queue leader", "Storage", "Certificate", "Build", "Event streams", "None runs. Start one: loom provisioner").hides(t, "style=")
	r.signedIn("demo", "admin").get("/system/status").shows(t, 403, "superadmin")
}

// TestStatusWarnsOfProxy: behind a proxy that is not named all clients are one.
func TestStatusWarnsOfProxy(t *testing.T) {
	t.Parallel()
	const warning = "LOOM_PUBLIC_URL is set, LOOM_TRUSTED_PROXIES is not"
	newRooms(t).signedIn("superadmin", "admin").get("/system/status").shows(t, 200, "Client addresses").hides(t, warning)
	behind := makeRooms(t, false, func(d *web.Deps) { d.ProxyUnknown = true })
	behind.signedIn("superadmin", "admin").get("/system/status").shows(t, 200, "Client addresses", warning)
}

// TestAdminOverview: an empty catalog offers three ways to begin; quotas, clusters and
// what was done are there.
func TestAdminOverview(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin := r.signedIn("demo", "admin")
	r.exec(`DELETE FROM catalog_versions WHERE tenant_id = $1`, r.tenantID("demo"))
	admin.get("/admin").shows(t, 200, "The catalog is empty", "Import a bundle", "Start from a provider", "Quotas", "Recent activity", "0 waiting, 0 running").hides(t, "Load the starter catalog", "style=")
	admin.post("/admin/starter").shows(t, 404, "no starter catalog")
	r.past(r.tenantID("demo"), "user", "web", "small", 1, time.Hour, 0)
	admin.get("/admin").shows(t, 200, "1 cluster<")
	r.signedIn("demo", "user").get("/admin").shows(t, 403)
}

// TestPluginPage previews the forms of a plugin type and removes versions that are not
// in use.
func TestPluginPage(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	super, admin := r.signedIn("superadmin", "admin"), r.signedIn("demo", "admin")
	cloudy := loom.PluginType{Base: loom.Base{Name: "cloudy", Description: "A newer cloud."}}
	check(t, r.catalog.RegisterTypes(r.ctx, []loom.PluginType{cloudy}, nil))
	super.get("/system/plugins").shows(t, 200, `href="/system/plugins/providertypes/cloudy"`)
	super.get("/system/plugins/providertypes/local").shows(t, 200, "Form for administrators", "Internet", "ssh_keys", "0400", "in use").hides(t, ">Remove<", "style=")
	super.get("/system/plugins/providertypes/cloudy").shows(t, 200, "A newer cloud.", "/versions/1/remove")
	super.get("/system/plugins/services/nginx").shows(t, 404)
	super.get("/system/plugins/providertypes/nothing").shows(t, 404)
	super.get("/system/plugins/providertypes/cloudy/versions/2/remove").shows(t, 409, "the one in use")
	super.get("/system/plugins/providertypes/cloudy/versions/1/remove").shows(t, 200, "Remove version 1 of cloudy")
	admin.post("/system/plugins/providertypes/cloudy/versions/1/remove").shows(t, 403)
	super.post("/system/plugins/providertypes/cloudy/versions/1/remove").goes(t, "/system/plugins/providertypes/cloudy")
	super.get("/system/plugins/providertypes/cloudy").shows(t, 200, "Removed version 1").hides(t, "/versions/1/remove")
	super.post("/system/plugins/providertypes/cloudy/versions/2/remove").shows(t, 409)
}

// TestSystemClusters lists those of all tenants, with filters.
func TestSystemClusters(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	super, admin := r.signedIn("superadmin", "admin"), r.signedIn("demo", "admin")
	super.get("/system/clusters").shows(t, 200, "No tenant has a cluster.")
	r.past(r.tenantID("demo"), "user", "web-cluster", "small", 2, time.Hour, 0)
	own := r.past("superadmin", "admin", "redis", "small", 1, time.Hour, 0)
	super.get("/system/clusters").shows(t, 200, "web-cluster", "redis", `href="/system/tenants/demo"`, "/system/tenants/demo/act-as?cluster=").hides(t, "act-as?cluster="+loom.ClusterID(own).String(), `href="/clusters/`, "style=")
	super.get("/system/clusters?tenant=demo").shows(t, 200, "web-cluster").hides(t, "redis")
	super.get("/system/clusters?q=red&owner=admin&status=active").shows(t, 200, "redis").hides(t, "web-cluster")
	super.get("/system/clusters?status=terminated").shows(t, 200, "No cluster matches these filters.")
	super.get("/system/clusters?status=odd").shows(t, 422, "A cluster is pending")
	admin.get("/system/clusters").shows(t, 403, "superadmin")
	admin.get("/admin/clusters").goes(t, "/clusters")
}

var tag = regexp.MustCompile(`<[^>]*>`)

// TestStatusSaysWhatIsNotUsed: nothing is said to be good that nobody uses.
func TestStatusSaysWhatIsNotUsed(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("superadmin", "admin")
	says := func(path, part, state string) {
		t.Helper()
		text := strings.Join(strings.Fields(tag.ReplaceAllString(v.get(path).shows(t, 200).body, " ")), " ")
		if !strings.Contains(text, part+" "+state) {
			i := max(strings.Index(text, part), 0)
			t.Errorf("%s does not say “%s %s”: …%s", path, part, state, text[i:min(len(text), i+80)])
		}
	}
	says("/system/status", "Hooks", "Not used No tenant has an enabled hook.")
	says("/system/status", "Queues", "Good No task waits")
	says("/system/status", "Event streams", "Not used")
	_, err := r.db.Exec(`INSERT INTO hooks (tenant_id, name, url, events) VALUES ($1, 'h', 'https://example.org', '{start}')`, r.tenant("demo").ID)
	check(t, err)
	says("/system/status", "Hooks", "Good 1 hook, 0 deliveries waiting")
	_, err = r.db.Exec(`UPDATE hooks SET enabled = false`)
	check(t, err)
	says("/system/status", "Hooks", "Not used")
	_, err = r.db.Exec(`DELETE FROM resources`)
	check(t, err)
	says("/system/status", "Storage", "Not used No tenant has a file")
	check(t, r.catalog.Close()) // as if the store were away
	says("/system", "Storage", "Bad")
	says("/system/status", "Storage", "Bad The file store does not work: it does not answer as it should. Check it and LOOM_RESOURCES_URL")
}
