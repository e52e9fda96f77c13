package work_test

import (
	"context"
	"testing"
	"time"

	"loom/app/loom"
)

// TestIdleProcessFillsItself: of a wide operation River brings no more than its reserve; a
// process with workers for all of it has them at work nevertheless, before any task ends and
// without a scheduler.
func TestIdleProcessFillsItself(t *testing.T) {
	t.Parallel()
	const nodes = 20
	w := newWorld(t, nodes)
	w.exec(`CREATE OR REPLACE FUNCTION loom_reserve(p_tenant text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 3'`)
	cluster, ids := w.cluster(w.tenant, nodes)
	all := make(chan struct{})
	runner := newRunner(func(ctx context.Context, _ *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		select {
		case <-all:
		case <-ctx.Done():
		}
		return loom.TaskResult{}
	})
	op := w.insert(w.tenant, cluster, layered(ids, 1, nodes, 0, false))
	if n := w.count(`SELECT count(*) FROM river_job WHERE kind = 'run_task' AND state = 'available'`); n != 3 {
		t.Fatalf("River brings %d tasks, want the reserve of 3", n)
	}
	w.provisioner(runner, nodes)
	w.eventually(20*time.Second, "all tasks at work", func() bool { return runner.started() == nodes })
	close(all)
	w.scheduler()
	w.ends(op, 20*time.Second, loom.OperationComplete)
	if n := w.count(`SELECT count(*) FROM attempts WHERE status = 'complete' AND number = 1`); n != nodes {
		t.Errorf("%d attempts, want %d", n, nodes)
	}
}
