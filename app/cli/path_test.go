//go:build e2e

package cli

import (
	"context"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"
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

// TestTenClustersAtOnce makes ten clusters in parallel, uses them all and
// deletes them in parallel.
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
	each("requested", func(i int) { ids[i] = user.create("web-cluster", 2+i%5/4, nil) })
	each("active", func(i int) { user.waitActive(ids[i]) })
	if n := len(w.machines()); n != 22 {
		t.Errorf("%d machines, want 22", n)
	}
	each("served", func(i int) { w.servesFromAll(user.cluster(ids[i])) })
	each("deleted", func(i int) { user.remove(ids[i]) })
	w.noMachines()
}
