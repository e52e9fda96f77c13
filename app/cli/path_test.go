//go:build e2e

package cli

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/api/wire"
	"loom/app/loom"
)

// TestFirstCluster runs the script that users are shown, against `loom up`.
func TestFirstCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../../docs/first-cluster.sh", "4")
	cmd.Env = append(w.env, "LOOM_URL="+w.url, "LOOM_TOKEN="+w.token("demo", "user", "clusters:write"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("first-cluster.sh: %v\n%s", err, out)
	}
	// "  4 comes from first1-1001.local": how often each web server answered.
	answers := regexp.MustCompile(`(?m)^ +[0-9]+ comes from ([a-z0-9.-]+)$`).FindAllSubmatch(out, -1)
	if len(answers) != 3 {
		t.Errorf("%d of 3 web servers answered:\n%s", len(answers), out)
	}
	w.noMachines()
}

// TestTenClustersAtOnce makes ten clusters in parallel, uses them all, rolls a change
// out over two of them and deletes them in parallel.
func TestTenClustersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up()
	user := w.user()
	ids := make([]string, 10)
	began := time.Now()
	each := func(what string, f func(i int)) {
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() { f(i) })
		}
		wg.Wait()
		if t.Failed() {
			t.FailNow()
		}
		t.Logf("%s after %s", what, time.Since(began).Round(time.Millisecond))
	}
	// No title, so that one may come with a later version of the web server.
	untitled := map[string]any{"config": map[string]any{"haproxy": map[string]any{"backends": "%join(map(ip.service.nginx,'$'),' ')%"}}}
	each("requested", func(i int) { ids[i] = user.create("web-cluster", 2+i%5/4, untitled) })
	each("active", func(i int) { user.waitActive(ids[i]) })
	if n := len(w.machines()); n != 22 {
		t.Errorf("%d machines, want 22", n)
	}
	each("served", func(i int) { w.servesFromAll(user.cluster(ids[i])) })
	w.rollOut(user, ids[0], ids[1])
	if op := user.cluster(ids[2]).Latest; op == nil || op.Number != 1 {
		t.Errorf("a cluster that is not in the rollout has operation %+v", op)
	}
	t.Logf("rolled out after %s", time.Since(began).Round(time.Millisecond))
	each("deleted", func(i int) { user.remove(ids[i]) })
	w.noMachines()
}

// rollOut brings new versions of template and web server to two clusters, one after the other:
// the second begins when the first is done and well, and both serve the new page afterwards.
func (w *world) rollOut(user *client, first, second string) {
	w.t.Helper()
	admin := w.client("demo", "admin", "admin")
	var template, nginx map[string]any
	admin.call("GET", "/v2/clustertemplates/web-cluster", nil, &template)
	template["constraints"].(map[string]any)["size"].(map[string]any)["max"] = 400
	admin.call("PUT", "/v2/clustertemplates/web-cluster", template, nil)
	admin.call("GET", "/v2/services/nginx", nil, &nginx)
	nginx["parameters"].([]any)[0].(map[string]any)["default"] = "Second edition"
	admin.call("PUT", "/v2/services/nginx", nginx, nil)

	var made wire.Rollout
	admin.call("POST", "/v2/rollouts", map[string]any{"kind": "update", "q": "id:" + first + "," + second,
		"entries": []map[string]any{{"kind": "clustertemplates", "name": "web-cluster"}, {"kind": "services", "name": "nginx"}},
		"request": map[string]any{"minHealthy": 0}, "waves": []map[string]any{{"clusters": []string{first}}, {"rest": true}}, "settings": map[string]any{"pause": 0}}, &made)
	rollout := fmt.Sprintf("/v2/rollouts/%d", made.Number)
	admin.call("POST", rollout+"/start", map[string]any{"hash": made.Hash}, nil)
	w.eventually("the rollout to end", func() error {
		if admin.call("GET", rollout, nil, &made); made.Status != loom.RolloutComplete {
			return fmt.Errorf("%s in wave %d: %s", made.Status, made.Wave, made.Why)
		}
		return nil
	})
	var operations [2]wire.Operation
	for i, id := range []string{first, second} {
		user.call("GET", "/v2/clusters/"+id+"/operations/2", nil, &operations[i])
		cluster := user.cluster(id)
		if operations[i].Status != loom.OperationComplete || cluster.Template.Version != 2 {
			w.t.Errorf("cluster %s has version %d of its template after operation %+v", id, cluster.Template.Version, operations[i])
		}
		w.servesFromAll(cluster)
		for _, web := range addresses(w.t, cluster, "nginx") {
			if _, body, err := fetch("http://" + web + "/"); err != nil || !strings.Contains(body, "Second edition") {
				w.t.Errorf("%s answers %v %s", web, err, body)
			}
		}
	}
	if ended, began := operations[0].Ended, operations[1].Started; ended == nil || began == nil || *began < *ended {
		w.t.Errorf("wave 2 did not begin after wave 1: %+v", operations)
	}
}
