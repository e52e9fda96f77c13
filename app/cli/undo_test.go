//go:build e2e

package cli

import (
	"fmt"
	"os"
	"testing"

	"loom/app/loom"
)

// licensedCatalog stores, as an administrator of demo, a service that starts only where
// a file is, and a template of it and nginx.
func licensedCatalog(admin *client) {
	admin.t.Helper()
	const scripts = "/v2/plugins/automatortypes/shell/scripts/licensed.sh"
	var stored struct{ Version int }
	admin.call("POST", scripts, "#!/bin/sh\n[ -e /etc/licence ] || { echo 'no licence found' >&2; exit 1; }\n", &stored)
	admin.call("POST", fmt.Sprintf("%s/versions/%d/stage", scripts, stored.Version), nil, nil)
	admin.call("POST", "/v2/plugins/sync", nil, nil)
	admin.call("POST", "/v2/services", `{"name": "licensed", "provisioner": {"actions": {
		"start": {"type": "shell", "fields": {"script": "licensed.sh", "args": "start"}}}}}`, nil)
	admin.call("POST", "/v2/clustertemplates", `{"name": "licensed-cluster", "defaults": {"services": ["licensed"], "provider": "local",
		"hardwaretype": "local-small", "imagetype": "debian12", "config": {}},
		"compatibility": {"hardwaretypes": ["local-small"], "imagetypes": ["debian12"], "services": ["licensed", "nginx"]},
		"constraints": {"size": {"min": 1, "max": 5}}, "administration": {"leaseduration": {"initial": 0, "max": 0, "step": 0}}}`, nil)
}

// TestUndoAndRetry makes things fail on real machines: what is to be undone is gone
// without a trace, and what is retried goes on where it stopped.
func TestUndoAndRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "LOOM_MAX_ATTEMPTS=1")
	w.up()
	admin := w.client("demo", "admin", "admin")
	licensedCatalog(admin)
	user := w.user()

	// A create that is undone leaves nothing.
	gone := user.create("licensed-cluster", 2, map[string]any{"onFailure": "undo"})
	user.waitStatus(gone, loom.ClusterTerminated)
	if op := user.cluster(gone).Latest; op == nil || op.Status != loom.OperationRolledBack {
		t.Errorf("the create ended %+v", op)
	}
	deletes := 0
	for _, task := range user.tasks(gone, 1) {
		if task.Undo && task.Action == loom.ActionDelete && task.Status == loom.TaskComplete {
			deletes++
		}
	}
	if deletes != 2 {
		t.Errorf("%d machines were deleted", deletes)
	}
	w.noMachines()

	// Services that are added and undone leave the cluster serving.
	id := user.create("licensed-cluster", 1, map[string]any{"services": []string{"nginx"}})
	user.waitActive(id)
	serves := func() {
		t.Helper()
		for _, web := range addresses(t, user.cluster(id), "nginx") {
			w.eventually("nginx to serve", func() error {
				_, _, err := fetch("http://" + web + "/healthz")
				return err
			})
		}
	}
	serves()
	user.call("POST", "/v2/clusters/"+id+"/services", map[string]any{"services": []string{"licensed"}, "onFailure": "undo"}, nil)
	user.waitActive(id)
	cluster := user.cluster(id)
	if cluster.Latest == nil || cluster.Latest.Number != 2 || cluster.Latest.Status != loom.OperationRolledBack || len(cluster.Services) != 1 {
		t.Errorf("services %v, operation %+v", cluster.Services, cluster.Latest)
	}
	serves()

	// Without undo it stays for inspection; once mended, a retry runs what is left.
	kept := user.create("licensed-cluster", 1, nil)
	user.waitStatus(kept, loom.ClusterIncomplete)
	for _, m := range w.machines() {
		file := fmt.Sprintf("/proc/%d/root/etc/licence", m.PID)
		if err := os.WriteFile(file, []byte("yours\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var begun struct{ OperationID string }
	user.call("POST", "/v2/clusters/"+kept+"/operations/1/retry", nil, &begun)
	user.waitActive(kept)
	again := user.tasks(kept, 2)
	if begun.OperationID != kept+"-002" || len(again) != 1 || again[0].Action != loom.ActionStart || again[0].Status != loom.TaskComplete {
		t.Errorf("%s ran %+v", begun.OperationID, again)
	}
	// Before its create there was nothing.
	user.call("POST", "/v2/clusters/"+kept+"/operations/1/rollback", nil, nil)
	user.waitStatus(kept, loom.ClusterTerminated)
	user.remove(id)
	w.noMachines()
}
