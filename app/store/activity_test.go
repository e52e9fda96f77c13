package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/store"
	"loom/app/testkit"
)

// TestActivityInOrder: pages of the feed, read forth and back, are what sorting all of it gives,
// also where much happened at once; an operation is one entry with its present state.
func TestActivityInOrder(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	r := rand.New(rand.NewPCG(3, 4))
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	at := func() time.Time { return time.Date(2026, 3, 1, 0, 0, r.IntN(40), 0, time.UTC) }
	db.MustExec(`INSERT INTO tenants (id, name) VALUES ('a', 'a'), ('b', 'b')`)
	for id := 1; id <= 6; id++ {
		db.MustExec(`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
			VALUES ($1, $2, $3, 'c', 'active', 't', 1, '{}', 'p', '{}', '{}')`, id, pick("a", "a", "b"), pick("ana", "ben"))
	}
	for n := 1; n <= 150; n++ {
		kind, cluster := pick("cluster", "operation", "task", "node", "service", "user"), 1+r.IntN(6)
		object := map[string]string{"service": "nginx", "user": "ana"}[kind]
		if object == "" {
			object = fmt.Sprintf("%08d", cluster)
		}
		db.MustExec(`INSERT INTO audit (tenant_id, actor, via, verb, kind, object, result, created_at) SELECT tenant_id, $2, 'session', $3, $4, $5, $6, $7 FROM clusters WHERE id = $1`,
			cluster, pick("ana", "ben"), pick("create", "update"), kind, object, pick("ok", "failed"), at())
		var ended any
		status := "running"
		if n > 6 {
			ended, status = at(), pick("complete", "failed")
		}
		by := pick("ana", "ben")
		db.MustExec(`INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by, started_at, ended_at) SELECT tenant_id, id, $2, 'cluster_create', $3, $4, $5, $5 FROM clusters WHERE id = $1`,
			1+n%6, n, status, by, ended)
		db.MustExec(`INSERT INTO audit (tenant_id, actor, via, verb, kind, object, result, after, created_at)
			SELECT tenant_id, $2, 'session', 'apply', 'cluster', $3, 'ok', jsonb_build_object('operationId', $3 || '-' || lpad($4::text, 3, '0')), $5 FROM clusters WHERE id = $1`,
			1+n%6, by, fmt.Sprintf("%08d", 1+n%6), n, at())
	}
	const plain = `SELECT a.id FROM audit a
		LEFT JOIN operations o ON a.verb = 'apply' AND a.after->>'operationId' = loom_pad(o.cluster_id) || '-' || lpad(o.number::text, 3, '0')
		LEFT JOIN clusters c ON c.id = CASE WHEN a.kind IN ('cluster', 'operation', 'task') THEN a.object::bigint END
		WHERE ($1 = '' OR a.tenant_id = $1) AND a.kind <> 'user' AND ($2 = '' OR a.actor = $2 OR c.owner_id = $2 OR a.kind = 'service')
			AND ($3 = '' OR a.verb = $3 AND o.id IS NULL) AND ($4 = '' OR o.action = $4)
			AND ($5 = '' OR $5 = CASE o.status WHEN 'complete' THEN 'ok' WHEN 'failed' THEN 'failed' WHEN 'running' THEN 'running' ELSE a.result END)
			AND ($6 = 0 OR c.id = $6) AND (NOT $7 OR o.id IS NULL) ORDER BY a.created_at DESC, a.id DESC`
	kinds := append([]string{"cluster", "operation", "task", "node"}, store.CatalogWords()...)
	for _, f := range []store.ActivityFilter{
		{}, {Viewer: store.Viewer{User: "ana"}}, {Actions: []loom.ClusterAction{loom.ClusterCreate}}, {Verbs: []string{"update"}, Result: "ok"}, {Cluster: 2}, {Viewer: store.Viewer{User: "ben"}, Result: "failed"}, {Verbs: []string{"delete"}},
		{Result: "running"}, {NoOperations: true},
	} {
		f.Kinds = kinds
		verb, action := "", ""
		if len(f.Verbs) > 0 {
			verb = f.Verbs[0]
		}
		if len(f.Actions) > 0 {
			action = string(f.Actions[0])
		}
		for _, tenant := range []loom.TenantID{"a", ""} {
			var want []int64
			if err := db.Select(&want, plain, tenant, f.Viewer.User, verb, action, f.Result, int64(f.Cluster), f.NoOperations); err != nil {
				t.Fatal(err)
			}
			read := func(p loom.Page) store.ActivityList {
				list, err := store.ActivityAllTenants(t.Context(), db.DB, f, p)
				if tenant != "" {
					list, err = store.Activity(t.Context(), db.DB, tenant, f, p)
				}
				if err != nil {
					t.Fatal(err)
				}
				return list
			}
			ids := func(list store.ActivityList) (ids []int64) {
				for _, a := range list.Items {
					if ids = append(ids, a.ID); (a.Began != nil) != (a.Verb == "apply") || a.Began != nil && a.Began.Ref.Cluster != a.Cluster {
						t.Errorf("%s of %s began %v", a.Verb, a.Object, a.Began)
					}
				}
				return ids
			}
			var forth, back []int64
			last := loom.Page{Limit: 7}
			for p := last; ; p.After = read(p).Next {
				list := read(p)
				forth, last = append(forth, ids(list)...), p
				if list.Next == "" {
					break
				}
			}
			for p := (loom.Page{Limit: 7, Before: read(last).Prev}); p.Before != ""; {
				list := read(p)
				back, p.Before = append(ids(list), back...), list.Prev
			}
			back = append(back, ids(read(last))...)
			if !slices.Equal(forth, want) || !slices.Equal(back, want) {
				t.Errorf("%+v of %q: forth %d, back %d, there are %d", f, tenant, len(forth), len(back), len(want))
			}
		}
	}
}

// TestActivityKnowsOperations: the entry of an operation has its state, how far it is, and how
// many nodes it leads from and to.
func TestActivityKnowsOperations(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	db.MustExec(`INSERT INTO tenants (id, name) VALUES ('a', 'a')`)
	db.MustExec(`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		VALUES (7, 'a', 'ana', 'shop', 'pending', 't', 1, '{}', 'p', '{}', '{}')`)
	db.MustExec(`INSERT INTO operations (id, tenant_id, cluster_id, number, action, status, requested_by, started_at) OVERRIDING SYSTEM VALUE VALUES (70, 'a', 7, 2, 'cluster_expand', 'running', 'ana', now())`)
	db.MustExec(`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
		VALUES ('00000000-0000-4000-8000-000000000001', 7, 'a', 1, 'h', 'm', 'i', 'f', 'i', 'root', '{}', '{}')`)
	for n, status := range []string{"complete", "complete", "failed"} {
		db.MustExec(`INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, node_id, action, status) VALUES (70, 'a', 7, $1, '00000000-0000-4000-8000-000000000001', 'create', $2)`, n+1, status)
	}
	db.MustExec(`INSERT INTO audit (tenant_id, actor, via, verb, kind, object, result, before, after) VALUES
		('a', 'ana', 'session', 'apply', 'cluster', '00000007', 'ok', '{"layout": [{"count": 1}, {"count": 2}]}', '{"operationId": "00000007-002", "layout": [{"count": 1}, {"count": 4}]}'),
		('a', 'ana', 'session', 'update', 'service', 'nginx', 'ok', '{"layout": [{"count": "many"}]}', '{"numMachines": {}, "layout": "odd"}')`)
	list, err := store.Activity(t.Context(), db.DB, "a", store.ActivityFilter{Kinds: []string{"cluster", "service"}}, loom.Page{Limit: 5})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%d entries, %v", len(list.Items), err)
	}
	a := list.Items[1]
	if a.Began == nil || a.Began.Status != loom.OperationRunning || a.Action != loom.ClusterExpand || a.NodesBefore != 3 || a.NodesAfter != 5 {
		t.Fatalf("the entry is %+v", a)
	}
	if p := a.Began.Progress(); p.Done != 2 || p.Total != 3 || a.Began.Tasks[loom.TaskFailed] != 1 {
		t.Errorf("it is %d of %d, %v", p.Done, p.Total, a.Began.Tasks)
	}
}
