package execution_test

import (
	"strings"
	"testing"

	"loom/app/loom"
)

// Whoever mended what failed does not wait for the next try, and whoever knows that it
// is useless ends it.
func TestRetryNowAndStopRetrying(t *testing.T) {
	t.Parallel()
	w := watched(t, 1)
	op := w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionInstall, loom.ActionStart)
	task := func(number int) loom.TaskRef { return loom.TaskRef{Operation: op.Ref, Number: number} }
	refused := func(err error, kind loom.Kind, says string) {
		t.Helper()
		if e := loom.AsError(err); err == nil || e.Kind != kind || !strings.Contains(e.Message, says) {
			t.Errorf("%v, want %s with %q", err, kind, says)
		}
	}
	w.complete(w.deliver(1), succeed("create"))
	running := w.deliver(2)
	refused(w.ops.RetryNow(ctx, ana, task(2)), loom.Conflict, "it is running")
	refused(w.ops.RetryNow(ctx, ana, task(3)), loom.Conflict, "it is blocked")
	refused(w.ops.RetryNow(ctx, ana, task(9)), loom.NotFound, "no task 9")
	refused(w.ops.StopRetrying(ctx, ana, task(1)), loom.Conflict, "it is complete")
	w.fail(running, loom.TaskResult{Status: 7, Message: "no mirror"})
	refused(w.ops.RetryNow(ctx, loom.Actor{Tenant: "t1", User: "bob", Role: loom.RoleUser}, task(2)), loom.NotFound, "")
	w.expect("scheduled", `SELECT r.state FROM tasks t JOIN river_job r ON r.id = t.river_job_id WHERE t.number = 2`)
	if err := w.ops.RetryNow(ctx, ana, task(2)); err != nil {
		t.Fatal(err)
	}
	w.expect("available", `SELECT r.state FROM tasks t JOIN river_job r ON r.id = t.river_job_id WHERE t.number = 2`)
	refused(w.ops.RetryNow(ctx, ana, task(2)), loom.Conflict, "does not wait for a retry")
	w.fail(w.deliver(2), loom.TaskResult{Status: 7, Message: "no mirror"})
	if _, err := w.ops.Pause(ctx, ana, op.Ref); err != nil {
		t.Fatal(err)
	}
	refused(w.ops.RetryNow(ctx, ana, task(2)), loom.Conflict, "paused")
	if _, err := w.ops.Resume(ctx, ana, op.Ref); err != nil {
		t.Fatal(err)
	}
	if err := w.ops.StopRetrying(ctx, ana, task(2)); err != nil {
		t.Fatal(err)
	}
	w.end()
	w.expect("failed incomplete", `SELECT o.status || ' ' || c.status FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	w.expect("failed 7", `SELECT status || ' ' || code FROM tasks WHERE number = 2`)
	if text := w.text(`SELECT message FROM operations`); !strings.Contains(text, "ana stopped the retries: no mirror") {
		t.Error(text)
	}
	refused(w.ops.StopRetrying(ctx, ana, task(2)), loom.Conflict, "it is failed")
	w.expect("2", `SELECT count(*)::text FROM audit WHERE kind = 'task' AND verb IN ('retry-now', 'stop-retrying')`)
	w.walked()
}

// A CONFIRM that fails replaces a machine that the operation made, and no other one.
func TestConfirmKeepsMachinesFromBefore(t *testing.T) {
	t.Parallel()
	w := watched(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	w.complete(w.deliver(1), succeed("create"))
	w.fail(w.deliver(2), loom.TaskResult{Status: 1, Message: "no answer"})
	w.expect("2", `SELECT count(*)::text FROM tasks WHERE number > 2 AND NOT gate`)
	w.runAll()
	w.expect("complete", `SELECT status FROM operations`)
	w.plan(loom.ClusterRepair, loom.ActionConfirm, loom.ActionBootstrap)
	number := 1
	w.fail(w.deliver(number), loom.TaskResult{Status: 1, Message: "no answer"})
	w.expect("2", `SELECT count(*)::text FROM tasks t JOIN operations o ON o.id = t.operation_id WHERE o.number = 2 AND NOT t.gate`)
	w.expect("ready scheduled", `SELECT t.status || ' ' || r.state FROM tasks t JOIN operations o ON o.id = t.operation_id JOIN river_job r ON r.id = t.river_job_id WHERE o.number = 2 AND t.number = 1`)
}

// A CONFIRM that fails behind a REBOOT is tried again on the machine that was rebooted.
func TestConfirmAfterARebootKeepsTheMachine(t *testing.T) {
	t.Parallel()
	w := watched(t, 1)
	op := w.plan(loom.RepairReboot, loom.ActionReboot, loom.ActionConfirm, loom.ActionStart)
	fail := func(number int, last bool) {
		t.Helper()
		w.fail(w.deliver(number), loom.TaskResult{Status: 1, Message: "no answer"})
		w.expect("3", `SELECT count(*)::text FROM tasks WHERE NOT gate`)
		if last {
			return
		}
		if err := w.ops.RetryNow(ctx, ana, loom.TaskRef{Operation: op.Ref, Number: number}); err != nil {
			t.Fatal(err)
		}
	}
	fail(1, false)
	w.complete(w.deliver(1), succeed("reboot"))
	fail(2, false)
	fail(2, false)
	fail(2, true)
	w.end()
	w.expect("failed inconsistent", `SELECT o.status || ' ' || c.status FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	w.expect("0", `SELECT count(*)::text FROM tasks WHERE action IN ('create', 'delete')`)
	w.walked()
}
