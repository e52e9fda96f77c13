package work_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/processes"
	"loom/jobs"
)

var super = loom.Actor{Tenant: loom.SuperTenant, TenantName: "superadmin", User: "admin", Role: loom.RoleSuperadmin}

func (w *world) pause(pause bool) {
	w.t.Helper()
	f, queue := processes.New(w.db.DB, times), jobs.TenantQueue(w.tenant)
	act := f.ResumeQueue
	if pause {
		act = f.PauseQueue
	}
	if err := act(context.Background(), super, queue); err != nil {
		w.t.Fatal(err)
	}
}

// TestPausedQueueBeginsNothing: what River delivers does not begin while the queue of a tenant is paused; afterwards all of it does.
func TestPausedQueueBeginsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	cluster, nodes := w.cluster(w.tenant, 2)
	goOn := make(chan struct{})
	var first sync.Once
	runner := newRunner(func(ctx context.Context, _ *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		first.Do(func() {
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		})
		return loom.TaskResult{}
	})
	w.scheduler()
	w.provisioner(runner, 1)
	plan := layered(nodes, 4, 2, 1, false)
	op := w.insert(w.tenant, cluster, plan)
	w.eventually(20*time.Second, "the first task", func() bool { return runner.started() == 1 })
	w.pause(true)
	w.pause(true) // again is no error
	w.eventually(20*time.Second, "no workers", func() bool { return w.count(`SELECT count(*) FROM worker_assignments`) == 0 })
	close(goOn)
	w.eventually(20*time.Second, "the end of the first task", func() bool { return w.count(`SELECT count(*) FROM tasks WHERE status = 'complete' AND NOT gate`) == 1 })
	if n := w.count(`SELECT count(*) FROM attempts`); n != 1 {
		t.Errorf("%d attempts began while the queue is paused, want the first only", n)
	}
	// A delivery that was under way already begins nothing either, and goes back.
	w.exec(`UPDATE river_job SET state = 'running', attempt = 7, attempted_at = now(), attempted_by = '{late}' WHERE id IN (SELECT river_job_id FROM tasks WHERE status = 'ready')`)
	w.exec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('late', 'provisioner', 'h', now() + interval '1 hour')`)
	if n := w.count(`SELECT count(*) FROM loom_start(ARRAY(SELECT id FROM tasks WHERE status = 'ready'), '{7, 7}', 'late')`); n != 0 {
		t.Errorf("%d late deliveries began something", n)
	}
	w.exec(`DELETE FROM processes WHERE id = 'late'`)
	if n := w.count(`SELECT count(*) FROM river_job WHERE state = 'running' AND kind = 'run_task'`); n != 0 {
		t.Errorf("%d River jobs did not go back", n)
	}
	if got := w.status(op); got != "running" {
		t.Errorf("the operation is %s", got)
	}
	w.pause(false)
	w.ends(op, 20*time.Second, loom.OperationComplete)
	inOrder(t, plan, runner)
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'queue'`); n != 2 {
		t.Errorf("%d entries in the audit, want a pause and a resume", n)
	}
}

// TestPausingLosesNothing: pauses amid much work stop it each time and lose none of it.
func TestPausingLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8)
	cluster, nodes := w.cluster(w.tenant, 20)
	runner := newRunner(func(context.Context, *loom.TaskSpec, loom.Sink) loom.TaskResult { return loom.TaskResult{} })
	w.scheduler()
	w.provisioner(runner, 4)
	w.provisioner(runner, 4)
	plan := layered(nodes, 20, 20, 2, false)
	op := w.insert(w.tenant, cluster, plan)
	const begun = `SELECT count(*) FROM attempts`
	for range 5 {
		before := w.count(begun)
		w.eventually(20*time.Second, "progress", func() bool { return w.count(begun) > before || w.status(op) == "complete" })
		w.pause(true)
		// What was under way in that moment still comes.
		now := w.text(`SELECT clock_timestamp()::text`)
		w.eventually(20*time.Second, "the end of earlier transactions", func() bool {
			return w.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND xact_start < $1::timestamptz`, now) == 0
		})
		at := w.count(begun)
		w.eventually(20*time.Second, "quiet", func() bool { return w.count(`SELECT count(*) FROM tasks WHERE status = 'running'`) == 0 })
		if n := w.count(begun); n != at {
			t.Errorf("%d attempts began while the queue was paused", n-at)
		}
		w.pause(false)
	}
	w.ends(op, 60*time.Second, loom.OperationComplete)
	inOrder(t, plan, runner)
	if n := w.count(`SELECT count(*) FROM (SELECT 1 FROM attempts GROUP BY task_id HAVING count(*) > 1) AS twice`); n != 0 {
		t.Errorf("%d tasks were tried twice", n)
	}
	// All of them are in the figures of the last hour.
	pace, err := processes.New(w.db.DB, processes.Options{}).QueueRates(context.Background(), super)
	done, waited, ran := 0, 0.0, 0.0
	for _, p := range pace {
		done, waited, ran = done+p.Tasks, max(waited, p.Wait95), max(ran, p.Run50)
		if p.Wait50 > p.Wait95 || p.Run50 > p.Run95 {
			t.Errorf("the middle is above the 95th of a hundred: %+v", p)
		}
	}
	if err != nil || done != 400 || waited <= 0 || ran <= 0 || waited > 300 {
		t.Errorf("%d tasks were done, waited up to %f s, ran %f s; %v", done, waited, ran, err)
	}
}

// TestPausedControlQueue: River's own pause holds what belongs to no tenant.
func TestPausedControlQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	ctx, f := context.Background(), processes.New(w.db.DB, times)
	if err := f.PauseQueue(ctx, super, jobs.ControlQueue); err != nil { // nobody holds it yet
		t.Fatal(err)
	}
	w.scheduler()
	w.exec(`INSERT INTO river_job (state, queue, kind, args, max_attempts) VALUES ('available', 'control', 'trim_events', '{}', 25)`)
	w.exec(`INSERT INTO river_job (state, queue, kind, args, max_attempts) VALUES ('available', 'probe', 'trim_events', '{}', 25)`)
	w.eventually(20*time.Second, "the scheduler", func() bool { return w.count(`SELECT count(*) FROM processes`) == 1 })
	q, err := f.FindQueue(ctx, super, jobs.ControlQueue)
	if err != nil || !q.IsPaused() || q.Oldest.IsZero() || q.Counts["available"] == 0 {
		t.Errorf("the queue is %+v, %v", q, err)
	}
	if n := w.count(`SELECT count(*) FROM river_job WHERE queue = 'control' AND state IN ('running', 'completed')`); n != 0 {
		t.Errorf("%d River jobs of a paused queue began", n)
	}
	if err := f.ResumeQueue(ctx, super, jobs.ControlQueue); err != nil {
		t.Fatal(err)
	}
	w.eventually(20*time.Second, "the work goes on", func() bool {
		return w.count(`SELECT count(*) FROM river_job WHERE kind = 'trim_events' AND queue = 'control' AND state <> 'completed'`) == 0
	})
	for _, name := range []string{"", "nothing", "tenant_", "tenant_nobody"} {
		if err := f.PauseQueue(ctx, super, name); !errors.Is(err, loom.NotFound) {
			t.Errorf("pausing %q: %v", name, err)
		}
	}
	admin := super
	admin.Tenant, admin.Role = w.tenant, loom.RoleAdmin
	if err := f.PauseQueue(ctx, admin, jobs.TenantQueue(w.tenant)); !errors.Is(err, loom.Forbidden) {
		t.Errorf("an administrator pauses: %v", err)
	}
}
