package api

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Each change of a layout answers the operation that it began, and works by preview
// and hash as well.
func TestChangesOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "grow")
	w.finish(id)
	at := "/v2/clusters/" + id
	w.call(w.admin, put, "/v2/hardwaretypes/wide", `{"name":"wide","providermap":{"lab":{"flavor":"w"}}}`).want(200)
	w.call(w.admin, put, "/v2/services/extra", service("extra", "")).want(200)
	nodes := func() []any {
		t.Helper()
		return w.call(w.user, get, at, "").want(200).object()["nodes"].([]any)
	}
	node := func(i int) string { return nodes()[i].(map[string]any)["id"].(string) }
	operation := 1
	change := func(verb, body string) map[string]any {
		t.Helper()
		operation++
		kind := strings.ReplaceAll(verb, "-", "_")
		p := w.call(w.user, post, "/v2/previews", `{"kind":"`+kind+`","clusterId":"`+id+`","request":`+body+`}`).want(200).object()
		list := w.call(w.user, get, "/v2/previews/"+p["id"].(string)+"/changes", "").want(200).array()
		if tasks := p["plan"].(map[string]any)["tasks"]; len(list) == 0 || (tasks == 0.0) != (verb == "remove-services") { // extra has nothing to stop
			t.Errorf("%s: preview %v", verb, p)
		}
		w.call(w.second, post, at+"/"+verb, body).want(404)
		w.call(w.token("acme", "ana", "read"), post, at+"/"+verb, body).want(403)
		began := w.call(w.user, post, at+"/"+verb, body).want(200).object()
		op := w.call(w.user, get, at+"/operations/"+strings.TrimLeft(began["operationId"].(string)[9:], "0"), "").want(200).object()
		if op["id"] != began["operationId"] || op["number"] != float64(operation) || op["action"] != map[string]string{
			"expand": "cluster_expand", "shrink": "cluster_shrink", "remove-services": "remove_services", "upgrade": "cluster_upgrade",
			"resize": "cluster_resize", "repair": "cluster_repair",
		}[verb] {
			t.Errorf("%s began %v, %v", verb, began, op)
		}
		w.call(w.user, post, at+"/"+verb, body).want(409)
		w.finish(id)
		return p
	}
	p := change("expand", `{"numMachines":4,"onFailure":"undo"}`)
	if q := p["quota"].(map[string]any)["nodes"].(map[string]any); q["used"] != 3.0 || q["after"] != 4.0 {
		t.Errorf("quota %v", q)
	}
	if op := w.call(w.user, get, at+"/operations/2", "").want(200).object(); op["onFailure"] != "undo" {
		t.Errorf("operation %v", op)
	}
	if n := nodes(); len(n) != 4 || n[3].(map[string]any)["properties"].(map[string]any)["nodenum"] != 1003.0 {
		t.Errorf("nodes %v", n)
	}
	change("resize", `{"hardwaretype":"wide","services":["web"],"batch":1,"minHealthy":1}`)
	change("repair", `{"nodes":["`+strings.ToUpper(node(1))+`"]}`)
	newer := func(args string) { // another version that means other work
		t.Helper()
		w.call(w.admin, put, "/v2/services/web", strings.Replace(service("web", ""), `"args":"start"`, `"args":"`+args+`"`, 1)).want(200)
	}
	newer("start now")
	p = change("upgrade", `{}`)
	if list := p["changes"].([]any); list[0].(map[string]any)["old"] != 1.0 || list[0].(map[string]any)["new"] != 2.0 {
		t.Errorf("changes %v", list)
	}
	newer("start at once")
	operation++
	if began := w.call(w.user, post, at+"/upgrade", ``).want(200).object(); began["operationId"] != id+"-006" {
		t.Errorf("began %v", began)
	}
	w.finish(id)
	w.call(w.user, post, at+"/services", `{"services":["extra"],"onFailure":"undo"}`).want(200)
	w.finish(id)
	operation++
	change("remove-services", `{"services":["extra"]}`)
	last := node(3)
	p = change("shrink", `{"nodes":["`+last+`"]}`)
	if list := p["changes"].([]any); list[0].(map[string]any)["change"] != "remove" || list[0].(map[string]any)["node"] != 1003.0 {
		t.Errorf("changes %v", list)
	}
	if n := nodes(); len(n) != 4 || n[3].(map[string]any)["leaving"] != true {
		t.Errorf("nodes %v", n)
	}
	w.exec(`UPDATE nodes SET state = 'deleted' WHERE id = $1`, last)
	if n := nodes(); len(n) != 3 {
		t.Errorf("%d nodes are left", len(n))
	}
	// A "no" names what may be asked for instead, in the words of the request.
	refused := w.call(w.user, post, at+"/shrink", `{"nodes":["`+node(0)+`"]}`).want(400).problem()
	if len(refused.Reasons) == 0 || len(refused.Suggestions) == 0 || len(refused.Suggestions[0].Nodes) != 1 {
		t.Fatalf("refused %+v", refused)
	}
	w.call(w.user, post, at+"/shrink", `{"nodes":["`+string(refused.Suggestions[0].Nodes[0])+`"]}`).want(200)
	w.finish(id)
	w.call(w.user, patch, at, `{"protected":true}`).want(200)
	w.call(w.user, post, at+"/shrink", `{"numMachines":1}`).fails(409, "", "protected")
}

// TestRepairInPlaceOverREST: each way to repair nodes has an action of its own, and a request
// without one replaces machines as before.
func TestRepairInPlaceOverREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "grow")
	w.finish(id)
	at := "/v2/clusters/" + id
	node := w.call(w.user, get, at, "").want(200).object()["nodes"].([]any)[1].(map[string]any)["id"].(string)
	for i, c := range []struct{ more, action, says string }{
		{`,"how":"restart","services":["web"]`, "repair_restart", "Its services are restarted: web."},
		{`,"how":"configure"`, "repair_configure", "Its services are configured and restarted: web."},
		{`,"how":"reboot"`, "repair_reboot", "It is rebooted, and its services are started: web."},
		{`,"how":"replace"`, "cluster_repair", "It is repaired: a new machine takes its number and host name."},
		{``, "cluster_repair", "It is repaired: a new machine takes its number and host name."},
	} {
		body := `{"nodes":["` + node + `"]` + c.more + `}`
		p := w.call(w.user, post, "/v2/previews", `{"kind":"repair","clusterId":"`+id+`","request":`+body+`}`).want(200).object()
		list := w.call(w.user, get, "/v2/previews/"+p["id"].(string)+"/changes", "").want(200).array()
		if !slices.ContainsFunc(list, func(line map[string]any) bool { return line["object"] == "node" && line["because"] == c.says }) {
			t.Errorf("%s: the preview says %v", body, list)
		}
		began := w.call(w.user, post, at+"/repair", body).want(200).object()
		op := w.call(w.user, get, at+"/operations/"+strconv.Itoa(i+2), "").want(200).object()
		if op["id"] != began["operationId"] || op["action"] != c.action {
			t.Errorf("%s began %v, %v", body, began, op)
		}
		w.finish(id)
	}
}
