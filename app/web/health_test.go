package web_test

import (
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
)

// saw records a look at each node of a cluster: those named do not answer, the others are well.
func (w *clusterWorld) saw(id loom.ClusterID, down ...loom.NodeID) {
	w.t.Helper()
	if _, err := w.db.Exec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('looks', 'provisioner', 'h', now() + interval '1 hour') ON CONFLICT DO NOTHING`); err != nil {
		w.t.Fatal(err)
	}
	v := w.cluster(id)
	var seen []loom.HealthSeen
	for _, n := range v.Nodes {
		s := loom.HealthSeen{HealthNode: loom.HealthNode{Node: n.ID, Tenant: w.tenant.ID, Cluster: id, Incarnation: n.Incarnation, Operation: v.LatestOperation},
			At: time.Now(), Interval: time.Minute, Load: loom.Load{CPU: -1, Memory: -1, Disk: 3}, Services: map[string]loom.ServiceSeen{}}
		for _, name := range n.Services {
			s.Services[name] = loom.ServiceSeen{Check: loom.ServiceCheck{Command: "x"}, Checked: true, Passed: true}
		}
		for _, d := range down {
			if s.Unreachable = s.Unreachable || n.ID == d; s.Unreachable {
				s.Services = nil
			}
		}
		seen = append(seen, s)
	}
	if _, err := fleet.New(w.db.DB).Record(w.ctx, "looks", seen); err != nil {
		w.t.Fatal(err)
	}
}

// TestHealthPages: a machine that does not answer is on Home, in the lists and in the Health
// tab, with the way to repair it; nothing of it is shown as well.
func TestHealthPages(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	tab := route.ClusterTab(id, "health")
	w.get("ana", tab).is(200, "No incidents. Nothing has been checked yet.")
	w.saw(id)
	w.get("ana", tab).is(200, "No incidents. Loom checks 3 machines")
	w.get("ana", route.Cluster(id)).is(200, "Healthy", "Check now")
	w.get("ana", route.Clusters()).is(200, "Healthy")
	var web loom.Node
	for _, n := range w.cluster(id).Nodes {
		if n.Services[0] == "nginx" {
			web = n
		}
	}
	w.saw(id, web.ID)
	repair := "how=reboot&amp;nodes=" + string(web.ID)
	w.get("ana", tab).is(200, "Degraded", "Machine does not answer", "node "+nodeNumber(web.Hostname), repair)
	w.get("ana", route.Home()).is(200, "Machine does not answer", repair, "shop-front")
	w.get("ana", route.Clusters()).is(200, "Degraded")
	w.get("ana", route.Node(id, web.ID)).is(200, "Unreachable", "The machine does not answer.").lacks("<span>Started</span>")
	w.get("ana", strings.TrimSuffix(route.Home(), "/")+route.ClusterRepairBy(id, loom.RepairByReboot, nil, web.ID)).is(200, `value="`+string(web.ID)+`" checked`)
	w.get("eve", tab).is(404)
	w.get("eve", route.Home()).lacks("Machine does not answer")
	w.saw(id)
	w.get("ana", tab).is(200, "Healthy", "Machine does not answer").lacks(repair)
	w.get("ana", route.Home()).lacks("Machine does not answer")
	w.post("eve", route.ClusterVerb(id, "check"), nil).is(404)
	w.post("ana", route.ClusterVerb(id, "check"), nil).is(303)
}

// TestDriftPages: a changed file and a changed machine are on the pages of the node and of the
// cluster, with sums and the way to put files back, and never with content.
func TestDriftPages(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	w.saw(id)
	var web loom.Node
	for _, n := range w.cluster(id).Nodes {
		if n.Services[0] == "nginx" {
			web = n
		}
	}
	tab, node := route.ClusterTab(id, "health"), route.Node(id, web.ID)
	w.get("ana", tab).is(200).lacks("<h2>Drift</h2>")
	w.get("ana", node).is(200).lacks("<h2>Drift</h2>", "drifted")
	was, now := strings.Repeat("a", 64), strings.Repeat("b", 64)
	sums := func(conf, gone string) {
		t.Helper()
		seen := loom.HealthSeen{HealthNode: loom.HealthNode{Node: web.ID, Tenant: w.tenant.ID, Cluster: id, Incarnation: web.Incarnation, Operation: w.cluster(id).LatestOperation},
			At: time.Now(), SummedAt: time.Now(), Interval: time.Minute, Services: map[string]loom.ServiceSeen{"nginx": {Files: loom.FileSums{"/etc/<b>.conf": conf, "/etc/gone.conf": gone}}}}
		if _, err := fleet.New(w.db.DB).Record(w.ctx, "looks", []loom.HealthSeen{seen}); err != nil {
			t.Fatal(err)
		}
	}
	sums(was, was)
	sums(now, "")
	w.db.MustExec(`UPDATE node_health SET machine = '{"first": {"size": "small"}, "last": {"size": "large"}}' WHERE node_id = $1`, web.ID)
	w.saw(id)
	repair := html.EscapeString(route.ClusterRepairBy(id, loom.RepairByConfigure, []string{"nginx"}, web.ID))
	for _, page := range []string{tab, node} {
		w.get("ana", page).is(200, "<h2>Drift</h2>", "/etc/&lt;b&gt;.conf was changed.", "/etc/gone.conf was removed.", "Its size is large, it was small.", was, now, "no file", "Restore files…", repair)
	}
	w.get("ana", tab).is(200, "Degraded", "nginx drifted", "Machine drifted", "node "+nodeNumber(web.Hostname))
	w.get("ana", node).is(200, "Healthy", "drifted")
	w.part("ana", node, clusterview.NodeID).is(200, "<h2>Drift</h2>")
	w.get("ana", route.Cluster(id)).is(200, nodeNumber(web.Hostname)+", nginx: /etc/&lt;b&gt;.conf was changed. /etc/gone.conf was removed.", nodeNumber(web.Hostname)+": Its size is large, it was small.")
	w.get("ana", route.Home()).is(200, "nginx drifted", repair)
	w.get("ana", strings.TrimSuffix(route.Home(), "/")+route.ClusterRepairBy(id, loom.RepairByConfigure, []string{"nginx"}, web.ID)).is(200, `value="`+string(web.ID)+`" checked`)
	w.get("eve", node).is(404)
}

// TestMaintenancePage: maintenance is announced and ended with plain forms, and what is wrong
// with an entry stands beside it.
func TestMaintenancePage(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 2)
	tab, post, end := route.ClusterTab(id, "health"), route.ClusterMaintenance(id), route.ClusterMaintenanceEnd(id)
	w.saw(id)
	w.get("ana", tab).is(200, "Start maintenance").lacks("End maintenance")
	for _, c := range []struct{ until, reason, want string }{
		{"", "new disks", `id="f-until-error"`},
		{"soon", "new disks", "Write how long from now"},
		{"40 days", "new disks", "30 days at most"},
		{"2 hours", "", `id="f-reason-error"`},
	} {
		w.post("ana", post, url.Values{"until": {c.until}, "reason": {c.reason}}).is(422, c.want, `value="`+c.until+`"`, `value="`+c.reason+`"`, "<details open")
	}
	w.post("eve", post, url.Values{"until": {"2 hours"}, "reason": {"new disks"}}).is(404)
	w.post("ana", post, url.Values{"until": {"2 hours"}, "reason": {"new <disks>"}}).is(303)
	w.get("ana", tab).is(200, "Maintenance until", "announced by ana: new &lt;disks&gt;", "End maintenance").lacks("Start maintenance")
	w.saw(id, w.cluster(id).Nodes[0].ID)
	w.get("ana", tab).is(200, "No incidents.")
	w.get("ana", route.ClusterNodes(id)).is(200, "Unreachable", "maintenance")
	w.post("ana", end, nil).is(303)
	w.get("ana", tab).is(200, "Start maintenance").lacks("End maintenance")
}

// TestRepairIsAsked: Home and the Health tab ask whether to repair an incident; who accepts gets
// to the repair, who declines is not asked again, and the policy is changed by a plain form.
func TestRepairIsAsked(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop-front", 3)
	v := w.cluster(id)
	w.saw(id)
	down := v.Nodes[0]
	w.saw(id, down.ID)
	f := fleet.New(w.db.DB)
	decide := func() {
		t.Helper()
		if _, err := f.DecideRepairs(w.ctx, w.clusters.BeginRepair); err != nil {
			t.Fatal(err)
		}
	}
	decide()
	list, err := f.Incidents(w.ctx, w.actor("ana"), fleet.IncidentsInput{Cluster: id})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(list, err)
	}
	incident := strconv.FormatInt(list.Items[0].ID, 10)
	tab, accept, decline, policy := route.ClusterTab(id, "health"), route.ClusterAccept(id), route.ClusterDecline(id), route.ClusterRepairPolicy(id)
	w.get("ana", tab).is(200, "Reboot machine", "Dismiss", `name="incident" value="`+incident+`"`)
	w.get("ana", route.Home()).is(200, "Reboot machine", "Dismiss")
	w.part("ana", route.News()+"?of="+loom.NewsOfIncident+incident, "toasts").is(200, "Machine does not answer on "+shortName(down.Hostname)+" of shop-front.", "View incident")
	w.post("eve", accept, url.Values{"incident": {incident}}).is(404)
	w.post("eve", decline, url.Values{"incident": {incident}}).is(404)
	w.post("ana", accept, url.Values{"incident": {"x"}}).is(404)

	w.post("ana", decline, url.Values{"incident": {incident}}).is(303)
	w.get("ana", tab).is(200, "You dismissed it.").lacks("Reboot machine")
	w.get("ana", route.Home()).is(200, "You dismissed it.").lacks(">Dismiss<")
	w.post("ana", accept, url.Values{"incident": {incident}}).is(303)
	w.get("ana", tab).is(200, "You dismissed it.")

	w.saw(id)
	w.saw(id, down.ID)
	decide()
	list, err = f.Incidents(w.ctx, w.actor("ana"), fleet.IncidentsInput{Cluster: id})
	if err != nil || len(list.Items) != 2 {
		t.Fatal(list, err)
	}
	incident = strconv.FormatInt(list.Items[0].ID, 10)
	begun := w.post("ana", accept, url.Values{"incident": {incident}}).is(303)
	op := loom.OperationRef{Cluster: id, Number: v.LatestOperation + 1}
	if at := begun.Header.Get("Location"); at != route.Operation(op) {
		t.Errorf("after accepting: %s", at)
	}
	w.get("ana", route.Operation(op)).is(200, "Reboot")
	w.get("ana", tab).is(200, "You accepted the repair.", route.Operation(op))

	w.get("ana", tab).is(200, "Template default (ask whether to restart it)")
	w.post("ana", policy, url.Values{"service": {"tell"}, "stopped": {"do"}, "gone": {""}}).is(403, "Only an administrator, or the template, may let Loom repair this by itself")
	w.post("ana", policy, url.Values{"service": {"whatever"}}).is(422, "Choose “tell”, “ask” or “do”.", "<details open")
	w.post("ana", policy, url.Values{"service": {"tell"}}).is(303)
	w.get("ana", tab).is(200, `<option value="tell" selected>Show it only`)
	w.post("admin", policy, url.Values{"stopped": {"do"}}).is(303)
	w.get("ana", tab).is(200, `<option value="do" selected>Start it automatically`)
}

// TestLoadOfANode: the page of a node draws its load, or says why there is none.
func TestLoadOfANode(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 2)
	node := w.cluster(op.Cluster).Nodes[0]
	page := route.Node(op.Cluster, node.ID)
	w.get("ana", page).is(200).lacks("<h2>Load</h2>")
	w.finish(op, "active")
	w.get("ana", page).is(200, "<h2>Load</h2>", "No load recorded yet.").lacks("node-load")
	w.saw(op.Cluster, node.ID)
	w.get("ana", page).is(200, "No load recorded: the machine does not answer.")
	w.saw(op.Cluster)
	w.get("ana", page).is(200, "No load recorded yet.")
	w.db.MustExec(`UPDATE node_health SET disk = -1`)
	w.get("ana", page).is(200, "No load recorded: the machine does not report it.")
	w.db.MustExec(`UPDATE node_health SET status = 'off'`)
	w.get("ana", page).is(200, "No load recorded: checks are off.")
	// An hour: a quarter of points, one with a gap, one without any, and one point.
	w.db.MustExec(`INSERT INTO node_load (node_id, incarnation, slot, points) VALUES ($1, $2, extract(epoch FROM now())::bigint / 300 - 1, $3)`,
		node.ID, node.Incarnation, []byte{10, 40, 70, 20, 40, 70, 33, 40, 70, 50, 255, 70, 255, 255, 70, 60, 255, 70, 255, 255, 255, 255, 255, 255, 255, 255, 255, 100, 0, 70})
	w.get("ana", page).is(200, `id="node-load"`, "Last 24 hours: 96 values", "highest 100 %", "CPU", "Memory", "Disk",
		`<td class="u-num">21</td><td class="u-num">40</td><td class="u-num">70</td>`, `<td class="u-num">55</td><td class="u-num">–</td><td class="u-num">70</td>`,
		`<td class="u-num">–</td><td class="u-num">–</td><td class="u-num">–</td>`, `<td class="u-num">100</td><td class="u-num">0</td><td class="u-num">70</td>`)
	w.part("ana", page, clusterview.NodeID).is(200).lacks("node-load")
	w.get("eve", page).is(404)
}
