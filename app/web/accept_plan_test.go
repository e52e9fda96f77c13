package web_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/views/route"
)

// bigPlan begins the creation of a cluster whose plan has more than 1,000 tasks.
func (w *clusterWorld) bigPlan() (op loom.OperationRef, tasks int) {
	w.t.Helper()
	big := webTemplate()
	big.Name, big.Constraints.Size.Max = "big", 300
	w.save(loom.KindTemplate, big)
	w.db.MustExec(`UPDATE tenants SET max_nodes = 300 WHERE id = $1`, w.tenant.ID)
	op, err := w.clusters.Create(w.ctx, w.actor("ana"), loom.CreateInput{Name: "big", Template: "big", Machines: 180, LeaseMillis: loom.TemplateLease})
	w.must(err)
	shown, err := w.clusters.Operation(w.ctx, w.actor("ana"), op)
	w.must(err)
	if tasks = shown.Progress().Total; tasks < 1_000 {
		w.t.Fatalf("the plan has %d tasks", tasks)
	}
	w.runSome(op, tasks/2, 20)
	return op, tasks
}

// follow opens a page and those that its links lead to, as far as they match, and
// gives the tasks that are linked from any of them.
func (w *clusterWorld) follow(from string, op loom.OperationRef, along *regexp.Regexp, limit int) map[string]bool {
	w.t.Helper()
	task := regexp.MustCompile("^" + regexp.QuoteMeta(route.Operation(op)) + `/tasks/(\d+)$`)
	found, seen, queue := map[string]bool{}, map[string]bool{from: true}, []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		page := w.get("ana", at).is(http.StatusOK)
		if len(page.Body) > 1_500_000 {
			w.t.Errorf("%s has %d bytes", at, len(page.Body))
		}
		for _, to := range testkit.Links(w.t, page.main()) {
			if m := task.FindStringSubmatch(to); m != nil {
				found[m[1]] = true
			}
			if along.MatchString(to) && !seen[to] {
				if len(seen) == limit {
					w.t.Fatalf("more than %d pages from %s on", limit, from)
				}
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return found
}

// TestEveryTaskOfALargePlanIsReached follows the links of each way to look at a plan of
// more than 1,000 tasks: the picture and the list of stages show groups, which lead to the table.
func TestEveryTaskOfALargePlanIsReached(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op, tasks := w.bigPlan()
	graph := w.get("ana", route.OperationGraph(op)).is(http.StatusOK, "<svg", "× 180")
	if groups := strings.Count(graph.Body, "dag-node is-"); groups < 4 || groups > 40 {
		t.Errorf("the picture has %d groups", groups)
	}
	for name, way := range map[string]struct{ from, along string }{
		"graph": {route.OperationGraph(op), `/table\?.*stage=\d+.*|/table\?.*after=`},
		"table": {route.OperationTasks(op), `/table\?after=[^&]*$`},
	} {
		found := w.follow(way.from, op, regexp.MustCompile(way.along), 100)
		if len(found) != tasks {
			t.Errorf("%s: %d of %d tasks are linked", name, len(found), tasks)
		}
		for n := range tasks {
			if !found[fmt.Sprint(n+1)] {
				t.Errorf("%s: task %d is not linked", name, n+1)
				break
			}
		}
	}
}
