package work

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"loom/app/execution"
	"loom/app/hook"
	"loom/app/loom"
	"loom/jobs"
)

// deliverHook works deliver_hook: it sends a notice, records what came of it and
// asks to be called again where it is to be tried again.
type deliverHook struct {
	river.WorkerDefaults[jobs.DeliverHook]
	hooks *hook.Hooks
	ops   *execution.Operations
	watch Watch
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
		err = w.ops.Delivered(ctx, id, outcome)
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
