package work_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"loom/app/loom"
	"loom/jobs/work"
	"loom/provisioner"
)

func TestKilledProvisionersTasksRunElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 50)
	cluster, nodes := w.cluster(w.tenant, 5)
	plan := layered(nodes, 2, 5, 2, false)
	w.scheduler()
	doomed := w.child("stuck")
	doomed.says(t, "up")
	w.eventually(10*time.Second, "workers of the first provisioner", func() bool { return w.count(`SELECT count(*) FROM worker_assignments`) == 1 })
	op := w.insert(w.tenant, cluster, plan)
	doomed.says(t, "task")
	w.eventually(10*time.Second, "five running tasks", func() bool { return w.count(`SELECT count(*) FROM tasks WHERE status = 'running'`) == 5 })
	doomed.kill()
	runner := newRunner(nil)
	w.provisioner(runner, 50)
	w.ends(op, 30*time.Second, loom.OperationComplete)
	inOrder(t, plan, runner)
	if n := w.count(`SELECT count(*) FROM attempts WHERE status = 'interrupted'`); n != 5 {
		t.Errorf("%d attempts were interrupted, want 5", n)
	}
	if n := w.count(`SELECT count(*) FROM attempts WHERE status = 'complete'`); n != 10 {
		t.Errorf("%d attempts complete, want 10", n)
	}
}

func TestKilledSchedulerIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 50)
	cluster, nodes := w.cluster(w.tenant, 5)
	plan := layered(nodes, 3, 5, 2, true)
	doomed := w.child("scheduler")
	doomed.says(t, "up")
	w.eventually(10*time.Second, "the scheduler", func() bool { return w.count(`SELECT count(*) FROM processes WHERE kind = 'scheduler'`) == 1 })
	release := make(chan struct{})
	runner := newRunner(func(ctx context.Context, _ *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		<-release
		return loom.TaskResult{}
	})
	w.provisioner(runner, 50)
	op := w.insert(w.tenant, cluster, plan)
	w.eventually(20*time.Second, "running tasks", func() bool { return runner.started() == 5 })
	doomed.kill()
	close(release)
	w.eventually(20*time.Second, "the tasks complete", func() bool { return w.count(`SELECT count(*) FROM tasks WHERE status = 'complete' AND NOT gate`) == 15 })
	if s := w.status(op); s != "running" {
		t.Fatalf("nobody can have ended the operation, but it is %s", s)
	}
	w.scheduler()
	w.ends(op, 30*time.Second, loom.OperationComplete)
	inOrder(t, plan, runner)
}

func TestLateResultIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	cluster, nodes := w.cluster(w.tenant, 1)
	plan := layered(nodes, 2, 1, 1, false)
	w.scheduler()
	release, stopped := make(chan struct{}), make(chan error, 1)
	var calls atomic.Int32
	frozen := newRunner(func(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) loom.TaskResult {
		// The process begins again under a new id and may be given the next delivery:
		// only the first attempt is late.
		if calls.Add(1) > 1 {
			return loom.TaskResult{}
		}
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		<-release
		if err := sink.Fact(map[string]any{"late": true}); !errors.Is(err, loom.Conflict) {
			t.Errorf("a late fact was answered %v", err)
		}
		return loom.TaskResult{Result: map[string]any{"late": true}}
	})
	first := w.provisioner(frozen, 10)
	op := w.insert(w.tenant, cluster, plan)
	w.eventually(20*time.Second, "the first attempt", func() bool { return frozen.started() == 1 })
	// The lease is over as far as everybody else can see.
	w.exec(`DELETE FROM processes WHERE kind = 'provisioner'`)
	if cause := <-stopped; !errors.Is(cause, provisioner.ErrInterrupted) {
		t.Errorf("the attempt was stopped by %v", cause)
	}
	runner := newRunner(nil)
	w.provisioner(runner, 10)
	w.ends(op, 30*time.Second, loom.OperationComplete)
	close(release)
	first.stop(t)
	if n := w.count(`SELECT count(*) FROM nodes WHERE results ? 'late'`); n != 0 {
		t.Error("the late result was merged")
	}
	if n := w.count(`SELECT count(*) FROM attempts WHERE status = 'complete'`); n != 2 {
		t.Errorf("%d attempts are complete, want 2", n)
	}
}

func TestLostLeasesUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 60)
	cluster, nodes := w.cluster(w.tenant, 30)
	plan := layered(nodes, 8, 30, 3, true)
	w.scheduler()
	w.scheduler()
	runner := newRunner(func(ctx context.Context, spec *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		select {
		case <-time.After(time.Duration(spec.Ref.Number%7) * 5 * time.Millisecond):
			return loom.TaskResult{}
		case <-ctx.Done():
			return loom.TaskResult{Status: -1, Interrupted: true}
		}
	})
	w.provisioner(runner, 20)
	w.provisioner(runner, 20)
	op := w.insert(w.tenant, cluster, plan)
	for range 4 {
		begun := runner.started()
		w.eventually(30*time.Second, "progress", func() bool { return runner.started() >= begun+30 || loom.OperationStatus(w.status(op)).Final() })
		w.exec(`DELETE FROM processes WHERE id = (SELECT id FROM processes WHERE kind = 'provisioner' ORDER BY random() LIMIT 1)`)
	}
	w.ends(op, time.Minute, loom.OperationComplete)
	if n := w.count(`SELECT count(*) FROM (SELECT task_id FROM attempts WHERE status = 'complete' GROUP BY task_id HAVING count(*) = 1) AS once`); n != len(plan.Tasks) {
		t.Errorf("%d tasks completed exactly once, want %d", n, len(plan.Tasks))
	}
	early := w.count(`SELECT count(*) FROM task_edges e
		JOIN attempts a ON a.task_id = e.from_task AND a.status = 'complete' JOIN attempts b ON b.task_id = e.to_task AND b.status = 'complete'
		WHERE b.started_at < a.ended_at`)
	if early != 0 {
		t.Errorf("%d tasks began before one they depend on was over", early)
	}
	if n := w.count(`SELECT count(*) FROM attempts WHERE status = 'running'`); n != 0 {
		t.Errorf("%d attempts still run", n)
	}
}

func TestFailureDropsTheRestAndEndsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 50)
	cluster, nodes := w.cluster(w.tenant, 10)
	plan := layered(nodes, 4, 10, 3, true)
	no := false
	runner := newRunner(func(_ context.Context, spec *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		if spec.Ref.Number == 13 {
			return loom.TaskResult{Status: 7, Message: "no route", Retryable: &no, Stderr: "boom"}
		}
		return loom.TaskResult{}
	})
	w.scheduler()
	w.scheduler()
	w.provisioner(runner, 50)
	op := w.insert(w.tenant, cluster, plan)
	w.ends(op, 30*time.Second, loom.OperationFailed)
	if n := w.count(`SELECT count(*) FROM tasks WHERE status NOT IN ('complete', 'failed', 'dropped')`); n != 0 {
		t.Errorf("%d tasks are not over", n)
	}
	if n := w.count(`SELECT count(*) FROM tasks WHERE status = 'failed'`); n != 1 {
		t.Errorf("%d tasks failed, want 1", n)
	}
	if s := w.text(`SELECT status FROM clusters WHERE id = $1`, cluster); s != "incomplete" {
		t.Errorf("the cluster is %s", s)
	}
	// River closes the rows of deliveries that it let go of a moment later.
	w.eventually(10*time.Second, "the end of all River jobs", func() bool {
		return w.count(`SELECT count(*) FROM river_job WHERE kind = 'run_task' AND state NOT IN ('completed', 'cancelled', 'discarded')`) == 0
	})
	if n := w.count(`SELECT revision FROM clusters WHERE id = $1`, cluster); n != 2 {
		t.Errorf("the revision is %d: the operation ended not exactly once", n)
	}
	want := "Bootstrap on node 1002 failed, and trying again would not help: no route"
	if got := w.text(`SELECT message FROM operations`); got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestRetryWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	cluster, nodes := w.cluster(w.tenant, 1)
	plan := layered(nodes, 1, 1, 0, false)
	tries := make(chan int, 10)
	runner := newRunner(func(_ context.Context, spec *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		tries <- spec.Attempt
		if len(tries) < 3 {
			return loom.TaskResult{Status: 1, Message: "not yet"}
		}
		return loom.TaskResult{}
	})
	w.scheduler()
	w.provisioner(runner, 5)
	op := w.insert(w.tenant, cluster, plan)
	for try, least := range []float64{5, 30} {
		w.eventually(20*time.Second, "a retry that waits", func() bool {
			return w.count(`SELECT count(*) FROM river_job WHERE state = 'scheduled' AND attempt = $1`, try+1) == 1
		})
		var wait float64
		if err := w.db.Get(&wait, `SELECT extract(epoch FROM r.scheduled_at - a.ended_at) FROM river_job r, attempts a WHERE r.kind = 'run_task' AND a.number = r.attempt`); err != nil {
			t.Fatal(err)
		}
		if wait < least-1 || wait > least*1.2+1 {
			t.Errorf("try %d waits %.1f s, want %.0f to %.0f", try+2, wait, least, least*1.2)
		}
		w.exec(`UPDATE river_job SET scheduled_at = now() WHERE state = 'scheduled'`)
	}
	w.ends(op, 20*time.Second, loom.OperationComplete)
	if n := w.count(`SELECT count(*) FROM attempts WHERE status = 'failed'`); n != 2 {
		t.Errorf("%d failed attempts, want 2", n)
	}
}

func TestPauseAndResumeUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 40)
	cluster, nodes := w.cluster(w.tenant, 40)
	plan := layered(nodes, 10, 40, 3, true)
	runner := newRunner(nil)
	w.scheduler()
	w.provisioner(runner, 20)
	w.provisioner(runner, 20)
	common, db := w.common(4)
	defer db.Close()
	actor := loom.Actor{Tenant: w.tenant, User: "ana", Role: loom.RoleUser}
	op := w.insert(w.tenant, cluster, plan)
	paused := 0
	for i := 0; !loom.OperationStatus(w.status(op)).Final(); i++ {
		now, err := common.Operations.Pause(context.Background(), actor, op.Ref)
		if err != nil {
			t.Fatal(err)
		}
		if now.Status == loom.OperationPaused {
			paused++
			at := w.text(`SELECT clock_timestamp()::text`)
			w.eventually(10*time.Second, "running tasks to finish", func() bool { return w.count(`SELECT count(*) FROM tasks WHERE status = 'running'`) == 0 })
			if n := w.count(`SELECT count(*) FROM attempts WHERE started_at > $1::timestamptz`, at); n != 0 {
				t.Fatalf("%d attempts began after the pause", n)
			}
			if _, err := common.Operations.Resume(context.Background(), actor, op.Ref); err != nil {
				t.Fatal(err)
			}
		}
		begun := runner.started()
		w.eventually(30*time.Second, "progress after resuming", func() bool {
			return runner.started() > begun+20 || loom.OperationStatus(w.status(op)).Final()
		})
	}
	w.ends(op, time.Second, loom.OperationComplete)
	inOrder(t, plan, runner)
	if paused == 0 {
		t.Error("it was never paused")
	}
}

func TestAbortStopsRunningAttempts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	cluster, nodes := w.cluster(w.tenant, 3)
	plan := layered(nodes, 3, 3, 2, false)
	runner := newRunner(func(ctx context.Context, _ *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		<-ctx.Done()
		return loom.TaskResult{Status: -1, Message: "aborted", Aborted: errors.Is(context.Cause(ctx), provisioner.ErrAborted)}
	})
	w.scheduler()
	w.provisioner(runner, 10)
	common, db := w.common(4)
	defer db.Close()
	op := w.insert(w.tenant, cluster, plan)
	w.eventually(20*time.Second, "three attempts", func() bool { return runner.started() == 3 })
	stranger := loom.Actor{Tenant: w.tenant, User: "eve", Role: loom.RoleUser}
	if _, err := common.Operations.Abort(context.Background(), stranger, op.Ref); !errors.Is(err, loom.NotFound) {
		t.Errorf("a stranger's abort was answered %v", err)
	}
	actor := loom.Actor{Tenant: w.tenant, User: "ana", Role: loom.RoleUser}
	if _, err := common.Operations.Abort(context.Background(), actor, op.Ref); err != nil {
		t.Fatal(err)
	}
	w.ends(op, 20*time.Second, loom.OperationAborted)
	if n := w.count(`SELECT count(*) FROM attempts WHERE status = 'aborted'`); n != 3 {
		t.Errorf("%d attempts were aborted, want 3", n)
	}
	if got := w.text(`SELECT message FROM operations`); got != "Aborted by ana." {
		t.Errorf("message %q", got)
	}
}

func TestDrainInterruptsWithoutCounting(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	cluster, nodes := w.cluster(w.tenant, 2)
	plan := layered(nodes, 1, 2, 0, false)
	stubborn := newRunner(func(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) loom.TaskResult {
		sink.Log("stdout", fmt.Sprintf("task %d waits", spec.Ref.Number))
		<-ctx.Done()
		return loom.TaskResult{Status: -1, Message: "interrupted", Interrupted: true}
	})
	w.scheduler()
	hurry := make(chan struct{})
	first := w.provisioner(stubborn, 10, func(p *work.Provisioner) { p.DrainTimeout, p.Hurry = time.Hour, hurry })
	op := w.insert(w.tenant, cluster, plan)
	w.eventually(20*time.Second, "two attempts", func() bool { return stubborn.started() == 2 })
	runner := newRunner(nil)
	w.provisioner(runner, 10)
	first.kill() // the first signal: it drains
	w.eventually(10*time.Second, "a draining process", func() bool { return w.count(`SELECT count(*) FROM processes WHERE draining`) == 1 })
	if n := w.count(`SELECT count(*) FROM tasks WHERE status = 'running'`); n != 2 {
		t.Fatalf("%d tasks run while draining, want 2", n)
	}
	close(hurry) // the second one
	first.stop(t)
	w.ends(op, 20*time.Second, loom.OperationComplete)
	if n := w.count(`SELECT count(*) FROM attempts WHERE status = 'interrupted'`); n != 2 {
		t.Errorf("%d attempts were interrupted, want 2", n)
	}
	if n := w.count(`SELECT count(*) FROM task_logs WHERE text LIKE 'task % waits' AND seq = 1`); n != 2 {
		t.Errorf("%d logs kept their line, want 2", n)
	}
}

func TestUnrecordedResultIsReplayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	cluster, nodes := w.cluster(w.tenant, 1)
	plan := layered(nodes, 1, 1, 0, false)
	op := w.insert(w.tenant, cluster, plan)
	// As if a process had begun the task, ended it and died before it could say so.
	w.exec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('gone-1', 'provisioner', 'h', now() + interval '1 hour')`)
	w.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_by = '{gone-1}'`)
	w.exec(`SELECT loom_start(ARRAY(SELECT id FROM tasks WHERE NOT gate), '{1}', 'gone-1')`)
	task := w.count(`SELECT id FROM tasks WHERE NOT gate`)
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, ".pending"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(data, ".pending", fmt.Sprintf("%d-1.json", task))
	body := fmt.Sprintf(`{"key": {"Task": %d, "Attempt": 1}, "result": {"status": 0, "result": {"providerid": "m-1"}}}`, task)
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	w.scheduler()
	runner := newRunner(nil)
	w.provisioner(runner, 10, func(p *work.Provisioner) { p.DataDir = data })
	w.ends(op, 20*time.Second, loom.OperationComplete)
	if runner.started() != 0 {
		t.Error("the task ran again")
	}
	if got := w.text(`SELECT results->>'providerid' FROM nodes`); got != "m-1" {
		t.Errorf("providerid %q", got)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is still there")
	}
}

func TestAttemptThatIgnoresItsEndHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	cluster, nodes := w.cluster(w.tenant, 1)
	deaf := make(chan struct{})
	runner := newRunner(func(context.Context, *loom.TaskSpec, loom.Sink) loom.TaskResult {
		<-deaf
		return loom.TaskResult{}
	})
	w.scheduler()
	first := w.provisioner(runner, 10, func(p *work.Provisioner) { p.StopGrace = 50 * time.Millisecond })
	op := w.insert(w.tenant, cluster, layered(nodes, 1, 1, 0, false))
	w.eventually(20*time.Second, "the attempt", func() bool { return runner.started() == 1 })
	first.stop(t)
	w.provisioner(newRunner(nil), 10)
	w.ends(op, 20*time.Second, loom.OperationComplete)
	close(deaf)
}
