package work_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"loom/app/loom"
	"loom/jobs/work"
)

func TestPlanRunsEveryTaskOnceInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 900)
	cluster, nodes := w.cluster(w.tenant, 500)
	plan := layered(nodes, 10, 1000, 3, true)
	runner := newRunner(nil)
	w.scheduler()
	w.provisioner(runner, 500)
	w.provisioner(runner, 300)
	w.provisioner(runner, 200)
	op := w.insert(w.tenant, cluster, plan)
	w.ends(op, 3*time.Minute, loom.OperationComplete)
	inOrder(t, plan, runner)
	if n := w.count(`SELECT count(*) FROM tasks WHERE status <> 'complete'`); n != 0 {
		t.Errorf("%d tasks or gates are not complete", n)
	}
	if n := w.count(`SELECT count(*) FROM nodes WHERE task_id IS NOT NULL OR state <> 'ready'`); n != 0 {
		t.Errorf("%d nodes hold a task or are not ready", n)
	}
	if s := w.text(`SELECT status FROM clusters WHERE id = $1`, cluster); s != "active" {
		t.Errorf("the cluster is %s", s)
	}
	w.eventually(10*time.Second, "River jobs to be completed", func() bool {
		return w.count(`SELECT count(*) FROM river_job WHERE kind = 'run_task' AND state <> 'completed'`) == 0
	})
}

func TestEmptyPlanEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	cluster, _ := w.cluster(w.tenant, 0)
	w.scheduler()
	op := w.insert(w.tenant, cluster, loom.Plan{Action: loom.ClusterDelete, Gates: []loom.Gate{{}}})
	w.ends(op, 20*time.Second, loom.OperationComplete)
	if s := w.text(`SELECT status FROM clusters WHERE id = $1`, cluster); s != "terminated" {
		t.Errorf("the cluster is %s", s)
	}
}

func TestLimitersKeepATenantsWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	cluster, nodes := w.cluster(w.tenant, 20)
	plan := layered(nodes, 2, 20, 2, false)
	runner := newRunner(func(ctx context.Context, _ *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		select {
		case <-time.After(30 * time.Millisecond):
		case <-ctx.Done():
		}
		return loom.TaskResult{}
	})
	w.scheduler()
	w.provisioner(runner, 10)
	w.provisioner(runner, 10)
	w.eventually(10*time.Second, "two provisioners with workers", func() bool {
		return w.count(`SELECT coalesce(sum(workers), 0) FROM worker_assignments`) == 3 && w.count(`SELECT count(DISTINCT process_id) FROM worker_assignments`) == 2
	})
	// A changed count acts once its process has heard of it, at the next renewal.
	since := w.text(`SELECT max(expires_at)::text FROM processes`)
	w.eventually(10*time.Second, "renewals", func() bool {
		return w.count(`SELECT count(*) FROM processes WHERE kind = 'provisioner' AND expires_at > $1::timestamptz + interval '150 milliseconds'`, since) == 2
	})
	op := w.insert(w.tenant, cluster, plan)
	w.ends(op, time.Minute, loom.OperationComplete)
	inOrder(t, plan, runner)
	if runner.most > 3 {
		t.Errorf("%d tasks ran at once, the tenant has 3 workers", runner.most)
	}
}

// heldQueues counts the queues that the dispatcher holds, from what it logs.
type heldQueues struct {
	slog.Handler
	held atomic.Int32
}

func (h *heldQueues) Enabled(context.Context, slog.Level) bool { return true }

func (h *heldQueues) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h *heldQueues) Handle(_ context.Context, r slog.Record) error {
	switch r.Message {
	case "queue added":
		h.held.Add(1)
	case "queue removed":
		h.held.Add(-1)
	}
	return nil
}

func TestQueuesAreHeldOnlyWhileTheyHaveWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	handler := &heldQueues{Handler: quiet().Handler()}
	w.scheduler()
	w.provisioner(newRunner(nil), 5, func(p *work.Provisioner) {
		p.Logger, p.QueueIdle, p.Sweep = slog.New(handler), 500*time.Millisecond, 50*time.Millisecond
	})
	for range 2 {
		cluster, nodes := w.cluster(w.tenant, 3)
		op := w.insert(w.tenant, cluster, layered(nodes, 2, 3, 2, false))
		w.eventually(20*time.Second, "the queue is held", func() bool { return handler.held.Load() == 1 })
		w.ends(op, 20*time.Second, loom.OperationComplete)
		w.eventually(20*time.Second, "the queue is let go", func() bool { return handler.held.Load() == 0 })
	}
	// Without workers nothing runs; with workers again it goes on.
	w.exec(`UPDATE tenants SET workers = 0`)
	w.eventually(20*time.Second, "no workers", func() bool { return w.count(`SELECT count(*) FROM worker_assignments`) == 0 })
	cluster, nodes := w.cluster(w.tenant, 3)
	op := w.insert(w.tenant, cluster, layered(nodes, 2, 3, 2, false))
	w.exec(`UPDATE tenants SET workers = 2`)
	w.ends(op, 20*time.Second, loom.OperationComplete)
}
