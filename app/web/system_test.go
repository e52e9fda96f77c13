package web_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/testkit"
)

// lines counts the lines of a file that has been downloaded.
func lines(a answer) int { return strings.Count(strings.TrimSpace(a.body), "\n") + 1 }

// TestTenantNodes: who deletes a tenant sees the machines that stay, and can take the list
// along.
func TestTenantNodes(t *testing.T) {
	t.Parallel()
	r := makeRooms(t, true)
	v, admin := r.signedIn("superadmin", "admin"), r.signedIn("demo", "admin")
	v.get("/system/tenants/demo/delete").shows(t, 200, "The tenant has no live node", "Machines at providers are not removed", "Loom knows of none")
	tenant := r.tenant("demo")
	var cluster int64
	check(t, r.db.Get(&cluster, `INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
VALUES ($1, 'ana', 'planted-cluster', 'active', 't', 1, '{}', 'planted-cloud', '{}', '{}') RETURNING id`, tenant.ID))
	_, err := r.db.Exec(`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, state, results)
SELECT gen_random_uuid(), $1, $2, 100000 + i, 'planted-' || i, 'h', 'i', 'f', 'm', 'root', '{}', '{}', CASE i WHEN 1 THEN 'planned' WHEN 2 THEN 'deleted' ELSE 'ready' END, jsonb_build_object('providerid', 'vm-' || i)
FROM generate_series(1, 32) AS i`, cluster, tenant.ID)
	check(t, err)
	page := v.get("/system/tenants/demo/delete").shows(t, 200, "planted-cloud", "vm-", "Download the list below first", "not terminated, with", "/system/tenants/demo/nodes?as=csv", "The first 25 nodes").hides(t, `name="confirm"`, "planted-1<", "planted-2<")
	if n := strings.Count(page.body, "planted-cloud"); n != 25 {
		t.Errorf("%d nodes are shown, want the first 25", n)
	}
	first := v.get("/system/tenants/demo/nodes").shows(t, 200, "Nodes of demo", `rel="next"`)
	v.get("/system/tenants/demo/nodes?after="+cut(first.body, `href="/system/tenants/demo/nodes?after=`, `" rel="next"`)).shows(t, 200, `rel="prev"`, "planted-")
	if n := lines(v.get("/system/tenants/demo/nodes?as=csv").shows(t, 200, "host name,state", "planted-cloud,vm-", "planted-cluster")); n != 31 {
		t.Errorf("the file has %d lines, want a head and 30 nodes", n)
	}
	v.get("/system/tenants/demo/nodes?as=json-all").shows(t, 200, `"machineId":"vm-32"`)
	admin.get("/system/tenants/demo/nodes").shows(t, 403)
	admin.get("/system/tenants/demo/nodes?as=csv").shows(t, 403).hides(t, "planted-")
	v.get("/system/tenants/nowhere/nodes").shows(t, 404)
	if err := r.accounts.DeleteTenant(r.ctx, loom.Actor{Tenant: loom.SuperTenant, User: "admin", Role: loom.RoleSuperadmin}, "demo"); !errors.Is(err, loom.Conflict) {
		t.Errorf("a tenant with clusters was deleted: %v", err)
	}
	// Terminated, but its machines were given up: they are listed still, and workers that
	// nobody has assigned keep the tenant as well.
	_, err = r.db.Exec(`UPDATE clusters SET status = 'terminated' WHERE id = $1`, cluster)
	check(t, err)
	v.get("/system/tenants/demo/delete").shows(t, 200, "set workers to 0 first", "vm-")
	v.post("/system/tenants/demo/delete", "confirm", "demo").shows(t, 409, "set workers to 0 first")
	_, err = r.db.Exec(`UPDATE tenants SET workers = 0 WHERE id = $1`, tenant.ID)
	check(t, err)
	v.get("/system/tenants/demo/delete").shows(t, 200, `name="confirm"`, "vm-")
	v.post("/system/tenants/demo/delete", "confirm", "demo").goes(t, "/system/tenants")
}

// TestTenantForm: what is copied is listed and chosen, and the workers that there are move
// with the provisioners.
func TestTenantForm(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("superadmin", "admin")
	v.get("/system/tenants/new").shows(t, 200, "No provisioner runs", "Providers (", "Services (", "Files, all versions", "uploaded keys", "checked")
	room := func() answer {
		return v.get("/system/tenants/new", "HX-Request", "true", "HX-Target", "worker-room").shows(t, 200, `id="worker-room"`).hides(t, "<main")
	}
	room().shows(t, 200, "No provisioner runs")
	_, err := r.processes.Register(r.ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 9})
	check(t, err)
	_, err = r.db.Exec(`UPDATE tenants SET workers = CASE WHEN id = $1 THEN 4 ELSE 0 END`, r.tenant("demo").ID)
	check(t, err)
	room().shows(t, 200, "demo 4 · free 5").hides(t, "most 5")
	v.get("/system/tenants/demo/edit", "HX-Request", "true", "HX-Target", "worker-room").shows(t, 200, "demo 4 · free 5", "Enter at most 9 now.").hides(t, "<main")
	v.post("/system/tenants", "name", "odd", "workers", "0", "parts", "everything").shows(t, 422, "“everything” is none of providers")
	some := "image-types"
	for _, kind := range loom.TenantKinds {
		if kind == loom.KindImageType {
			some = string(kind)
		}
	}
	_, err = r.db.Exec(`INSERT INTO catalog_versions (tenant_id, kind, name, version, body, created_by)
SELECT 'superadmin', k, 'planted', 1, jsonb_build_object('name', 'planted'), 'admin' FROM unnest(ARRAY['imagetypes', 'hardwaretypes']) AS k`)
	check(t, err)
	v.get("/system/tenants/new").shows(t, 200, "Image types (3)", "planted")
	v.post("/system/tenants", "name", "some", "workers", "0", "parts", some).shows(t, 200, "Tenant some was created")
	v.post("/system/tenants", "name", "none", "workers", "0").shows(t, 200, "Tenant none was created")
	for name, want := range map[string]string{"some": "imagetypes", "none": ""} {
		var kinds string
		check(t, r.db.Get(&kinds, `SELECT coalesce(string_agg(DISTINCT kind, ' '), '') FROM catalog_versions WHERE tenant_id = $1`, r.tenant(name).ID))
		if kinds != want {
			t.Errorf("the tenant %s has copies of %q, want %q", name, kinds, want)
		}
	}
}

// TestTenantWorkers: a second tenant gets workers without leaving the form, and a tenant
// without any is told with its remedy.
func TestTenantWorkers(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("superadmin", "admin")
	workers := func(name string, want int) {
		t.Helper()
		if got := r.tenant(name).Workers; got != want {
			t.Errorf("%s has %d workers, want %d", name, got, want)
		}
	}
	set := func(demo int) {
		t.Helper()
		_, err := r.db.Exec(`UPDATE tenants SET workers = CASE WHEN id = $1 THEN $2 ELSE 1 END`, r.tenant("demo").ID, demo)
		check(t, err)
	}
	preset := func(want string) {
		t.Helper()
		if got := testkit.FormValues(t, v.get("/system/tenants/new").body, "").Get("workers"); got != want {
			t.Errorf("the form presets %q workers, want %s", got, want)
		}
	}
	preset("0")
	_, err := r.processes.Register(r.ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 100})
	check(t, err)
	set(95)
	preset("4")
	v.get("/system/tenants/new").shows(t, 200, "superadmin 1 · demo 95 · free 4", "Take missing workers from", "demo (has 95, 0 busy)")
	set(50)
	preset("10")
	v.get("/system/tenants/new").shows(t, 200, "superadmin 1 · demo 50 · free 49")
	v.post("/system/tenants", "name", "lab", "workers", "60").shows(t, 409, "49 left for this tenant")
	v.post("/system/tenants", "name", "lab", "workers", "60", "workersFrom", "superadmin").shows(t, 409, "has 1 worker", `value="superadmin" selected`, `aria-invalid="true"`)
	v.post("/system/tenants", "name", "lab", "workers", "60", "workersFrom", "demo").shows(t, 200, "Tenant lab was created")
	workers("lab", 60)
	workers("demo", 39)
	v.get("/system/tenants/demo/edit").shows(t, 200, "superadmin 1 · lab 60 · demo 39 · free 0", "lab (has 60, 0 busy)").hides(t, "demo (has", "has no workers")
	v.post("/system/tenants/demo", "workers", "45", "workersFrom", "lab").goes(t, "/system/tenants/demo")
	workers("lab", 54)
	workers("demo", 45)

	for _, page := range []string{"/system", "/system/tenants", "/system/tenants/lab"} {
		v.get(page).hides(t, "o workers")
	}
	v.post("/system/tenants/lab", "workers", "0").goes(t, "/system/tenants/lab")
	v.get("/system/tenants/lab").shows(t, 200, "The tenant has no workers", "Give it workers", `href="/system/tenants/lab/edit"`)
	v.get("/system/tenants").shows(t, 200, "No workers")
	v.get("/system").shows(t, 200, "Tenant lab", "Without workers none of its tasks run.", "/system/tenants/lab/edit")
	v.post("/system/tenants/demo", "workers", "0").goes(t, "/system/tenants/demo")
	v.get("/system").shows(t, 200, "demo, lab")
}

// TestEmptyTenantLeadsIntoIt: no link of the page of a tenant where nothing happened leads to
// one's own tenant.
func TestEmptyTenantLeadsIntoIt(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("superadmin", "admin")
	v.post("/system/tenants", "name", "lab", "workers", "0").shows(t, 200)
	v.get("/system/tenants/lab/activity").shows(t, 200, "No activity yet.", "Act as administrator of lab", "/system/tenants/lab/act-as").hides(t, `href="/clusters/new"`)
	v.get("/system/activity").hides(t, `href="/clusters/new"`)
	v.get("/system/tenants/superadmin/activity").shows(t, 200, "/clusters/new").hides(t, "Act as administrator")
}

func TestQueuePages(t *testing.T) {
	t.Parallel()
	r := makeRooms(t, true)
	v, admin := r.signedIn("superadmin", "admin"), r.signedIn("demo", "admin")
	v.get("/system/queues").shows(t, 200, "Scheduler jobs", "Hook deliveries", "Provider probes", "Machine searches", "Pause", "/system/queues?as=csv").hides(t, "Tasks of demo")
	v.get("/system/queues/hook/pause").shows(t, 200, "Pause hook deliveries", "Loom calls no hooks", "Nothing is lost")
	v.get("/system/queues/hook/resume").shows(t, 200, "The queue is not paused.")
	v.get("/system/queues/hook/dance").shows(t, 404)
	v.get("/system/queues/nothing/pause").shows(t, 404)
	v.post("/system/queues/nothing/pause").shows(t, 404)
	v.post("/system/queues/hook/dance").shows(t, 404)
	admin.post("/system/queues/hook/pause").shows(t, 403)
	v.post("/system/queues/hook/pause").goes(t, "/system/queues")
	v.get("/system/queues").shows(t, 200, "The queue of hook deliveries is paused.", "Paused", "Resume")
	v.get("/system/queues/hook/pause").shows(t, 200, "is paused already")
	v.post("/system/queues/hook/resume").goes(t, "/system/queues")
	v.get("/system/queues").shows(t, 200, "continues.").hides(t, "Resume")

	queue := "/system/queues/" + processes.TenantQueue(r.tenant("demo").ID)
	_, err := r.db.Exec(`UPDATE tenants SET workers = CASE WHEN id = $1 THEN 1 ELSE 0 END`, r.tenant("demo").ID)
	check(t, err)
	_, err = r.processes.Register(r.ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 9})
	check(t, err)
	v.get("/system/tenants/demo").shows(t, 200, "Pause queue", queue+"/pause")
	v.get(queue+"/pause").shows(t, 200, "No new task of the tenant demo starts")
	v.post(queue+"/pause").goes(t, "/system/queues")
	v.get("/system/queues").shows(t, 200, "Tasks of demo", "Paused", "by admin")
	v.get("/system/tenants/demo").shows(t, 200, "Resume queue", "new ones wait", "0 of 1 assigned")
	v.get("/system/tenants").shows(t, 200, "Paused")
	v.get("/system/workers").hides(t, "demo 1", "Start another provisioner")
	admin.get("/admin/queue").shows(t, 200, "A superadmin paused the queue of the tenant")
	v.get("/system/queues?as=json").shows(t, 200, `"pausedBy":"admin"`, `"tenant":"demo"`)
	v.post(queue+"/resume").goes(t, "/system/queues")
	v.get("/system/workers").shows(t, 200, "demo 1")
	admin.get("/admin/queue").hides(t, "paused")
	v.get("/system/audit?kind=queue").shows(t, 200, "paused queue", "resumed queue")
}

// TestProcessesTell: the list of processes shows what last went wrong in each, and which
// release of each plugin it carries.
func TestProcessesTell(t *testing.T) {
	t.Parallel()
	r := makeRooms(t, true)
	id, err := r.processes.Register(r.ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Version: "v9", Capacity: 1, Plugins: []string{"shell", "planted"}, Versions: map[string]string{"planted": "1.4.0"}})
	check(t, err)
	v := r.signedIn("superadmin", "admin")
	v.get("/system/workers").shows(t, 200, "Last error", "none", "part of Loom, v9", "release 1.4.0", "/system/workers?as=csv")
	_, err = r.db.Exec(`UPDATE processes SET last_error = 'planted <trouble>', last_error_at = now() WHERE id = $1`, id)
	check(t, err)
	v.get("/system/workers").shows(t, 200, "planted &lt;trouble&gt;").hides(t, "<trouble>")
	v.get("/system/workers?as=csv").shows(t, 200, "planted <trouble>")
	v.get("/system/workers?as=json").shows(t, 200, `"planted":"1.4.0"`, `"shell":"v9"`, `"lastErrorTime":`)
}

// TestOfficeExports: lists of the office come as files, with the filters of their page.
func TestOfficeExports(t *testing.T) {
	t.Parallel()
	r := makeRooms(t, true)
	v, admin := r.signedIn("superadmin", "admin"), r.signedIn("demo", "admin")
	admin.post("/admin/hooks", "name", "planted-hook", "url", "http://127.0.0.1:9/x", "enabled", "true").shows(t, 200)
	admin.get("/admin/hooks").shows(t, 200, "/admin/hooks?as=csv")
	admin.get("/admin/hooks?as=csv").shows(t, 200, "name,address", "planted-hook,http://127.0.0.1:9/x")
	hook := "/admin/hooks/" + cut(admin.get("/admin/hooks").body, `href="/admin/hooks/`, `">planted-hook`)
	id := strings.TrimPrefix(hook, "/admin/hooks/")
	var cluster, op, delivery int64
	tenant := r.tenant("demo").ID
	check(t, r.db.Get(&cluster, `INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
VALUES ($1, 'ana', 'planted-cluster', 'active', 't', 1, '{}', 'p', '{}', '{}') RETURNING id`, tenant))
	check(t, r.db.Get(&op, `INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by) VALUES ($1, $2, 1, 'cluster_create', 'complete', 'ana') RETURNING id`, tenant, cluster))
	check(t, r.db.Get(&delivery, `INSERT INTO hook_deliveries (tenant_id, hook_id, operation_id, event, status, notice, tries, error) VALUES ($1, $2, $3, 'start', 'failed', '{}', 3, 'planted trouble') RETURNING id`, tenant, id, op))
	admin.get(hook+"?result=failed").shows(t, 200, "planted trouble", hook+"/deliveries?result=failed&amp;as=csv", "Send again")
	admin.get(hook+"/deliveries").goes(t, hook)
	if n := lines(admin.get(hook+"/deliveries?as=csv&result=failed").shows(t, 200, "id,event", "planted trouble")); n != 2 {
		t.Errorf("%d lines", n)
	}
	admin.get(hook+"/deliveries?as=csv&result=delivered").hides(t, "planted trouble")
	// Switched off, nothing is offered that would be refused.
	admin.post(hook, "name", "planted-hook", "url", "http://127.0.0.1:9/x").goes(t, hook)
	one := hook + "/deliveries/" + strconv.FormatInt(delivery, 10)
	admin.get(hook).shows(t, 200, "The hook is off: Loom sends nothing", "planted trouble").hides(t, "Send again")
	admin.get(one).shows(t, 200, "The hook is off").hides(t, "Send again")
	admin.post(one+"/replay").shows(t, 409, "is off; switch it on first")

	v.get("/system/clusters?tenant=demo").shows(t, 200, "planted-cluster", "/system/clusters?tenant=demo&amp;as=csv")
	v.get("/system/clusters?tenant=demo&as=csv").shows(t, 200, "id,name,status,tenant", "planted-cluster,active,demo,ana")
	v.get("/system/clusters?tenant=superadmin&as=json-all").shows(t, 200, "[]")
	_, err := r.db.Exec(`INSERT INTO river_job (state, queue, kind, args, attempt, max_attempts) VALUES ('available', 'control', 'trim_events', '{"n": 7}', 0, 25)`)
	check(t, err)
	v.get("/system/queues/jobs?kind=trim_events").shows(t, 200, "/system/queues/jobs?kind=trim_events&amp;as=csv")
	v.get("/system/queues/jobs?as=csv&kind=trim_events").shows(t, 200, "control,trim_events,available,0,25")
	v.get("/system/queues/jobs?as=json&id=x").shows(t, 400, "number of a River job")
}

// TestTenantPermitsForm: the form of a new tenant offers everything but static, instance roles and
// private networks; what is ticked counts, and a form of before this release changes nothing.
func TestTenantPermitsForm(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("superadmin", "admin")
	_, err := r.db.Exec(`INSERT INTO catalog_versions (tenant_id, kind, name, version, body, created_by)
SELECT 'superadmin', 'providertypes', n, 1, jsonb_build_object('name', n, 'label', 'Planted ' || n, 'parameters', '{}'::jsonb, 'resourceTypes', '{}'::jsonb), 'admin'
FROM unnest(ARRAY['static', 'mist', 'later']) AS n ON CONFLICT DO NOTHING`)
	check(t, err)
	has := func(name, want string) {
		t.Helper()
		p := r.tenant(name).Permits
		if got := fmt.Sprint(p.PrivateNetworks, p.InstanceRoles, p.TypesOff); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	form := v.get("/system/tenants/new").shows(t, 200, "Provider types", "Planted mist (mist)", "Private networks", "Instance roles").body
	for value, want := range map[string]bool{"static": false, "mist": true, "local": true, "privateNetworks": false, "instanceRoles": false} {
		box := regexp.MustCompile(`<input[^>]*value="` + value + `"[^>]*>`).FindString(form)
		if box == "" || strings.Contains(box, "checked") != want {
			t.Errorf("%s is not %t: %s", value, want, box)
		}
	}
	const all = "static mist later local"
	v.post("/system/tenants", "name", "odd", "workers", "x", "shownTypes", all, "types", "later", "may", "privateNetworks").shows(t, 422, "it must be a whole number")
	v.post("/system/tenants", "name", "new", "workers", "0", "shownTypes", all, "types", "mist", "types", "local", "may", "privateNetworks").shows(t, 200, "Tenant new was created")
	has("new", "true false [later static]")
	v.post("/system/tenants", "name", "plain", "workers", "0").shows(t, 200, "Tenant plain was created")
	has("plain", "false false [static]")
	// What a new tenant begins without stays off where no plugin of that type is here.
	v.post("/system/tenants", "name", "without", "workers", "0", "shownTypes", "mist", "types", "mist").shows(t, 200, "Tenant without was created")
	has("without", "false false [static]")
	_, err = r.db.Exec(`DELETE FROM catalog_versions WHERE kind = 'providertypes' AND name = 'static'`)
	check(t, err)
	v.post("/system/tenants", "name", "unheard", "workers", "0", "shownTypes", "mist local", "types", "mist").shows(t, 200, "Tenant unheard was created")
	has("unheard", "false false [local static]")
	v.get("/system/tenants/new").hides(t, "Tenant new")
	v.get("/system/tenants/plain").shows(t, 200, "Provider types off", "static", "not allowed")
	v.post("/system/tenants/new", "workers", "0", "shownTypes", "mist", "may", "instanceRoles").goes(t, "/system/tenants/new")
	has("new", "false true [later mist static]") // later was not offered, so it stays off
	v.post("/system/tenants/new", "workers", "0", "description", "of a page of before").goes(t, "/system/tenants/new")
	has("new", "false true [later mist static]")
	v.get("/system/audit?kind=tenant").shows(t, 200, "update")
	r.signedIn("demo", "admin").post("/system/tenants/demo", "workers", "0", "shownTypes", "static", "may", "privateNetworks").shows(t, 403)
	has("demo", "true true []")
}
