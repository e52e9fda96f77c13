package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
)

func TestHomeBeginsWithThreeSteps(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.get("ana", "/").is(200, "Create your first cluster", route.ClusterNew())
	ref := w.create("shop-front", 3)
	w.runSome(ref, 3, 2)
	failed := w.create("broken", 2)
	w.fail(loom.TaskRef{Operation: failed, Number: 1}, "There is no image bookworm.")
	w.get("ana", "/").is(200, "shop-front", "Creating", " %", "broken", "There is no image bookworm.",
		route.OperationRetry(failed, nil, nil, false), `content="15"`)
	w.part("ana", clusterview.HomeClustersURL(), clusterview.HomeClustersID).is(200, `id="home-clusters"`, "shop-front", "broken").lacks("<html")
	for _, who := range []loom.UserID{"ana", "admin"} {
		w.get(who, "/").is(200, "shop-front")
	}
	later := w.create("later", 2)
	for _, who := range []loom.UserID{"ana", "admin"} {
		w.get(who, "/").is(200, "shop-front", "later", "0 %")
	}
	w.get("eve", "/").is(200, "Create your first cluster").lacks("shop-front", "later")
	// A lease that ends soon is shown beside an operation that runs.
	w.db.MustExec(`UPDATE clusters SET expires_at = created_at + interval '10 minutes' WHERE id = $1`, later.Cluster)
	w.part("ana", clusterview.HomeClustersURL(), clusterview.HomeClustersID).is(200, "Lease ends", "Extend lease")
}

func TestListPagesByKeys(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.get("ana", "/clusters").is(200, "No clusters yet")
	w.db.MustExec(`UPDATE tenants SET max_clusters = 100, max_nodes = 500 WHERE id = $1`, w.tenant.ID)
	for i := range 27 {
		w.finish(w.create(fmt.Sprintf("c-%02d", i), 2), loom.ClusterActive)
	}
	first := w.get("ana", "/clusters?sort=name").is(200, "c-00", "c-24", "25 of 27 clusters", `aria-sort="ascending"`, "sort=-name").lacks("c-25", `rel="prev"`)
	next := link(t, first, `rel="next"`)
	second := w.get("ana", next).is(200, "c-25", "c-26", `rel="prev"`).lacks("c-24", `rel="next"`)
	w.get("ana", link(t, second, `rel="prev"`)).is(200, "c-00", "c-24").lacks("c-25")
	w.get("ana", "/clusters?q=c-07").is(200, "c-07", "1 cluster", "Clear filters").lacks("c-08")
	w.get("ana", "/clusters?q=nowhere").is(200, "No matches.")
	w.get("ana", "/clusters?status=terminated").is(200, "No clusters deleted yet.")
	w.get("ana", "/clusters?status=nonsense").is(422, "A status is pending, active")
	w.get("ana", "/clusters?sort=colour").is(422, "This list is sorted by")
	w.get("admin", "/clusters").is(200, "Owner", ">ana<")
	w.get("ana", "/clusters").is(200).lacks(`name="owner"`)
	w.get("eve", "/clusters").is(200, "No clusters yet").lacks("c-00")
}

// link gives the href of the link that carries a mark.
func link(t *testing.T, a clusterAnswer, mark string) string {
	t.Helper()
	for _, tag := range strings.Split(a.Body, "<a ") {
		tag, _, _ = strings.Cut(tag, ">")
		if !strings.Contains(tag, mark) {
			continue
		}
		_, href, _ := strings.Cut(tag, `href="`)
		href, _, _ = strings.Cut(href, `"`)
		return strings.ReplaceAll(href, "&amp;", "&")
	}
	t.Fatalf("no link with %s: %s", mark, a.main())
	return ""
}

func TestRowsStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	one, two := w.create("one", 2), w.create("two", 2)
	w.runSome(one, 2, 1)
	page := w.get("ana", "/clusters?status=pending").is(200, "one", "two", "Creating")
	_, url, _ := strings.Cut(page.Body, `hx-get="/clusters/rows`)
	url, _, _ = strings.Cut(url, `"`)
	url = "/clusters/rows" + strings.ReplaceAll(url, "&amp;", "&")
	// One leaves the filter, another comes new: rows keep their places.
	w.finish(one, loom.ClusterActive)
	w.create("three", 2)
	w.create("four", 2)
	rows := w.part("ana", url, clusterview.ListID).is(200, "Checking…", "two", "1 new cluster").lacks("three", "<html")
	if strings.Index(rows.Body, ">two<") > strings.Index(rows.Body, ">one<") {
		t.Error("the rows changed places")
	}
	w.part("eve", url, clusterview.ListID).is(200).lacks("one")
	_ = two
}

// Every page of a cluster, in each of its states, for its owner; and nothing of
// it for others.
func TestEveryPageAnswers(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	pending, active, failed := w.create("busy", 3), w.create("shop-front", 3), w.create("broken", 2)
	w.runSome(pending, 3, 2)
	w.finish(active, loom.ClusterActive)
	w.log(loom.TaskRef{Operation: failed, Number: 4}, "stderr", "E: \x1b[31munable to locate\x1b[0m <package>")
	w.fail(loom.TaskRef{Operation: failed, Number: 4}, "The script ended with status 100.")
	for name, op := range map[string]loom.OperationRef{"busy": pending, "shop-front": active, "broken": failed} {
		view, err := w.clusters.Cluster(w.ctx, w.actor("ana"), op.Cluster)
		w.must(err)
		task := loom.TaskRef{Operation: op, Number: 4}
		pages := []string{
			route.Cluster(op.Cluster), route.ClusterNodes(op.Cluster), route.ClusterTab(op.Cluster, "services"), route.ClusterOperations(op.Cluster),
			route.ClusterTab(op.Cluster, "config"), route.ClusterTab(op.Cluster, "ssh-config"), route.ClusterDelete(op.Cluster),
			route.Operation(op), route.OperationGraph(op), route.OperationGraphSVG(op), route.OperationTasks(op), route.OperationPanel(op),
			route.OperationGraph(op) + "?group=on", route.OperationGraph(op) + "?only=failed", route.OperationGraph(op) + "?hide=complete&group=on&open=1-create,x,9-",
			route.OperationTasks(op) + "?status=waiting&action=install", route.OperationTasks(op) + "?status=nonsense",
			route.Task(task), route.TaskPanel(task), route.TaskLogRaw(task, 1), route.Node(op.Cluster, view.Nodes[0].ID),
		}
		for _, part := range []clusterview.Part{"head", "operation", "connect", "nodes", "services", "operations"} {
			pages = append(pages, clusterview.PartURL(op.Cluster, part))
		}
		for _, page := range pages {
			a := w.get("ana", page)
			if a.Code != http.StatusOK {
				t.Errorf("%s %s: status %d: %.800s", name, page, a.Code, a.Body)
			}
			a.lacks("planted-marker-7", "%!")
			w.get("eve", page).is(404).lacks(name)
		}
		w.get("admin", route.Cluster(op.Cluster)).is(200, name)
	}
	w.get("ana", route.Cluster(pending.Cluster)).has("<h2>Create</h2>", "3 of ", "confirm on ", `data-events="/events?topics=cluster`, "<title>(3/", `content="15"`)
	w.get("ana", route.Cluster(pending.Cluster)+"?refresh=off").lacks(`content="15"`)
	w.get("ana", route.Cluster(active.Cluster)).has("http://10.77.1.10/", "Web page", "ssh -i loom-"+active.Cluster.String()+".pem loom@10.77.1.10", "Download key", "Reveal password", "Delete")
	w.get("ana", route.Cluster(failed.Cluster)).has("The script ended with status 100.", `<span class="a-red">unable to locate</span>`, "&lt;package&gt;", "View task")
	for _, wrong := range []string{"/clusters/abc", "/clusters/99999999", route.Cluster(active.Cluster) + "/operations/9", route.Cluster(active.Cluster) + "/operations/x",
		route.Task(loom.TaskRef{Operation: active, Number: 99}), route.Node(active.Cluster, "nope"), route.ClusterPanel(active.Cluster) + "?part=nope", "/previews/nope"} {
		w.get("ana", wrong).is(404)
	}
}

func TestFragmentsComeAlone(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("busy", 3)
	w.runSome(op, 3, 2)
	w.part("ana", route.OperationGraph(op), clusterview.OperationViewID).is(200, `id="operation-view"`, "<svg", "is-running", "is-complete").lacks("<main", "<title>(")
	w.part("ana", route.OperationTasks(op)+"?status=running", clusterview.OperationViewID).is(200, "Running").lacks("<main", "Complete")
	w.part("ana", route.Cluster(op.Cluster), "main").is(200, "<main", "<title>").lacks("<html")
	svg := w.get("ana", route.OperationGraphSVG(op)).is(200, `<svg xmlns="http://www.w3.org/2000/svg"`)
	if got := svg.Header.Get("Content-Type"); got != "image/svg+xml" {
		t.Errorf("the picture is sent as %s", got)
	}
}

func TestLogIsReadInPieces(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("busy", 2)
	w.runSome(op, 1, 1)
	task := loom.TaskRef{Operation: op, Number: 2}
	w.db.MustExec(`INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, level, text)
		SELECT t.id, 1, n, t.operation_id, t.node_id, now(), 'stdout', 'info', 'line ' || n FROM tasks t, generate_series(1, 2500) AS n
		WHERE t.cluster_id = $1 AND t.number = 2 AND NOT t.gate`, int64(op.Cluster))
	page := w.get("ana", route.Task(task)).is(200, `id="L2500"`, `id="L2001"`, "before=2001", `data-more=`, route.TopicLog(task, 1)).lacks(`id="L2000"`)
	w.get("ana", link(t, page, "before=2001")).is(200, `id="L2000"`, `id="L1001"`).lacks(`id="L2001"`)
	w.part("ana", route.TaskLog(task, 1)+"&after=2498", "").is(200, "line 2499", "line 2500").lacks("line 2498<", "<main")
	if a := w.part("ana", route.TaskLog(task, 1)+"&after=2500", ""); a.Code != http.StatusNoContent {
		t.Errorf("status %d for no new lines", a.Code)
	}
	raw := w.get("ana", route.TaskLogRaw(task, 1)).is(200)
	if lines := strings.Count(raw.Body, "\n"); lines != 2500 || !strings.HasPrefix(raw.Body, "line 1\n") {
		t.Errorf("%d raw lines", lines)
	}
	w.part("eve", route.TaskLog(task, 1), "").is(404)
}
