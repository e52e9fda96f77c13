//go:build e2e

package cli

import (
	"fmt"
	"strings"
	"testing"

	"loom/app/api/wire"
	"loom/app/loom"
)

// brokenCatalog stores, as an administrator of demo, a service that ends with an
// exit status and output, and a template of it and nginx.
func brokenCatalog(admin *client) {
	admin.t.Helper()
	const scripts = "/v2/plugins/automatortypes/shell/scripts/broken.sh"
	var stored struct{ Version int }
	admin.call("POST", scripts, "#!/bin/sh\necho looking for the licence\necho 'no licence found in /etc/broken' >&2\nexit 1\n", &stored)
	admin.call("POST", fmt.Sprintf("%s/versions/%d/stage", scripts, stored.Version), nil, nil)
	admin.call("POST", "/v2/plugins/sync", nil, nil)
	admin.call("POST", "/v2/services", `{"name": "broken", "description": "never starts", "provisioner": {"actions": {
		"start": {"type": "shell", "fields": {"script": "broken.sh", "args": "start"}}}}}`, nil)
	admin.call("POST", "/v2/clustertemplates", `{"name": "broken-cluster", "defaults": {"services": ["broken"], "provider": "local",
		"hardwaretype": "local-small", "imagetype": "debian12", "config": {}},
		"compatibility": {"hardwaretypes": ["local-small"], "imagetypes": ["debian12"], "services": ["broken"]},
		"constraints": {"size": {"min": 1, "max": 5}}, "administration": {"leaseduration": {"initial": 0, "max": 0, "step": 0}}}`, nil)
}

// TestFailingService makes a cluster whose service does not start.
func TestFailingService(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "LOOM_MAX_ATTEMPTS=2")
	w.up()
	admin := w.client("demo", "admin", "admin")
	brokenCatalog(admin)
	user := w.user()
	id := user.create("broken-cluster", 1, nil)
	user.waitStatus(id, loom.ClusterIncomplete)

	cluster := user.cluster(id)
	if len(cluster.Nodes) != 1 || cluster.Latest == nil {
		t.Fatalf("cluster %+v", cluster)
	}
	if cluster.Latest.Status != loom.OperationFailed {
		t.Errorf("the operation is %s", cluster.Latest.Status)
	}
	var failed wire.Task
	for _, task := range user.tasks(id, 1) {
		switch task.Status {
		case loom.TaskFailed:
			failed = task
		case loom.TaskComplete, loom.TaskDropped:
		default:
			t.Errorf("after the end task %s is %s", task.ID, task.Status)
		}
	}
	if failed.Action != "start" || failed.Service != "broken" || len(failed.Attempts) != 2 {
		t.Fatalf("the failed task is %+v", failed)
	}
	for _, word := range []string{"Start broken on node", fmt.Sprintf("node %d", cluster.Nodes[0].Properties.Number), "broken.sh exited with 1"} {
		if !strings.Contains(cluster.Message, word) {
			t.Errorf("the message does not name %q: %s", word, cluster.Message)
		}
	}
	for _, attempt := range failed.Attempts {
		if attempt.Status != loom.AttemptFailed || attempt.Code != 1 {
			t.Errorf("attempt %+v", attempt)
		}
		_, log, err := user.try("GET", fmt.Sprintf("/v2/clusters/%s/operations/1/tasks/%d/log?attempt=%d", id, failed.Number, attempt.Number), nil)
		for _, line := range []string{"looking for the licence", "no licence found in /etc/broken"} {
			if err != nil || !strings.Contains(string(log), line) {
				t.Errorf("the log of try %d lacks %q: %v %s", attempt.Number, line, err, log)
			}
		}
	}
	user.remove(id)
	w.noMachines()
}
