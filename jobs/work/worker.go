package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"loom/app/execution"
	"loom/app/fleet"
	"loom/app/hook"
	"loom/app/loom"
	"loom/app/processes"
	"loom/jobs"
	"loom/provisioner"
)

// endOperation works end_operation.
type endOperation struct {
	river.WorkerDefaults[jobs.EndOperation]
	ops *execution.Operations
}

// Work looks whether the operation has ended; River tries again after an error.
func (w *endOperation) Work(ctx context.Context, job *river.Job[jobs.EndOperation]) error {
	if err := w.ops.EndOperation(ctx, loom.OperationID(job.Args.OperationID)); err != nil {
		return fmt.Errorf("end operation %d: %w", job.Args.OperationID, err)
	}
	return nil
}

// deliverHook works deliver_hook: it sends a notice, records what came of it and
// asks to be called again where it is to be tried again.
type deliverHook struct {
	river.WorkerDefaults[jobs.DeliverHook]
	hooks *hook.Hooks
	ops   *execution.Operations
	watch Metrics
}

// Work sends once. A crash between sending and recording sends again: delivery is
// at least once.
func (w *deliverHook) Work(ctx context.Context, job *river.Job[jobs.DeliverHook]) error {
	if w.hooks == nil { // never delivered where nothing sends
		return river.JobSnooze(time.Second)
	}
	id := loom.DeliveryID(job.Args.DeliveryID)
	outcome, ok, err := w.hooks.Send(ctx, id)
	if err == nil && ok {
		err = w.ops.RecordDelivery(ctx, id, outcome)
	}
	if err != nil {
		return fmt.Errorf("deliver notice %d: %w", id, err)
	}
	if ok {
		w.watch.Delivered(outcome.Status)
	}
	if outcome.After > 0 {
		return river.JobSnooze(outcome.After)
	}
	return nil
}

// Timeout is well above the one of a call.
func (w *deliverHook) Timeout(*river.Job[jobs.DeliverHook]) time.Duration { return time.Minute }

const (
	// probeWorkers is how many providers a provisioner tests at once; a test takes seconds
	// and mostly waits, and one tenant has few at once. sweepWorkers is how many it asks for what takes
	// longer.
	probeWorkers, sweepWorkers = 64, 4
	// noAskerSnooze is how long a request rests that came to a process without an asker.
	noAskerSnooze = 10 * time.Second
)

// probeProvider works probe_provider.
type probeProvider struct {
	river.WorkerDefaults[jobs.ProbeProvider]
	processes *processes.Processes
	asker     processes.Asker
	process   loom.ProcessID
	// until ends when the process is told to: what is asked of providers can wait
	// for another one.
	until context.Context
	log   *slog.Logger
}

// Timeout is above that of the longest thing a provider is asked for.
func (w *probeProvider) Timeout(*river.Job[jobs.ProbeProvider]) time.Duration {
	return loom.DefaultTaskLimit(loom.ActionDelete) + provisioner.ListLimit + time.Minute
}

// Work carries out one request; River tries again after an error.
func (w *probeProvider) Work(ctx context.Context, job *river.Job[jobs.ProbeProvider]) error {
	if w.asker == nil {
		return river.JobSnooze(noAskerSnooze)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.until, cancel)()
	err := w.processes.WorkRequest(ctx, w.process, job.Args.RequestID, w.asker)
	switch {
	case errors.Is(err, processes.ErrNotForUs) && job.Queue == jobs.SweepQueue:
		return river.JobSnooze(noAskerSnooze) // nobody waits, and others of the tenant take minutes
	case errors.Is(err, processes.ErrNotForUs), err != nil && w.until.Err() != nil:
		return river.JobSnooze(snooze)
	case errors.Is(err, processes.ErrRecorded):
		w.log.Warn("provider request failed", "request_id", job.Args.RequestID, "error", err.Error())
		return nil
	}
	return err
}

// journalWorkers is how many journals a provisioner follows at once.
const journalWorkers = 16

// followJournal works follow_journal.
type followJournal struct {
	river.WorkerDefaults[jobs.FollowJournal]
	fleet    *fleet.Fleet
	ops      *execution.Operations
	follower fleet.Follower
	process  loom.ProcessID
	// until ends when the process is told to.
	until context.Context
}

// Timeout is above that of a journal.
func (w *followJournal) Timeout(*river.Job[jobs.FollowJournal]) time.Duration {
	return loom.JournalTime + time.Minute
}

// Work follows a journal to its end, which is recorded: River tries none again that has begun.
func (w *followJournal) Work(ctx context.Context, job *river.Job[jobs.FollowJournal]) error {
	if w.follower == nil {
		return river.JobSnooze(noAskerSnooze)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.until, cancel)()
	err := w.fleet.FollowJournal(ctx, w.process, loom.JournalID(job.Args.JournalID), w.ops.JournalTarget, w.follower)
	switch {
	case errors.Is(err, fleet.ErrNotForUs):
		return river.JobSnooze(snooze)
	case err != nil:
		return fmt.Errorf("follow journal %s: %w", job.Args.JournalID, err)
	}
	return nil
}
