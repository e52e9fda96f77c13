package web_test

import (
	"strconv"
	"strings"
	"testing"
)

// The queue lists single tasks of the tenant page by page, with what each waits for, in a
// number of queries that does not depend on how many there are.
func TestQueueListsTasks(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	admin, super := r.signedIn("demo", "admin"), r.signedIn("superadmin", "admin")
	admin.get("/admin/queue").shows(t, 200, "No task waits for a worker.", ">–<")
	for _, statement := range []string{
		`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		SELECT 70 + i, t.id, 'user', 'bee-' || i, 'pending', 'x', 1, '{}', 'local', '{}', '{}' FROM tenants t, generate_series(1, 2) i WHERE t.name = 'demo'`,
		`INSERT INTO operations (id, tenant_id, cluster_id, number, action, status, requested_by) OVERRIDING SYSTEM VALUE
		SELECT 70 + i, t.id, 70 + i, 1, 'cluster_create', CASE i WHEN 1 THEN 'running' ELSE 'paused' END, 'user' FROM tenants t, generate_series(1, 2) i WHERE t.name = 'demo'`,
		`INSERT INTO river_job (id, state, queue, kind, args, max_attempts, priority, scheduled_at)
		SELECT 9000 + i, CASE WHEN i > 32 THEN 'pending' ELSE 'available' END::river_job_state, 'planted', 'run_task', '{}', 25, CASE i WHEN 2 THEN 3 ELSE 1 END, now() - make_interval(mins => 90 - i) + make_interval(hours => CASE i WHEN 32 THEN 9 ELSE 0 END)
		FROM generate_series(1, 34) i`,
		`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
		SELECT ('00000000-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid, CASE WHEN i > 32 THEN 72 ELSE 71 END, t.id, i, 'host-' || i || '.example', 'x', 'x', 'x', 'x', 'root', '{}', '{}' FROM tenants t, generate_series(1, 34) i WHERE t.name = 'demo'`,
		`INSERT INTO tasks (id, operation_id, tenant_id, cluster_id, number, node_id, service, action, status, river_job_id, code, message, started_at, process_id)
		SELECT 900 + i, CASE WHEN i > 32 THEN 72 ELSE 71 END, t.id, CASE WHEN i > 32 THEN 72 ELSE 71 END, i, ('00000000-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid, 'svc-' || i, 'install',
		CASE i WHEN 31 THEN 'running' ELSE 'ready' END, 9000 + i, CASE i WHEN 32 THEN 7 ELSE 0 END, CASE i WHEN 32 THEN 'mirror is away' ELSE '' END, CASE i WHEN 31 THEN now() - interval '3 minutes' END, CASE i WHEN 31 THEN 'p-31' ELSE '' END
		FROM tenants t, generate_series(1, 34) i WHERE t.name = 'demo'`,
		`UPDATE nodes SET task_id = 900 + number`,
	} {
		if _, err := r.db.Exec(statement); err != nil {
			t.Fatalf("%v: %s", err, statement)
		}
	}
	page := admin.get("/admin/queue").shows(t, 200, "install svc-1<", "host-1", "bee-1", "task 1 of operation 1", `/clusters/00000071/operations/1/tasks/1"`, "1 h 29 min", "No provisioner that runs has a worker for the tenant.", `>33<`).
		hides(t, "install svc-31<", "install svc-30<")
	if a, b := strings.Index(page.body, "install svc-1<"), strings.Index(page.body, "install svc-2<"); a < 0 || b < a {
		t.Errorf("the task that has waited longest is not first: %d, %d", a, b)
	}
	next := strings.ReplaceAll(cut(page.body, `href="`, `" rel="next"`), "&amp;", "&")
	second := admin.get(next).shows(t, 200, "install svc-30<", "It is tried again in", "after: mirror is away", "Its operation is paused.", "/admin/queue?before=").hides(t, "install svc-1<")
	if n := strings.Count(second.body, "install svc-"); n != 8 {
		t.Errorf("%d tasks are on the second page", n)
	}
	admin.get("/admin/queue?after=nonsense").shows(t, 422)
	admin.get("/admin/queue?state=running").shows(t, 200, "install svc-31<", "p-31", "3 min").hides(t, "install svc-2<")
	super.get("/admin/queue").shows(t, 200, "No task waits for a worker.").hides(t, "svc-1")
	if _, err := r.db.Exec(`INSERT INTO processes (id, kind, host, capacity, plugins, expires_at) VALUES ('p-31', 'provisioner', 'hive', 1, '{}', now() + interval '1 hour')`); err != nil {
		t.Fatal(err)
	}
	if _, err := r.db.Exec(`INSERT INTO worker_assignments (process_id, tenant_id, workers) SELECT 'p-31', id, 1 FROM tenants WHERE name = 'demo'`); err != nil {
		t.Fatal(err)
	}
	admin.get("/admin/queue").shows(t, 200, "The one worker of the tenant is busy, and clusters with less under way go first.", "2 workers, the provisioners that run gave it "+strconv.Itoa(1))
}
