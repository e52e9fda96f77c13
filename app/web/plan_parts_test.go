package web_test

import (
	"net/url"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
)

// previewOf makes a preview of ana's and opens its page.
func (w *clusterWorld) previewOf(in clusters.PreviewInput) (string, clusterAnswer) {
	w.t.Helper()
	v, err := w.clusters.Preview(w.ctx, w.actor("ana"), in)
	w.must(err)
	at := route.Preview(v.ID)
	return at, w.get("ana", at).is(200)
}

func TestPreviewFoldsWhatStays(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 4)
	_, page := w.previewOf(clusters.PreviewInput{Kind: loom.ChangeShrink, Cluster: id, Change: clusters.ChangeInput{Machines: 3}})
	// The node that goes is listed among the others, and those are folded.
	page.has(`<details class="c-set c-kept" id="kept">`, "node 1003", "3 nodes and ")
	if _, folded, _ := strings.Cut(page.Body, `id="kept"`); strings.Contains(folded[:strings.Index(folded, "</details>")], "1003") {
		t.Error("the node that goes is among what stays")
	}

	// What is stopped is no longer among what stays.
	_, page = w.previewOf(clusters.PreviewInput{Kind: loom.ChangeStop, Cluster: id, Service: "haproxy"})
	page.has("haproxy", `id="kept"`)
	// All of a new cluster comes.
	to := w.post("ana", route.Previews(), createValues("second", "3")).goesTo(`/previews/.*`)
	w.get("ana", to).is(200, "1 × haproxy").lacks(`id="kept"`, ">Change<")
}

func TestStalePreviewSaysWhatIsDifferent(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	at := w.post("ana", route.Previews(), createValues("shop-front", "3")).goesTo(`/previews/.*`)
	page := w.get("ana", at).is(200).lacks("Changed since the last preview")
	nginx := webService("nginx", "Serves the pages.")
	delete(nginx.Provisioner.Actions, loom.ActionConfigure)
	w.save(loom.KindService, nginx)
	w.post("ana", at+"/apply", url.Values{"hash": {page.hash()}}).is(409, "Changed since the last preview", "<strong>Plan</strong>", "<del>", "<ins>").lacks("<strong>Provider</strong>", "<strong>1000</strong>")
}

func TestTaskTellsOfItsAttempts(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop-front", 3)
	w.runSome(op, 1, 1)
	task := loom.TaskRef{Operation: op, Number: 2}
	at := route.Task(task)
	w.get("ana", at).is(200).lacks("Attempt 2", "Just now")
	w.log(task, "loom", "Preparing image bookworm for its first use on this host.")
	w.log(task, "loom", "Preparing the image: <installing>")
	// It tells what it waits for, and the page asks again when its log grows.
	w.get("ana", at).is(200, "Just now", "Preparing the image: &lt;installing&gt;", "Errors (<span data-log-errors>0</span>)", `data-live="`+route.TopicOperation(op)+" "+route.TopicLog(task, 1)+`"`)
	// So do the pages of the cluster and of the operation, which look again: nothing else happens until then.
	for _, page := range []string{route.Cluster(op.Cluster), route.Operation(op)} {
		w.get("ana", page).is(200, "Preparing the image: &lt;installing&gt;", `hx-trigger="loom:live, every 10s"`)
	}
	w.log(task, "stderr", "E: one", "E: two")
	w.get("ana", at).is(200, "Errors (<span data-log-errors>2</span>)").lacks("Just now")
	w.get("ana", at+"?errors=1").is(200, "E: one", "lines=3#L3", "2 lines")
	// The first attempt fails, the second runs.
	w.db.MustExec(`UPDATE attempts SET status = 'failed', code = 7, message = 'No <space> left.', ended_at = now() - interval '2 s' WHERE task_id = (SELECT id FROM tasks WHERE cluster_id = $1 AND number = 2 AND NOT gate)`, int64(op.Cluster))
	w.db.MustExec(`INSERT INTO attempts (task_id, number, process_id, status, started_at) SELECT id, 2, 'host-1a2b3c4d', 'running', now() FROM tasks WHERE cluster_id = $1 AND number = 2 AND NOT gate`, int64(op.Cluster))
	w.db.MustExec(`UPDATE tasks SET attempt = 2 WHERE cluster_id = $1 AND number = 2 AND NOT gate`, int64(op.Cluster))
	w.get("ana", at).is(200, "Attempt 1, Failed", `href="`+route.TaskAttempt(task, 1)+`"`, "Errors (<span data-log-errors>0</span>)")
	w.get("ana", route.TaskAttempt(task, 1)).is(200, "Attempt 2 has begun.", "No &lt;space&gt; left.", "Attempt 2, Running", "Errors (<span data-log-errors>2</span>)")
	w.db.MustExec(`UPDATE attempts SET status = 'failed', ended_at = now() WHERE number = 2`)
	w.db.MustExec(`UPDATE tasks SET status = 'ready' WHERE cluster_id = $1 AND number = 2 AND NOT gate`, int64(op.Cluster))
	w.get("ana", at).is(200, "It waits to be tried again.")
	w.get("eve", at).is(404)
}

// TestTaskBesideItsPlan asks for a task as the panel beside a plan does.
func TestTaskBesideItsPlan(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop-front", 3)
	w.runSome(op, 1, 2)
	task := loom.TaskRef{Operation: op, Number: 2}
	w.log(task, "stdout", "hello")
	for _, at := range []string{route.OperationGraph(op), route.OperationTimeline(op), route.OperationTasks(op)} {
		w.get("ana", at).is(200, `id="task-side"`, `data-tasks="`+route.Operation(op)+`/tasks/"`, `href="`+route.Task(task)+`"`)
	}
	side := w.part("ana", route.Task(task), clusterview.TaskSideID).is(200, `<h2 id="task-side-title" tabindex="-1">`, "hello", "Depends on", `id="task-log"`, `data-every="3"`, "side=1").lacks("<main", "<title>", "<h1", `id="log"`)
	_, live, _ := strings.Cut(side.Body, `hx-get="`)
	live, _, _ = strings.Cut(live, `"`)
	w.part("ana", strings.ReplaceAll(live, "&amp;", "&"), "task-panel").is(200, `id="task-side-title"`).lacks("<title>", "<h1")
	w.part("ana", route.TaskPanel(task), "task-panel").is(200, "<title>", "<h1")
	w.part("eve", route.Task(task), clusterview.TaskSideID).is(404).lacks("hello")
}

// A reader who lags far behind a log gets its newest lines and a link to those between.
func TestLogPassesOverWhatNobodyCanRead(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop-front", 2)
	w.runSome(op, 1, 1)
	task := loom.TaskRef{Operation: op, Number: 2}
	w.db.MustExec(`INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, level, text)
		SELECT t.id, 1, n, t.operation_id, t.node_id, now(), 'stdout', 'info', 'line ' || n FROM tasks t, generate_series(1, 3000) AS n
		WHERE t.cluster_id = $1 AND t.number = 2 AND NOT t.gate`, int64(op.Cluster))
	after := func(n string) string { return route.Query(route.TaskLog(task, 1), "after", n) }
	w.part("ana", after("100"), "").is(200, "2400 lines skipped", "lines=101#L101", `id="L2501"`, `id="L3000"`).lacks(`id="L2500"`, `id="L101"`)
	w.part("ana", after("2400"), "").is(200, `id="L2401"`, `id="L3000"`).lacks("skipped")
	w.part("eve", after("100"), "").is(404)
}

// What is wrong in the form stands above the last answer of the check, which stays.
func TestCheckKeepsItsLastAnswer(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.get("ana", route.ClusterNew()+"?template=web-cluster").is(200, `<div class="c-check-problem" id="check-problem"></div>`, "7 days, until ", "requires nginx")
	form := createValues("shop-front", "3")
	good := w.post("ana", route.ClusterCheck(), form).is(200, ">Fits<", `id="check-problem"`, "7 days, until ")
	if to := good.Header.Get("HX-Retarget"); to != "" {
		t.Errorf("an answer that fits goes to %s", to)
	}
	form.Set("initialLeaseDuration", "2d")
	w.post("ana", route.ClusterCheck(), form).is(200, "2 days, until ")
	// A layout is worked out where that can be.
	form.Set("initialLeaseDuration", "soon")
	if to := w.post("ana", route.ClusterCheck(), form).is(200, "Incomplete", "Write a duration", "c-layout").Header.Get("HX-Retarget"); to != "" {
		t.Errorf("an answer with a layout goes to %s", to)
	}
	form.Set("numMachines", "many")
	bad := w.post("ana", route.ClusterCheck(), form).is(200, "Incomplete", "Enter 1–50 nodes.", `id="check-line"`).lacks(">Fits<", `id="check-problem"`)
	if to := bad.Header.Get("HX-Retarget"); to != "#check-problem" {
		t.Errorf("what is wrong goes to %q", to)
	}
}
