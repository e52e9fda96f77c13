package fleet_test

import (
	"context"
	"testing"

	"loom/app/loom"
)

// TestAfterOperation: what failed before an operation is over with the first pass after it;
// adding keys changes nothing of what is known.
func TestAfterOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.record("p1", w.seen(0, true, ""))
	w.exec(`UPDATE node_health SET changed_at = now() - interval '10 minutes'`)
	look := func(operation int, passed bool) {
		seen := w.seen(0, passed, "exit status 7")
		service := seen.Services["nginx"]
		service.Check.Passes = 2
		seen.Services["nginx"], seen.Operation = service, operation
		w.record("p1", seen)
	}
	look(3, false)
	look(3, true)
	w.expect(loom.HealthFailing, loom.HealthFailing)
	w.exec(`INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by) VALUES ('t1', $1, 3, 'restart_services', 'complete', 'ana')`, w.cluster)
	begin := func(number int, action string) {
		w.exec(`INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by) VALUES ('t1', $1, $2, $3, 'running', 'ana')`, w.cluster, number, action)
		w.exec(`WITH t AS (INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, node_id, action, status)
			SELECT id, 't1', $1, 1, $2, 'stop', 'ready' FROM operations WHERE cluster_id = $1 AND number = $3 RETURNING id)
			UPDATE nodes SET task_id = (SELECT id FROM t) WHERE id = $2`, w.cluster, w.nodes[0], number)
		w.exec(`UPDATE clusters SET latest_operation = $2 WHERE id = $1`, w.cluster, number)
	}
	begin(4, "cluster_authorize")
	nodes, err := w.fleet.Nodes(context.Background(), "")
	if err != nil || len(nodes) != 1 || nodes[0].Changing || nodes[0].Operation != 3 {
		t.Fatalf("while keys are added: %+v, %v", nodes, err)
	}
	look(3, false)
	w.expect(loom.HealthFailing, loom.HealthFailing)
	w.exec(`UPDATE operations SET status = 'complete'`)
	begin(5, "restart_services")
	w.exec(`UPDATE operations SET status = 'complete'; UPDATE tasks SET status = 'complete'; UPDATE nodes SET task_id = NULL`)
	look(5, true)
	w.expect(loom.HealthHealthy, loom.HealthHealthy)
	// A create that failed is not healthy, whatever its machines say.
	w.exec(`UPDATE clusters SET status = 'incomplete', latest_operation = 6 WHERE id = $1`, w.cluster)
	w.exec(`INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by) VALUES ('t1', $1, 6, 'cluster_create', 'failed', 'ana')`, w.cluster)
	look(6, true)
	w.expect(loom.HealthUnknown, loom.HealthHealthy)
}

// TestEveryHealthOfAClusterIsRecorded: whatever a cluster is judged to be is stored.
func TestEveryHealthOfAClusterIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for _, status := range []loom.HealthStatus{loom.HealthOff, loom.HealthUnchecked} {
		seen := w.seen(0, true, "")
		seen.Services = map[string]loom.ServiceSeen{"nginx": {Status: status}}
		w.record("p1", seen)
		want := map[loom.HealthStatus]loom.HealthStatus{loom.HealthOff: loom.HealthStopped, loom.HealthUnchecked: loom.HealthUnchecked}[status]
		w.expect(want, loom.HealthHealthy)
	}
}
