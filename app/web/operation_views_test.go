package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
)

func TestTimeline(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("busy", 3)
	w.get("ana", route.OperationTimeline(op)).is(200, "Nothing has begun yet", "Timeline")
	w.runSome(op, 3, 2)
	page := w.get("ana", route.OperationTimeline(op)).is(200, "gantt-bar is-complete", "gantt-bar is-running", "on the critical path", `<title>create on`, "Busiest first")
	for _, task := range []int{1, 2, 3, 4, 5} {
		page.has(`href="` + route.Task(loom.TaskRef{Operation: op, Number: task}) + `"`)
	}
	page.lacks(`href="` + route.Task(loom.TaskRef{Operation: op, Number: 6}) + `"`)
	w.get("ana", route.OperationTimeline(op)+"?by=step").is(200, "3 of 3", "create, 3 complete", "Started")
	w.get("ana", route.OperationTimeline(op)+"?by=node&sort=busy&page=99").is(200, "gantt-bar")
	w.part("ana", route.OperationTimeline(op)+"?by=step", clusterview.OperationViewID).is(200, `id="operation-view"`, "by=step").lacks("<main")
	w.get("eve", route.OperationTimeline(op)).is(404)
	// It is the view that opens.
	w.get("ana", route.Operation(op)).is(200, "c-gantt")
}

func TestManyNodesArePaged(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.db.MustExec(`UPDATE tenants SET max_nodes = 500 WHERE id = $1`, w.tenant.ID)
	op := w.create("wide", 50)
	w.runSome(op, 60, 20)
	w.get("ana", route.OperationTimeline(op)).is(200, "gantt-bar", ">confirm<").lacks("of 50 nodes")
	first := w.get("ana", route.OperationTimeline(op)+"?by=node").is(200, "1–40 of 50 nodes", `rel="next"`)
	w.get("ana", link(t, first, `rel="next"`)).is(200, "41–50 of 50 nodes", `rel="prev"`)
	// The lists of a large plan are of groups that lead to the table.
	stages := w.get("ana", route.OperationGraph(op)).is(200, "create × 50", "50 complete", "stage=1")
	stages.lacks("create on ")
	w.get("ana", strings.ReplaceAll(link(t, stages, "stage=1"), "&amp;", "&")).is(200, ">create ").lacks(">install nginx</a>", ">install haproxy</a>")
	// Every task is reached page by page.
	seen := map[string]bool{}
	row := regexp.MustCompile(`id="task-(\d+)"`)
	for at := route.OperationTasks(op); at != ""; {
		page := w.get("ana", at).is(200)
		for _, found := range row.FindAllStringSubmatch(page.Body, -1) {
			seen[found[1]] = true
		}
		if at = ""; strings.Contains(page.Body, `rel="next"`) {
			at = link(t, page, `rel="next"`)
		}
	}
	view, err := w.clusters.Operation(w.ctx, w.actor("ana"), op)
	w.must(err)
	if total := view.Progress().Total; len(seen) != total {
		t.Errorf("the pages of the table have %d of %d tasks", len(seen), total)
	}
	graph := w.get("ana", route.OperationGraph(op)).is(200, "is-group", "50 × create", "By service")
	w.get("ana", link(t, graph, `data-node="g1-create"`)).is(200, ">create </a>").lacks(">confirm </a>")
	w.get("ana", route.OperationGraph(op)+"?group=on&by=service").is(200, "nginx")
	w.get("ana", route.OperationGraph(op)+"?group=on&by=node").is(200, "tasks")
}

func TestLogsOfManyTasks(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("busy", 2)
	w.runSome(op, 2, 2)
	one, two := loom.TaskRef{Operation: op, Number: 1}, loom.TaskRef{Operation: op, Number: 2}
	w.get("ana", route.OperationLog(op)).is(200, `data-every="3"`)
	w.log(one, "stdout", "alpha", "beta")
	w.log(two, "stderr", "gamma <broken>")
	w.log(one, "stdout", "delta")
	// While it runs, lines are left out before which others may still appear, which
	// depends on who else writes into the database.
	w.finish(op, loom.ClusterActive)
	page := w.get("ana", route.OperationLog(op)).is(200, "alpha", "gamma &lt;broken&gt;", "delta", "1 create on", "2 create on", `role="log"`)
	if strings.Index(page.Body, "gamma") > strings.Index(page.Body, "delta") || strings.Index(page.Body, "beta") > strings.Index(page.Body, "gamma") {
		t.Error("the lines are not in their order")
	}
	w.get("ana", route.OperationLog(op)+"?find=GAM").is(200, "gamma", "1 line", "Whole log").lacks("alpha")
	w.get("ana", route.OperationLog(op)+"?errors=1").is(200, "gamma").lacks("alpha")
	w.get("ana", route.OperationLog(op)+"?find="+strings.Repeat("x", 201)).is(200, "at most 200 characters", "aria-invalid")
	w.get("ana", route.OperationLog(op)+"?before=nonsense").is(422)
	// Rows after a cursor, as a page that follows asks for them.
	cursor := regexp.MustCompile(`data-cursor="([^"]+)"`).FindAllStringSubmatch(page.Body, -1)
	w.get("ana", route.OperationLog(op)+"?rows=1&after="+cursor[1][1]).is(200, "gamma", "delta").lacks("beta", "<main")
	w.get("ana", route.OperationLog(op)+"?rows=1&after=0").is(200, "alpha")
	if a := w.get("ana", route.OperationLog(op)+"?rows=1&after="+cursor[3][1]); a.Code != http.StatusNoContent {
		t.Errorf("status %d after the last line", a.Code)
	}
	view, err := w.clusters.Cluster(w.ctx, w.actor("ana"), op.Cluster)
	w.must(err)
	w.get("ana", route.NodeLog(op.Cluster, view.Nodes[0].ID)).is(200, "alpha", "operation 1, task 1").lacks("gamma")
	for _, at := range []string{route.OperationLog(op), route.OperationLog(op) + "?rows=1", route.NodeLog(op.Cluster, view.Nodes[0].ID)} {
		w.get("eve", at).is(404).lacks("alpha")
	}
	w.get("ana", route.NodeLog(op.Cluster, "nope")).is(404)
}

func TestLongLogs(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("busy", 2)
	w.runSome(op, 1, 1)
	task := loom.TaskRef{Operation: op, Number: 2}
	w.db.MustExec(`INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, level, text)
		SELECT t.id, 1, n, t.operation_id, t.node_id, now(), CASE WHEN n % 1000 = 7 THEN 'stderr' ELSE 'stdout' END, 'info', 'line ' || n FROM tasks t, generate_series(1, 5000) AS n
		WHERE t.cluster_id = $1 AND t.number = 2 AND NOT t.gate`, int64(op.Cluster))
	page := w.get("ana", route.Task(task)).is(200, `id="L5000"`, "Load 1,000 earlier", `data-log-earlier=`).lacks(`id="L4500"`)
	_, rows, _ := strings.Cut(page.Body, `data-log-earlier="`)
	rows, _, _ = strings.Cut(rows, `"`)
	earlier := w.part("ana", strings.ReplaceAll(rows, "&amp;", "&"), "").is(200, `id="L4500"`, `id="L3501"`).lacks(`id="L4501"`, "<main")
	if next := earlier.Header.Get("Loom-Earlier-Rows"); !strings.Contains(next, "before=3501") {
		t.Errorf("the rows before those are at %q", next)
	}
	w.get("ana", route.TaskAttempt(task, 1)+"&lines=120-131").is(200, `id="L20"`, `id="L120" data-seq="120" data-marked`, `id="L131" data-seq="131" data-marked`, "Later lines").lacks(`id="L132" data-seq="132" data-marked`, `id="L19"`)
	w.get("ana", route.TaskAttempt(task, 1)+"&lines=99999").is(200).lacks("data-marked")
	w.get("ana", route.TaskAttempt(task, 1)+"&find=line+4321").is(200, "line 4321", "lines=4321#L4321", "1 line").lacks("line 4320")
	w.get("ana", route.TaskAttempt(task, 1)+"&errors=1").is(200, "line 7<", "line 4007", "5 lines").lacks("line 8<")
	w.finish(op, loom.ClusterActive)
	w.get("ana", route.OperationLog(op)).is(200, "line 5000", "line 4501").lacks("line 4500<")
	w.get("eve", route.TaskAttempt(task, 1)+"&find=line").is(404)
}
