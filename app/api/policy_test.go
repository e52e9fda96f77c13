package api

import (
	"strings"
	"testing"
)

// What a failure does is refused where operations of the kind are not undone, at once
// and as a preview, with the field and a way out; “keep” is fine everywhere.
func TestFailurePolicyOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "calm")
	w.finish(id)
	at := "/v2/clusters/" + id
	node := w.call(w.user, get, at, "").want(200).object()["nodes"].([]any)[0].(map[string]any)["id"].(string)
	for _, c := range []struct{ kind, method, path, body, says string }{
		{"start", post, "/services/start", `{`, "changes no layout"},
		{"stop", post, "/services/web/stop", `{`, "changes no layout"},
		{"restart", post, "/services/restart", `{`, "changes no layout"},
		{"configure", put, "/config", `{"config":{},`, "roll back to the config before"},
		{"repair", post, "/repair", `{"nodes":["` + node + `"],`, "repair again"},
		{"rollback", post, "/operations/1/rollback", `{"operation":1,`, "goes back already"},
		{"sync", post, "/clustertemplate/sync", `{`, "nothing to take back"},
		{"delete", del, "", `{`, "What a delete took is gone"},
	} {
		body := c.body + `"onFailure":"undo"}`
		w.call(w.user, c.method, at+c.path, body).fails(400, "onFailure", c.says)
		w.call(w.user, post, "/v2/previews", `{"kind":"`+c.kind+`","clusterId":"`+id+`","request":`+body+`}`).fails(400, "request.onFailure", c.says)
		p := w.call(w.user, post, "/v2/previews", `{"kind":"`+c.kind+`","clusterId":"`+id+`","request":`+strings.Replace(body, "undo", "keep", 1)+`}`).want(200).object()
		if p["onFailure"] != "keep" && (c.kind != "sync" || p["onFailure"] != nil) {
			t.Errorf("%s: preview %v", c.kind, p["onFailure"])
		}
	}
	// What the predecessor sent for a sync still does not matter.
	w.call(w.user, post, at+"/clustertemplate/sync", `{"onFailure":"keep"}`).want(200)
	w.call(w.user, post, at+"/clustertemplate/sync", `no object`).want(200)
	p := w.call(w.user, post, "/v2/previews", `{"kind":"expand","clusterId":"`+id+`","request":{"numMachines":4,"onFailure":"undo"}}`).want(200).object()
	if p["onFailure"] != "undo" {
		t.Errorf("preview of an expand: %v", p["onFailure"])
	}
	w.call(w.user, post, at+"/services/web/stop", `{"onFailure":"keep"}`).want(200)
	if op := w.call(w.user, get, at+"/operations/2", "").want(200).object(); op["onFailure"] != "keep" {
		t.Errorf("operation %v", op)
	}
	w.finish(id)
	w.call(w.user, post, at+"/operations/2/retry", `{"onFailure":"pray"}`).fails(400, "onFailure", "keep")
}
