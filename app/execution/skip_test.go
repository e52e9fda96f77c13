package execution_test

import (
	"errors"
	"strings"
	"testing"

	"loom/app/loom"
)

// An administrator leaves out what keeps failing; those behind it go on.
func TestSkip(t *testing.T) {
	t.Parallel()
	w := watched(t, 2)
	op := w.plan(loom.ClusterCreate, making...)
	admin := loom.Actor{Tenant: "t1", User: "root", Role: loom.RoleAdmin}
	task := func(number int) loom.TaskRef { return loom.TaskRef{Operation: op.Ref, Number: number} }
	refused := func(err error, kind loom.Kind, says string) {
		t.Helper()
		if e := loom.AsError(err); err == nil || e.Kind != kind || !strings.Contains(e.Message, says) {
			t.Errorf("%v, want %s with %q", err, kind, says)
		}
	}
	w.complete(w.deliver(1), succeed("create"))
	refused(w.ops.Skip(ctx, admin, task(2), "x"), loom.Conflict, "is not paused")
	running := w.deliver(2)
	if _, err := w.ops.Pause(ctx, ana, op.Ref); err != nil {
		t.Fatal(err)
	}
	refused(w.ops.Skip(ctx, ana, task(2), "x"), loom.Forbidden, "")
	refused(w.ops.Skip(ctx, loom.Actor{Tenant: "t2", User: "root", Role: loom.RoleAdmin}, task(2), "x"), loom.NotFound, "")
	refused(w.ops.Skip(ctx, admin, task(99), "x"), loom.NotFound, "no task 99")
	refused(w.ops.Skip(ctx, admin, task(2), " "), loom.Invalid, "")
	refused(w.ops.Skip(ctx, admin, task(2), "x"), loom.Conflict, "is running")
	refused(w.ops.Skip(ctx, admin, task(3), "x"), loom.Conflict, "still waits")
	refused(w.ops.Skip(ctx, admin, task(1), "x"), loom.Conflict, "complete already")
	w.complete(running, loom.TaskResult{})
	for _, number := range []int{3, 4, 5} {
		if err := w.ops.Skip(ctx, admin, task(number), "by hand"); err != nil {
			t.Fatalf("task %d: %v", number, err)
		}
	}
	refused(w.ops.Skip(ctx, admin, task(3), "x"), loom.Conflict, "skipped already")
	w.expect("skipped root by hand cancelled", `SELECT t.status || ' ' || t.skipped_by || ' ' || t.skip_reason || ' ' || r.state FROM tasks t JOIN river_job r ON r.id = t.river_job_id WHERE t.number = 4`)
	w.expect("ready", `SELECT state FROM nodes WHERE number = 1000`)
	w.expect("true", `SELECT (task_id IS NULL)::text FROM nodes WHERE number = 1000`)
	w.expect("3", `SELECT count(*)::text FROM audit WHERE verb = 'skip' AND kind = 'task' AND after->>'reason' = 'by hand'`)
	if _, err := w.ops.Resume(ctx, ana, op.Ref); err != nil {
		t.Fatal(err)
	}
	w.runAll()
	w.expect("complete active", `SELECT o.status || ' ' || c.status FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	w.walked()
}

// The last tasks may be those that are left out, and one that waits for its next try.
func TestSkipTheLastTask(t *testing.T) {
	t.Parallel()
	w := watched(t, 1)
	op := w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionInstall)
	admin := loom.Actor{Tenant: "t1", User: "root", Role: loom.RoleAdmin}
	w.complete(w.deliver(1), succeed("create"))
	w.fail(w.deliver(2), loom.TaskResult{Status: 1, Message: "not yet"})
	w.expect("ready scheduled", `SELECT t.status || ' ' || r.state FROM tasks t JOIN river_job r ON r.id = t.river_job_id WHERE t.number = 2`)
	if _, err := w.ops.Pause(ctx, ana, op.Ref); err != nil {
		t.Fatal(err)
	}
	if err := w.ops.Skip(ctx, admin, loom.TaskRef{Operation: op.Ref, Number: 2}, "good enough"); err != nil {
		t.Fatal(err)
	}
	w.end()
	w.expect("paused", `SELECT status FROM operations`)
	if _, err := w.ops.Resume(ctx, ana, op.Ref); err != nil {
		t.Fatal(err)
	}
	w.end()
	w.expect("complete", `SELECT status FROM operations`)
	// The delete of a machine that is gone by hand.
	w.plan(loom.ClusterDelete, loom.ActionDelete)
	w.exec(`UPDATE tasks SET number = 99 WHERE action = 'delete'`)
	last := loom.TaskRef{Operation: loom.OperationRef{Cluster: w.cluster, Number: 2}, Number: 99}
	if _, err := w.ops.Pause(ctx, ana, last.Operation); err != nil {
		t.Fatal(err)
	}
	if err := w.ops.Skip(ctx, admin, last, "it was removed by hand"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.ops.Resume(ctx, ana, last.Operation); err != nil {
		t.Fatal(err)
	}
	w.end()
	w.expect("terminated deleted {}", `SELECT c.status || ' ' || n.state || ' ' || n.results::text FROM clusters c JOIN nodes n ON n.cluster_id = c.id`)
	if err := w.ops.Skip(ctx, admin, last, "x"); !errors.Is(err, loom.Conflict) {
		t.Errorf("after the end: %v", err)
	}
	w.walked()
}
