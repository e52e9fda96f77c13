package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/riverqueue/river"

	"loom/app/execution"
	"loom/app/failpoint"
	"loom/app/loom"
	"loom/jobs"
	"loom/provisioner"
)

const (
	// slotWait is how long a delivered job waits for a slot before another process
	// may have it, if it has a free worker, and snooze how long it then rests. Nothing
	// waits longer than longestSlotWait: the reconciler takes what begins nothing for
	// 5 minutes for lost.
	slotWait        = time.Second
	snooze          = time.Second
	longestSlotWait = 4 * time.Minute
	// recordFor is how long past its deadline the result of an attempt is still
	// offered to the database.
	recordFor = 5 * time.Minute
)

// runTask works run_task: one delivery of one task.
type runTask struct {
	river.WorkerDefaults[jobs.RunTask]
	ops       *execution.Operations
	runner    Runner
	limiter   *limiter
	committer *committer
	attempts  *attempts
	pending   *pending
	note      func(queue string, change int)
	// session ends some time after the lease was lost: results that could not be
	// recorded by then wait on disk.
	session context.Context
	limit   time.Duration
	log     *slog.Logger
	// retry is the first delay before a result is offered again.
	retry time.Duration
	watch Metrics
}

// riverLimit tells River to leave the time of a task alone: attempts end at their own
// deadline, those of lost processes are given back by the scheduler, and deliveries
// that began nothing within minutes by the reconciler. A limit of River's would cost
// a goroutine and two timers for each task.
const riverLimit time.Duration = -1

// Timeout is none.
func (w *runTask) Timeout(*river.Job[jobs.RunTask]) time.Duration { return riverLimit }

// Work takes a slot, begins the attempt, runs it and records what came of it.
func (w *runTask) Work(ctx context.Context, job *river.Job[jobs.RunTask]) error {
	tenant, ok := jobs.QueueTenant(job.Queue)
	if !ok {
		return fmt.Errorf("task %d came on the queue %q, which is no tenant's", job.Args.TaskID, job.Queue)
	}
	if !w.limiter.acquire(ctx, tenant, slotWait, longestSlotWait) {
		w.watch.Snoozed()
		return river.JobSnooze(snooze)
	}
	defer w.limiter.release(tenant)
	w.note(job.Queue, 1)
	defer w.note(job.Queue, -1)
	key := execution.AttemptKey{Task: loom.TaskID(job.Args.TaskID), Attempt: job.Attempt}
	attemptCtx, ours := w.attempts.claim(ctx, key)
	if !ours {
		return nil
	}
	defer w.attempts.done(key)
	begun, err := w.begin(attemptCtx, key)
	if err != nil {
		if attemptCtx.Err() == nil {
			w.logOf(tenant, key).Error("cannot start attempt", "error", err)
		}
		return river.JobSnooze(snooze)
	}
	if !begun.accepted {
		return nil
	}
	if !snoozed(job) {
		w.watch.Hop(begun.at.Sub(job.ScheduledAt))
	}
	began := time.Now()
	result, ran, deadline := w.attempt(attemptCtx, tenant, key, begun.facts)
	took := time.Since(began)
	recordCtx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(recordFor))
	defer cancel()
	defer context.AfterFunc(w.session, cancel)()
	counts, err := w.record(recordCtx, key, result)
	if err != nil {
		w.logOf(tenant, key).Error("cannot record result of attempt", "error", err)
		return nil
	}
	w.watch.AttemptEnded(tenant, ran.action, ran.plugin, outcomeOf(result, counts), took)
	return nil
}

func (w *runTask) logOf(tenant loom.TenantID, key execution.AttemptKey) *slog.Logger {
	return w.log.With("tenant_id", tenant, "task_id", key.Task, "attempt", key.Attempt)
}

// snoozed reports whether a job was given back before: the time from which it was
// due is then not known any longer. River notes snoozes in the metadata.
func snoozed(job *river.Job[jobs.RunTask]) bool {
	return bytes.Contains(job.Metadata, []byte(`"snoozes"`))
}

// attemptKind is what an attempt was about, as far as that could be read.
type attemptKind struct {
	action loom.TaskAction
	plugin string
}

// begin starts the attempt. Asking again after an error is safe: an attempt that
// began under this process is found again.
func (w *runTask) begin(ctx context.Context, key execution.AttemptKey) (begun commitAnswer, err error) {
	err = w.retryUntilDone(ctx, func() (err error) {
		begun, err = w.committer.start(ctx, key)
		return err
	})
	return begun, err
}

// attempt builds the spec and runs it. The deadline is when the attempt had to be
// over.
func (w *runTask) attempt(ctx context.Context, tenant loom.TenantID, key execution.AttemptKey, facts *execution.SpecFacts) (result loom.TaskResult, about attemptKind, deadline time.Time) {
	taskLog := w.ops.Log(key)
	defer taskLog.Close()
	deadline = time.Now().Add(w.limit)
	about.action = "unknown"
	if facts != nil {
		about.action = facts.Action
	}
	spec, err := w.spec(ctx, key, facts)
	var wrong *execution.SpecError
	switch {
	case errors.As(err, &wrong):
		taskLog.Add("loom", wrong.Result.Message)
		return wrong.Result, about, deadline
	case errors.Is(context.Cause(ctx), provisioner.ErrAborted):
		return loom.TaskResult{Status: -1, Message: context.Cause(ctx).Error(), Aborted: true}, about, deadline
	case err != nil && ctx.Err() != nil:
		return loom.TaskResult{Status: -1, Message: context.Cause(ctx).Error(), Interrupted: true}, about, deadline
	case err != nil:
		w.logOf(tenant, key).Error("cannot build task spec", "error", err)
		return loom.TaskResult{Status: -1, Message: "The provisioner could not read what the task needs.", Interrupted: true}, about, deadline
	}
	about = attemptKind{spec.Action, pluginOf(spec)}
	return w.run(ctx, spec, &sink{ctx: ctx, ops: w.ops, key: key, log: taskLog}), about, spec.Deadline
}

func (w *runTask) spec(ctx context.Context, key execution.AttemptKey, facts *execution.SpecFacts) (*loom.TaskSpec, error) {
	if facts == nil {
		return w.ops.Spec(ctx, key)
	}
	return w.ops.Build(ctx, facts)
}

// run calls the runner; a panic fails the attempt, its trace goes to the log of
// the process.
func (w *runTask) run(ctx context.Context, spec *loom.TaskSpec, s *sink) (result loom.TaskResult) {
	defer func() {
		if r := recover(); r != nil {
			w.logOf(spec.Tenant, s.key).Error("runner panicked", "error", fmt.Sprint(r), "stack", string(debug.Stack()))
			result = loom.TaskResult{Status: 1, Message: "The provisioner failed inside; its log says more."}
		}
	}()
	failpoint.At(failpoint.BeforeCall)
	if !w.attempts.mayBegin(time.Now()) {
		return loom.TaskResult{Status: -1, Message: "The process stood still for longer than its lease.", Interrupted: true}
	}
	result = w.runner.Run(ctx, spec, s)
	failpoint.At(failpoint.AfterCall)
	return result
}

// record stores the result and reports whether it counts. It tries again and again until ctx
// ends: a lost result would cost a machine.
func (w *runTask) record(ctx context.Context, key execution.AttemptKey, result loom.TaskResult) (counts bool, err error) {
	if err := w.pending.save(key, result); err != nil {
		w.log.Warn("cannot save result to disk", "task_id", key.Task, "error", err)
	}
	failpoint.At(failpoint.ResultKept)
	err = w.retryUntilDone(ctx, func() (err error) {
		counts, err = w.offer(ctx, key, result)
		return err
	})
	if err != nil {
		return false, err
	}
	if !counts {
		w.log.Warn("late result refused", "task_id", key.Task, "attempt", key.Attempt)
	}
	w.forget([]execution.AttemptKey{key})
	return counts, nil
}

// forget crosses out results on disk.
func (w *runTask) forget(keys []execution.AttemptKey) {
	if err := w.pending.forget(keys...); err != nil {
		w.log.Warn("cannot mark results as recorded on disk", "count", len(keys), "error", err)
	}
}

// offer hands the result to the database once and reports whether it counts.
func (w *runTask) offer(ctx context.Context, key execution.AttemptKey, result loom.TaskResult) (bool, error) {
	if result.Status != 0 || result.Interrupted || result.Aborted {
		return w.ops.FailTask(ctx, key, result)
	}
	counts, err := w.committer.complete(ctx, key, result)
	if err == nil && !counts {
		// A late CREATE may still tell of a machine.
		result.Interrupted = true
		_, err = w.ops.FailTask(ctx, key, result)
	}
	return counts, err
}

// retryUntilDone calls do until it succeeds or ctx ends, waiting twice as long each time,
// at most a minute.
func (w *runTask) retryUntilDone(ctx context.Context, do func() error) error {
	delay := w.retry
	for {
		err := do()
		if err == nil || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, context.Cause(ctx))
		}
		delay = min(2*delay, time.Minute)
	}
}

// sink takes what a running attempt has to say.
type sink struct {
	ctx context.Context
	ops *execution.Operations
	key execution.AttemptKey
	log *execution.Log
}

// Log adds a line to the task log without waiting for the database.
func (s *sink) Log(stream, text string) { s.log.Add(stream, text) }

// Fact stores results on the node, also while the attempt is being cancelled.
func (s *sink) Fact(results map[string]any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), time.Minute)
	defer cancel()
	delay := 50 * time.Millisecond
	for {
		err := s.ops.StoreFact(ctx, s.key, results)
		if err == nil || errors.Is(err, loom.Conflict) {
			return err
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		delay = min(2*delay, 5*time.Second)
	}
}
