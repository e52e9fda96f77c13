package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/processes"
)

// TestNodes reads nodes of visible clusters, page by page, and writes what may be
// written.
func TestNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.cluster(w.user, "one"), w.cluster(w.second, "two")
	all := w.call(w.admin, get, "/v2/nodes", "").want(200).array()
	if len(all) != 6 || all[0]["clusterId"] != one || all[5]["clusterId"] != two {
		t.Fatalf("%d nodes: %v", len(all), all)
	}
	for who, token := range map[string]string{"another tenant": w.foreign, "the superadmin": w.super} {
		if rows := w.call(token, get, "/v2/nodes", "").want(200).array(); len(rows) != 0 {
			t.Errorf("%s lists %v", who, rows)
		}
	}
	mine := w.call(w.user, get, "/v2/nodes", "").want(200).array()
	if len(mine) != 3 || mine[0]["clusterId"] != one || mine[2]["clusterId"] != one {
		t.Errorf("a user lists %v", mine)
	}
	var ids []any
	path := "/v2/nodes?limit=4&sort=-clusterId"
	for next := path; next != ""; {
		a := w.call(w.admin, get, next, "").want(200)
		for _, n := range a.array() {
			ids = append(ids, n["id"])
		}
		next = a.link("next")
	}
	if len(ids) != 6 || ids[0] != all[5]["id"] || ids[5] != all[0]["id"] {
		t.Errorf("by pages %v", ids)
	}
	back := w.call(w.admin, get, w.call(w.admin, get, w.call(w.admin, get, path, "").link("next"), "").link("prev"), "").want(200).array()
	if len(back) != 4 || back[0]["id"] != all[5]["id"] {
		t.Errorf("back again %v", back)
	}
	w.call(w.admin, get, "/v2/nodes?sort=name", "").fails(400, "sort", "clusterId")

	id := mine[0]["id"].(string)
	inCluster := w.call(w.user, get, "/v2/clusters/"+one, "").want(200).object()["nodes"].([]any)[0].(map[string]any)
	alone := w.call(w.user, get, "/v2/nodes/"+strings.ToUpper(id), "").want(200).object()
	inCluster["links"] = []any{} // these are of the cluster only
	if a, b := fmt.Sprint(alone), fmt.Sprint(inCluster); a != b {
		t.Errorf("alone %s\nin its cluster %s", a, b)
	}
	for _, token := range []string{w.second, w.foreign, w.super} {
		w.call(token, get, "/v2/nodes/"+id, "").fails(404, "", "no node")
	}
	w.call(w.user, get, "/v2/nodes/nonsense", "").want(404)

	body := func(id, cluster, properties string) string {
		return fmt.Sprintf(`{"id":%q,"clusterId":%q,"properties":{%s}}`, id, cluster, properties)
	}
	// Under an operation nothing is written, by users never.
	w.call(w.admin, post, "/v2/nodes", body(id, one, "")).fails(409, "", "pending")
	w.call(w.admin, del, "/v2/nodes/"+id, "").fails(409, "", "pending")
	w.call(w.admin, put, "/v2/nodes/"+id, body(id, one, "")).want(409)
	w.finish(one)
	w.call(w.admin, put, "/v2/nodes/"+id, body(id, one, "")).fails(409, "", "busy")
	w.exec(`UPDATE nodes SET task_id = NULL`)
	for who, token := range map[string]string{"its owner": w.user, "a reader": w.token("acme", "admin", loom.ScopeRead)} {
		for _, method := range []string{post, put, del} {
			path := "/v2/nodes/" + id
			if method == post {
				path = "/v2/nodes"
			}
			if a := w.call(token, method, path, body(id, one, "")); a.status != 403 {
				t.Errorf("%s may %s: %d", who, method, a.status)
			}
		}
	}
	// Another tenant's cluster does not exist, nor does its node.
	w.call(w.foreign, post, "/v2/nodes", body(id, one, "")).fails(400, "clusterId", "no cluster")
	w.call(w.foreign, del, "/v2/nodes/"+id, "").want(204)
	w.call(w.user, get, "/v2/nodes/"+id, "").want(200)

	w.exec(`UPDATE nodes SET results = '{"providerid": "m-1", "password": "x"}' WHERE id = $1`, id)
	written := body(id, one, `"hostname":"db.lab.example","ipaddresses":{"access_v4":"10.0.0.7"},"sshuser":"ops"`)
	w.call(w.admin, put, "/v2/nodes/"+id, written).want(204)
	w.call(w.admin, post, "/v2/nodes", written).want(201)
	n := w.call(w.user, get, "/v2/nodes/"+id, "").want(200).object()
	p := n["properties"].(map[string]any)
	if p["hostname"] != "db.lab.example" || p["sshuser"] != "ops" || p["ipaddresses"].(map[string]any)["access_v4"] != "10.0.0.7" || n["state"] != "ready" {
		t.Errorf("written %v", n)
	}
	// What was read can be written back, its masks included.
	again, err := json.Marshal(n)
	w.must(err)
	w.call(w.admin, put, "/v2/nodes/"+id, string(again)).want(204)
	var providerID, password string
	w.must(w.db.QueryRow(`SELECT results->>'providerid', results->>'password' FROM nodes WHERE id = $1`, id).Scan(&providerID, &password))
	if providerID != "m-1" || password != "x" {
		t.Errorf("facts are %s, %s", providerID, password)
	}
	var audits, version int
	w.must(w.db.Get(&audits, `SELECT count(*) FROM audit WHERE kind = 'node' AND object = $1 AND verb = 'update'`, id))
	w.must(w.db.Get(&version, `SELECT version FROM node_changes`))
	if audits != 3 || version != 3 {
		t.Errorf("%d entries of the audit, version %d of the nodes", audits, version)
	}
	for field, text := range map[string]string{
		"hardwaretype": `{"id":%q,"clusterId":%q,"properties":{"hardwaretype":"big"}}`, "number": `{"id":%q,"clusterId":%q,"properties":{"nodenum":2000}}`,
		"services": `{"id":%q,"clusterId":%q,"services":[]}`, "provisionerResults": `{"id":%q,"clusterId":%q,"provisionerResults":{"providerid":"m-2"}}`,
	} {
		w.call(w.admin, put, "/v2/nodes/"+id, fmt.Sprintf(text, id, one)).fails(409, "", field)
	}
	for field, text := range map[string]string{
		"id": `{"clusterId":"1"}`, "clusterId": body(id, "", ""), "properties.hostname": body(id, one, `"hostname":"a b"`),
		"properties.ipaddresses.access_v4": body(id, one, `"ipaddresses":{"access_v4":"$(x)"}`), "properties.sshuser": body(id, one, `"sshuser":"-x"`),
		"properties.nodenum": body(id, one, `"nodenum":1`),
	} {
		w.call(w.admin, post, "/v2/nodes", text).fails(400, field, "")
	}
	w.call(w.admin, put, "/v2/nodes/"+id, body("0c1d0000-0000-4000-8000-000000000000", one, "")).fails(400, "id", "path")
	w.call(w.admin, post, "/v2/nodes", body("x", one, "")).fails(400, "id", "UUID")
	w.call(w.admin, post, "/v2/nodes", body(id, "99", "")).fails(400, "clusterId", "no cluster")
	w.call(w.admin, post, "/v2/nodes", "").want(400)
	w.finish(two)
	w.exec(`UPDATE nodes SET task_id = NULL`)
	w.call(w.admin, put, "/v2/nodes/"+id, body(id, two, "")).fails(409, "", one)
	// A machine is removed with its cluster only.
	w.call(w.admin, del, "/v2/nodes/"+id, "").fails(409, "", "machine")
}

// TestNodeRecords writes nodes without machines, which no operation touches.
func TestNodeRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "site")
	w.finish(id)
	const node = "0c1d0000-0000-4000-8000-00000000000A"
	w.call(w.admin, post, "/v2/nodes", `{"id":"`+node+`","clusterId":"`+id+`","services":["web",{"name":"balancer"}],"properties":{"hardwaretype":"small"}}`).want(201)
	n := w.call(w.user, get, "/v2/nodes/"+node, "").want(200).object()
	p := n["properties"].(map[string]any)
	if n["state"] != "deleted" || p["nodenum"] != 1003.0 || p["sshuser"] != "root" || fmt.Sprint(p["services"], p["automators"]) != "[balancer web] [shell]" ||
		p["hostname"] != "site1-1003.local" {
		t.Errorf("the record is %v", n)
	}
	const other = "0c1d0000-0000-4000-8000-00000000000b"
	w.call(w.admin, put, "/v2/nodes/"+other, `{"id":"`+other+`","clusterId":"`+id+`","properties":{"nodenum":1003}}`).fails(409, "", "number")
	w.call(w.admin, put, "/v2/nodes/"+other, `{"id":"`+other+`","clusterId":"`+id+`","services":["nothing"]}`).fails(400, "services", "balancer, web")
	// The id is taken, though by another tenant.
	w.loadCatalog("other")
	foreign := w.call(w.foreign, post, "/v2/clusters", `{"name":"f","clusterTemplate":"site","numMachines":2}`).want(200).object()["id"].(string)
	w.finish(foreign)
	w.call(w.foreign, post, "/v2/nodes", `{"id":"`+node+`","clusterId":"`+foreign+`"}`).fails(409, "", "taken")
	w.call(w.foreign, del, "/v2/nodes/"+node, "").want(204)
	w.call(w.user, get, "/v2/nodes/"+node, "").want(200)
	// No quota counts it, and a delete leaves it alone.
	w.call(w.user, del, "/v2/clusters/"+id, "").want(200)
	var tasks int
	w.must(w.db.Get(&tasks, `SELECT count(*) FROM tasks WHERE node_id = $1`, strings.ToLower(node)))
	if tasks != 0 {
		t.Errorf("%d tasks of a record", tasks)
	}
	w.call(w.admin, del, "/v2/nodes/"+node, "").fails(409, "", "pending")
	w.exec(`UPDATE clusters SET status = 'terminated'`)
	w.call(w.admin, post, "/v2/nodes", `{"id":"`+node+`","clusterId":"`+id+`"}`).fails(409, "", "terminated")
	w.call(w.admin, del, "/v2/nodes/"+node, "").want(204)
	w.call(w.admin, del, "/v2/nodes/"+node, "").want(204)
	w.call(w.admin, get, "/v2/nodes/"+node, "").want(404)
}

func TestRPC(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "asked")
	w.finish(id)
	ask := func(token, rest string) map[string]map[string]any {
		t.Helper()
		var out map[string]map[string]any
		w.call(token, post, "/v2/getNodeProperties", `{"clusterId":"`+id+`"`+rest+`}`).want(200).into(&out)
		return out
	}
	all := ask(w.user, "")
	if len(all) != 3 {
		t.Fatalf("properties %v", all)
	}
	for _, p := range all {
		if len(p) != 10 || p["sshuser"] != "loom" || p["ipaddresses"] == nil {
			t.Errorf("all of a node are %v", p)
		}
	}
	balancers := ask(w.user, `,"services":["balancer"],"properties":["hostname","ipaddress","nonsense"]`)
	for _, p := range balancers {
		if len(p) != 2 || p["ipaddress"] != "10.0.0.1" || !strings.HasPrefix(p["hostname"].(string), "asked1-") {
			t.Errorf("chosen %v", p)
		}
	}
	if len(balancers) != 1 || len(ask(w.user, `,"services":["balancer","web"]`)) != 0 {
		t.Errorf("balancers %v", balancers)
	}
	for _, token := range []string{w.second, w.foreign, w.super} {
		if out := ask(token, ""); len(out) != 0 {
			t.Errorf("others hear %v", out)
		}
	}
	for _, body := range []string{"", "{}", "[]", `{"clusterId":{}}`} {
		w.call(w.user, post, "/v2/getNodeProperties", body).want(400)
	}
	w.call(w.user, post, "/v2/getNodeProperties", `{"clusterId":"nonsense"}`).want(200)

	w.cluster(w.second, "other")
	for token, want := range map[string]int{w.user: 1, w.admin: 2, w.foreign: 0} {
		rows := w.call(token, post, "/v2/getClusterStatuses", "").want(200).array()
		if len(rows) != want {
			t.Errorf("%d statuses, want %d: %v", len(rows), want, rows)
		}
	}
	one := w.call(w.user, post, "/v2/getClusterStatuses", "{}").want(200).array()[0]
	if same := w.call(w.user, get, "/v2/clusters/"+id+"/status", "").want(200).object(); fmt.Sprint(one) != fmt.Sprint(same) {
		t.Errorf("%v is not %v", one, same)
	}
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`UPDATE tenants SET workers = 3 WHERE name = 'acme'`)
	f := processes.New(w.db.DB, processes.Options{})
	p, err := f.Register(t.Context(), processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 10, Port: 9100, Version: "1.2"})
	w.must(err)
	s, err := f.Register(t.Context(), processes.NewProcess{Kind: loom.ProcessScheduler, Version: "1.2"})
	w.must(err)
	w.cluster(w.user, "busy")
	w.exec(`UPDATE tasks SET status = 'running', process_id = $1 WHERE number = 1 AND NOT gate`, p)

	list := w.call(w.super, get, "/v2/provisioners", "").want(200).array()
	one := w.call(w.super, get, "/v2/provisioners/"+string(p), "").want(200)
	if len(list) != 1 || fmt.Sprint(list[0]) != fmt.Sprint(one.object()) {
		t.Errorf("provisioners %v, one %s", list, one.body)
	}
	o := one.object()
	if o["capacityTotal"] != 10.0 || o["capacityFree"] != 6.0 || o["port"] != 9100.0 || fmt.Sprint(o["usage"]) != "map[acme:1]" || fmt.Sprint(o["assignments"]) != "map[acme:3 superadmin:1]" {
		t.Errorf("the provisioner is %s", one.body)
	}
	w.call(w.super, get, "/v2/provisioners/nobody", "").want(404)
	w.call(w.super, get, "/v2/provisioners/"+string(s), "").want(404)
	if rows := w.call(w.super, get, "/v2/processes", "").want(200).array(); len(rows) != 2 {
		t.Errorf("processes %v", rows)
	}
	rows := w.call(w.super, get, "/v2/processes?kind=scheduler", "").want(200).array()
	if len(rows) != 1 || rows[0]["id"] != string(s) || rows[0]["capacity"] != nil || rows[0]["version"] != "1.2" || rows[0]["lastSeen"].(float64) < 1.7e12 {
		t.Errorf("schedulers %v", rows)
	}
	w.call(w.super, get, "/v2/processes?kind=robot", "").fails(400, "kind", "scheduler")

	drained := w.call(w.super, post, "/v2/processes/"+string(p)+"/drain", "").want(200).object()
	if drained["draining"] != true || drained["busy"] != 1.0 || drained["tenants"] != nil {
		t.Errorf("drained %v", drained)
	}
	w.call(w.super, post, "/v2/processes/"+string(p)+"/drain", "").want(200)
	if o := w.call(w.super, get, "/v2/provisioners/"+string(p), "").want(200).object(); o["capacityFree"] != 10.0 || fmt.Sprint(o["assignments"]) != "map[]" {
		t.Errorf("drained %v", o)
	}
	resumed := w.call(w.super, post, "/v2/processes/"+string(p)+"/resume", "").want(200).object()
	if resumed["draining"] != false || fmt.Sprint(resumed["tenants"]) != "map[acme:3 superadmin:1]" {
		t.Errorf("resumed %v", resumed)
	}
	var audits int
	w.must(w.db.Get(&audits, `SELECT count(*) FROM audit WHERE kind = 'process' AND object = $1 AND verb IN ('drain', 'resume')`, p))
	if audits != 2 {
		t.Errorf("%d entries of the audit", audits)
	}
	w.call(w.super, post, "/v2/processes/"+string(s)+"/drain", "").fails(409, "", "provisioners")
	w.call(w.super, post, "/v2/processes/nobody/drain", "").want(404)
	for _, token := range []string{w.user, w.admin, w.foreign} {
		for _, path := range []string{"/v2/provisioners", "/v2/provisioners/" + string(p), "/v2/provisioners/nobody", "/v2/processes"} {
			w.call(token, get, path, "").fails(403, "", "superadmin")
		}
		for _, verb := range []string{"drain", "resume"} {
			w.call(token, post, "/v2/processes/"+string(p)+"/"+verb, "").want(403)
		}
	}
	for _, gone := range []string{"/v2/provisioners/x/tenants", "/v2/tasks/take"} {
		w.call(w.super, get, gone, "").want(404)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "metered")
	w.exec(`UPDATE river_job SET state = 'running' WHERE id = (SELECT river_job_id FROM tasks WHERE number = 1 AND NOT gate)`)
	acme := w.call(w.admin, get, "/v2/metrics/queues", "").want(200)
	if strings.TrimSpace(acme.body) != `{"acme":{"queued":2,"inProgress":1,"total":3}}` {
		t.Errorf("queues %s", acme.body)
	}
	if all := w.call(w.super, get, "/v2/metrics/queues", "").want(200).object(); len(all) != 3 || fmt.Sprint(all["other"]) != "map[inProgress:0 queued:0 total:0]" {
		t.Errorf("all queues %v", all)
	}
	if other := w.call(w.foreign, get, "/v2/metrics/queues", "").want(200).object(); len(other) != 1 || other["other"] == nil {
		t.Errorf("another tenant's queues %v", other)
	}
	w.call(w.user, get, "/v2/metrics/queues", "").fails(403, "", "administrator")

	const usage = "/v2/metrics/nodes/usage"
	if a := w.call(w.user, get, usage+"?start=5&end=40&groupby=hour", "").want(200); strings.TrimSpace(a.body) != `{"start":5,"end":40,"data":[{"time":5,"value":0}]}` {
		t.Errorf("nothing was used: %s", a.body)
	}
	if a := w.call(w.user, get, usage+"?end=40", "").want(200); strings.TrimSpace(a.body) != `{"start":0,"end":40,"data":[{"time":0,"value":0}]}` {
		t.Errorf("nothing was used: %s", a.body)
	}
	// Lives of the documented example, in hours around midnight.
	for number, hours := range map[int]int{1: 0, 2: 30, 3: 10} {
		w.exec(`UPDATE tasks SET status = 'complete', ended_at = to_timestamp($2 * 3600) WHERE number = $1 AND NOT gate`, number, hours)
	}
	w.exec(`INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, node_id, action, status, ended_at)
		SELECT operation_id, tenant_id, cluster_id, 99, node_id, 'delete', 'complete', to_timestamp(25 * 3600) FROM tasks WHERE number = 3 AND NOT gate`)
	span := query("start", "18000", "end", "144000", "timeunit", "HOURS")
	for more, want := range map[string]string{
		"":                               `[{"time":18000,"value":60}]`,
		"&groupby=day":                   `[{"time":18000,"value":33},{"time":86400,"value":27}]`,
		"&cluster=" + id + "&split=user": `[{"time":18000,"value":60,"split":"ana"}]`,
		"&split=hardwaretype&user=ana&tenant=acme": `[{"time":18000,"value":60,"split":"small"}]`,
		"&clustertemplate=none":                    `[{"time":18000,"value":0}]`,
		"&user=ben&groupby=month":                  `[{"time":18000,"value":0}]`,
	} {
		a := w.call(w.admin, get, usage+span+more, "").want(200)
		if got := strings.TrimSpace(a.body); got != `{"start":18000,"end":144000,"data":`+want+`}` {
			t.Errorf("%s: %s", more, got)
		}
	}
	// The second value of a parameter does not count, unknown parameters neither.
	if a := w.call(w.super, get, usage+span+"&end=1&full=true&tenant=acme", "").want(200); !strings.Contains(a.body, `"value":60`) {
		t.Errorf("%s", a.body)
	}
	if a := w.call(w.admin, get, usage, "").want(200).object(); a["start"] != 0.0 || a["end"].(float64) < 1.7e9 || len(a["data"].([]any)) != 1 {
		t.Errorf("without any parameter: %v", a)
	}
	for token, want := range map[string]string{w.user: "60", w.second: "0", w.foreign: "0", w.super: "60"} {
		if a := w.call(token, get, usage+span, "").want(200); !strings.Contains(a.body, `"value":`+want+`}`) {
			t.Errorf("want %s: %s", want, a.body)
		}
	}
	w.call(w.user, get, usage+"?user=ben", "").fails(403, "", "administrator")
	w.call(w.admin, get, usage+"?tenant=other", "").fails(403, "", "superadmin")
	w.call(w.foreign, get, usage+"?tenant=acme", "").want(403)
	for field, value := range map[string]string{
		"start": "x", "end": "1.5", "groupby": "Hour", "timeunit": "weeks", "split": "color", "cluster": "x",
	} {
		w.call(w.user, get, usage+query(field, value), "").fails(400, field, "")
	}
	w.call(w.user, get, usage+"?start=9&end=8", "").fails(400, "start", "after the end")
	w.call(w.user, get, usage+"?start=-1", "").fails(400, "start", "")
	w.call(w.user, get, usage+"?groupby=hour&start=0", "").fails(400, "groupby", "more than 10000")
}

// TestProbes asks what interactive clients of the predecessor ask first, without
// credentials; they take 401 for a protocol that we do not have.
func TestProbes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"/v2/ping", "/v3/ping", "/ping", "/"} {
		for _, method := range []string{get, http.MethodHead, post} {
			if a := w.send(method, path, ""); a.status == 401 || a.header.Get("WWW-Authenticate") != "" {
				t.Errorf("%s %s: %d", method, path, a.status)
			}
			// A bad credential changes nothing.
			if a := w.send(method, path, "", "Authorization", "Bearer: nonsense"); a.status == 401 {
				t.Errorf("%s %s with a bad token: %d", method, path, a.status)
			}
		}
	}
}
