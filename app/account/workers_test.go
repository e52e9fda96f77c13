package account_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/loom"
)

// provide starts a provisioner that serves all tenants.
func (b bundle) provide(t *testing.T, capacity int) {
	t.Helper()
	b.exec(t, `INSERT INTO processes (id, kind, host, capacity, expires_at) VALUES ('p', 'provisioner', 'h', $1, now() + interval '1 hour')`, capacity)
}

// run lets demo run some tasks.
func (b bundle) run(t *testing.T, tasks int) {
	t.Helper()
	b.exec(t, `WITH c AS (
	INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
	VALUES ($1, 'user', 'busy', 'pending', 't', 1, '{}', 'lab', '{}', '{}') RETURNING id),
o AS (INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by) SELECT $1, id, 1, 'cluster_create', 'running', 'user' FROM c RETURNING id, cluster_id),
n AS (INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, task_id)
	SELECT gen_random_uuid(), cluster_id, $1, i, 'h' || i, 'h', 'i', 'f', 'i', 'u', '{}', '{}', 700 + i FROM o, generate_series(1, $2::int) AS i RETURNING id, cluster_id, number, task_id)
INSERT INTO tasks (id, operation_id, tenant_id, cluster_id, node_id, number, action, status) SELECT n.task_id, o.id, $1, n.cluster_id, n.id, n.number, 'CREATE', 'running' FROM n, o`,
		b.user.Tenant, tasks)
}

func (b bundle) workers(t *testing.T) map[string]int {
	t.Helper()
	tenants, err := b.Tenants(b.ctx, b.super)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]int{}
	for _, tenant := range tenants {
		by[tenant.Name] = tenant.Workers
	}
	return by
}

// TestWorkersFromAnotherTenant: demo has 100 of 105 workers and superadmin 1, so 4 are free.
func TestWorkersFromAnotherTenant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.provide(t, 105)
	b.run(t, 3)
	refused := func(in account.TenantInput, kind loom.Kind, field, says string) {
		t.Helper()
		_, err := b.CreateTenant(b.ctx, b.super, in)
		if !errors.Is(err, kind) || fieldsOf(err) != field || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v at %q, want %s at %q with %q", in, err, fieldsOf(err), kind, field, says)
		}
	}
	lab := func(workers int, from string) account.TenantInput {
		return account.TenantInput{Name: "lab", Workers: &workers, WorkersFrom: from}
	}
	refused(lab(10, ""), loom.Conflict, "workers", "demo: 100")
	refused(lab(10, "nobody"), loom.Invalid, "workersFrom", "There is no tenant “nobody”")
	refused(lab(10, "lab"), loom.Invalid, "workersFrom", "another tenant")
	refused(lab(10, "superadmin"), loom.Conflict, "workersFrom", "The tenant “superadmin” has 1 worker")
	refused(lab(105, "demo"), loom.Conflict, "workersFrom", "104")
	refused(lab(102, "demo"), loom.Conflict, "workersFrom", "runs 3 tasks")
	if got := b.workers(t); !reflect.DeepEqual(got, map[string]int{"superadmin": 1, "demo": 100}) {
		t.Fatalf("a refused request moved workers: %v", got)
	}

	if _, err := b.CreateTenant(b.ctx, b.super, lab(10, "demo")); err != nil {
		t.Fatal(err)
	}
	if got := b.workers(t); got["lab"] != 10 || got["demo"] != 94 {
		t.Errorf("after 10 workers with 4 free: %v", got)
	}
	room, err := b.WorkerRoom(b.ctx, b.super)
	want := account.WorkerRoom{Capacity: 105, Holders: []account.Holder{{Name: "superadmin", Workers: 1}, {Name: "demo", Workers: 94, Busy: 3}, {Name: "lab", Workers: 10}}}
	if err != nil || !reflect.DeepEqual(room, want) || room.Free("") != 0 || room.Free("lab") != 10 {
		t.Errorf("room %+v, free %d, %v", room, room.Free(""), err)
	}
	if _, err := b.WorkerRoom(b.ctx, b.admin); !errors.Is(err, loom.Forbidden) {
		t.Errorf("the room read by a tenant's administrator: %v", err)
	}
	// What is free is taken from nobody.
	if _, err := b.UpdateTenant(b.ctx, b.super, "lab", account.TenantInput{Workers: ptr(4), WorkersFrom: "demo"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.UpdateTenant(b.ctx, b.super, "lab", account.TenantInput{Workers: ptr(12), WorkersFrom: "demo"}); err != nil {
		t.Fatal(err)
	}
	if got := b.workers(t); got["lab"] != 12 || got["demo"] != 92 {
		t.Errorf("after 8 more workers with 6 free: %v", got)
	}

	entries := func(tenant, object string) (moves []string) {
		t.Helper()
		list, err := b.Audit(b.ctx, b.super, account.AuditInput{Tenant: tenant, AuditFilter: account.AuditFilter{Kinds: []string{"tenant"}}, Page: loom.Page{Limit: 50}})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			if e.Object == object {
				moves = append(moves, e.Verb)
			}
		}
		return moves
	}
	for _, c := range []struct {
		tenant, object string
		want           string
	}{
		{"superadmin", "demo", "update update create"}, {"demo", "demo", "update update"},
		{"superadmin", "lab", "update update create"}, {"lab", "lab", "update update"},
	} {
		if got := strings.Join(entries(c.tenant, c.object), " "); got != c.want {
			t.Errorf("the audit of %s about %s: %q, want %q", c.tenant, c.object, got, c.want)
		}
	}
}
