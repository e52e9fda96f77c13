package api

import (
	"fmt"
	"strings"
	"testing"
)

// fail ends the latest operation of a cluster as one whose first task failed for good.
func (w *world) fail(id string) {
	w.t.Helper()
	for _, query := range []string{
		`UPDATE tasks SET status = CASE number WHEN 1 THEN 'failed' ELSE 'dropped' END WHERE cluster_id = $1::bigint AND NOT gate AND status IN ('ready', 'blocked', 'running')`,
		`UPDATE operations SET status = 'failed', ended_at = now(), message = 'no' WHERE cluster_id = $1::bigint AND ended_at IS NULL`,
		`UPDATE nodes SET task_id = NULL WHERE cluster_id = $1::bigint`,
		`UPDATE clusters SET status = 'incomplete', revision = revision + 1 WHERE id = $1::bigint`,
	} {
		if _, err := w.db.Exec(query, id); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestRetryOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "again")
	at := "/v2/clusters/" + id + "/operations/1"
	w.call(w.user, post, at+"/retry", "").want(409)
	w.fail(id)
	w.call(w.second, post, at+"/retry", "").want(404)
	w.call(w.user, post, strings.Replace(at, id, "999", 1)+"/retry", "").want(404)
	w.call(w.user, post, "/v2/clusters/"+id+"/operations/7/retry", "").want(404)
	w.call(w.token("acme", "ana", "read"), post, at+"/retry", "").want(403)
	w.call(w.user, post, at+"/retry", `{"skip":[1],"reason":"x"}`).want(403)
	w.call(w.user, post, at+"/retry", `{"skip":"1"}`).fails(400, "skip", "")
	w.call(w.user, post, at+"/retry", `{"skip":["x"]}`).fails(400, "skip[0]", "")
	w.call(w.user, post, at+"/retry", `[]`).want(400)
	w.call(w.admin, post, at+"/retry", `{"skip":[1]}`).fails(400, "reason", "Say why")
	w.call(w.admin, post, at+"/retry", `{"skip":[1,999,-4],"reason":"x"}`).fails(400, "skip[1]", "no task 999")
	actions := w.call(w.user, get, "/v2/clusters/"+id+"/actions", "").want(200).object()
	for _, verb := range []string{"retry", "rollback"} {
		if why := actions[verb]; why != nil {
			t.Errorf("%s: %v", verb, why)
		}
	}
	preview := w.call(w.user, post, "/v2/previews", `{"kind":"retry","clusterId":"`+id+`","request":{}}`).want(200).object()
	if preview["kind"] != "retry" {
		t.Errorf("%v", preview)
	}
	begun := w.call(w.admin, post, at+"/retry", `{"skip":[1],"reason":"made by hand"}`).want(200).object()
	if begun["operationId"] != id+"-002" {
		t.Errorf("%v", begun)
	}
	w.call(w.user, post, at+"/retry", "").want(409)
	op := w.call(w.user, get, "/v2/clusters/"+id+"/operations/2", "").want(200).object()
	if op["action"] != "cluster_create" || op["status"] != "running" {
		t.Errorf("%v", op)
	}
	tasks := w.call(w.user, get, "/v2/clusters/"+id+"/operations/2/tasks?status=skipped", "").want(200)
	if !strings.Contains(tasks.body, `"reason":"made by hand"`) || !strings.Contains(tasks.body, `"by":"admin"`) {
		t.Errorf("%s", tasks.body)
	}
	cluster := w.call(w.user, get, "/v2/clusters/"+id, "").want(200)
	if !strings.Contains(cluster.body, `"skipped":[{"taskId":"`+id+`-002-`) {
		t.Errorf("%s", cluster.body)
	}
}

func TestRollbackOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "back")
	at := "/v2/clusters/" + id + "/operations/1"
	w.call(w.user, post, at+"/rollback", "").want(409)
	w.fail(id)
	w.call(w.second, post, at+"/rollback", "").want(404)
	w.call(w.user, post, "/v2/clusters/"+id+"/operations/7/rollback", "").want(404)
	w.call(w.token("acme", "ana", "read"), post, at+"/rollback", "").want(403)
	w.call(w.user, post, at+"/rollback", `{"providerFields":7}`).fails(400, "providerFields", "")
	for request, field := range map[string]string{
		`{}`: "request.operation", `{"operation":0}`: "request.operation", `{"operation":-1}`: "request.operation", `{"operation":null}`: "request.operation", `{"operation":"x"}`: "request.operation",
	} {
		w.call(w.user, post, "/v2/previews", `{"kind":"rollback","clusterId":"`+id+`","request":`+request+`}`).fails(400, field, "")
	}
	w.call(w.user, post, "/v2/previews", `{"kind":"rollback","clusterId":"`+id+`","request":{"operation":9}}`).want(404)
	begun := w.call(w.user, post, at+"/rollback", `{}`).want(200).object()
	if begun["operationId"] != id+"-002" {
		t.Errorf("%v", begun)
	}
	if op := w.call(w.user, get, "/v2/clusters/"+id+"/operations/2", "").want(200).object(); op["action"] != "rollback" {
		t.Errorf("%v", op)
	}
}

func TestSkipOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "skips")
	at := "/v2/clusters/" + id + "/operations/1"
	first := at + "/tasks/1"
	w.call(w.admin, post, first+"/skip", `{"reason":"x"}`).fails(409, "", "not paused")
	w.call(w.user, post, at+"/pause", "").want(200)
	w.call(w.user, post, first+"/skip", `{"reason":"x"}`).want(403)
	w.call(w.second, post, first+"/skip", `{"reason":"x"}`).want(404)
	w.call(w.admin, post, at+"/tasks/999/skip", `{"reason":"x"}`).want(404)
	w.call(w.admin, post, at+"/tasks/0/skip", `{"reason":"x"}`).want(404)
	for _, body := range []string{`{}`, `{"reason":""}`, `{"reason":"  "}`, `{"reason":["x"]}`, fmt.Sprintf(`{"reason":%q}`, strings.Repeat("é", 1001)), `{"reason":"\u0000"}`} {
		w.call(w.admin, post, first+"/skip", body).fails(400, "reason", "")
	}
	w.call(w.admin, post, first+"/skip", ``).want(400)
	task := w.call(w.admin, post, first+"/skip", `{"reason":"it is there"}`).want(200).object()
	skipped, _ := task["skipped"].(map[string]any)
	if task["status"] != "skipped" || skipped["by"] != "admin" || skipped["reason"] != "it is there" {
		t.Errorf("%v", task)
	}
	w.call(w.admin, post, first+"/skip", `{"reason":"x"}`).fails(409, "", "skipped already")
	w.call(w.user, post, at+"/resume", "").want(200)
	if op := w.call(w.user, get, at, "").want(200).object(); op["tasks"].(map[string]any)["skipped"] != 1.0 {
		t.Errorf("%v", op)
	}
}
