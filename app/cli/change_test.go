//go:build e2e

package cli

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"loom/app/api/wire"
	"loom/app/loom"
)

// change begins a change of a cluster and waits for its end; it gives the tasks.
func (c *client) change(id, verb string, body any) []wire.Task {
	c.t.Helper()
	var began struct{ OperationID string }
	c.call("POST", "/v2/clusters/"+id+"/"+verb, body, &began)
	return c.changed(id, began.OperationID)
}

// changed waits until an operation made the cluster active, and gives its tasks.
func (c *client) changed(id, operation string) []wire.Task {
	c.t.Helper()
	c.waitActive(id)
	number, err := strconv.Atoi(strings.TrimPrefix(operation, id+"-"))
	if err != nil {
		c.t.Fatalf("%s is no operation of %s", operation, id)
	}
	return c.tasks(id, number)
}

// nodeOf finds the node of a number.
func nodeOf(t *testing.T, c wire.Cluster, number int) wire.Node {
	t.Helper()
	for _, n := range c.Nodes {
		if n.Properties.Number == number {
			return n
		}
	}
	t.Fatalf("cluster %s has no node %d", c.ID, number)
	return wire.Node{}
}

// holds checks that the cluster has nodes of these numbers, each with one machine
// and no other, and that all of its web servers answer through the balancer.
func (w *world) holds(c *client, id string, numbers ...int) wire.Cluster {
	w.t.Helper()
	cluster := c.cluster(id)
	var found []int
	machines := w.machines()
	for _, n := range cluster.Nodes {
		found = append(found, n.Properties.Number)
		if _, there := machines[loom.IdempotencyKey(n.ID, n.Incarnation)]; !there {
			w.t.Errorf("node %d has no machine of incarnation %d", n.Properties.Number, n.Incarnation)
		}
	}
	if !slices.Equal(found, numbers) || len(machines) != len(numbers) {
		w.t.Fatalf("nodes %v with %d machines, want %v", found, len(machines), numbers)
	}
	w.servesFromAll(cluster)
	return cluster
}

// whileServing runs f while the page is fetched all the time; every answer must be
// a good one.
func (w *world) whileServing(url string, f func()) {
	w.t.Helper()
	end, wrong := make(chan struct{}), []string{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-end:
				tick.Stop()
				return
			case <-tick.C:
				if status, _, err := fetch(url); err != nil || status != http.StatusOK {
					wrong = append(wrong, fmt.Sprintf("%d %v", status, err))
				}
			}
		}
	})
	f()
	close(end)
	wg.Wait()
	if len(wrong) > 0 {
		w.t.Errorf("%s failed %d times, first %s", url, len(wrong), wrong[0])
	}
}

// TestChangesOfALiveCluster takes a web cluster through what can become of it:
// it grows, is upgraded batch by batch, shrinks, loses a machine and is repaired.
// After each step everything that is there serves, and nothing else is there.
func TestChangesOfALiveCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up()
	user, admin := w.user(), w.client("demo", "admin", "admin")
	// No title, so that one may come with a later version of the web server.
	id := user.create("web-cluster", 3, map[string]any{"config": map[string]any{
		"haproxy": map[string]any{"backends": "%join(map(ip.service.nginx,'$'),' ')%"}}})
	user.waitActive(id)
	cluster := w.holds(user, id, 1000, 1001, 1002)
	front := "http://" + address(t, cluster, "haproxy") + "/"

	// Another web server, as a preview showed it: the balancer hears of it, the others
	// do nothing.
	var preview struct{ ID, Hash string }
	user.call("POST", "/v2/previews", map[string]any{"kind": "expand", "clusterId": id, "request": map[string]any{"numMachines": 4}}, &preview)
	var applied struct{ OperationID string }
	w.whileServing(front, func() {
		user.call("POST", "/v2/previews/"+preview.ID+"/apply", map[string]any{"hash": preview.Hash}, &applied)
		tasks := user.changed(id, applied.OperationID)
		for _, task := range tasks {
			node := nodeOf(t, user.cluster(id), map[bool]int{true: 1000, false: 1003}[task.Service == "haproxy"])
			if task.Node != node.ID || task.Service == "haproxy" && task.Action != loom.ActionConfigure {
				t.Errorf("task %s %s on %s", task.Action, task.Service, task.Node)
			}
		}
	})
	w.holds(user, id, 1000, 1001, 1002, 1003)

	// A newer version of the web server brings a title; it comes one node at a time.
	var nginx map[string]any
	admin.call("GET", "/v2/services/nginx", nil, &nginx)
	nginx["parameters"].([]any)[0].(map[string]any)["default"] = "Second edition"
	admin.call("PUT", "/v2/services/nginx", nginx, nil)
	w.whileServing(front, func() {
		user.change(id, "upgrade", map[string]any{"services": []string{"nginx"}, "batch": 1, "minHealthy": 2})
	})
	cluster = w.holds(user, id, 1000, 1001, 1002, 1003)
	for _, web := range addresses(t, cluster, "nginx") {
		if _, body, err := fetch("http://" + web + "/"); err != nil || !strings.Contains(body, "Second edition") {
			t.Errorf("after the upgrade %s answers %v %s", web, err, body)
		}
	}

	// One of them goes: the balancer forgets it before it stops.
	goes := nodeOf(t, cluster, 1001)
	w.whileServing(front, func() {
		user.change(id, "shrink", map[string]any{"nodes": []loom.NodeID{goes.ID}})
	})
	cluster = w.holds(user, id, 1000, 1002, 1003)
	if _, _, err := fetch("http://" + goes.Properties.Addresses[loom.AccessV4] + "/"); err == nil {
		t.Error("the machine that left still answers")
	}

	// A machine dies; its node gets another one under the same name.
	dead := nodeOf(t, cluster, 1002)
	machine := w.machines()[loom.IdempotencyKey(dead.ID, dead.Incarnation)]
	if err := syscall.Kill(machine.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	user.change(id, "repair", map[string]any{"nodes": []loom.NodeID{dead.ID}})
	cluster = w.holds(user, id, 1000, 1002, 1003)
	again := nodeOf(t, cluster, 1002)
	if again.ID != dead.ID || again.Incarnation != dead.Incarnation+1 || again.Properties.Hostname != dead.Properties.Hostname {
		t.Errorf("repaired: %+v, was %+v", again.Properties, dead.Properties)
	}
	// Its web server is restarted and its files are put back; the machine stays.
	for how, steps := range map[loom.RepairHow]int{loom.RepairByRestart: 2, loom.RepairByConfigure: 4} {
		if tasks := user.change(id, "repair", map[string]any{"nodes": []loom.NodeID{dead.ID}, "how": how, "services": []string{"nginx"}}); len(tasks) != steps {
			t.Errorf("%s: %+v", how, tasks)
		}
		if n := nodeOf(t, w.holds(user, id, 1000, 1002, 1003), 1002); n.Incarnation != again.Incarnation {
			t.Errorf("%s: %+v", how, n)
		}
	}
	user.remove(id)
	w.noMachines()
}
