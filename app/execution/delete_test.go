package execution_test

import (
	"strings"
	"testing"

	"loom/app/loom"
)

var hopeless = loom.TaskResult{Status: 1, Message: "the cloud says no", Retryable: new(false)}

// One machine that cannot be deleted does not keep the others.
func TestDeleteGoesOnBehindAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.exec(`UPDATE nodes SET state = 'ready', results = jsonb_build_object('providerid', 'm' || number)`)
	w.plan(loom.ClusterDelete, loom.ActionDelete)
	w.fail(w.deliver(1), hopeless)
	w.expect("running true", `SELECT status || ' ' || (message LIKE 'Delete on node % failed, and trying again would not help: the cloud says no') FROM operations`)
	w.expect("ready ready", `SELECT string_agg(status, ' ') FROM tasks WHERE number > 1`)
	w.complete(w.deliver(2), loom.TaskResult{Result: map[string]any{"providerid": nil}})
	if n := w.end(); n != 0 {
		t.Errorf("the end was enqueued %d times before it", n)
	}
	// A pause keeps what is left; the end waits for it to be over.
	op, err := w.ops.Pause(ctx, w.actor(), loom.OperationRef{Cluster: w.cluster, Number: 1})
	if err != nil || op.Status != loom.OperationPaused {
		t.Fatalf("%s, %v", op.Status, err)
	}
	if _, err := w.ops.Resume(ctx, w.actor(), op.Ref); err != nil {
		t.Fatal(err)
	}
	w.fail(w.deliver(3), hopeless)
	w.end()
	w.expect("failed incomplete", `SELECT o.status || ' ' || c.status FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	w.expect("2 machines could not be deleted; Loom keeps trying. Task 1 on node 1000 failed first: the cloud says no", `SELECT message FROM operations`)
	w.expect("m1000 1 the cloud says no, m1002 1 the cloud says no",
		`SELECT string_agg(machine_id || ' ' || tries || ' ' || last_error, ', ' ORDER BY machine_id) FROM leftovers WHERE ended_at IS NULL AND provider_name = 'lab'`)
	w.expect("failed deleted failed", `SELECT string_agg(state, ' ' ORDER BY number) FROM nodes`)

	// A second delete gets rid of one of them; the other one stays, with all its tries.
	w.second(loom.ClusterDelete, 0, 2)
	w.exec(`UPDATE tasks SET number = 10 + number WHERE operation_id = (SELECT max(id) FROM operations)`)
	w.complete(w.deliver(11), loom.TaskResult{Result: map[string]any{"providerid": nil}})
	w.fail(w.deliver(12), hopeless)
	w.end()
	w.expect("The machine of node 1002 could not be deleted; Loom keeps trying. Task 12 failed: the cloud says no", `SELECT message FROM operations ORDER BY id DESC LIMIT 1`)
	w.expect("m1000 1 removed, m1002 2 ", `SELECT string_agg(machine_id || ' ' || tries || ' ' || ending, ', ' ORDER BY machine_id) FROM leftovers`)
	// The third one ends it.
	w.second(loom.ClusterDelete, 2)
	w.exec(`UPDATE tasks SET number = 20 + number WHERE operation_id = (SELECT max(id) FROM operations)`)
	w.complete(w.deliver(21), loom.TaskResult{})
	w.end()
	w.expect("terminated 0", `SELECT status || ' ' || (SELECT count(*) FROM leftovers WHERE ended_at IS NULL) FROM clusters`)
}

// What waits behind a DELETE that was given up goes on, through gates as well.
func TestDeletePassesWhatIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	plan := loom.Plan{Action: loom.ClusterDelete, Gates: []loom.Gate{{Action: loom.ActionDelete}, {}}}
	for i, node := range w.nodes {
		plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: i + 1, Node: node, Action: loom.ActionDelete, Level: 1 + i/2, Rank: 2 - i/2})
	}
	plan.Edges = []loom.Edge{{From: 1, To: 4}, {From: 2, To: 4}, {From: 4, To: 3}, {From: 1, To: 3}, {From: 3, To: 5}}
	if _, err := w.insert(plan); err != nil {
		t.Fatal(err)
	}
	w.fail(w.deliver(1), hopeless)
	w.expect("blocked 1", `SELECT status || ' ' || remaining FROM tasks WHERE number = 3`)
	w.fail(w.deliver(2), hopeless)
	w.complete(w.deliver(3), loom.TaskResult{})
	w.end()
	w.expect("failed", `SELECT status FROM operations`)
	w.expect("2", `SELECT count(*)::text FROM leftovers`)
}

// Only the delete of a cluster passes on; who aborts one leaves nothing to Loom.
func TestOtherDeletesFailTheirOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.plan(loom.ClusterShrink, loom.ActionDelete)
	w.fail(w.deliver(1), hopeless)
	w.end()
	w.expect("failed dropped inconsistent", `SELECT o.status || ' ' || t.status || ' ' || c.status FROM operations o JOIN tasks t ON t.operation_id = o.id AND t.number = 2 JOIN clusters c ON c.id = o.cluster_id`)

	w = newWorld(t, 2)
	w.exec(`UPDATE nodes SET results = '{"providerid": "m"}'`)
	op := w.plan(loom.ClusterDelete, loom.ActionDelete)
	w.fail(w.deliver(1), hopeless)
	if _, err := w.ops.Abort(ctx, w.actor(), op.Ref); err != nil {
		t.Fatal(err)
	}
	w.end()
	w.expect("aborted incomplete 0", `SELECT o.status || ' ' || c.status || ' ' || (SELECT count(*) FROM leftovers) FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	if m := w.text(`SELECT message FROM operations`); !strings.HasPrefix(m, "Aborted by") {
		t.Errorf("message %q", m)
	}
}

// A repair makes the machines the cluster's own again.
func TestOtherOperationsSettleLeftovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterDelete, loom.ActionDelete)
	w.fail(w.deliver(1), hopeless)
	w.end()
	w.second(loom.ClusterRepair, 0)
	w.exec(`UPDATE tasks SET number = 11 WHERE operation_id = (SELECT max(id) FROM operations) AND NOT gate`)
	w.complete(w.deliver(11), loom.TaskResult{})
	w.end()
	w.expect("removed active", `SELECT l.ending || ' ' || c.status FROM leftovers l JOIN clusters c ON c.id = l.cluster_id`)
}

// second plans a DELETE on some nodes of the cluster.
func (w *world) second(action loom.ClusterAction, nodes ...int) {
	w.t.Helper()
	all := w.nodes
	defer func() { w.nodes = all }()
	w.nodes = nil
	for _, n := range nodes {
		w.nodes = append(w.nodes, all[n])
	}
	w.plan(action, loom.ActionDelete)
}

func (w *world) actor() loom.Actor {
	return loom.Actor{Tenant: "t1", TenantName: "demo", User: "ana", Role: loom.RoleUser, Via: "session"}
}
