package work_test

import (
	"context"
	"testing"
	"time"

	"loom/app/loom"
)

// TestToldToDrain tells a provisioner to take nothing new: what runs there goes on,
// all else runs elsewhere, until it is told to go on.
func TestToldToDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	cluster, nodes := w.cluster(w.tenant, 6)
	plan := layered(nodes, 5, 6, 2, false)
	hold := make(chan struct{})
	runner := newRunner(func(ctx context.Context, _ *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		select {
		case <-hold:
			return loom.TaskResult{}
		case <-ctx.Done():
			return loom.TaskResult{Status: -1, Message: "interrupted", Interrupted: true}
		}
	})
	w.scheduler()
	w.provisioner(runner, 3)
	op := w.insert(w.tenant, cluster, plan)
	w.eventually(20*time.Second, "three attempts", func() bool { return runner.started() == 3 })
	first := loom.ProcessID(w.text(`SELECT id FROM processes WHERE kind = 'provisioner'`))

	common, db := w.common(4)
	defer db.Close()
	super := loom.Actor{Tenant: loom.SuperTenant, User: "admin", Role: loom.RoleSuperadmin}
	drained, err := common.Processes.Drain(t.Context(), super, first)
	if err != nil || !drained.Draining || drained.Ending || len(drained.Workers) != 0 || drained.Free() != 3 {
		t.Fatalf("%+v, %v", drained, err)
	}
	// A second renewal begins only after the first was acted upon.
	for range 2 {
		before := w.text(`SELECT expires_at::text FROM processes WHERE id = $1`, first)
		w.eventually(10*time.Second, "a renewal", func() bool { return w.text(`SELECT expires_at::text FROM processes WHERE id = $1`, first) != before })
	}
	second := w.provisioner(runner, 3)
	close(hold)
	w.ends(op, 30*time.Second, loom.OperationComplete)
	inOrder(t, plan, runner)
	if n := w.count(`SELECT count(*) FROM attempts WHERE process_id = $1`, first); n != 3 {
		t.Errorf("%d attempts ran in the drained process, want 3", n)
	}
	if n := w.count(`SELECT count(*) FROM attempts WHERE status <> 'complete'`); n != 0 {
		t.Errorf("%d attempts were cut off", n)
	}
	if n := w.count(`SELECT count(*) FROM worker_assignments WHERE process_id = $1`, first); n != 0 {
		t.Errorf("%d assignments to the drained process", n)
	}

	second.stop(t)
	if _, err := common.Processes.Resume(t.Context(), super, first); err != nil {
		t.Fatal(err)
	}
	again, nodes := w.cluster(w.tenant, 2)
	w.ends(w.insert(w.tenant, again, layered(nodes, 2, 2, 1, false)), 30*time.Second, loom.OperationComplete)
	if n := w.count(`SELECT count(*) FROM attempts WHERE process_id = $1`, first); n != 3+4 {
		t.Errorf("%d attempts in the process that goes on", n)
	}
}
