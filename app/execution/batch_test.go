package execution_test

import (
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// rolls inserts an upgrade of three nodes, two at a time: STOP, INSTALL and START of
// each, tasks 1 to 3, 4 to 6 and 7 to 9.
func (w *world) rolls(onFailure string) {
	w.t.Helper()
	w.exec(`UPDATE nodes SET state = 'ready', results = jsonb_build_object('providerid', 'm' || number), service_states = '{"web": "started"}'`)
	plan := w.chain(loom.ClusterUpgrade, loom.ActionStop, loom.ActionInstall, loom.ActionStart)
	for i := range plan.Tasks {
		plan.Tasks[i].Old = plan.Tasks[i].Action == loom.ActionStop
	}
	// The second batch waits behind a gate for all of the first.
	plan.Gates = []loom.Gate{{Service: "web", Action: loom.ActionStart}, {}}
	plan.Edges = []loom.Edge{{From: 1, To: 2}, {From: 2, To: 3}, {From: 3, To: 10}, {From: 4, To: 5}, {From: 5, To: 6}, {From: 6, To: 10},
		{From: 10, To: 7}, {From: 7, To: 8}, {From: 8, To: 9}, {From: 9, To: 11}}
	_, err := store.InTx(ctx, w.db.DB, func(tx *sqlx.Tx) (loom.Operation, error) {
		cluster, err := store.ClusterByID(ctx, tx, "t1", w.cluster)
		if err != nil {
			return loom.Operation{}, err
		}
		nodes, err := store.NodesByCluster(ctx, tx, "t1", w.cluster)
		if err != nil {
			return loom.Operation{}, err
		}
		was := cluster.Services["web"]
		was.Version, was.DefaultConfig = 7, map[string]any{"older": true}
		return store.InsertPlan(ctx, tx, store.NewOperation{Tenant: "t1", Cluster: w.cluster, Action: plan.Action, RequestedBy: "ana", OnFailure: onFailure,
			Before: &loom.Snapshot{Nodes: nodes, Services: map[string]loom.Service{"web": was}, Config: cluster.Config}}, plan)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

const failedFirst = "Install web on node 1000 failed, and trying again would not help: no room"

// The rest of a batch is done although one of its tasks failed; then the operation
// fails, and what waited for the failed one never ran.
func TestBatchIsFinishedPastAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.rolls("")
	w.complete(w.deliver(1), loom.TaskResult{})
	w.fail(w.deliver(2), useless)
	w.expect("running "+failedFirst+". What does not wait for it is done first.", `SELECT status || ' ' || message FROM operations`)
	w.expect("3 7 8 9", `SELECT string_agg(number::text, ' ' ORDER BY number) FROM tasks WHERE status = 'dropped' AND NOT gate`)
	w.expect("4", `SELECT count(*)::text FROM river_job WHERE state = 'cancelled'`)
	w.reconcile(0)
	w.complete(w.deliver(4), loom.TaskResult{})
	// Who pauses and resumes it does not make the failure be forgotten.
	op, err := w.ops.Pause(ctx, w.actor(), loom.OperationRef{Cluster: w.cluster, Number: 1})
	if err != nil || op.Status != loom.OperationPaused {
		t.Fatalf("%s, %v", op.Status, err)
	}
	if _, err := w.ops.Resume(ctx, w.actor(), op.Ref); err != nil {
		t.Fatal(err)
	}
	w.end()
	w.complete(w.deliver(5), loom.TaskResult{})
	if n := w.end(); n != 0 {
		t.Errorf("%d ends while a task waits", n)
	}
	w.complete(w.deliver(6), loom.TaskResult{})
	if w.end() == 0 {
		t.Fatal("nobody looks for the end")
	}
	w.expect("failed inconsistent", `SELECT o.status || ' ' || c.status FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	w.expect("Install web on node 1000 failed: no room", `SELECT message FROM operations`)
	w.expect("failed ready ready", `SELECT string_agg(state, ' ' ORDER BY number) FROM nodes`)
	w.expect("0", `SELECT count(*)::text FROM river_job WHERE state NOT IN ('completed', 'cancelled', 'discarded')`)
}

// A second failure leaves the message of the first, and what interrupts the rest of a
// batch does not end it.
func TestBatchInWhichTwoFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.rolls("")
	w.complete(w.deliver(1), loom.TaskResult{})
	w.complete(w.deliver(4), loom.TaskResult{})
	other := w.deliver(5)
	w.fail(w.deliver(2), useless)
	w.fail(other, loom.TaskResult{Interrupted: true})
	w.expect("running ready", `SELECT o.status || ' ' || t.status FROM operations o JOIN tasks t ON t.operation_id = o.id AND t.number = 5`)
	w.fail(w.deliver(5), useless)
	w.expect("failing "+failedFirst, `SELECT status || ' ' || message FROM operations`)
	w.end()
	w.expect("failed inconsistent", `SELECT o.status || ' ' || c.status FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	w.expect("3 6 7 8 9", `SELECT string_agg(number::text, ' ' ORDER BY number) FROM tasks WHERE status = 'dropped' AND NOT gate`)
}

// Where the policy is to undo, the batch is finished first and then all of it undone; an
// abort does not wait for the batch.
func TestFailedBatchIsUndoneOrAborted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.rolls(loom.OnFailureUndo)
	w.complete(w.deliver(1), loom.TaskResult{})
	w.fail(w.deliver(2), useless)
	for _, number := range []int{4, 5, 6} {
		w.complete(w.deliver(number), loom.TaskResult{})
	}
	w.end()
	w.expect("rolling_back pending "+failedFirst, `SELECT o.status || ' ' || c.status || ' ' || o.message FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	w.expect("1000 1001", `SELECT string_agg(DISTINCT n.number::text, ' ') FROM tasks t JOIN nodes n ON n.id = t.node_id WHERE t.undo AND NOT t.gate`)
	w.runAll()
	w.expect("rolled_back active", `SELECT o.status || ' ' || c.status FROM operations o JOIN clusters c ON c.id = o.cluster_id`)

	w = newWorld(t, 3)
	w.rolls("")
	w.complete(w.deliver(1), loom.TaskResult{})
	w.fail(w.deliver(2), useless)
	if _, err := w.ops.Abort(ctx, w.actor(), loom.OperationRef{Cluster: w.cluster, Number: 1}); err != nil {
		t.Fatal(err)
	}
	w.end()
	w.expect("aborted inconsistent 0", `SELECT o.status || ' ' || c.status || ' ' || (SELECT count(*) FROM attempts a JOIN tasks t ON t.id = a.task_id WHERE t.number > 2) FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	if m := w.text(`SELECT message FROM operations`); !strings.HasPrefix(m, "Aborted by") {
		t.Errorf("message %q", m)
	}
}

// The nodes of a follower are told in halves: one of them that fails does not keep the
// others of its half from hearing, and the second half is not begun.
func TestHalfOfAFollowerIsFinished(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.exec(`UPDATE clusters SET services = jsonb_set(services, '{web,follows}', '["app"]')`)
	plan := w.chain(loom.ClusterExpand, loom.ActionConfigure)
	plan.Gates = []loom.Gate{{Service: "web", Action: loom.ActionConfigure}, {}}
	plan.Edges = []loom.Edge{{From: 1, To: 4}, {From: 2, To: 4}, {From: 4, To: 3}, {From: 3, To: 5}}
	if _, err := w.insert(plan); err != nil {
		t.Fatal(err)
	}
	w.fail(w.deliver(1), useless)
	w.expect("running dropped", `SELECT o.status || ' ' || t.status FROM operations o JOIN tasks t ON t.operation_id = o.id AND t.number = 3`)
	w.complete(w.deliver(2), loom.TaskResult{})
	w.end()
	w.expect("failed inconsistent", `SELECT o.status || ' ' || c.status FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
}
