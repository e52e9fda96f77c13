package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
)

func TestConfigureOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "conf")
	at := "/v2/clusters/" + id
	body := `{"config":{"n":1.50,"db":{"password":"hush"}}}`
	w.call(w.user, put, at+"/config", body).fails(409, "", "running")
	w.finish(id)
	w.call(w.user, put, at+"/config", body, "Content-Type", "text/plain; charset=UTF-8").want(200)
	if got := w.call(w.user, get, at+"/config", "").want(200); strings.TrimSpace(got.body) != `{"db":{"password":"hush"},"n":1.50}` {
		t.Errorf("config %s", got.body)
	}
	status := w.call(w.user, get, at+"/status", "").want(200).object()
	if status["status"] != "pending" || status["action"] != "cluster_configure_with_restart" || status["actionstatus"] != "running" {
		t.Errorf("status %v", status)
	}
	w.finish(id)
	w.call(w.user, put, at+"/config/", `{"configPatch":{"db":null},"restart":"false","providerFields":{}}`).want(200)
	if op := w.call(w.user, get, at+"/operations/3", "").want(200).object(); op["action"] != "cluster_configure" {
		t.Errorf("operation %v", op)
	}
	w.finish(id)
	w.exec(`UPDATE clusters SET status = 'inconsistent'`)
	w.call(w.user, put, at+"/config", `{"revision":2}`).want(200)
	versions := w.call(w.user, get, at+"/config/versions?limit=2", "").want(200)
	list := versions.array()
	if len(list) != 2 || list[0]["revision"] != 4.0 || list[0]["operationId"] != id+"-004" || list[0]["author"] != "ana" || versions.header.Get("Link") == "" {
		t.Errorf("versions %s", versions.body)
	}
	if got := w.call(w.user, get, at+"/config/versions/3", "").want(200); strings.TrimSpace(got.body) != `{"n":1.50}` {
		t.Errorf("revision 3 is %s", got.body)
	}
	for _, path := range []string{at + "/config/versions/5", at + "/config/versions/x", "/v2/clusters/999/config/versions", "/v2/clusters/999/config/versions/1"} {
		w.call(w.user, get, path, "").want(404)
	}
	w.call(w.second, get, at+"/config/versions", "").want(404)
	w.call(w.second, put, at+"/config", body).want(404)
	readOnly := w.token("acme", "ana", "read")
	w.call(readOnly, put, at+"/config", body).want(403)
	w.call(readOnly, get, at+"/config/versions", "").want(200)
}

func TestServicesOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "serve")
	at := "/v2/clusters/" + id
	w.call(w.user, post, at+"/services/start", "").fails(409, "", "running")
	w.call(w.user, post, at+"/services/ghost/start", "").fails(404, "", "ghost")
	w.finish(id)
	number := 1
	for _, c := range []struct{ path, body, action string }{
		{"/services/start", "", "start_services"}, {"/services/stop", "{}", "stop_services"}, {"/services/restart", `{"providerFields":{}}`, "restart_services"},
		{"/services/web/start", "", "start_services"}, {"/services/web/stop", "null", "stop_services"}, {"/services/web/restart/", "", "restart_services"},
	} {
		w.call(w.user, post, at+c.path, c.body).want(200)
		number++
		op := w.call(w.user, get, fmt.Sprintf("%s/operations/%d", at, number), "").want(200).object()
		if op["action"] != c.action {
			t.Errorf("%s became %v", c.path, op)
		}
		w.finish(id)
	}
	w.call(w.user, post, at+"/services/dance", "").want(404)
	w.call(w.second, post, at+"/services/stop", "").want(404)
	// The same request with the same key becomes one operation.
	first := w.call(w.user, post, at+"/services/start", "", "Idempotency-Key", "s-1").want(200)
	again := w.call(w.user, post, at+"/services/start", "", "Idempotency-Key", "s-1").want(200)
	if first.body != "" || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("replayed %q, %v", again.body, again.header)
	}
	w.finish(id)
	w.call(w.admin, put, "/v2/services/extra", service("extra", "")).want(200)
	w.call(w.user, post, at+"/services", `{"services":["web"]}`).fails(400, "services", "already")
	w.call(w.user, post, at+"/services", `{"services":["ghost"]}`).fails(400, "", "ghost")
	w.call(w.second, post, at+"/services", `{"services":["extra"]}`).want(404)
	w.call(w.token("acme", "ana", "read"), post, at+"/services", `{"services":["extra"]}`).want(403)
	added := w.call(w.user, post, at+"/services", `{"services":["extra","web"],"providerFields":{}}`, "Idempotency-Key", "s-2").want(200)
	if again := w.call(w.user, post, at+"/services", `{"services":["extra","web"],"providerFields":{}}`, "Idempotency-Key", "s-2").want(200); added.body != "" || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("added %q, replayed %v", added.body, again.header)
	}
	w.call(w.user, post, at+"/services", `{"services":["extra"]}`).fails(409, "", "add services")
	if c := w.call(w.user, get, at, "").want(200).object(); c["latestOperation"].(map[string]any)["action"] != "add_services" || !strings.Contains(fmt.Sprint(c["services"]), "extra") ||
		!strings.Contains(fmt.Sprint(c["nodes"].([]any)[0].(map[string]any)["properties"].(map[string]any)["services"]), "extra") {
		t.Errorf("cluster %v", c)
	}
	w.finish(id)
	w.exec(`UPDATE clusters SET status = 'incomplete'`)
	w.call(w.user, post, at+"/services", `{"services":["extra"]}`).fails(409, "", "incomplete")
	w.call(w.second, post, at+"/services", `{"services":["extra"]}`).want(404)
}

func TestControlsOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "calm")
	at := "/v2/clusters/" + id
	state := func() any { return w.call(w.user, get, at+"/operations/1", "").want(200).object()["status"] }
	for _, c := range []struct{ verb, want string }{
		{"resume", "running"}, {"pause", "paused"}, {"pause", "paused"}, {"resume", "running"}, {"pause", "paused"},
	} {
		w.call(w.user, post, at+"/"+c.verb, "").want(200)
		if got := state(); got != c.want {
			t.Errorf("after %s: %v, want %s", c.verb, got, c.want)
		}
	}
	if actions := w.call(w.user, get, at+"/actions", "").want(200).object(); actions["resume"] != nil || actions["abort"] != nil || actions["pause"] == nil {
		t.Errorf("actions %v", actions)
	}
	op := w.call(w.user, post, at+"/operations/1/resume", "").want(200).object()
	if op["status"] != "running" || op["id"] != id+"-001" || op["progress"].(map[string]any)["stepstotal"].(float64) < 9 {
		t.Errorf("resumed %v", op)
	}
	for _, verb := range []string{"abort", "pause", "resume"} {
		w.call(w.second, post, at+"/"+verb, "").want(404)
		w.call(w.second, post, at+"/operations/1/"+verb, "").want(404)
		w.call(w.user, post, at+"/operations/2/"+verb, "").want(404)
		w.call(w.user, post, at+"/operations/x/"+verb, "").want(404)
		w.call(w.user, post, "/v2/clusters/999/"+verb, "").want(404)
		w.call(w.token("acme", "ana", "read"), post, at+"/"+verb, "").want(403)
	}
	if op := w.call(w.user, post, at+"/operations/1/abort", "").want(200).object(); op["status"] != "failing" || !strings.Contains(op["message"].(string), "ana") {
		t.Errorf("aborted %v", op)
	}
	w.call(w.user, post, at+"/abort", "").want(200) // ending already
	w.finish(id)
	w.call(w.user, post, at+"/services/stop", "").want(200)
	w.finish(id)
	for _, verb := range []string{"abort", "pause", "resume"} {
		w.call(w.user, post, at+"/"+verb, "").want(200) // nothing runs
		w.call(w.user, post, at+"/operations/1/"+verb, "").fails(409, "", "latest one is 2")
		if op := w.call(w.user, post, at+"/operations/2/"+verb, "").want(200).object(); op["status"] != "complete" {
			t.Errorf("%s changed an operation that has ended: %v", verb, op)
		}
	}
}

func TestDeleteWithAbortOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "gone")
	at := "/v2/clusters/" + id
	w.call(w.user, del, at, `{"abort":false}`).fails(409, "", "running")
	w.call(w.user, post, "/v2/previews", `{"kind":"delete","clusterId":"`+id+`","request":{"abort":true}}`).fails(409, "", "no preview")
	w.call(w.user, del, at, `{"abort":"true"}`).want(200)
	if op := w.call(w.user, get, at+"/operations/1", "").want(200).object(); op["status"] != "failing" {
		t.Errorf("operation %v", op)
	}
	w.call(w.user, del, at, `{"abort":true}`).want(200) // once more changes nothing
}

func TestSyncOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "sync")
	at := "/v2/clusters/" + id
	w.call(w.user, post, at+"/clustertemplate/sync", "").fails(409, "", "running")
	w.finish(id)
	old := w.call(w.admin, get, "/v2/clustertemplates/site", "").want(200).body
	w.call(w.admin, put, "/v2/clustertemplates/site", strings.Replace(old, `"max":5`, `"max":4`, 1)).want(200)
	p := w.call(w.user, post, "/v2/previews", `{"kind":"sync","clusterId":"`+id+`"}`).want(200).object()
	changes := p["changes"].([]any)
	first := changes[0].(map[string]any)
	if len(changes) != 2 || first["name"] != "/constraints/size/max" || first["old"] != 5.0 || first["new"] != 4.0 || p["plan"].(map[string]any)["tasks"] != 0.0 {
		t.Errorf("preview %v", p)
	}
	w.call(w.user, get, "/v2/previews/"+p["id"].(string)+"/tasks", "").want(200)
	applied := w.call(w.user, post, "/v2/previews/"+p["id"].(string)+"/apply", `{"hash":"`+p["hash"].(string)+`"}`).want(200).object()
	if applied["id"] != id || len(applied) != 1 {
		t.Errorf("applied %v", applied)
	}
	if c := w.call(w.user, get, at, "").want(200).object(); c["clusterTemplate"].(map[string]any)["version"] != 2.0 || c["status"] != "active" || c["latestJobId"] != id+"-001" {
		t.Errorf("cluster %v", c["clusterTemplate"])
	}
	w.call(w.admin, put, "/v2/clustertemplates/site", strings.Replace(old, `"max":5`, `"max":2`, 1)).want(200)
	refused := w.call(w.user, post, at+"/clustertemplate/sync", "").want(400)
	if problem := refused.problem(); len(problem.Reasons) == 0 {
		t.Errorf("refused %s", refused.body)
	}
	w.call(w.admin, put, "/v2/clustertemplates/site", old).want(200)
	w.call(w.user, post, at+"/clustertemplate/sync", "").want(200)
	w.call(w.second, post, at+"/clustertemplate/sync", "").want(404)
	w.call(w.admin, del, "/v2/clustertemplates/site", "").want(200)
	w.call(w.user, post, at+"/clustertemplate/sync", "").fails(404, "", "site")
}

func TestPreviewsOfOperationsOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "prev")
	w.finish(id)
	at := "/v2/clusters/" + id
	p := w.call(w.user, post, "/v2/previews", `{"kind":"configure","clusterId":"`+id+`","request":{"configPatch":{"web":{"port":81,"api_key":"k"}},"restart":false}}`).want(200)
	if strings.Contains(p.body, `"k"`) || !strings.Contains(p.body, `"name":"/web/port","old":80,"new":81`) {
		t.Errorf("preview %s", p.body)
	}
	stop := w.call(w.user, post, "/v2/previews", `{"kind":"start","clusterId":"`+id+`","service":"web"}`).want(200).object()
	if stop["plan"].(map[string]any)["byAction"].(map[string]any)["start"] != 2.0 || stop["quota"].(map[string]any)["nodes"].(map[string]any)["after"] != 3.0 {
		t.Errorf("preview %v", stop)
	}
	w.call(w.user, post, "/v2/previews", `{"kind":"start","clusterId":"`+id+`","service":"ghost"}`).want(404)
	w.call(w.admin, put, "/v2/services/extra", service("extra", "")).want(200)
	add := w.call(w.user, post, "/v2/previews", `{"kind":"add_services","clusterId":"`+id+`","request":{"services":["extra"]}}`).want(200)
	if !strings.Contains(add.body, `{"change":"create","object":"service","name":"extra","node":1000,"because":"The template allows it on every node."}`) {
		t.Errorf("preview %s", add.body)
	}
	w.call(w.user, post, "/v2/previews", `{"kind":"add_services","clusterId":"`+id+`","request":{}}`).fails(400, "request.services", "Name the services")
	w.call(w.user, post, "/v2/previews", `{"kind":"add_services","clusterId":"`+id+`","request":{"services":["web"]}}`).fails(400, "request.services", "already")
	w.call(w.user, post, "/v2/previews", `{"kind":"add_services","clusterId":"`+id+`","request":{"services":"extra"}}`).fails(400, "request.services", "")
	if p := w.call(w.user, post, "/v2/previews", `{"kind":"add_services","clusterId":"`+id+`","request":{"services":["ghost"]}}`).want(400).problem(); len(p.Reasons) == 0 {
		t.Errorf("refused without reasons: %+v", p)
	}
	one := p.object()
	apply := func(v map[string]any) reply {
		return w.call(w.user, post, "/v2/previews/"+v["id"].(string)+"/apply", `{"hash":"`+v["hash"].(string)+`"}`)
	}
	if got := apply(one).want(200).object(); got["operationId"] != id+"-002" {
		t.Errorf("applied %v", got)
	}
	apply(stop).want(409)
	w.finish(id)
	if fresh := apply(stop).want(409).object()["preview"]; fresh == nil {
		t.Error("no fresh preview")
	}
	if config := w.call(w.user, get, at+"/config", "").want(200).body; !strings.Contains(config, `"api_key":"k"`) {
		t.Errorf("config %s", config)
	}
}

func TestEditAndFilterOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := make([]string, 3)
	for i := range ids {
		ids[i] = w.cluster(w.user, fmt.Sprintf("c%d", i))
		w.finish(ids[i])
		w.call(w.user, patch, "/v2/clusters/"+ids[i], fmt.Sprintf(`{"labels":{"n":%d,"team":"x"}}`, i)).want(200)
	}
	at := "/v2/clusters/" + ids[0]
	w.call(w.second, patch, at, `{"ownerId":"ben"}`).want(404)
	w.call(w.user, patch, at, `{"ownerId":"nobody"}`).fails(400, "ownerId", "There is no user with this id")
	w.call(w.admin, patch, at, `{"ownerId":"nobody"}`).fails(400, "ownerId", "nobody")
	if c := w.call(w.admin, patch, at, `{"ownerId":"ben","description":"yours"}`).want(200).object(); c["account"].(map[string]any)["userId"] != "ben" || c["description"] != "yours" {
		t.Errorf("edited %v", c)
	}
	w.call(w.user, get, at, "").want(404)
	w.call(w.second, get, at, "").want(200)
	soon := time.Now().Add(time.Hour)
	w.exec(`UPDATE clusters SET expires_at = $1 WHERE id = $2`, soon, 2)
	w.exec(`UPDATE clusters SET expires_at = NULL WHERE id = $1`, 3)
	for query, want := range map[string]string{
		"label=team%3Dx":                  "c2 c1 c0",
		"label=n%3D1":                     "c1",
		"label=n%3D1,team%3Dx":            "c1",
		"label=n%3D1,team%3Dy":            "",
		"expiresBefore=" + millis(soon):   "",
		"expiresBefore=253402300799999":   "c1 c0",
		"sort=name":                       "c0 c1 c2",
		"sort=-name&limit=2":              "c2 c1",
		"sort=expireTime":                 "c1 c0 c2",
		"sort=-expireTime":                "c2 c0 c1",
		"sort=status&limit=1":             "c0",
		"sort=createTime":                 "c0 c1 c2",
		"label=":                          "c2 c1 c0",
		"expiresBefore=&status=active":    "c2 c1 c0",
		"unknown=ignored&status=nonsense": "c2 c1 c0",
	} {
		var got []string
		for _, c := range w.call(w.admin, get, "/v2/clusters?"+query, "").want(200).array() {
			got = append(got, c["name"].(string))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	for query, field := range map[string]string{
		"label=team": "label", "label=%3Dx": "label", "label=n%3D1,n%3D2": "label", "expiresBefore=soon": "expiresBefore", "expiresBefore=-1": "expiresBefore",
		"expiresBefore=99999999999999999": "expiresBefore", "sort=nodes": "sort", "limit=0": "limit", "after=x": "after", "shared=maybe": "shared",
	} {
		w.call(w.admin, get, "/v2/clusters?"+query, "").fails(400, field, "")
	}
	// What others share is listed alone; ben has a cluster of his own.
	w.call(w.user, post, "/v2/clusters/"+ids[1]+"/access", `{"user":"ben","role":"reader"}`).want(200)
	for query, want := range map[string]int{"shared=true": 1, "shared=false": 2, "": 2} {
		if got := w.call(w.second, get, "/v2/clusters?"+query, "").want(200).array(); len(got) != want {
			t.Errorf("%s: %d clusters, want %d", query, len(got), want)
		}
	}
}

// What begins an operation names it in a header where the body has no room for it.
func TestAnswersNameTheOperationTheyBegan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	created := w.call(w.user, post, "/v2/clusters", `{"name":"told","clusterTemplate":"site","numMachines":3}`).want(200)
	id := created.object()["id"].(string)
	at := "/v2/clusters/" + id
	answers := []reply{created}
	for _, c := range []struct{ method, path, body string }{
		{put, at + "/config", `{"config":{}}`},
		{post, at + "/services/restart", ""},
		{post, at + "/services/web/stop", ""},
		{del, at, ""},
	} {
		w.finish(id)
		answers = append(answers, w.call(w.user, c.method, c.path, c.body).want(200))
	}
	for i, a := range answers {
		ref, ok := loom.ParseOperationRef(a.header.Get(headerOperation))
		if !ok || ref.Number != i+1 || ref.Cluster.String() != id {
			t.Errorf("answer %d names %q", i+1, a.header.Get(headerOperation))
		}
	}
	w.call(w.user, post, at+"/services/web/stop", "").want(409)
}
