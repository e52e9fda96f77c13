package execution_test

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/execution"
	"loom/app/loom"
	"loom/app/store"
)

func (w *world) reconcile(want int) {
	w.t.Helper()
	if n, err := w.ops.Reconcile(ctx); err != nil || n != want {
		w.t.Errorf("reconciled %d, %v; want %d", n, err, want)
	}
}

// A delivery that a living process forgot comes again; its attempt, should it begin
// after all, is fenced off.
func TestReconcilerDeliversAgainWhatWasForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	var first execution.AttemptKey
	if err := w.db.Get(&first, `UPDATE river_job r SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{p1}' FROM tasks t
		WHERE r.id = t.river_job_id RETURNING t.id AS task_id, r.attempt`); err != nil {
		t.Fatal(err)
	}
	w.reconcile(0) // it may begin at any moment
	w.exec(`UPDATE river_job SET attempted_at = now() - interval '6 minutes'`)
	w.reconcile(1)
	second := w.deliver(1)
	if second.Attempt != 2 {
		t.Errorf("attempt %d", second.Attempt)
	}
	if begun, _, err := w.ops.StartTasks(ctx, "p1", []execution.AttemptKey{first}); err != nil || len(begun) != 0 {
		t.Errorf("the first delivery began %v, %v", begun, err)
	}
	// What runs is not touched, however long ago it was delivered.
	w.exec(`UPDATE river_job SET attempted_at = now() - interval '2 hours'`)
	w.reconcile(0)
	if !w.complete(second, loom.TaskResult{}) {
		t.Error("the result does not count")
	}
}

// A failing operation in which nothing runs, and a delete that went on behind a
// failure, end even where the request to look got lost.
func TestReconcilerEndsWhatShouldHaveEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	w.fail(w.deliver(1), hopeless)
	w.exec(`DELETE FROM river_job WHERE kind = 'end_operation'`)
	w.reconcile(1)
	w.reconcile(0)
	w.end()
	w.expect("failed", `SELECT status FROM operations`)

	w = newWorld(t, 1)
	w.plan(loom.ClusterDelete, loom.ActionDelete)
	w.fail(w.deliver(1), hopeless)
	// One that was tried too often counts as lost.
	w.exec(`UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE kind = 'end_operation'`)
	w.reconcile(1)
	w.end()
	w.expect("failed incomplete", `SELECT o.status || ' ' || c.status FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
}

// A start and the one who takes its delivery back may meet: the job is then somebody else's while
// the task runs, and nobody would find the task when its process dies.
func TestReconcilerFindsTheOwnerOfARunningTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	w.deliver(1)
	w.exec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('p3', 'provisioner', 'h', now() + interval '1 hour')`)
	w.exec(`UPDATE river_job SET attempt = 2, attempted_by = array_append(attempted_by, 'p3') WHERE state = 'running'`)
	w.reconcile(1)
	w.jobsAreTrue()
	w.exec(`DELETE FROM processes WHERE id = 'p1'`)
	w.expect("p1", `SELECT process_id FROM loom_reap()`)
	w.expect("ready available", `SELECT t.status || ' ' || r.state FROM tasks t JOIN river_job r ON r.id = t.river_job_id`)
}

// What ends an operation and what tells hooks comes again when a living process fetched
// it and does not know: an answer to River's fetch that gets lost leaves such.
func TestReconcilerDeliversShortWorkAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`INSERT INTO hooks (tenant_id, name, url, events) VALUES ('t1', 'a', 'https://a.example/', '{start}')`)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	w.complete(w.deliver(1), loom.TaskResult{})
	w.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '1 minute', attempted_by = '{p1}' WHERE kind IN ('end_operation', 'deliver_hook')`)
	w.reconcile(0) // it may be at work
	w.expect("2", `SELECT count(*)::text FROM river_job WHERE state = 'running'`)
	w.exec(`UPDATE river_job SET attempted_at = now() - interval '3 minutes' WHERE state = 'running'`)
	w.reconcile(2)
	w.expect("deliver_hook end_operation", `SELECT string_agg(kind, ' ' ORDER BY kind) FROM river_job WHERE state = 'available'`)
	if n := w.end(); n != 1 {
		t.Errorf("%d looked for an end", n)
	}
	w.expect("complete", `SELECT status FROM operations`)
}

// An operation whose hook was deleted before it answered goes on, one that waits
// for another hook does not.
func TestReconcilerLetsOperationsGoWhoseHooksVanished(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`INSERT INTO hooks (tenant_id, name, url, events, blocking) VALUES ('t1', 'a', 'https://a.example/', '{start}', true), ('t1', 'b', 'https://b.example/', '{start}', true)`)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	again := func(want string) {
		t.Helper()
		if _, err := w.ops.ReconcileHooks(ctx); err != nil {
			t.Fatal(err)
		}
		w.expect(want, `SELECT status FROM operations`)
	}
	again("not_submitted")
	w.exec(`DELETE FROM hooks WHERE name = 'a'`)
	again("not_submitted")
	w.exec(`DELETE FROM hooks`)
	again("running")
	w.complete(w.deliver(1), loom.TaskResult{})
	w.end()
	w.expect("complete", `SELECT status FROM operations`)
	// A delivery whose River job got lost is sent all the same.
	w = newWorld(t, 1)
	w.exec(`INSERT INTO hooks (tenant_id, name, url, events, blocking) VALUES ('t1', 'a', 'https://a.example/', '{start}', true)`)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	w.exec(`DELETE FROM river_job WHERE kind = 'deliver_hook'`)
	w.exec(`UPDATE hook_deliveries SET next_at = now() - interval '1 hour', created_at = now() - interval '1 hour', event_at = now() - interval '1 hour'`)
	again("not_submitted")
	w.expect("1", `SELECT count(*)::text FROM river_job WHERE kind = 'deliver_hook' AND state = 'available'`)
}

// Overdue attempts are failed by the limit of their plugin and action, and say so.
func TestOverdueByLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	limits, err := loom.ParseTaskLimits("create=100,mock/confirm=50,shell/start=300")
	if err != nil {
		t.Fatal(err)
	}
	w.ops = execution.New(w.db.DB, w.ring, execution.Options{Limits: limits})
	if err := store.Exec(ctx, w.db.DB, func(tx *sqlx.Tx) error {
		if err := store.EnsureSuperTenant(ctx, tx); err != nil {
			return err
		}
		_, err := store.InsertCatalogVersion(ctx, tx, loom.SuperTenant, loom.KindAutomatorType,
			&loom.PluginType{Base: loom.Base{Name: "shell", Version: 1}, Timeouts: loom.PluginTimeouts{loom.ActionBootstrap: 5000, loom.ActionStart: 20}}, "admin")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm, loom.ActionBootstrap, loom.ActionStart)
	overdue := func(number int, age string, want string) {
		t.Helper()
		key := w.deliver(number)
		w.exec(`UPDATE attempts SET started_at = now() - $3::interval WHERE task_id = $1 AND number = $2`, int64(key.Task), key.Attempt, age)
		spec, err := w.ops.Spec(ctx, key)
		if err != nil || spec.Deadline.IsZero() {
			t.Fatal(err)
		}
		if _, err := w.ops.FailOverdue(ctx); err != nil {
			t.Fatal(err)
		}
		w.expect(want, `SELECT status || ' ' || message FROM attempts WHERE task_id = $1 AND number = $2`, int64(key.Task), key.Attempt)
		if want == "running " {
			w.complete(key, loom.TaskResult{})
		}
	}
	overdue(1, "159 seconds", "running ")
	overdue(5, "161 seconds", "failed timed out after 100 s, and its process did not answer for it")
	overdue(2, "109 seconds", "running ")
	overdue(3, "2000 seconds", "running ") // the automator takes its time
	overdue(4, "359 seconds", "running ")  // what the installation says goes before what the plugin says
	overdue(9, "1 second", "running ")
	overdue(10, "111 seconds", "failed timed out after 50 s, and its process did not answer for it")
}

// TestReconcilerLeavesWhatEnded: an operation that ends while the reconciler is on its way
// to it gets nobody who looks for its end.
func TestReconcilerLeavesWhatEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	op := w.plan(loom.ClusterCreate, loom.ActionCreate)
	w.complete(w.deliver(1), loom.TaskResult{})
	w.exec(`DELETE FROM river_job`)
	reconcile := func() (int, error) {
		return store.InTx(ctx, w.db.DB, func(tx *sqlx.Tx) (int, error) { return store.ReconcileAllTenants(ctx, tx, op.Row) })
	}
	if n, err := reconcile(); err != nil || n != 1 {
		t.Fatalf("an end that nobody looks for: touched %d, %v", n, err)
	}
	w.end()
	w.expect("complete", `SELECT status FROM operations`)
	w.exec(`DELETE FROM river_job`)
	if n, err := reconcile(); err != nil || n != 0 {
		t.Errorf("touched %d of what has ended, %v", n, err)
	}
	w.expect("0", `SELECT count(*) FROM river_job`)
}
