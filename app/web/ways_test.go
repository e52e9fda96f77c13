package web_test

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/views/route"
)

// failedService fails the first task of an action of a service of a cluster.
func (w *clusterWorld) failedService(ref loom.OperationRef, action loom.TaskAction, service string) loom.TaskRef {
	w.t.Helper()
	task := w.firstTask(ref, action, service)
	w.runSome(ref, task.Number-1, 0)
	w.fail(task, "nginx.sh exited with 1")
	return task
}

// firstTask is the first task of an action of a service of a cluster.
func (w *clusterWorld) firstTask(ref loom.OperationRef, action loom.TaskAction, service string) loom.TaskRef {
	w.t.Helper()
	task := loom.TaskRef{Operation: ref}
	w.must(w.db.Get(&task.Number, `SELECT min(number) FROM tasks WHERE cluster_id = $1 AND action = $2 AND service = $3 AND NOT gate`, int64(ref.Cluster), string(action), service))
	return task
}

// What mends a failed cluster is on its page: presses and links alone lead there, in
// three presses from the page.
func TestWaysOutOfAFailure(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ref := w.create("shop-front", 2)
	w.failedService(ref, loom.ActionInstall, "nginx")
	at := route.Cluster(ref.Cluster)
	w.get("ana", at).is(200, ">Change config and retry<", ">Retry<", ">Retry without nginx<").lacks("Retry with nginx")
	nginx := w.cluster(ref.Cluster).Services["nginx"]
	nginx.Description = "Serves pages, mended."
	install := nginx.Provisioner.Actions[loom.ActionInstall]
	install.Fields = map[string]string{"script": "nginx.sh", "args": "install mended"}
	nginx.Provisioner.Actions[loom.ActionInstall] = install
	w.save(loom.KindService, &nginx)
	page := w.get("ana", at).is(200, ">Retry with nginx v2<", ">Retry unchanged<", ">Change config and retry<")
	with := route.OperationRetry(ref, []string{"nginx"}, nil, false)
	if !strings.Contains(page.Body, strings.ReplaceAll(with, "&", "&amp;")) {
		t.Errorf("no link to %s", with)
	}
	w.get("ana", route.Operation(ref)).is(200, ">Retry with nginx v2<")
	form := w.get("ana", with).is(200, "Newer versions", "version 1 → 2", `value="nginx" checked`, "install mended")
	shown := w.pressOn("ana", form, with, "Preview").goesTo(`/previews/.*`)
	preview := w.get("ana", shown).is(200, "takes the newest version of nginx", "nginx")
	w.pressOn("ana", preview, shown, "Retry shop-front").goesTo(at)
	v := w.cluster(ref.Cluster)
	if v.Status != loom.ClusterPending || v.Services["nginx"].Version != 2 || !v.Latest.Mends {
		t.Errorf("%s, nginx %d, %+v", v.Status, v.Services["nginx"].Version, v.Latest)
	}
}

func TestRetryWithAnotherConfigAndWithoutAService(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ref := w.create("shop-front", 2)
	w.failedService(ref, loom.ActionInstall, "nginx")
	with := route.OperationRetry(ref, nil, nil, true)
	form := w.get("ana", with).is(200, "Change the config", `name="config"`)
	shown := w.pressOn("ana", form, with, "Preview", "config", `{"mended": true}`).goesTo(`/previews/.*`)
	back := regexp.MustCompile(`href="([^"]*/retry\?[^"]*preview=[^"]*)"`).FindStringSubmatch(w.get("ana", shown).is(200, "changes the config", "mended").Body)
	if back == nil {
		t.Fatal("no way back to the form")
	}
	w.get("ana", strings.ReplaceAll(back[1], "&amp;", "&")).is(200, `&#34;mended&#34;: true`)
	w.get("ana", route.OperationRetry(ref, nil, []string{"haproxy"}, false)).is(200, "Remove services", `value="haproxy" checked`)
	w.post("ana", route.Previews(), change("retry", ref.Cluster, "operation", "1", "config", "{")).is(422, `id="f-config-error"`)
	shown = w.post("ana", route.Previews(), change("retry", ref.Cluster, "operation", "1", "config", `{"mended": 1}`)).goesTo(`/previews/.*`)
	preview := w.get("ana", shown).is(200)
	w.pressOn("ana", preview, shown, "Retry shop-front").goesTo(route.Cluster(ref.Cluster))
	if config := w.cluster(ref.Cluster).Config; config["mended"] == nil {
		t.Errorf("%v", config)
	}
}

// waitingTask makes the first task of an operation one that failed and waits for its next try.
func (w *clusterWorld) waitingTask(ref loom.OperationRef) loom.TaskRef {
	w.t.Helper()
	var task struct {
		ID     int64 `db:"id"`
		Number int   `db:"number"`
	}
	w.must(w.db.Get(&task, `SELECT t.id, t.number FROM tasks t JOIN nodes n ON n.task_id = t.id WHERE t.cluster_id = $1 ORDER BY t.number LIMIT 1`, int64(ref.Cluster)))
	w.db.MustExec(`UPDATE tasks SET attempt = 1, code = 1, message = 'no mirror' WHERE id = $1`, task.ID)
	w.db.MustExec(`INSERT INTO attempts (task_id, number, process_id, status, code, message, stderr, started_at, ended_at)
		VALUES ($1, 1, 'host-1a2b3c4d', 'failed', 1, 'no mirror', E'one\ntwo\nthree\nfour <b>\n', now(), now())`, task.ID)
	w.db.MustExec(`UPDATE river_job r SET state = 'scheduled', scheduled_at = now() + interval '1 hour' FROM tasks t WHERE t.id = $1 AND r.id = t.river_job_id`, task.ID)
	return loom.TaskRef{Operation: ref, Number: task.Number}
}

// nextTry is the state of the River job of a task.
func (w *clusterWorld) nextTry(ref loom.TaskRef) (state string) {
	w.t.Helper()
	w.must(w.db.Get(&state, `SELECT r.state FROM river_job r JOIN tasks t ON t.river_job_id = r.id WHERE t.cluster_id = $1 AND t.number = $2 AND NOT t.gate`, int64(ref.Operation.Cluster), ref.Number))
	return state
}

// A task that waits for its next try shows what it said, and two buttons.
func TestWaitingTasksHaveButtons(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ref := w.create("shop-front", 2)
	at, cluster := w.waitingTask(ref), route.Cluster(ref.Cluster)
	w.get("ana", cluster).is(200, ">Retry now<", ">Stop retrying<", "four &lt;b&gt;").lacks("three")
	w.post("eve", route.TaskVerb(at, "retry-now"), url.Values{}).is(404)
	w.press("ana", cluster, "Retry now").goesTo(cluster)
	if state := w.nextTry(at); state != "available" {
		t.Errorf("the next try is %s", state)
	}
	w.db.MustExec(`UPDATE river_job SET state = 'scheduled', scheduled_at = now() + interval '1 hour'`)
	w.press("ana", route.Operation(ref), "Stop retrying").goesTo(route.Operation(ref))
	w.get("ana", route.Activity()).is(200, "stopped retrying")
	w.get("ana", route.Operation(ref)).is(200, "ana stopped the retries: no mirror")
	// Pressed twice, it says so.
	w.post("ana", route.TaskVerb(at, "stop-retrying"), url.Values{}).goesTo(route.Operation(ref))
	w.get("ana", route.Operation(ref)).is(200, "Task "+strconv.Itoa(at.Number)+" does not wait for a retry")
}

// TestNodesOfAFailedCreate: a create that failed before the first machine leaves no list of nodes that do not exist.
func TestNodesOfAFailedCreate(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ref := w.create("shop-front", 2)
	at := route.ClusterNodes(ref.Cluster)
	w.get("ana", at).is(200, "Planned") // it may still create them
	w.db.MustExec(`UPDATE operations SET status = 'failed', message = 'No machine: the quota is used up.', started_at = now(), ended_at = now()`)
	w.db.MustExec(`UPDATE clusters SET status = 'incomplete'`)
	w.get("ana", at).is(200, "No nodes were created. No machine: the quota is used up.", `href="`+route.OperationRetry(ref, nil, nil, true)+`"`).lacks("Planned", "Download key")
	w.db.MustExec(`UPDATE nodes SET state = 'failed' WHERE number = 1000`)
	w.get("ana", at).is(200, "Planned").lacks("No nodes were created")
}

// A refused operation says who refused it and why, and can be asked for again; there is nothing else to
// do about it.
func TestRefusedIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.db.MustExec(`INSERT INTO hooks (tenant_id, name, url, events, blocking) VALUES ($1, 'freeze', 'https://ci.example/', '{start}', true)`, w.tenant.ID)
	ref := w.create("shop-front", 2)
	w.db.MustExec(`UPDATE operations SET status = 'failed', message = 'The hook “freeze” refused: not on Fridays', ended_at = now()`)
	w.db.MustExec(`UPDATE tasks SET status = 'dropped' WHERE NOT gate`)
	w.db.MustExec(`UPDATE clusters SET status = 'terminated'`)
	w.db.MustExec(`DELETE FROM hook_deliveries`)
	w.db.MustExec(`DELETE FROM hooks`)
	at := route.Operation(ref)
	w.get("ana", at).is(200, "The hook “freeze” refused: not on Fridays", ">Request again<").lacks(">Retry<", ">Roll back<")
	w.get("ana", route.Cluster(ref.Cluster)).is(200, "Refused", ">Request again<", ">Duplicate<").lacks("Terminated<", "Planned")
	w.get("ana", route.ClusterNodes(ref.Cluster)).is(200, "No nodes were created. The hook “freeze” refused: not on Fridays", ">Request again<", `href="`+at+`"`).lacks("Planned", "Download key")
	again := w.press("ana", at, "Request again").goesTo(`/clusters/.*/operations/1`)
	if again == at {
		t.Errorf("it leads to %s", again)
	}
}
