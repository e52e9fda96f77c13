package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

func TestClusterFromCreateToDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// As the Java client sends it, numbers as text included.
	made := w.call(w.user, post, "/v2/clusters", `{"name":"web_1","clusterTemplate":"site","numMachines":"3","providerFields":{},"initialLeaseDuration":-1,
		"config":{"n":5,"f":1.50,"s":"%host.service.web%"},"labels":{"team":"x"}}`, "Content-Type", "text/plain; charset=UTF-8").want(200).object()
	id, ok := made["id"].(string)
	if !ok || len(id) != 8 || len(made) != 1 {
		t.Fatalf("made %v", made)
	}
	at := "/v2/clusters/" + id
	short := strings.TrimLeft(id, "0")

	list := w.call(w.user, get, "/v2/clusters", "").want(200).array()
	if len(list) != 1 || list[0]["id"] != id || list[0]["numNodes"] != 3.0 || list[0]["ownerId"] != "ana" || list[0]["status"] != "pending" {
		t.Errorf("list %v", list)
	}
	c := w.call(w.user, get, "/v2/clusters/"+short, "").want(200)
	full := c.object()
	if full["latestJobId"] != id+"-001" || full["status"] != "pending" || full["expireTime"].(float64)-full["createTime"].(float64) != 8*3600*1000 {
		t.Errorf("cluster %s", c.body)
	}
	if !strings.Contains(c.body, `"config":{"f":1.50,"n":5,"s":"%host.service.web%"}`) {
		t.Errorf("numbers of the config are not as written: %s", c.body)
	}
	nodes := full["nodes"].([]any)
	first := nodes[0].(map[string]any)
	if len(nodes) != 3 || first["properties"].(map[string]any)["hostname"] != "web-1"+short+"-1000.local" || first["state"] != "planned" {
		t.Errorf("nodes %v", nodes)
	}
	config := w.call(w.user, get, at+"/config", "").want(200)
	if strings.TrimSpace(config.body) != `{"f":1.50,"n":5,"s":"%host.service.web%"}` {
		t.Errorf("config %s", config.body)
	}
	if services := w.call(w.user, get, at+"/services/", "").want(200); strings.TrimSpace(services.body) != `["balancer","web"]` {
		t.Errorf("services %s", services.body)
	}
	status := w.call(w.user, get, at+"/status", "").want(200).object()
	if status["clusterid"] != id || status["actionstatus"] != "running" || status["action"] != "cluster_create" || status["stepscompleted"] != 0.0 {
		t.Errorf("status %v", status)
	}
	total := int(status["stepstotal"].(float64))

	plan := w.call(w.user, get, at+"/plans/"+id+"-001", "").want(200).object()
	stages := plan["stages"].([]any)
	if plan["action"] != "CLUSTER_CREATE" || plan["currentStage"] != 0.0 || len(stages[0].([]any)) != 3 || stages[0].([]any)[0].(map[string]any)["taskName"] != "CREATE" {
		t.Errorf("plan %v", plan)
	}
	if plans := w.call(w.user, get, at+"/plans", "").want(200).array(); len(plans) != 1 {
		t.Errorf("plans %v", plans)
	}
	w.call(w.user, get, at+"/plans/nonsense", "").fails(400, "", id+"-001")
	w.call(w.user, get, at+"/plans/00009999-001", "").fails(400, "", "another cluster")
	w.call(w.user, get, at+"/plans/"+id+"-009", "").want(404)
	w.call(w.user, get, "/v2/clusters/99999/plans/x", "").want(404)

	operations := w.call(w.user, get, at+"/operations", "").want(200).array()
	if len(operations) != 1 || operations[0]["id"] != id+"-001" || operations[0]["status"] != "running" || operations[0]["requestedBy"] != "ana" {
		t.Errorf("operations %v", operations)
	}
	w.call(w.user, get, at+"/operations?status=complete", "").want(200)
	w.call(w.user, get, at+"/operations?status=sleeping", "").fails(400, "status", "rolled_back")
	w.call(w.user, get, at+"/operations/1", "").want(200)
	w.call(w.user, get, at+"/operations/2", "").want(404)
	w.call(w.user, get, at+"/operations/x", "").want(404)
	tasks := w.call(w.user, get, at+"/operations/1/tasks?limit=500", "").want(200).array()
	if len(tasks) != total || tasks[0]["id"] != id+"-001-001" || len(tasks[total-1]["dependsOn"].([]any))+len(tasks[total-1]["behind"].([]any)) == 0 {
		t.Errorf("%d tasks %v", len(tasks), tasks)
	}
	if creates := w.call(w.user, get, at+"/operations/1/tasks?action=create", "").want(200).array(); len(creates) != 3 {
		t.Errorf("creates %v", creates)
	}
	w.call(w.user, get, at+"/operations/1/tasks?status=lost", "").fails(400, "status", "lost")
	w.call(w.user, get, at+"/operations/1/tasks/1", "").want(200)
	w.call(w.user, get, at+"/operations/1/tasks/999", "").want(404)

	actions := w.call(w.user, get, at+"/actions", "").want(200).object()
	if why, _ := actions["delete"].(string); !strings.Contains(why, "Operation 1 (create) is running") {
		t.Errorf("actions %v", actions)
	}
	w.call(w.user, del, at, "").fails(409, "", "running")
	w.call(w.user, post, at, `{"expireTime":1}`).fails(400, "expireTime", "is running")

	w.finish(id)
	done := w.call(w.user, get, at, "").want(200)
	full = done.object()
	if full["progress"].(map[string]any)["stepscompleted"] != float64(total) || full["links"].([]any)[0].(map[string]any)["url"] != "http://10.0.0.1/" {
		t.Errorf("finished %s", done.body)
	}
	history := full["nodes"].([]any)[0].(map[string]any)["actions"].([]any)
	if history[0].(map[string]any)["action"] != "CREATE" || history[0].(map[string]any)["taskId"] != id+"-001-001" {
		t.Errorf("history %v", history)
	}
	if actions := w.call(w.user, get, at+"/actions", "").want(200).object(); actions["delete"] != nil {
		t.Errorf("actions %v", actions)
	}
	w.call(w.user, get, at, "", "If-None-Match", done.header.Get("ETag")).want(304)

	edited := w.call(w.user, patch, at, `{"description":"mine","labels":{"a":1},"protected":"true"}`).want(200).object()
	if edited["description"] != "mine" || edited["protected"] != true || edited["labels"].(map[string]any)["a"] != "1" {
		t.Errorf("edited %v", edited)
	}
	w.call(w.user, del, at, "").fails(409, "", "protected")
	w.call(w.user, patch, at, `{"protected":false}`).want(200)
	w.call(w.user, post, at, `{"expireTime":`+millis(time.Now().Add(time.Hour))+`}`).want(200)
	w.call(w.user, post, at, `{"expireTime":null}`).fails(400, "expireTime", "needs an expiry")
	w.call(w.user, post, at, `{}`).fails(400, "expireTime", "milliseconds")

	w.call(w.user, del, at, `{"providerFields":{"zone":5}}`).want(200)
	w.call(w.user, del, at, "").fails(409, "", "delete")
	w.exec(`UPDATE clusters SET status = 'terminated'`)
	w.call(w.user, del, at, "").want(200) // gone already
	if list := w.call(w.user, get, "/v2/clusters?status=pending,active,incomplete,inconsistent", "").want(200).array(); len(list) != 0 {
		t.Errorf("a gone cluster is listed: %v", list)
	}
	if list := w.call(w.user, get, "/v2/clusters?status=Nonsense", "").want(200).array(); len(list) != 1 {
		t.Errorf("unknown statuses must not filter: %v", list)
	}
	if list := w.call(w.user, get, "/v2/clusters?status=TERMINATED,nonsense&status=active", "").want(200).array(); len(list) != 1 {
		t.Errorf("any case, the first parameter only: %v", list)
	}
}

func TestCreateRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	valid := func(change string) string {
		return `{"name":"x","clusterTemplate":"site","numMachines":3` + change + `}`
	}
	for _, c := range []struct {
		body        string
		status      int
		field, text string
	}{
		{"", 400, "", "empty"},
		{"null", 400, "", "JSON object is needed"},
		{"[]", 400, "", "array"},
		{"{\"name\": \"x\",\n  nonsense}", 400, "", "line 2, column 3"},
		{`{"name":"x"} trailing`, 400, "", "line 1, column 14"},
		{`{"name":"x"`, 400, "", "line 1"},
		{`{}`, 400, "name", "name is required"},
		{`{}`, 400, "clusterTemplate", "Choose a template"},
		{`{}`, 400, "numMachines", "at least 1"},
		{`{"name":["x"],"clusterTemplate":"site","numMachines":"three"}`, 400, "numMachines", "“three”"},
		{`{"name":["x"],"clusterTemplate":"site","numMachines":"three"}`, 400, "name", "must be a text"},
		{`{"name":"a b","clusterTemplate":"site","numMachines":3}`, 400, "name", "Use letters without accents"},
		{`{"name":"Übung","clusterTemplate":"nothing","provider":"nowhere","numMachines":900}`, 400, "name", "This name has “Ü”."},
		{`{"name":"Übung","clusterTemplate":"nothing","provider":"nowhere","numMachines":900}`, 400, "clusterTemplate", "There is no template “nothing”."},
		{`{"name":"Übung","clusterTemplate":"nothing","provider":"nowhere","numMachines":900}`, 400, "provider", "There is no provider “nowhere”."},
		{`{"name":"Übung","clusterTemplate":"nothing","provider":"nowhere","numMachines":900}`, 400, "numMachines", "at most 50 nodes"},
		{`{"name":"x","clusterTemplate":"site","numMachines":0}`, 400, "numMachines", "at least 1"},
		{`{"name":"x","clusterTemplate":"site","numMachines":51}`, 400, "numMachines", "at most 50"},
		{`{"name":"x","clusterTemplate":"site","numMachines":6}`, 400, "", "At most 5 nodes"},
		{`{"name":"x","clusterTemplate":"nothing","numMachines":3}`, 404, "", "nothing"},
		{valid(`,"provider":"nowhere"`), 404, "", "nowhere"},
		{valid(`,"services":["ghost"]`), 400, "", "ghost"},
		{valid(`,"services":"web"`), 400, "services", "must be an array"},
		{valid(`,"dnsSuffix":"-bad"`), 400, "dnsSuffix", "labels of letters"},
		{valid(`,"initialLeaseDuration":-5`), 400, "initialLeaseDuration", "negative"},
		{valid(`,"initialLeaseDuration":0`), 400, "initialLeaseDuration", "requires an expiry"},
		{valid(`,"initialLeaseDuration":99999999`), 400, "initialLeaseDuration", "8 hours"},
		{valid(`,"config":{},"configPatch":{}`), 400, "configPatch", "not both"},
		{valid(`,"config":"x"`), 400, "config", "must be an object"},
		{valid(`,"onFailure":"panic"`), 400, "onFailure", "keep"},
	} {
		w.call(w.user, post, "/v2/clusters", c.body).fails(c.status, c.field, c.text)
		// The same through a preview names the field inside the request.
		if strings.HasPrefix(c.body, "{") && !strings.Contains(c.text, "line") && c.body != "{}" {
			field := c.field
			if field != "" {
				field = "request." + field
			}
			w.call(w.user, post, "/v2/previews", `{"kind":"create","request":`+c.body+`}`).fails(c.status, field, c.text)
		}
	}

	unsolvable := w.call(w.user, post, "/v2/clusters", `{"name":"x","clusterTemplate":"site","numMachines":1}`).want(400)
	p := unsolvable.problem()
	if p.Type != "urn:loom:error:unsolvable" || len(p.Reasons) == 0 || p.Sizes == nil || p.Sizes.Min != 2 || p.Sizes.Max != 5 || len(p.Suggestions) == 0 {
		t.Errorf("unsolvable: %s", unsolvable.body)
	}
	missing := w.call(w.user, post, "/v2/clusters", valid(`,"provider":"cloud","providerFields":{"zone":"b"}`)).want(400)
	sets, _ := missing.object()["missingFields"].([]any)
	if len(sets) != 1 || sets[0].(map[string]any)["key"].(map[string]any)["sensitive"] != true || strings.Contains(missing.body, `"zone"`) {
		t.Errorf("missing fields: %s", missing.body)
	}
	missing = w.call(w.user, post, "/v2/clusters", valid(`,"provider":"cloud"`)).want(400)
	if !strings.Contains(missing.body, `"defaultValue":"a"`) {
		t.Errorf("missing fields: %s", missing.body)
	}
	// A secret that was given is never shown again.
	id := w.call(w.user, post, "/v2/clusters", valid(`,"provider":"cloud","providerFields":{"zone":"b","key":"hush-hush"}`)).want(200).object()["id"].(string)
	if c := w.call(w.user, get, "/v2/clusters/"+id, "").want(200); strings.Contains(c.body, "hush-hush") || !strings.Contains(c.body, `"zone":"b"`) {
		t.Errorf("cluster %s", c.body)
	}
	w.exec(`UPDATE tenants SET max_clusters = 1 WHERE name = 'acme'`)
	w.call(w.user, post, "/v2/clusters", valid("")).fails(409, "", "may have 1 clusters")
	if n := len(w.call(w.user, get, "/v2/clusters", "").want(200).array()); n != 1 {
		t.Errorf("%d clusters were stored", n)
	}
}

func TestReveal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "secret")
	node := w.call(w.user, get, "/v2/clusters/"+id, "").want(200).object()["nodes"].([]any)[0].(map[string]any)["id"].(string)
	at := "/v2/clusters/" + id + "/nodes/"
	a := w.call(w.user, post, at+node+"/reveal", "").want(200)
	if got := a.object(); got["user"] != "loom" || !strings.Contains(fmt.Sprint(got["privateKey"]), "PRIVATE KEY") || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("revealed %v", got)
	}
	w.call(w.user, post, at+"nonsense/reveal", "").want(404)
	w.call(w.second, post, at+node+"/reveal", "").want(404)
	var n int
	w.must(w.db.Get(&n, `SELECT count(*) FROM audit WHERE verb = 'reveal' AND actor = 'ana' AND result = 'ok'`))
	if n != 1 {
		t.Errorf("%d reveals in the audit", n)
	}
}

// TestKeyAndAuthorize: the key of a cluster is one file, audited; keys of accounts are added
// by an operation.
func TestKeyAndAuthorize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "keyed")
	at := "/v2/clusters/" + id
	w.call(w.user, post, at+"/reveal", "").want(404) // no machine yet
	w.call(w.user, post, at+"/authorize", "").fails(409, "", "running")
	w.finish(id)
	w.exec(`UPDATE nodes SET state = 'ready', ipaddresses = '{"access_v4": "10.1.1.1"}'`)
	for range 2 {
		a := w.call(w.user, post, at+"/reveal", "").want(200)
		if !strings.HasPrefix(a.body, "-----BEGIN OPENSSH PRIVATE KEY-----") || a.header.Get("Cache-Control") != "no-store" ||
			a.header.Get("Content-Type") != "application/x-pem-file" || a.header.Get("Content-Disposition") != `attachment; filename="loom-`+id+`.pem"` {
			t.Errorf("%q %v", a.body, a.header)
		}
	}
	readOnly := w.token("acme", "ana", "read")
	w.call(w.second, post, at+"/reveal", "").want(404)
	w.call(readOnly, post, at+"/reveal", "").want(403)
	for _, c := range []struct {
		query string
		want  int
	}{
		{`actor = 'ana' AND result = 'ok' AND kind = 'cluster' AND object = '` + id + `'`, 2},
		{`result = 'refused'`, 2}, // the same one is kept once a minute
		{`after::text LIKE '%PRIVATE%'`, 0},
	} {
		var n int
		w.must(w.db.Get(&n, `SELECT count(*) FROM audit WHERE verb = 'reveal' AND `+c.query))
		if n != c.want {
			t.Errorf("%d entries where %s, want %d", n, c.query, c.want)
		}
	}

	w.call(w.user, post, at+"/authorize", "").fails(409, "", "no SSH keys")
	w.exec(`UPDATE users SET ssh_keys = '{ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0UWnRQhVRKDWVy2a3VzJZrSXjGWGGVZO9sTKVPiXFo ana}' WHERE id = 'ana'`)
	w.call(w.second, post, at+"/authorize", "").want(404)
	w.call(readOnly, post, at+"/authorize", "").want(403)
	w.call(w.user, post, at+"/authorize", `{"onFailure":"undo"}`).fails(400, "onFailure", "no layout")
	p := w.call(w.user, post, "/v2/previews", `{"kind":"authorize","clusterId":"`+id+`","request":{}}`).want(200).object()
	if !strings.Contains(fmt.Sprint(p["changes"]), "Your SSH keys are put on it.") {
		t.Errorf("preview %v", p)
	}
	begun := w.call(w.user, post, at+"/authorize", "", "Idempotency-Key", "a-1").want(200)
	if again := w.call(w.user, post, at+"/authorize", "", "Idempotency-Key", "a-1").want(200); again.body != begun.body || begun.object()["operationId"] != id+"-002" {
		t.Errorf("%s, %s", begun.body, again.body)
	}
	if op := w.call(w.user, get, at+"/operations/2", "").want(200).object(); op["action"] != "cluster_authorize" {
		t.Errorf("operation %v", op)
	}
	if tasks := w.call(w.user, get, at+"/operations/2/tasks?action=keys", "").want(200).array(); len(tasks) == 0 {
		t.Error("no task puts keys anywhere")
	}
	w.finish(id)
	if actions := w.call(w.user, get, at+"/actions", "").want(200).object(); actions["authorize"] != nil {
		t.Errorf("actions %v", actions)
	}
}

func TestPreviews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	request := `{"kind":"create","request":{"name":"p","clusterTemplate":"site","numMachines":3}}`
	p := w.call(w.user, post, "/v2/previews", request).want(200).object()
	at := "/v2/previews/" + p["id"].(string)
	plan := p["plan"].(map[string]any)
	if p["kind"] != "create" || plan["tasks"].(float64) < 9 || p["quota"].(map[string]any)["nodes"].(map[string]any)["after"] != 3.0 || len(p["changes"].([]any)) != 6 {
		t.Errorf("preview %v", p)
	}
	w.call(w.user, get, at, "").want(200)
	if changes := w.call(w.user, get, at+"/changes?limit=2", "").want(200); len(changes.array()) != 2 || changes.header.Get("Link") == "" {
		t.Errorf("changes %s", changes.body)
	}
	tasks := w.call(w.user, get, at+"/tasks", "").want(200).array()
	if len(tasks) != int(plan["tasks"].(float64)) || tasks[0]["id"] != p["clusterId"].(string)+"-001-001" {
		t.Errorf("tasks %v", tasks)
	}
	w.call(w.user, post, at+"/apply", `{}`).fails(400, "hash", "hash")
	w.call(w.user, post, at+"/apply", ``).fails(400, "", "empty")
	w.call(w.user, post, at+"/apply", `{"hash":"other"}`).fails(409, "", "does not match")
	applied := w.call(w.user, post, at+"/apply", `{"hash":"`+p["hash"].(string)+`"}`).want(200).object()
	if applied["id"] != p["clusterId"] || applied["operationId"] != p["clusterId"].(string)+"-001" {
		t.Errorf("applied %v", applied)
	}
	w.call(w.user, post, at+"/apply", `{"hash":"`+p["hash"].(string)+`"}`).fails(409, "", applied["operationId"].(string))
	if again := w.call(w.user, get, at, "").want(200).object(); again["operationId"] != applied["operationId"] {
		t.Errorf("applied preview %v", again)
	}

	// The catalog moves on: refused, with a preview of what it would be now.
	old := w.call(w.user, post, "/v2/previews", request).want(200).object()
	w.call(w.admin, put, "/v2/services/web", service("web", "")).want(200)
	stale := w.call(w.user, post, "/v2/previews/"+old["id"].(string)+"/apply", `{"hash":"`+old["hash"].(string)+`"}`).want(409)
	fresh, _ := stale.object()["preview"].(string)
	if fresh == "" || !strings.Contains(stale.problem().Detail, "“web” is now version 2") {
		t.Fatalf("stale: %s", stale.body)
	}
	next := w.call(w.user, get, "/v2/previews/"+fresh, "").want(200).object()
	w.call(w.user, post, "/v2/previews/"+fresh+"/apply", `{"hash":"`+next["hash"].(string)+`"}`).want(200)

	gone := w.call(w.user, post, "/v2/previews", request).want(200).object()["id"].(string)
	w.call(w.user, del, "/v2/previews/"+gone, "").want(200)
	w.call(w.user, get, "/v2/previews/"+gone, "").want(404)
	w.call(w.user, get, "/v2/previews/nonsense", "").want(404)

	id := applied["id"].(string)
	w.call(w.user, post, "/v2/previews", `{"kind":"delete","clusterId":"`+id+`"}`).fails(409, "", "running")
	w.finish(id)
	end := w.call(w.user, post, "/v2/previews", `{"kind":"delete","clusterId":"`+id+`"}`).want(200).object()
	if end["plan"].(map[string]any)["byAction"].(map[string]any)["delete"] != 3.0 || end["clusterRevision"].(float64) < 1 {
		t.Errorf("delete %v", end)
	}
	w.call(w.user, get, "/v2/previews/"+end["id"].(string)+"/tasks", "").want(200)
	applied = w.call(w.user, post, "/v2/previews/"+end["id"].(string)+"/apply", `{"hash":"`+end["hash"].(string)+`"}`).want(200).object()
	if applied["operationId"] != id+"-002" {
		t.Errorf("applied %v", applied)
	}
	for body, field := range map[string]string{`{}`: "kind", `{"kind":"fly"}`: "kind", `{"kind":"create"}`: "request", `{"kind":"delete"}`: "clusterId", `{"kind":"create","request":[]}`: "request"} {
		w.call(w.user, post, "/v2/previews", body).fails(400, field, "")
	}
	unsolvable := w.call(w.user, post, "/v2/previews", `{"kind":"create","request":{"name":"p","clusterTemplate":"site","numMachines":1}}`).want(400)
	if unsolvable.problem().Sizes == nil {
		t.Errorf("unsolvable %s", unsolvable.body)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := `{"name":"x","clusterTemplate":"site","numMachines":3}`
	key := []string{"Idempotency-Key", "k-1"}
	first := w.call(w.user, post, "/v2/clusters", body, key...).want(200)
	again := w.call(w.user, post, "/v2/clusters", body, key...).want(200)
	if first.body != again.body {
		t.Errorf("first %s, then %s", first.body, again.body)
	}
	w.call(w.user, post, "/v2/clusters", body+" ", key...).fails(409, "", "another request")
	w.call(w.user, post, "/v2/previews", body, key...).fails(409, "", "another request")
	w.call(w.second, post, "/v2/clusters", body, key...).want(200) // keys are each user's own
	if n := len(w.call(w.admin, get, "/v2/clusters", "").want(200).array()); n != 2 {
		t.Errorf("%d clusters", n)
	}
	// A failure gives the key back.
	key = []string{"Idempotency-Key", "k-2"}
	w.call(w.user, post, "/v2/clusters", `{"name":"x","clusterTemplate":"site","numMachines":1}`, key...).want(400)
	w.call(w.user, post, "/v2/clusters", body, key...).want(200)
	w.call(w.user, post, "/v2/clusters", body, "Idempotency-Key", strings.Repeat("x", 256)).fails(400, "Idempotency-Key", "255")
	w.call(w.user, post, "/v2/clusters", body, "Idempotency-Key", "").fails(400, "Idempotency-Key", "255")

	// A secret is shown once, also by a repeated request.
	key = []string{"Idempotency-Key", "k-3"}
	made := w.call(w.user, post, "/v2/tokens", `{"name":"x","scopes":["read"]}`, key...).want(200).object()
	replayed := w.call(w.user, post, "/v2/tokens", `{"name":"x","scopes":["read"]}`, key...).want(200)
	if replayed.object()["id"] != made["id"] || strings.Contains(replayed.body, made["secret"].(string)) {
		t.Errorf("replayed %s", replayed.body)
	}
	var kept int
	w.must(w.db.Get(&kept, `SELECT count(*) FROM idempotency_keys WHERE convert_from(response, 'UTF8') LIKE '%' || $1 || '%'`, made["secret"]))
	if kept != 0 {
		t.Error("the secret of a token was stored")
	}
	// While the first is worked on, the second waits.
	w.exec(`UPDATE idempotency_keys SET status = 0, response = NULL WHERE key = 'k-3'`)
	if a := w.call(w.user, post, "/v2/tokens", `{"name":"x","scopes":["read"]}`, key...).want(409); a.header.Get("Retry-After") == "" {
		t.Errorf("no Retry-After: %v", a.header)
	}
}

// log appends lines of an attempt to a task and makes that attempt the newest.
func (w *world) log(id string, task, attempt, from, to int) {
	w.t.Helper()
	n, _ := loom.ParseClusterID(id)
	var row int64
	w.must(w.db.Get(&row, `SELECT t.id FROM tasks t WHERE t.cluster_id = $1 AND t.number = $2 AND NOT t.gate`, int64(n), task))
	w.tx(func(tx *sqlx.Tx) error {
		var lines []loom.LogLine
		for i := from; i <= to; i++ {
			level := "info"
			if i%5 == 0 {
				level = "error"
			}
			lines = append(lines, loom.LogLine{Seq: i, Time: time.Now(), Stream: "stdout", Level: level, Text: fmt.Sprintf("line %d of try %d", i, attempt)})
		}
		if _, err := tx.Exec(`UPDATE tasks SET attempt = $2, status = 'running' WHERE id = $1`, row, attempt); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO attempts (task_id, number, process_id, status, started_at) VALUES ($1, $2, 'test-00000001', 'running', now()) ON CONFLICT DO NOTHING`, row, attempt); err != nil {
			return err
		}
		return store.AppendLogsAllTenants(w.t.Context(), tx, []store.LogPart{{Key: store.AttemptKey{Task: loom.TaskID(row), Attempt: attempt}, Lines: lines}})
	})
}
