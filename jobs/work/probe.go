package work

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"loom/app/loom"
	"loom/app/processes"
	"loom/jobs"
	"loom/provisioner"
)

const (
	// probeWorkers is how many providers a provisioner tests at once; a test takes seconds
	// and mostly waits, and one tenant has few at once. sweepWorkers is how many it asks for what takes
	// longer.
	probeWorkers, sweepWorkers = 64, 4
	// nobodyAsks is how long a request rests that came to a process without an asker.
	nobodyAsks = 10 * time.Second
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
	return provisioner.Limit(loom.ActionDelete) + provisioner.ListLimit + time.Minute
}

// Work carries out one request; River tries again after an error.
func (w *probeProvider) Work(ctx context.Context, job *river.Job[jobs.ProbeProvider]) error {
	if w.asker == nil {
		return river.JobSnooze(nobodyAsks)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.until, cancel)()
	err := w.processes.WorkRequest(ctx, w.process, job.Args.RequestID, w.asker)
	switch {
	case errors.Is(err, processes.ErrNotForUs), err != nil && w.until.Err() != nil:
		return river.JobSnooze(snooze)
	case errors.Is(err, processes.ErrRecorded):
		w.log.Warn("a provider could not be asked", "request_id", job.Args.RequestID, "error", err.Error())
		return nil
	}
	return err
}
