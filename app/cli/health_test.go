//go:build e2e

package cli

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"loom/app/api/wire"
	"loom/app/loom"
)

// health reads the health of a cluster.
func (c *client) health(id string) (h wire.ClusterHealth) {
	c.t.Helper()
	c.call("GET", "/v2/clusters/"+id+"/health", nil, &h)
	return h
}

// waitHealth asks for a check and polls until every node was checked, the cluster has a health,
// and the incidents that last there are these, each as its kind with its service.
func (w *world) waitHealth(c *client, id string, want loom.HealthStatus, incidents ...string) {
	w.t.Helper()
	asked := false
	w.eventually("cluster "+id+" to be "+string(want)+" with "+strings.Join(incidents, ", "), func() error {
		if !asked { // a check comes sooner then, unless somebody asked a moment ago
			status, _, _ := c.try("POST", "/v2/clusters/"+id+"/check", nil)
			asked = status == http.StatusOK
		}
		var list []wire.Incident
		c.call("GET", "/v2/clusters/"+id+"/incidents?open=true", nil, &list)
		var found []string
		for _, i := range list {
			found = append(found, strings.TrimSpace(string(i.Kind)+" "+i.Service))
		}
		if h := c.health(id); h.Status != want || h.CheckedAt == 0 || !slices.Equal(found, incidents) {
			return fmt.Errorf("it is %s with %q: %+v", h.Status, found, h.Nodes)
		}
		return nil
	})
}

// waitIncident polls until the newest incident of a cluster is decided so.
func (w *world) waitIncident(c *client, id string, want loom.RepairDecision) (i wire.Incident) {
	w.t.Helper()
	w.eventually("an incident of cluster "+id+" to be "+string(want), func() error {
		var list []wire.Incident
		c.call("GET", "/v2/clusters/"+id+"/incidents", nil, &list)
		if len(list) == 0 || list[0].Decision != want {
			return fmt.Errorf("incidents: %+v", list)
		}
		i = list[0]
		return nil
	})
	return i
}

// TestHealthOfRealMachines: edited and removed files, a killed web server and a killed machine
// are seen. The files are put back by a repair; Loom restarts the server when somebody accepts
// that, and starts the machine by itself; it stays, with what is on it. Before that the journal
// of the web server is followed.
func TestHealthOfRealMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up()
	user := w.user()
	const secret = "canary-in-the-config"
	id := user.create("web-cluster", 3, map[string]any{"config": map[string]any{
		"haproxy": map[string]any{"backends": "%join(map(ip.service.nginx,'$'),' ')%"}, "web": map[string]any{"title": "Hello", "password": secret}}})
	user.waitActive(id)
	w.waitHealth(user, id, loom.HealthHealthy)
	cluster := user.cluster(id)

	web, other := nodeOf(t, cluster, 1001), nodeOf(t, cluster, 1002)
	w.journalOfNginx(user, id, web, secret)
	on := func(n wire.Node, command string) string {
		t.Helper()
		pid := w.machines()[loom.IdempotencyKey(n.ID, n.Incarnation)].PID
		out, err := exec.CommandContext(t.Context(), "nsenter", "-t", strconv.Itoa(pid), "-U", "-m", "-p", "sh", "-c", command).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		return string(out)
	}
	const file = "/etc/nginx/conf.d/loom.conf"
	content := on(web, "cat "+file)
	on(web, "echo '# by hand' >> "+file)
	on(other, "rm "+file)
	w.waitHealth(user, id, loom.HealthDegraded, "drift nginx", "drift nginx")
	for _, n := range user.health(id).Nodes {
		changed := n.Node == web.ID || n.Node == other.ID
		if n.Status != loom.HealthHealthy || changed != (len(n.Drift) == 1) {
			t.Fatalf("node %s is %s: %+v", n.Node, n.Status, n.Drift)
		}
		if changed && (n.Drift[0].File != file || n.Drift[0].Service != "nginx" || len(n.Drift[0].Was) != 64 || (n.Drift[0].Now == "") != (n.Node == other.ID)) {
			t.Errorf("node %s: %+v", n.Node, n.Drift)
		}
	}
	user.change(id, "repair", map[string]any{"nodes": []loom.NodeID{web.ID, other.ID}, "how": loom.RepairByConfigure, "services": []string{"nginx"}})
	w.waitHealth(user, id, loom.HealthHealthy)
	if now := on(web, "cat "+file); now != content {
		t.Errorf("put back: %q, it was %q", now, content)
	}
	on(other, "test -s "+file)

	// Whoever is killed last may have begun another worker before, which would go on serving.
	on(web, "while pids=$(pidof nginx); do kill -9 $pids || :; done")
	w.waitHealth(user, id, loom.HealthDegraded, "service nginx")
	// The load is that of the machines, by their control groups.
	w.eventually("the load of the machines", func() error {
		for _, n := range user.health(id).Nodes {
			if n.CPU == nil || n.Memory == nil || n.Disk == nil || *n.Memory == 0 || *n.Memory > 60 {
				return fmt.Errorf("node %s: %+v", n.Node, n)
			}
		}
		return nil
	})
	var load wire.NodeLoad
	user.call("GET", "/v2/clusters/"+id+"/nodes/"+string(cluster.Nodes[0].ID)+"/load", nil, &load)
	if load.Step != 300_000 || load.CPU == nil {
		t.Errorf("its load over the day: %+v", load)
	}
	for _, n := range user.health(id).Nodes {
		if bad := n.Node == web.ID; bad != (n.Status == loom.HealthFailing) || bad && n.Services["nginx"].Message == "" {
			t.Errorf("node %s is %s: %+v", n.Node, n.Status, n.Services)
		}
	}
	asked := w.waitIncident(user, id, loom.RepairAsked)
	user.call("POST", "/v2/incidents/"+strconv.FormatInt(asked.ID, 10)+"/accept", nil, nil)
	w.waitHealth(user, id, loom.HealthHealthy)

	w.client("demo", "admin", "admin").call("PATCH", "/v2/clusters/"+id, map[string]any{"repair": map[string]any{"stopped": "do"}}, nil)
	if err := syscall.Kill(w.machines()[loom.IdempotencyKey(web.ID, web.Incarnation)].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.waitIncident(user, id, loom.RepairBegun)
	w.waitHealth(user, id, loom.HealthHealthy)
	if now := nodeOf(t, w.holds(user, id, 1000, 1001, 1002), 1001); now.ID != web.ID || now.Incarnation != web.Incarnation {
		t.Errorf("rebooted: %+v, was %+v", now, web)
	}
	var all []wire.Incident
	user.call("GET", "/v2/incidents?cluster="+id, nil, &all)
	if len(all) != 4 || all[0].Kind != loom.IncidentStopped || all[1].Kind != loom.IncidentService || all[0].EndedAt == 0 || all[0].Decision != loom.RepairBegun || all[0].Operation == "" || all[1].Decision != loom.RepairAccepted || all[1].EndedAt == 0 || all[0].Node != web.ID || all[1].Node != web.ID {
		t.Errorf("incidents: %+v", all)
	}
	user.remove(id)
	w.noMachines()
}
