package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/store"
)

// TestSearchedNodesAreTheNodes changes nodes in every way in which they are changed, and
// holds what they are searched for by against them.
func TestSearchedNodesAreTheNodes(t *testing.T) {
	t.Parallel()
	w := newListWorld(t)
	same := func(after string) {
		t.Helper()
		var differ int
		if err := w.db.Get(&differ, `SELECT count(*) FROM nodes n FULL JOIN searched_nodes s ON s.tenant_id = n.tenant_id AND s.node_id = n.id
			WHERE s.node_id IS NULL OR n.id IS NULL OR s.cluster_id <> n.cluster_id OR s.hostname <> n.hostname
			   OR s.addresses <> coalesce((SELECT string_agg(a.value, E'\n') FROM jsonb_each_text(n.ipaddresses) a), '')`); err != nil {
			t.Fatal(err)
		}
		if differ > 0 {
			t.Errorf("after %s %d nodes are searched for by something else", after, differ)
		}
	}
	same("making them")
	for _, change := range []string{
		`UPDATE nodes SET hostname = 'new-' || hostname WHERE number = 0`,
		`UPDATE nodes SET ipaddresses = ipaddresses || '{"access_v4": "192.0.2.77", "none": null}' WHERE number = 1`,
		`UPDATE nodes SET hostname = hostname, ipaddresses = '{}', state = 'deleted' WHERE tenant_id = 'b'`,
		`UPDATE nodes SET state = 'ready', task_id = 7`,
		`DELETE FROM nodes WHERE number = 1`,
		`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
			SELECT gen_random_uuid(), id, tenant_id, 9, 'late.local', 'h', 'i', 'f', 'i', 'root', '{}', '{}' FROM clusters`,
	} {
		w.db.MustExec(change)
		same(change)
	}
	// What is not an object has no addresses, and keeps nobody from storing the node.
	w.db.MustExec(`UPDATE nodes SET ipaddresses = '"none"' WHERE number = 9 AND tenant_id = 'a'`)
	var told int
	if err := w.db.Get(&told, `SELECT count(*) FROM searched_nodes WHERE hostname = 'late.local' AND addresses <> ''`); err != nil || told > 0 {
		t.Errorf("%d nodes without addresses have some: %v", told, err)
	}
}

// Of few letters some nodes are looked at first: what is alive behind them is found, and
// nothing of anybody else.
func TestSearchNodesLooksBehindThoseThatAreGone(t *testing.T) {
	t.Parallel()
	w := newListWorld(t)
	w.db.MustExec(`DELETE FROM nodes`)
	const insert = `INSERT INTO nodes (id, cluster_id, tenant_id, number, state, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
		SELECT gen_random_uuid(), c.id, c.tenant_id, n, $3, 'zz-' || $1 || lpad(n::text, 4, '0'), 'h', 'i', 'f', 'i', 'root', '{}', '{}'
		FROM (SELECT id, tenant_id FROM clusters WHERE tenant_id = 'a' AND owner_id = $4 AND status <> 'terminated' ORDER BY id LIMIT 1) c, generate_series(1, $2::int) n`
	w.db.MustExec(insert, "a", 100, "deleted", "ana")
	w.db.MustExec(insert, "b", 3, "ready", "ben")
	find := func(owner loom.UserID, limit int) []string {
		found, err := store.SearchNodes(t.Context(), w.db, "a", store.Viewer{User: owner}, "zz", limit)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, n := range found {
			names = append(names, n.Hostname)
		}
		return names
	}
	for _, limit := range []int{1, 2, 5, 25} {
		for _, owner := range []loom.UserID{"", "ben"} {
			want := []string{"zz-b0001", "zz-b0002", "zz-b0003"}
			want = want[:min(limit, len(want))]
			if got := find(owner, limit); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%d for %q: %v, want %v", limit, owner, got, want)
			}
		}
	}
	if found, err := store.SearchNodes(t.Context(), w.db, "a", store.Viewer{User: "ana"}, "zz", 5); err != nil || len(found) > 0 {
		t.Errorf("ana, whose nodes are gone, finds %v, %v", found, err)
	}
	if found, err := store.SearchNodes(t.Context(), w.db, "b", store.Viewer{}, "zz", 5); err != nil || len(found) > 0 {
		t.Errorf("another tenant finds %v, %v", found, err)
	}
}

// One look at all nodes gives clusters and nodes: both are those that each finds alone.
func TestOneLookServesClustersAndNodes(t *testing.T) {
	t.Parallel()
	w := newListWorld(t)
	some := 0
	for _, word := range shortWords {
		word = strings.ToLower(word)
		if !store.FewLetters(word) {
			t.Fatalf("%q has many letters", word)
		}
		for _, owner := range []loom.UserID{"", "ana"} {
			for _, limit := range []int{3, 25, 200} {
				_, clusters, err := store.SearchFewLetters(t.Context(), w.db, "a", store.Viewer{User: owner}, word, limit)
				if err != nil {
					t.Fatal(err)
				}
				f := store.ClusterFilter{Viewer: store.Viewer{User: owner}, Words: []string{word}, Uncounted: true, Brief: true}
				alone, err := store.ClustersByTenant(t.Context(), w.db, "a", f, loom.Page{Limit: limit})
				if err != nil {
					t.Fatal(err)
				}
				f.OfNodes = &clusters
				with, err := store.ClustersByTenant(t.Context(), w.db, "a", f, loom.Page{Limit: limit})
				if err != nil {
					t.Fatal(err)
				}
				if some += len(clusters); len(clusters) > limit+1 || !slices.Equal(idsOf(with.Items), idsOf(alone.Items)) || (with.Next == "") != (alone.Next == "") {
					t.Errorf("%q of %q, %d at most: %v, want %v", word, owner, limit, idsOf(with.Items), idsOf(alone.Items))
				}
			}
		}
	}
	if some == 0 {
		t.Error("no node has any of the words")
	}
}

func idsOf(items []loom.ClusterSummary) []loom.ClusterID {
	var ids []loom.ClusterID
	for _, c := range items {
		ids = append(ids, c.ID)
	}
	return ids
}
