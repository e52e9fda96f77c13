package web_test

import (
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
)

// active makes a cluster of ana's that is up.
func (w *clusterWorld) active(name string, machines int) loom.ClusterID {
	w.t.Helper()
	ref := w.create(name, machines)
	w.finish(ref, loom.ClusterActive)
	return ref.Cluster
}

func (w *clusterWorld) cluster(id loom.ClusterID) clusters.ClusterView {
	w.t.Helper()
	v, err := w.clusters.Cluster(w.ctx, w.actor("ana"), id)
	w.must(err)
	return v
}

// change is the form for a change as a browser sends it.
func change(kind string, id loom.ClusterID, pairs ...string) url.Values {
	v := url.Values{"kind": {kind}, "cluster": {id.String()}}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v
}

// applied goes from a form over its preview to the operation; name is typed where that
// is asked for.
func (w *clusterWorld) applied(form url.Values, name string, texts ...string) {
	w.t.Helper()
	at := w.post("ana", route.Previews(), form).goesTo(`/previews/.*`)
	page := w.get("ana", at).is(200, texts...)
	id, _ := loom.ParseClusterID(form.Get("cluster"))
	if name != "" {
		page.has("Type " + name + " to confirm")
		w.post("ana", at+"/apply", url.Values{"hash": {page.hash()}, "confirm": {"x"}}).is(422, "Nothing was started.", "Type the name of the cluster exactly")
	} else {
		page.lacks("to confirm")
	}
	w.post("ana", at+"/apply", url.Values{"hash": {page.hash()}, "confirm": {name}}).goesTo(route.Cluster(id))
}

func TestScaleUp(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	w.get("ana", route.Cluster(id)).is(200, route.ClusterScale(id), "Change config", "Change hardware")
	w.get("ana", route.ClusterScale(id)).is(200, "Scale shop-front", "2–50, now 3", `value="3"`, "Enter a number other than 3.", `hx-post="`+route.ClusterTry(id))
	w.get("eve", route.ClusterScale(id)).is(404)
	try := func(pairs ...string) clusterAnswer {
		t.Helper()
		return w.post("ana", route.ClusterTry(id), change("scale", id, pairs...)).is(200).lacks("<html")
	}
	try("numMachines", "5").has(">Fits<", "Adds 2 nodes", ">1003<", ">1004<", "nginx", "5 of 60").lacks(`name="nodes"`)
	try("numMachines", "61").has("Cannot fit", "60 nodes")
	try("numMachines", "many").has("Enter a whole number, such as 3.")
	w.post("ana", route.Previews(), change("scale", id, "numMachines", "3")).is(422, "The cluster has 3. Enter another number.", `href="#f-numMachines"`, `id="f-numMachines-error"`)
	w.post("ana", route.Previews(), change("scale", id, "numMachines", "52")).is(422, "Cannot fit", `value="52"`, `name="suggest"`)
	w.post("ana", route.Previews(), change("scale", id, "numMachines", "52", "suggest", "numMachines=4")).is(200, ">Fits<", `value="4"`)
	w.post("ana", route.Previews(), change("scale", id, "numMachines", "4", "do", "check")).is(200, ">Fits<", "<html")
	other := w.post("ana", route.Previews(), change("scale", id, "numMachines", "5")).goesTo(`/previews/.*`)
	hash := w.get("ana", other).hash()
	w.applied(change("scale", id, "numMachines", "4", "onFailure", "undo"), "", "Scale shop-front?", route.ClusterScale(id)+"?numMachines=4&amp;onFailure=undo")
	w.get("ana", route.ClusterScale(id)).is(200, "Operation 2 (scale up) is running.").lacks("numMachines")
	w.post("ana", route.Previews(), change("scale", id, "numMachines", "6")).is(409, "Operation 2 (scale up) is running.")
	w.post("ana", other+"/apply", url.Values{"hash": {hash}}).is(409, "Operation 2 (scale up) is running. When it has ended, apply this again", "See it, or abort it")
}

func TestScaleDown(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 4)
	nodes := w.cluster(id).Nodes
	box := func(n loom.Node) string { return `value="` + string(n.ID) + `"` }
	ticked := func(n loom.Node) string { return box(n) + ` checked` }
	try := func(pairs ...string) clusterAnswer {
		t.Helper()
		return w.post("ana", route.ClusterTry(id), change("scale", id, pairs...)).is(200)
	}
	// Loom's choice is ticked, and can be changed.
	last := nodes[3]
	try("numMachines", "3").has(">Fits<", "Removes 1 node", `name="for" value="3"`, box(nodes[1]), ticked(last)).lacks(ticked(nodes[1]))
	try("numMachines", "3", "for", "3", "nodes", string(nodes[1].ID)).has(">Fits<", ticked(nodes[1])).lacks(ticked(last))
	// Another number asks Loom again.
	try("numMachines", "2", "for", "3", "nodes", string(nodes[1].ID)).has(">Fits<", "Removes 2 nodes", ticked(last))
	two := []string{"numMachines", "3", "for", "3", "nodes", string(nodes[1].ID), "nodes", string(nodes[2].ID)}
	w.post("ana", route.Previews(), change("scale", id, two...)).is(422, "tick 1, or set the number to 2", ticked(nodes[1]), ticked(nodes[2]), `id="f-nodes-error"`)
	// The only balancer cannot go; what can instead is offered.
	var balancer loom.Node
	for _, n := range nodes {
		if n.Services[0] == "haproxy" {
			balancer = n
		}
	}
	refused := w.get("ana", route.ClusterScale(id, balancer.ID)).is(200, "Cannot fit", ticked(balancer), `name="suggest"`)
	_, value, _ := strings.Cut(refused.Body, `name="suggest" value="`)
	value, _, _ = strings.Cut(value, `"`)
	w.post("ana", route.Previews(), change("scale", id, "numMachines", "3", "for", "3", "nodes", string(balancer.ID), "suggest", strings.ReplaceAll(value, "&amp;", "&"))).
		is(200, ">Fits<").lacks(ticked(balancer))
	w.get("ana", route.ClusterNodes(id)).is(200, "Remove this node", route.ClusterScale(id, nodes[1].ID), "how=replace&amp;nodes="+string(nodes[1].ID))
	w.get("ana", route.Node(id, nodes[1].ID)).is(200, "Remove this node", "Reboot machine…", "Replace machine…")
	w.applied(change("scale", id, "numMachines", "3", "for", "3", "nodes", string(nodes[1].ID)), "shop-front", "Scale shop-front?", strconv.Itoa(nodes[1].Number))
	v := w.cluster(id)
	w.get("ana", route.ClusterNodes(id)).is(200, "Leaving")
	for _, n := range v.Nodes {
		if n.Leaving != (n.ID == nodes[1].ID) {
			t.Errorf("node %d: leaving is %v", n.Number, n.Leaving)
		}
	}
}

func shortName(host string) string {
	short, _, _ := strings.Cut(host, ".")
	return short
}

func TestServicesComeAndGo(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	w.get("ana", route.ClusterServices(id, "add")).is(200, `value="cache"`, "Keeps answers", "Choose services.", "template default").lacks(`value="nginx"`)
	w.post("ana", route.Previews(), change("add_services", id)).is(422, "Name the services to add.", `id="f-services-error"`)
	w.get("ana", route.ClusterServices(id, "remove")).is(200, `value="nginx"`, "on 2 nodes", "on 1 node")
	// The balancer requires the web servers: pressing what helps helps.
	refused := w.post("ana", route.Previews(), change("remove_services", id, "services", "nginx")).is(422, "Cannot fit", "haproxy")
	for _, piece := range strings.Split(refused.Body, `name="suggest" value="`)[1:] {
		value, _, _ := strings.Cut(piece, `"`)
		w.post("ana", route.Previews(), change("remove_services", id, "services", "nginx", "suggest", strings.ReplaceAll(value, "&amp;", "&"))).is(200, ">Fits<")
	}
	w.applied(change("add_services", id, "services", "cache"), "", "Adds 1 service", "Add services to shop-front")
	w.finish(loom.OperationRef{Cluster: id}, loom.ClusterActive)
	w.get("ana", route.ClusterServices(id, "add")).is(200, "has all services that its template allows")
	w.applied(change("remove_services", id, "services", "cache"), "", "Removes 1 service from the cluster")
}

func TestServicesRunAndStop(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	w.get("ana", route.ClusterTab(id, "services")).is(200, route.ClusterService(id, "nginx", "stop"))
	w.get("ana", route.ClusterServices(id, "restart")).is(200, "Restart services of shop-front", "Restarts 2 services")
	w.get("ana", route.ClusterService(id, "nginx", "stop")).is(200, "Stop nginx of shop-front", "Stops 2 services", `name="service" value="nginx"`, "haproxy")
	w.get("ana", route.ClusterService(id, "nothing", "stop")).is(404)
	w.applied(change("stop", id, "service", "nginx"), "", "Stop services of shop-front", route.ClusterService(id, "nginx", "stop"))
	w.finish(loom.OperationRef{Cluster: id}, loom.ClusterActive)
	w.applied(change("start", id), "", "Starts 2 services")
}

func TestUpdateShowsWhatIsNew(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 4)
	at := route.ClusterVerb(id, "update")
	w.get("ana", at).is(200, "The cluster is up to date.").lacks("<button class=\"u-hidden\"")
	newer := webService("nginx", "Serves the pages, now faster.")
	newer.DefaultConfig = map[string]any{"nginx": map[string]any{"threads": 9}}
	w.save(loom.KindService, newer)
	w.get("ana", at).is(200, "version 1 → 2", "now faster", "Nodes that stay up", ">Fits<", "Brings 1 service to another version").lacks(`value="services:haproxy"`)
	w.post("ana", route.Previews(), change("update", id, "batch", "x", "minHealthy", "-1")).is(422, `id="f-batch-error"`, `id="f-minHealthy-error"`, `value="x"`)
	w.post("ana", route.Previews(), change("update", id, "batch", "2", "minHealthy", "3")).is(422, `id="f-minHealthy-error"`)
	w.post("ana", route.Previews(), change("update", id, "entries", "services:nothing")).is(422, "There is no service “nothing”.")
	w.applied(change("update", id, "entries", "services:nginx", "batch", "2", "minHealthy", "1"), "", "Update shop-front", "batch=2&amp;entries=services%3Anginx&amp;minHealthy=1")
}

// TestUpdateShowsNewerFiles: a released file is offered with its number, and its page says
// which clusters use which version.
func TestUpdateShowsNewerFiles(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 4)
	w.must(w.catalog.RegisterTypes(w.ctx, nil, []loom.PluginType{{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{"scripts": {Format: "file"}}}}))
	actor := loom.SystemActor(w.tenant.ID, w.tenant.Name)
	ref := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: "shell", Type: "scripts", Name: "nginx.sh"}
	stage := func(content string) loom.Resource {
		t.Helper()
		r, err := w.catalog.Upload(w.ctx, actor, ref, strings.NewReader(content), 0)
		w.must(err)
		w.must(w.catalog.Stage(w.ctx, actor, ref, r.Version))
		return r
	}
	w.get("admin", adminview.FilesRelease()).is(200, "Nothing to release.").lacks("Preview effect")
	page := func(r loom.Resource) clusterAnswer {
		t.Helper()
		return w.get("admin", adminview.File(ref, r.Version))
	}
	first := stage("echo one")
	w.press("admin", adminview.FilesRelease(), "Preview effect").is(200, "<html", "1 unaffected", `href="`+adminview.FilesRelease()+`"`)
	w.must(w.catalog.Sync(w.ctx, actor))
	page(first).is(200, "No cluster is known to use it")
	// As the tasks of a create leave it.
	_, err := w.db.Exec(`UPDATE nodes SET service_files = jsonb_build_object('nginx', jsonb_build_object('install', jsonb_build_object('shell/scripts/nginx.sh', $1::text)))
		WHERE cluster_id = $2 AND 'nginx' = ANY (services)`, first.SHA256, int64(id))
	w.must(err)
	at := route.ClusterVerb(id, "update")
	w.get("ana", at).is(200, "The cluster is up to date.")
	page(first).is(200, "Versions on nodes", "v1: 3 nodes, 1 cluster", `<a href="`+route.Cluster(id)+`">shop-front</a>`)
	second := stage("echo two")
	w.get("ana", at).is(200, "The cluster is up to date.")
	w.send("admin", http.MethodPost, adminview.FilesFleetEffect(), nil, "HX-Request", "true").is(200, "1 restart", "nginx", ">shop-front<").lacks("<html")
	w.press("admin", adminview.FilesRelease(), "Release files").goesTo(adminview.FilesRelease())
	w.get("ana", at).is(200, "newer files: nginx.sh v2", "Brings 1 service to another version").lacks(`value="services:haproxy"`)
	_, err = w.db.Exec(`UPDATE nodes SET service_files = jsonb_build_object('nginx', jsonb_build_object('install', jsonb_build_object('shell/scripts/nginx.sh', $1::text)))
		WHERE cluster_id = $2 AND number = (SELECT max(number) FROM nodes WHERE cluster_id = $2)`, second.SHA256, int64(id))
	w.must(err)
	page(second).is(200, "v1: 2 nodes, 1 cluster", "v2: 1 node, 1 cluster", `href="`+route.ClusterVerb(id, "update")+`"`)
	w.must(w.catalog.DeleteResource(w.ctx, actor, ref, first.Version))
	page(second).is(200, "Deleted versions: 2 nodes, 1 cluster")
}

func TestResizeAndRepairWantTheName(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	node := w.cluster(id).Nodes[1]
	w.get("ana", route.ClusterVerb(id, "resize")).is(200, "large (4 GiB)", "What is on the disks", "Choose a hardware type.", "Only nodes with these services")
	w.post("ana", route.Previews(), change("resize", id)).is(422, `id="f-hardwaretype-error"`)
	w.applied(change("resize", id, "hardwaretype", "small", "services", "nginx"), "shop-front", "Change hardware of shop-front?", "replace")
	w.finish(loom.OperationRef{Cluster: id}, loom.ClusterActive)
	w.get("ana", route.ClusterRepair(id, node.ID)).is(200, `value="`+string(node.ID)+`" checked`, ">Fits<", "±")
	w.get("ana", route.ClusterRepair(id)).is(200, "Choose the nodes to repair.")
	w.post("ana", route.Previews(), change("repair", id)).is(422, `id="f-nodes-error"`)
	w.applied(change("repair", id, "nodes", string(node.ID)), "shop-front", "Repair shop-front?")
}

// TestRepairInPlace: menus lead to the form with the way, the nodes and the services chosen,
// and the form is sent without scripts.
func TestRepairInPlace(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	var node loom.Node
	for _, n := range w.cluster(id).Nodes {
		if slices.Contains(n.Services, "nginx") {
			node = n
		}
	}
	to := func(how loom.RepairHow, services ...string) string {
		return route.ClusterRepairBy(id, how, services, node.ID)
	}
	w.get("ana", route.Node(id, node.ID)).is(200, "Restart services…", html.EscapeString(to("restart")), "Restore files…", html.EscapeString(to("configure")), "Reboot machine…", html.EscapeString(to("reboot")),
		"Replace machine…", html.EscapeString(to("replace")), "Restart here…", html.EscapeString(to("restart", "nginx")), html.EscapeString(to("configure", "nginx")))
	w.get("ana", route.ClusterNodes(id)).is(200, "Reboot machine…", html.EscapeString(to("reboot")))

	checked := func(name, value string) string { return `name="` + name + `" value="` + value + `" checked` }
	w.get("ana", route.ClusterRepair(id)).is(200, checked("how", "restart")).lacks("What is on the disks of these machines is lost.")
	w.get("ana", to("restart", "nginx")).is(200, checked("how", "restart"), checked("nodes", string(node.ID)), checked("services", "nginx"), ">Fits<", "Restarts nginx on 1 node").
		lacks("What is on the disks of these machines is lost.")
	w.get("ana", to("reboot")).is(200, ">Fits<", "Reboots 1 node", "It is rebooted, and its services are started: nginx.")
	w.get("ana", to("reboot", "nginx")).is(200, "Services are named only with")
	w.post("ana", route.Previews(), change("repair", id, "how", "reboot", "nodes", string(node.ID), "services", "nginx")).is(422, `id="f-services-error"`, checked("how", "reboot"))
	w.post("ana", route.Previews(), change("repair", id, "how", "explode", "nodes", string(node.ID))).is(422, `id="f-how-error"`)

	at := w.press("ana", to("restart", "nginx"), "Preview").goesTo(`/previews/.*`)
	w.get("ana", at).is(200, "Repair shop-front?", "Its services are restarted: nginx.", html.EscapeString(to("restart", "nginx"))).lacks("to confirm")
	w.press("ana", at, "Repair shop-front").goesTo(route.Cluster(id))
	w.get("ana", route.Cluster(id)).is(200, "Restart services on nodes")
	w.get("ana", route.ClusterRepair(id)).is(200, "Operation 2 (restart services on nodes) is running.")
	w.finish(loom.OperationRef{Cluster: id, Number: 2}, loom.ClusterActive)
	w.applied(change("repair", id, "how", "reboot", "nodes", string(node.ID)), "", "Repair shop-front?", "It is rebooted")
	w.get("ana", route.Cluster(id)).is(200, "reboot")
}

// TestRepairNamesWhatFailed: a machine may be broken while its node is ready; what failed
// there tells which one to tick.
func TestRepairNamesWhatFailed(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	w.get("ana", route.ClusterRepair(id)).is(200, "checking…").lacks("failed:")
	w.fail(loom.TaskRef{Operation: loom.OperationRef{Cluster: id, Number: 1}, Number: 1}, "no route to host")
	if page := w.get("ana", route.ClusterRepair(id)).is(200, "failed: no route to host"); strings.Count(page.Body, "failed:") != 1 {
		t.Error("other nodes are said to have failed as well")
	}
}

func TestReconfigureKeepsHiddenValues(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 2)
	w.db.MustExec(`UPDATE clusters SET config = '{"web": {"port": 80, "password": "planted-marker-5"}, "old": 1}' WHERE id = $1`, int64(id))
	w.get("ana", route.ClusterVerb(id, "reconfigure")).is(200, "[redacted]", "Also restart the services").lacks("planted-marker-5")
	w.post("ana", route.Previews(), change("configure", id, "config", "{")).is(422, "Line 1, column")
	w.post("ana", route.Previews(), change("configure", id, "config", `{"web": {"port": 80}, "copy": "[redacted]"}`)).is(422, "write the value itself")
	w.applied(change("configure", id, "config", `{"web": {"port": 81, "password": "[redacted]"}}`, "restart", "true"), "", "/web/port", "/old")
	v := w.cluster(id)
	site, _ := v.Config["web"].(map[string]any)
	if site["password"] != "planted-marker-5" || len(v.Config) != 1 {
		t.Errorf("the config is %v", v.Config)
	}
}

// TestUpdateTakesTheNewTemplate: it takes no machine away, so no name is typed.
func TestUpdateTakesTheNewTemplate(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 2)
	template := webTemplate()
	template.Constraints.Size.Max = 9
	w.save(loom.KindTemplate, template)
	w.get("ana", route.Cluster(id)).is(200, "web-cluster v2 is available.")
	w.get("ana", route.ClusterVerb(id, "update")).is(200, "web-cluster")
	w.applied(change("update", id), "", "Update shop-front")
	if v := w.cluster(id); v.Template.Version != 2 {
		t.Errorf("version %d of the template, want 2", v.Template.Version)
	}
}

func TestRetryAndRollback(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ref := w.create("shop-front", 2)
	w.runSome(ref, 2, 2)
	w.fail(loom.TaskRef{Operation: ref, Number: 3}, "no route to host")
	retry, back := route.OperationVerb(ref, "retry"), route.OperationVerb(ref, "rollback")
	w.get("ana", route.Cluster(ref.Cluster)).is(200, ">Retry<", retry, back)
	w.get("ana", route.Operation(ref)).is(200, ">Retry<", retry, back)
	w.get("ana", retry).is(200, "Retry create of shop-front", ">Fits<", `name="operation" value="1"`).lacks("Skip tasks")
	w.get("ana", back).is(200, "Roll back create of shop-front")
	w.get("ana", route.OperationVerb(loom.OperationRef{Cluster: ref.Cluster, Number: 9}, "retry")).is(200, "no operation 9")
	// Administrators may leave out tasks, with a reason.
	w.get("admin", retry).is(200, "Skip tasks", "failed: no route to host", `name="skip"`)
	form := change("retry", ref.Cluster, "operation", "1", "skip", "3")
	w.post("admin", route.Previews(), form).is(422, `id="f-reason-error"`, `value="3" checked`)
	w.post("ana", route.Previews(), change("retry", ref.Cluster, "operation", "1", "skip", "3", "reason", "x")).is(403)
	form.Set("reason", "the host is gone")
	w.post("admin", route.Previews(), form).goesTo(`/previews/.*`)
	w.applied(change("rollback", ref.Cluster, "operation", "1"), "shop-front", "Roll back shop-front")
}

func TestOperationIsPausedSkippedAndAborted(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	ref := w.create("shop-front", 2)
	at := route.Operation(ref)
	w.get("ana", at).is(200, ">Pause<", at+"/abort")
	w.post("eve", at+"/pause", url.Values{}).is(404)
	w.post("ana", at+"/pause", url.Values{}).goesTo(at)
	w.get("ana", at).is(200, "Operation 1 is paused.", ">Resume<")
	w.get("ana", at+"/pause").goesTo(at)
	var number int
	w.must(w.db.Get(&number, `SELECT number FROM tasks WHERE cluster_id = $1 AND status = 'ready' AND NOT gate ORDER BY number LIMIT 1`, int64(ref.Cluster)))
	task := loom.TaskRef{Operation: ref, Number: number}
	w.get("ana", route.Task(task)).is(200).lacks("Leave out")
	w.get("ana", route.TaskSkip(task)).is(403)
	w.get("admin", route.Task(task)).is(200, "Skip", route.TaskSkip(task))
	w.part("admin", route.TaskSkip(task), "dialog").is(200, `id="dialog-title"`, "Skip task "+strconv.Itoa(number)).lacks("<main")
	w.post("admin", route.TaskSkip(task), url.Values{"reason": {" "}}).is(422, "No task was skipped.", `id="f-reason-error"`)
	w.post("ana", route.TaskSkip(task), url.Values{"reason": {"x"}}).is(403)
	w.post("admin", route.TaskSkip(task), url.Values{"reason": {"made by hand"}}).goesTo(route.Task(task))
	w.get("admin", route.Task(task)).is(200, "Skipped", "made by hand")
	w.post("admin", route.TaskSkip(task), url.Values{"reason": {"again"}}).is(409)
	w.get("ana", route.Cluster(ref.Cluster)).is(200, "skipped and never ran", "made by hand")
	w.post("ana", at+"/resume", url.Values{}).goesTo(at)
	w.get("ana", at+"/abort").is(200, "Abort create of shop-front?", "Stops 0 running tasks and drops ")
	w.post("ana", at+"/abort", url.Values{}).goesTo(at)
	op, err := w.clusters.Operation(w.ctx, w.actor("ana"), ref)
	w.must(err)
	if !op.Aborted {
		t.Errorf("the operation is %s", op.Status)
	}
}

func TestLeaseIsExtended(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 2)
	at, before := route.ClusterLease(id), w.cluster(id)
	page := w.get("ana", at).is(200, "Change expiry of shop-front", "the maximum of the template", "Maximum: ", "Time zone: UTC").lacks("No expiry")
	w.part("ana", at, "dialog").is(200, `id="dialog-title"`, "+1 d").lacks("<main")
	w.pressOn("ana", page, at, "+1 d").goesTo(route.Cluster(id))
	if got, want := w.cluster(id).Expires, before.Expires.AddDate(0, 0, 1); !got.Equal(want) {
		t.Errorf("extended to %v, want %v", got, want)
	}
	w.press("ana", at, "Change expiry").goesTo(route.Cluster(id))
	if got, want := w.cluster(id).Expires, before.Expires.AddDate(0, 0, 1).Truncate(time.Minute); !got.Equal(want) { // the form begins with what is
		t.Errorf("left as it was: %v, want %v", got, want)
	}
	for value, message := range map[string]string{"soon": "Enter a date such as", "never": "needs an expiry", "90d": "at most 30 days", "1990-01-01": "before the creation", "": "Enter a date"} {
		w.post("ana", at, url.Values{"end": {value}}).is(422, message, `id="f-date-error"`, "Then Loom deletes the cluster").lacks("c-summary", "null", "expireTime")
	}
	w.post("ana", at, url.Values{"date": {"2030-13-01"}, "time": {"10:00"}}).is(422, "Choose a date and a time.", `value="2030-13-01"`)
	w.post("eve", at, url.Values{"end": {"2d"}}).is(404)
	// An earlier end asks what that does.
	asked := w.post("ana", at, url.Values{"end": {"2 days"}, "from": {"/clusters"}}).is(200, "Delete shop-front earlier?", "shop-front will be deleted on ", "in 2 d")
	if got := w.cluster(id).Expires; got.Before(before.Expires) {
		t.Errorf("the lease ends %s before anybody confirmed", got)
	}
	w.pressOn("ana", asked, at, "Shorten lease").goesTo("/clusters")
	if got := w.cluster(id).Expires; !got.Before(before.Expires) {
		t.Errorf("the lease ends %s", got)
	}
	day := before.Created.AddDate(0, 0, 20).UTC().Format("2006-01-02")
	w.post("ana", at, url.Values{"end": {day}}).goesTo(route.Cluster(id))
	if got := w.cluster(id).Expires.UTC().Format("2006-01-02"); got != day {
		t.Errorf("the lease ends %s, want %s", got, day)
	}
}

func TestClusterIsEditedAndProtected(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	at := route.ClusterEdit(id)
	w.post("ana", at, url.Values{"description": {"the shop\r\nat the corner"}, "labels": {"team=web\r\nenv = test\r\n"}}).goesTo(route.Cluster(id))
	w.get("ana", at).is(200, "at the corner", "env=test\nteam=web")
	w.get("ana", route.Cluster(id)).is(200, "the shop", ">env=test<", ">team=web<")
	w.post("ana", at, url.Values{"description": {"x"}, "labels": {"team"}}).is(422, "write key=value", `id="f-labels-error"`, "Nothing was saved.")
	w.post("ana", at, url.Values{"labels": {"a=1\na=2"}}).is(422, "appears twice")
	w.post("eve", at, url.Values{}).is(404)
	on, off := route.ClusterProtect(id, true), route.ClusterProtect(id, false)
	w.post("ana", on, url.Values{}).goesTo(route.Cluster(id))
	w.get("ana", route.Cluster(id)).is(200, "Unprotect", "is protected")
	w.post("ana", on, url.Values{}).goesTo(route.Cluster(id)) // twice is as once
	w.get("ana", route.ClusterScale(id)).is(200, "Fewer is not possible", "protected")
	w.post("ana", route.Previews(), change("scale", id, "numMachines", "2")).is(409, "protected").lacks("Nodes that leave")
	w.post("ana", off, url.Values{}).goesTo(route.Cluster(id))
	if w.cluster(id).Protected {
		t.Error("still protected")
	}
	w.get("ana", on).goesTo(route.Cluster(id))
}

func TestFailurePolicyIsChosen(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	v := createValues("shop-front", "2")
	w.get("ana", "/clusters/new?template=web-cluster").is(200, `name="onFailure"`, "undo changes")
	v.Set("onFailure", "undo")
	at := w.post("ana", route.Previews(), v).goesTo(`/previews/.*`)
	page := w.get("ana", at).is(200, "deleted if it fails")
	w.get("ana", link(t, page, "/clusters/new?preview=")).is(200, `value="undo" selected`)
	v.Set("onFailure", "pray")
	w.post("ana", route.Previews(), v).is(422, `id="f-onFailure-error"`)
	// Changes that can be taken back offer it as well, the others do not.
	id := w.active("shop-back", 4)
	for _, form := range []string{route.ClusterScale(id), route.ClusterServices(id, "remove"), route.ClusterVerb(id, "resize")} {
		w.get("ana", form).is(200, `name="onFailure"`, "template default (keep it)")
	}
	for _, form := range []string{route.ClusterVerb(id, "reconfigure"), route.ClusterServices(id, "stop"), route.ClusterRepair(id)} {
		w.get("ana", form).is(200).lacks(`name="onFailure"`)
	}
	at = w.post("ana", route.Previews(), change("scale", id, "numMachines", "3", "onFailure", "undo")).goesTo(`/previews/.*`)
	w.get("ana", at).is(200, "undone if it fails", "onFailure=undo")
	at = w.post("ana", route.Previews(), change("restart", id)).goesTo(`/previews/.*`)
	w.get("ana", at).is(200).lacks("If it fails")
	w.post("ana", route.Previews(), change("restart", id, "onFailure", "undo")).is(422, "changes no layout")
}
