package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
)

// TestPagesMakeABoundedNumberOfQueries holds pages to as many statements with many
// clusters, nodes and tasks as with few.
func TestPagesMakeABoundedNumberOfQueries(t *testing.T) {
	t.Parallel()
	db := clusterDatabase(t)
	statements := testkit.CountStatements(t, db)
	w := clusterWorldOn(t, db)
	w.db.MustExec(`UPDATE tenants SET max_clusters = 1000, max_nodes = 10000 WHERE id = $1`, w.tenant.ID)
	// pages gives those of the world as it is now, with a cluster that runs an operation
	// and one that is done.
	pages := func(running, done loom.OperationRef) map[string]string {
		at, op := "/clusters/"+running.Cluster.String(), "/clusters/"+running.Cluster.String()+"/operations/1"
		rest := "/clusters/" + done.Cluster.String()
		var node string
		w.must(w.db.Get(&node, `SELECT id FROM nodes WHERE cluster_id = $1 ORDER BY number LIMIT 1`, int64(done.Cluster)))
		return map[string]string{
			"home": "/", "clusters": "/clusters", "clusters found": "/clusters?q=done+status:active", "new cluster": "/clusters/new?template=web-cluster",
			"cluster that runs": at, "its operation": at + "/panel?part=operation", "cluster": rest, "nodes": rest + "/nodes", "node": rest + "/nodes/" + node,
			"services": rest + "/services", "operations": rest + "/operations", "config": rest + "/config", "delete": rest + "/delete",
			"graph": op + "/graph", "timeline": op + "/timeline", "table": op + "/table", "log": op + "/log", "head": op + "/panel",
			"task": op + "/tasks/1", "home part": "/home/clusters", "usage": "/usage", "activity": "/activity",
		}
	}
	count := func(pages map[string]string) map[string]int {
		found := map[string]int{}
		for name, path := range pages {
			for try := range 3 { // what is kept for a while, or for a moment, is kept the next time
				before := statements.Count()
				w.get("admin", path).is(http.StatusOK)
				if n := statements.Count() - before; try == 0 || n < found[name] {
					found[name] = n
				}
			}
		}
		return found
	}
	// world makes clusters of every state, the first of them of some machines.
	world := func(name string, clusters, machines int) (running, done loom.OperationRef) {
		for i := range clusters {
			size := 3
			if i == 0 {
				size = machines
			}
			r, d, bad := w.create(fmt.Sprintf("%s-run-%d", name, i), size), w.create(fmt.Sprintf("%s-done-%d", name, i), size), w.create(fmt.Sprintf("%s-bad-%d", name, i), 3)
			w.runSome(r, 2, 1)
			w.finish(d, loom.ClusterActive)
			w.fail(loom.TaskRef{Operation: bad, Number: 1}, "no capacity")
			w.db.MustExec(`UPDATE clusters SET expires_at = now() + interval '1 hour' WHERE id = $1`, int64(d.Cluster))
			if i == 0 {
				running, done = r, d
			}
		}
		return running, done
	}
	few, many, more := count(pages(world("few", 1, 5))), count(pages(world("many", 3, 30))), count(pages(world("more", 5, 40)))
	t.Logf("few: %v\nmany: %v\nmore: %v", few, many, more)
	for name, n := range few {
		// Plans of many tasks are read in groups: by other statements, not by more of them.
		if grouped := name == "graph" || name == "stages"; many[name] > n && !grouped {
			t.Errorf("%s makes %d statements with few rows and %d with many", name, n, many[name])
		}
		if more[name] > many[name] {
			t.Errorf("%s makes %d statements with many rows and %d with more", name, many[name], more[name])
		}
		if n == 0 || n > 40 {
			t.Errorf("%s makes %d statements", name, n)
		}
	}
}

// TestLongSearchesOnPages: pages that look through what they have read take the beginning
// of a long search; the others say what is too much.
func TestLongSearchesOnPages(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ref := w.create("shop", 3)
	many := strings.Repeat("o+", 5000)
	w.get("admin", "/clusters/"+ref.Cluster.String()+"/nodes?q="+many).is(http.StatusOK, "value=\"o o o").lacks(strings.Repeat("o ", 101))
	w.get("admin", "/search?q="+many).is(http.StatusUnprocessableEntity, "at most 10 words")
	w.get("admin", "/search?q="+url.QueryEscape(`"`+strings.Repeat("o ", 11)+`"`)).is(http.StatusUnprocessableEntity, "at most 10 words")
	w.get("admin", "/admin/users?q="+many).is(http.StatusUnprocessableEntity, "at most 10 words")
}
