package work

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"loom/jobs"
)

// periodicWorker works a periodic kind that has no arguments.
type periodicWorker[T river.JobArgs] struct {
	river.WorkerDefaults[T]
	what string
	do   func(ctx context.Context) error
}

func newPeriodicWorker[T river.JobArgs](what string, do func(ctx context.Context) error) *periodicWorker[T] {
	return &periodicWorker[T]{what: what, do: do}
}

// Work does the duty; a nil one is nobody's.
func (w *periodicWorker[T]) Work(ctx context.Context, _ *river.Job[T]) error {
	if w.do == nil {
		return nil
	}
	if err := w.do(ctx); err != nil {
		return fmt.Errorf("%s: %w", w.what, err)
	}
	return nil
}

// Timeout is generous: deleting may have much to delete.
func (w *periodicWorker[T]) Timeout(*river.Job[T]) time.Duration { return 10 * time.Minute }

// periodics is the list of periodic work in River's terms. It also runs when a
// leader starts, or restarts every half hour would keep the hourly ones off.
func periodics() []*river.PeriodicJob {
	var list []*river.PeriodicJob
	for _, p := range jobs.Periodics() {
		list = append(list, river.NewPeriodicJob(river.PeriodicInterval(p.Every), func() (river.JobArgs, *river.InsertOpts) {
			return p.Args, &river.InsertOpts{Queue: p.Args.Queue(), MaxAttempts: 3}
		}, &river.PeriodicJobOpts{RunOnStart: true}))
	}
	return list
}
