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

// TestActivityIsPutTogetherInOrder: pages of the feed, read forth and back, are what
// sorting all of it gives, also where much happened at once.
func TestActivityIsPutTogetherInOrder(t *testing.T) {
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
		db.MustExec(`INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by, ended_at) SELECT tenant_id, id, $2, 'cluster_create', $3, $4, $5 FROM clusters WHERE id = $1`,
			1+n%6, n, status, pick("ana", "ben"), ended)
	}
	const plain = `SELECT x.key FROM (
		SELECT a.created_at AS at, 'a' || lpad(a.id::text, 19, '0') AS key, a.tenant_id, a.actor, a.verb, a.kind, a.result,
			CASE WHEN a.kind IN ('cluster', 'operation', 'task') THEN a.object::bigint END AS cluster_id FROM audit a
		UNION ALL SELECT o.ended_at, 'o' || lpad(o.id::text, 19, '0'), o.tenant_id, o.requested_by, 'finish', 'operation', CASE o.status WHEN 'complete' THEN 'ok' ELSE 'failed' END, o.cluster_id
		FROM operations o WHERE o.ended_at IS NOT NULL) x LEFT JOIN clusters c ON c.id = x.cluster_id
		WHERE ($1 = '' OR x.tenant_id = $1) AND x.kind <> 'user' AND ($2 = '' OR x.actor = $2 OR c.owner_id = $2 OR x.kind = 'service') AND ($3 = '' OR x.verb = $3) AND ($4 = '' OR x.result = $4)
			AND ($5 = 0 OR x.cluster_id = $5) ORDER BY x.at DESC, x.key DESC`
	kinds := append([]string{"cluster", "operation", "task", "node"}, store.CatalogWords()...)
	for _, f := range []store.ActivityFilter{
		{}, {Viewer: "ana"}, {Verb: "finish"}, {Verb: "update", Result: "ok"}, {Cluster: 2}, {Viewer: "ben", Result: "failed"}, {Verb: "delete"},
	} {
		f.Kinds = kinds
		for _, tenant := range []loom.TenantID{"a", ""} {
			var want []string
			if err := db.Select(&want, plain, tenant, f.Viewer, f.Verb, f.Result, int64(f.Cluster)); err != nil {
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
			keys := func(list store.ActivityList) (keys []string) {
				for _, a := range list.Items {
					keys = append(keys, a.Key)
				}
				return keys
			}
			var forth, back []string
			last := loom.Page{Limit: 7}
			for p := last; ; p.After = read(p).Next {
				list := read(p)
				forth, last = append(forth, keys(list)...), p
				if list.Next == "" {
					break
				}
			}
			for p := (loom.Page{Limit: 7, Before: read(last).Prev}); p.Before != ""; {
				list := read(p)
				back, p.Before = append(keys(list), back...), list.Prev
			}
			back = append(back, keys(read(last))...)
			if !slices.Equal(forth, want) || !slices.Equal(back, want) {
				t.Errorf("%+v of %q: forth %d, back %d, there are %d", f, tenant, len(forth), len(back), len(want))
			}
		}
	}
}
