package processes_test

import (
	"context"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/testkit"
)

const usedNode = loom.NodeID("00000000-0000-4000-8000-000000000001")

// TestNodeUse sums up the lives of one node, and of no other; who may not see them gets
// nothing.
func TestNodeUse(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	db.MustExec(`INSERT INTO tenants (id, name) VALUES ('a', 'acme'), ('b', 'other')`)
	db.MustExec(`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		VALUES (1, 'a', 'ana', 'c', 'active', 'web', 1, '{}', 'lab', '{}', '{}')`)
	db.MustExec(`INSERT INTO operations (id, tenant_id, cluster_id, number, action, status, requested_by) OVERRIDING SYSTEM VALUE VALUES (1, 'a', 1, 1, 'cluster_create', 'complete', 'ana')`)
	other := "00000000-0000-4000-8000-000000000002"
	for n, id := range []string{string(usedNode), other} {
		db.MustExec(`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
			VALUES ($1, 1, 'a', $2, 'h', 'small', 'i', 'f', 'i', 'root', '{}', '{}')`, id, n+1000)
	}
	task := func(number int, node, action, ago string) {
		t.Helper()
		db.MustExec(`INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, node_id, action, status, ended_at)
			VALUES (1, 'a', 1, $1, $2, $3, 'complete', now() - $4::interval)`, number, node, action, ago)
	}
	task(1, other, "create", "100 hours")
	task(2, string(usedNode), "create", "30 hours")
	task(3, string(usedNode), "delete", "20 hours")
	task(4, string(usedNode), "create", "10 hours")

	f := processes.New(db.DB, processes.Options{})
	in := processes.NodeUseInput{Cluster: 1, Node: usedNode}
	ana := loom.Actor{User: "ana", Tenant: "a", TenantName: "acme", Role: loom.RoleUser, Scopes: []loom.Scope{loom.ScopeRead}}
	use, ok, err := f.NodeUse(context.Background(), ana, in)
	if err != nil || !ok {
		t.Fatalf("use %+v, %v, %v", use, ok, err)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if got < want-.1 || got > want+.1 {
			t.Errorf("%s is %.2f, want %.2f", what, got, want)
		}
	}
	near("the total", use.Total, 20)
	near("the first use, hours ago,", use.End.Sub(use.First).Hours(), 30)
	if use.GroupBy != "hour" || len(use.Marks) != len(use.Hours)+1 || use.Marks[0].Minute() != 0 {
		t.Errorf("shown by %s, %d bars from %s", use.GroupBy, len(use.Hours), use.Marks[0])
	}
	in.Until = time.Now().Add(-15 * time.Hour)
	use, _, err = f.NodeUse(context.Background(), ana, in)
	if err != nil {
		t.Fatal(err)
	}
	near("the total until it was gone", use.Total, 10)

	in.Until = time.Time{}
	ben, eve, none := ana, ana, ana
	ben.User, eve.Tenant, none.Scopes = "ben", "b", []loom.Scope{}
	eve.Role = loom.RoleAdmin
	for who, actor := range map[string]loom.Actor{"another user": ben, "another tenant": eve} {
		if use, ok, err := f.NodeUse(context.Background(), actor, in); ok || err != nil {
			t.Errorf("%s sees %+v, %v", who, use, err)
		}
	}
	if _, ok, err := f.NodeUse(context.Background(), none, in); ok || loom.AsError(err).Kind != loom.Forbidden {
		t.Errorf("without the right to read: %v, %v", ok, err)
	}
	admin := ben
	admin.Role = loom.RoleAdmin
	if _, ok, err := f.NodeUse(context.Background(), admin, in); !ok || err != nil {
		t.Errorf("an administrator: %v, %v", ok, err)
	}
}

// TestNodeUseOfANewNode shows half a day, most of it without the node.
func TestNodeUseOfANewNode(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	db.MustExec(`INSERT INTO tenants (id, name) VALUES ('a', 'acme')`)
	db.MustExec(`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		VALUES (1, 'a', 'ana', 'c', 'active', 'web', 1, '{}', 'lab', '{}', '{}')`)
	db.MustExec(`INSERT INTO operations (id, tenant_id, cluster_id, number, action, status, requested_by) OVERRIDING SYSTEM VALUE VALUES (1, 'a', 1, 1, 'cluster_create', 'complete', 'ana')`)
	db.MustExec(`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
		VALUES ($1, 1, 'a', 1000, 'h', 'small', 'i', 'f', 'i', 'root', '{}', '{}')`, string(usedNode))
	f := processes.New(db.DB, processes.Options{})
	ana := loom.Actor{User: "ana", Tenant: "a", Role: loom.RoleUser, Scopes: []loom.Scope{loom.ScopeRead}}
	in := processes.NodeUseInput{Cluster: 1, Node: usedNode}
	if _, ok, err := f.NodeUse(context.Background(), ana, in); ok || err != nil {
		t.Errorf("a node that never was: %v, %v", ok, err)
	}
	db.MustExec(`INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, node_id, action, status, ended_at) VALUES (1, 'a', 1, 1, $1, 'create', 'complete', now() - interval '20 minutes')`, string(usedNode))
	use, ok, err := f.NodeUse(context.Background(), ana, in)
	if err != nil || !ok || len(use.Hours) < 12 || use.Total < .3 || use.Total > .4 {
		t.Errorf("use %+v, %v, %v", use, ok, err)
	}
}
