package work_test

import (
	"context"
	"testing"
	"time"

	"loom/app/loom"
)

// TestNextTasksBeginWithTheEndOfOthers: with workers to spare River delivers the first
// task of a chain only.
func TestNextTasksBeginWithTheEndOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	cluster, nodes := w.cluster(w.tenant, 1)
	runner := newRunner(nil)
	w.scheduler()
	w.provisioner(runner, 5)
	plan := layered(nodes, 6, 1, 1, false)
	// Deliveries wake the queue; what is handed over does not.
	w.exec(`CREATE TABLE delivered (id bigint)`)
	w.exec(`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO delivered VALUES (new.id); RETURN NULL; END'`)
	w.exec(`CREATE TRIGGER note AFTER UPDATE ON river_job FOR EACH ROW WHEN (new.state = 'available' AND old.state = 'pending') EXECUTE FUNCTION note()`)
	op := w.insert(w.tenant, cluster, plan)
	w.ends(op, 20*time.Second, loom.OperationComplete)
	inOrder(t, plan, runner)
	if n := w.count(`SELECT count(*) FROM delivered`); n != 1 {
		t.Errorf("%d tasks were delivered, want the first", n)
	}
	if n := w.count(`SELECT count(*) FROM attempts WHERE status = 'complete' AND number = 1`); n != 6 {
		t.Errorf("%d attempts, want 6", n)
	}
}

// TestLostAnswerLosesNoTask: what began without the process hearing of it is found and
// run.
func TestLostAnswerLosesNoTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	cluster, nodes := w.cluster(w.tenant, 2)
	goOn := make(chan struct{})
	runner := newRunner(func(ctx context.Context, spec *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		if spec.Ref.Number == 1 {
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		}
		return loom.TaskResult{}
	})
	op := w.insert(w.tenant, cluster, layered(nodes, 1, 2, 0, false))
	w.exec(`UPDATE river_job SET state = 'pending' WHERE id = (SELECT river_job_id FROM tasks WHERE number = 2)`)
	w.provisioner(runner, 5)
	w.eventually(20*time.Second, "the first task", func() bool { return runner.started() == 1 })
	// The second one begins there, and the answer gets lost together with that to the
	// end of the first.
	if n := w.count(`SELECT count(*) FROM loom_start(ARRAY(SELECT id FROM tasks WHERE number = 2), '{1}', (SELECT process_id FROM tasks WHERE number = 1))`); n != 1 {
		t.Fatal("the second task did not begin")
	}
	busy, err := w.db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Rollback() //nolint:errcheck // it holds a lock only
	if _, err := busy.Exec(`SELECT 1 FROM operations FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	const waiting = ` FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FROM loom_finish(%'`
	w.eventually(20*time.Second, "the end of the first task", func() bool { return w.count(`SELECT count(*)`+waiting) == 1 })
	w.exec(`SELECT pg_terminate_backend(pid)` + waiting)
	if err := busy.Rollback(); err != nil {
		t.Fatal(err)
	}
	w.eventually(20*time.Second, "the second task", func() bool { return runner.started() == 2 })
	w.scheduler()
	w.ends(op, 20*time.Second, loom.OperationComplete)
	if n := w.count(`SELECT count(*) FROM attempts`); n != 2 {
		t.Errorf("%d attempts, want 2", n)
	}
}
