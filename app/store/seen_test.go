package store_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"loom/app/loom"
	"loom/app/store"
)

// TestListsShowWhatMayBeSeen gives random roles to somebody who owns some clusters, and holds every
// list, count and search against what May says of each cluster.
func TestListsShowWhatMayBeSeen(t *testing.T) {
	t.Parallel()
	w := newListWorld(t)
	w.db.MustExec(`INSERT INTO users (tenant_id, id, role) VALUES ('a', 'ana', 'user') ON CONFLICT DO NOTHING`)
	var all []struct {
		ID       int64         `db:"id"`
		Tenant   loom.TenantID `db:"tenant_id"`
		Owner    loom.UserID   `db:"owner_id"`
		Template string        `db:"template_name"`
		Status   string        `db:"status"`
		Nodes    int           `db:"nodes"`
	}
	if err := w.db.Select(&all, `SELECT id, tenant_id, owner_id, template_name, status, (SELECT count(*) FROM nodes n WHERE n.cluster_id = c.id) AS nodes FROM clusters c ORDER BY id`); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	hidden, shared := 0, 0
	for range 60 {
		w.db.MustExec(`DELETE FROM role_bindings`)
		w.db.MustExec(`DELETE FROM groups`)
		w.db.MustExec(`INSERT INTO groups (tenant_id, name) VALUES ('a', 'team')`)
		if r.IntN(2) == 0 {
			w.db.MustExec(`INSERT INTO group_members (tenant_id, group_id, user_id, added_by) SELECT 'a', id, 'ana', 'admin' FROM groups`)
		}
		for range r.IntN(5) {
			c := all[r.IntN(len(all))]
			if c.Tenant != "a" {
				continue
			}
			place := loom.Place([]loom.Place{loom.PlaceTenant, loom.PlaceTemplate, loom.PlaceCluster, loom.PlaceCluster}[r.IntN(4)])
			roles := loom.BoundAt(place)
			var template, cluster any
			switch place {
			case loom.PlaceTemplate:
				template = c.Template
			case loom.PlaceCluster:
				cluster = c.ID
			}
			w.db.MustExec(`INSERT INTO role_bindings (tenant_id, user_id, group_id, role, template, cluster_id, created_by)
				SELECT 'a', CASE WHEN $1 THEN 'ana' END, CASE WHEN NOT $1 THEN id END, $2, $3, $4, 'admin' FROM groups ON CONFLICT DO NOTHING`, r.IntN(2) == 0, roles[r.IntN(len(roles))], template, cluster)
		}
		ana, err := store.User(t.Context(), w.db, "a", "ana")
		if err != nil {
			t.Fatal(err)
		}
		actor := loom.Actor{Tenant: "a", User: "ana", Role: ana.Role, Grants: ana.Grants}
		viewer := store.SeenBy(actor)
		var want []loom.ClusterID
		nodes := 0
		for _, c := range all {
			o := loom.Object{Tenant: c.Tenant, Owner: c.Owner, Template: c.Template, Cluster: loom.ClusterID(c.ID)}
			if actor.May(loom.See, o) != nil {
				hidden++
				continue
			}
			want, nodes = append(want, o.Cluster), nodes+c.Nodes
			if c.Owner != "ana" {
				shared++
			}
		}
		list, err := store.ClustersByTenant(t.Context(), w.db, "a", store.ClusterFilter{Viewer: viewer}, loom.Page{Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		var got []loom.ClusterID
		for _, c := range list.Items {
			got = append(got, c.ID)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || list.Total != len(want) {
			t.Fatalf("with %+v: %d of %v are listed, want %v", ana.Grants, list.Total, got, want)
		}
		page, err := store.NodesByTenant(t.Context(), w.db, "a", viewer, loom.Page{Limit: 500})
		if err != nil || len(page.Items) != nodes {
			t.Fatalf("with %+v: %d nodes, want %d: %v", ana.Grants, len(page.Items), nodes, err)
		}
		for _, n := range page.Items {
			if !slices.Contains(want, n.Cluster) {
				t.Fatalf("with %+v: node of %s", ana.Grants, n.Cluster)
			}
		}
		for _, word := range []string{"l", "local"} {
			found, err := store.SearchNodes(t.Context(), w.db, "a", viewer, word, 10000)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range found {
				if !slices.Contains(want, n.Cluster) {
					t.Fatalf("with %+v: found a node of %s", ana.Grants, n.Cluster)
				}
			}
		}
	}
	if hidden == 0 || shared == 0 {
		t.Errorf("%d hidden, %d shared", hidden, shared)
	}
}
