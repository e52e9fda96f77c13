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
	"loom/app/fault"
	"loom/app/loom"
	"loom/jobs"
	"loom/provisioner"
)

const (
	// slotWait is how long a delivered job waits for a slot before another process
	// may have it, if it has a free worker, and snooze how long it then rests. Nothing
	// waits longer than longestSlotWait: the reconciler takes what begins nothing for
	// about as long for lost.
	slotWait        = time.Second
	snooze          = time.Second
	longestSlotWait = 5 * time.Minute
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
	// life ends some time after the lease was lost: results that could not be
	// recorded by then wait on disk.
	life context.Context
	// base is the context of attempts that River did not deliver.
	base  context.Context
	limit time.Duration
	log   *slog.Logger
	// retry is the first delay before a result is offered again.
	retry time.Duration
	watch Watch
}

// riverLimit tells River to leave the time of a task alone: attempts end at their own
// deadline, those of lost processes are given back by the scheduler, and deliveries
// that began nothing within minutes by the reconciler. A limit of River's would cost
// a goroutine and two timers for each task.
const riverLimit time.Duration = -1

// Timeout is none.
func (w *runTask) Timeout(*river.Job[jobs.RunTask]) time.Duration { return riverLimit }

// Work takes a slot, begins the attempt, runs it and records what came of it. On the
// same slot it goes on with what was begun when that was recorded.
func (w *runTask) Work(ctx context.Context, job *river.Job[jobs.RunTask]) error {
	tenant, ok := jobs.QueueTenant(job.Queue)
	if !ok {
		return fmt.Errorf("task %d came on the queue %q, which is no tenant's", job.Args.TaskID, job.Queue)
	}
	if !w.limiter.acquire(ctx, tenant, slotWait, longestSlotWait) {
		w.watch.Snoozed()
		return river.JobSnooze(snooze)
	}
	w.note(job.Queue, 1)
	defer w.note(job.Queue, -1)
	key := execution.AttemptKey{Task: loom.TaskID(job.Args.TaskID), Attempt: job.Attempt}
	attemptCtx, ours := w.attempts.claim(ctx, key)
	if !ours {
		w.limiter.release(tenant)
		return nil
	}
	begun, err := w.begin(attemptCtx, key)
	if err != nil || !begun.yes {
		if err != nil && attemptCtx.Err() == nil {
			w.logOf(tenant, key).Error("an attempt could not begin", "error", err)
		}
		w.attempts.done(key)
		w.limiter.release(tenant)
		return nil
	}
	if !snoozed(job) {
		w.watch.Hop(begun.at.Sub(job.ScheduledAt))
	}
	w.carryOut(ctx, attemptCtx, tenant, key, begun.facts)
	return nil
}

// carryOut runs a claimed attempt that began, and those that follow it on its slot,
// one after the other. The slot is given back in the end.
func (w *runTask) carryOut(ctx, attemptCtx context.Context, tenant loom.TenantID, key execution.AttemptKey, facts *execution.SpecFacts) {
	for {
		after := w.once(ctx, attemptCtx, tenant, key, facts)
		w.attempts.done(key)
		if after.next == nil {
			if !after.slotGone {
				w.limiter.release(tenant)
			}
			return
		}
		key, facts = after.next.Key, after.facts
		attemptCtx, _ = w.attempts.claim(ctx, key)
	}
}

// takeUp runs an attempt that began here although no worker was free for it: on a
// slot that the limiter lent, or with lent false on one it has to wait for.
func (w *runTask) takeUp(taken execution.Taken, facts *execution.SpecFacts, lent bool) {
	attemptCtx, ours := w.attempts.claim(w.base, taken.Key)
	if !ours {
		return
	}
	if !lent && !w.limiter.acquire(attemptCtx, taken.Tenant, longestSlotWait, longestSlotWait) {
		// It goes back, and on elsewhere.
		defer w.attempts.done(taken.Key)
		w.settle(w.base, taken.Tenant, taken.Key, loom.TaskResult{Status: -1, Message: "The process had no worker for it.", Interrupted: true}, time.Now())
		return
	}
	queue := jobs.TenantQueue(taken.Tenant)
	w.note(queue, 1)
	defer w.note(queue, -1)
	w.carryOut(w.base, attemptCtx, taken.Tenant, taken.Key, facts)
}

// once runs one attempt and records what came of it.
func (w *runTask) once(ctx, attemptCtx context.Context, tenant loom.TenantID, key execution.AttemptKey, facts *execution.SpecFacts) commitAnswer {
	began := time.Now()
	result, ran, deadline := w.attempt(attemptCtx, tenant, key, facts)
	took := time.Since(began)
	answer, err := w.settle(ctx, tenant, key, result, deadline)
	if err == nil {
		w.watch.AttemptEnded(tenant, ran.action, ran.plugin, outcomeOf(result, answer.yes), took)
	}
	return answer
}

// settle records a result, however long that takes until some time after the deadline
// of its attempt.
func (w *runTask) settle(ctx context.Context, tenant loom.TenantID, key execution.AttemptKey, result loom.TaskResult, deadline time.Time) (commitAnswer, error) {
	recordCtx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(recordFor))
	defer cancel()
	defer context.AfterFunc(w.life, cancel)()
	answer, err := w.record(recordCtx, tenant, key, result)
	if err != nil {
		w.logOf(tenant, key).Error("the result of an attempt could not be recorded", "error", err)
	}
	return answer, err
}

func (w *runTask) logOf(tenant loom.TenantID, key execution.AttemptKey) *slog.Logger {
	return w.log.With("tenant_id", tenant, "task_id", key.Task, "attempt", key.Attempt)
}

// snoozed reports whether a job was given back before: the time from which it was
// due is then not known any more. River notes snoozes in the metadata.
func snoozed(job *river.Job[jobs.RunTask]) bool {
	return bytes.Contains(job.Metadata, []byte(`"snoozes"`))
}

// ran is what an attempt was about, as far as that could be read.
type ran struct {
	action loom.TaskAction
	plugin string
}

// begin starts the attempt. Asking again after an error is safe: an attempt that
// began under this process is found again.
func (w *runTask) begin(ctx context.Context, key execution.AttemptKey) (begun commitAnswer, err error) {
	err = w.again(ctx, func() (err error) {
		begun, err = w.committer.start(ctx, key)
		return err
	})
	return begun, err
}

// attempt builds the spec and runs it. The deadline is when the attempt had to be
// over.
func (w *runTask) attempt(ctx context.Context, tenant loom.TenantID, key execution.AttemptKey, facts *execution.SpecFacts) (result loom.TaskResult, about ran, deadline time.Time) {
	taskLog := w.ops.Log(key)
	defer taskLog.Close()
	deadline = time.Now().Add(w.limit)
	about.action = "unknown"
	if facts != nil {
		about.action = facts.Action
	}
	spec, err := w.spec(ctx, key, facts)
	var wrong *execution.Unbuildable
	switch {
	case errors.As(err, &wrong):
		taskLog.Add("loom", wrong.Result.Message)
		return wrong.Result, about, deadline
	case errors.Is(context.Cause(ctx), provisioner.ErrAborted):
		return loom.TaskResult{Status: -1, Message: context.Cause(ctx).Error(), Aborted: true}, about, deadline
	case err != nil && ctx.Err() != nil:
		return loom.TaskResult{Status: -1, Message: context.Cause(ctx).Error(), Interrupted: true}, about, deadline
	case err != nil:
		w.logOf(tenant, key).Error("the spec of a task could not be read", "error", err)
		return loom.TaskResult{Status: -1, Message: "The provisioner could not read what the task needs.", Interrupted: true}, about, deadline
	}
	about = ran{spec.Action, pluginOf(spec)}
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
			w.logOf(spec.Tenant, s.key).Error("the runner panicked", "error", fmt.Sprint(r), "stack", string(debug.Stack()))
			result = loom.TaskResult{Status: 1, Message: "The provisioner failed inside; its log says more."}
		}
	}()
	fault.At(fault.BeforeCall)
	if !w.attempts.mayBegin(time.Now()) {
		return loom.TaskResult{Status: -1, Message: "The process stood still for longer than its lease.", Interrupted: true}
	}
	result = w.runner.Run(ctx, spec, s)
	fault.At(fault.AfterCall)
	return result
}

// record stores the result, again and again until ctx ends: a lost result would
// cost a machine.
func (w *runTask) record(ctx context.Context, tenant loom.TenantID, key execution.AttemptKey, result loom.TaskResult) (answer commitAnswer, err error) {
	if err := w.pending.keep(key, result); err != nil {
		w.log.Warn("a result could not be kept on disk", "task_id", key.Task, "error", err)
	}
	fault.At(fault.ResultKept)
	err = w.again(ctx, func() (err error) {
		answer, err = w.offer(ctx, tenant, key, result)
		if err == nil && !answer.yes {
			w.log.Warn("a late result was refused", "task_id", key.Task, "attempt", key.Attempt)
		}
		return err
	})
	if err != nil {
		return commitAnswer{}, err
	}
	w.forget([]execution.AttemptKey{key})
	return answer, nil
}

// forget crosses out results on disk.
func (w *runTask) forget(keys []execution.AttemptKey) {
	if err := w.pending.forget(keys...); err != nil {
		w.log.Warn("recorded results could not be crossed out on disk", "count", len(keys), "error", err)
	}
}

// offer hands the result to the database once. With a tenant another attempt may
// begin in the place of the one that ended, on its slot.
func (w *runTask) offer(ctx context.Context, tenant loom.TenantID, key execution.AttemptKey, result loom.TaskResult) (answer commitAnswer, err error) {
	if result.Status == 0 && !result.Interrupted && !result.Aborted {
		answer, err = w.committer.complete(ctx, tenant, key, result)
		if err == nil && !answer.yes {
			// A late CREATE may still tell of a machine.
			result.Interrupted = true
			_, err = w.ops.FailTask(ctx, key, result)
		}
		return answer, err
	}
	answer.yes, err = w.ops.FailTask(ctx, key, result)
	return answer, err
}

// again calls do until it succeeds or ctx ends, waiting twice as long each time,
// at most a minute.
func (w *runTask) again(ctx context.Context, do func() error) error {
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
