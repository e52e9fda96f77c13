package work

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"loom/app/loom"
	"loom/app/processes"
	"loom/jobs"
)

const (
	// maxQueues is how many tenants' queues a process holds at once.
	maxQueues = 100
	// removeWait is how long a queue being removed is waited for at a time: River
	// lets nobody add or remove another one meanwhile.
	removeWait = 20 * time.Millisecond
)

// dispatcher holds the queues of tenants that are assigned to this process and
// have work: a queue costs polling and wake-ups, also while it is empty.
type dispatcher struct {
	client    *riverClient
	id        loom.ProcessID
	processes *processes.Processes
	limiter   *limiter
	workers   int
	sweep     time.Duration
	idle      time.Duration
	log       *slog.Logger
	// look asks for a sweep, without waiting.
	look chan struct{}

	mu   sync.Mutex
	held map[string]*heldQueue
}

type heldQueue struct {
	used time.Time
	// running counts the tasks of the queue that run here. While there are any the
	// queue stays: one on its way out fetches nothing until its last job is over.
	running int
	// leaving says that it takes nothing new and goes once its jobs are over.
	leaving bool
}

func newDispatcher(client *riverClient, id loom.ProcessID, f *processes.Processes, l *limiter, workers int, sweep, idle time.Duration, log *slog.Logger) *dispatcher {
	return &dispatcher{client: client, id: id, processes: f, limiter: l, workers: workers, sweep: sweep, idle: idle, log: log,
		look: make(chan struct{}, 1), held: map[string]*heldQueue{}}
}

// note counts tasks of a queue that begin (1) and end (-1) here.
func (d *dispatcher) note(queue string, change int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.held[queue]; h != nil {
		h.used = time.Now()
		h.running += change
	}
}

// requestSweep asks for a sweep soon.
func (d *dispatcher) requestSweep() {
	select {
	case d.look <- struct{}{}:
	default:
	}
}

// run adds and removes queues until ctx ends or wakeups closes.
func (d *dispatcher) run(ctx context.Context, wakeups <-chan processes.Wakeup, onStop func()) {
	tick := time.NewTicker(d.sweep)
	defer tick.Stop()
	// Queues on their way out are looked at more often.
	soon := time.NewTicker(min(d.sweep, time.Second))
	defer soon.Stop()
	d.requestSweep()
	for {
		select {
		case <-ctx.Done():
			return
		case w, ok := <-wakeups:
			switch {
			case !ok:
				return
			case w.Stop:
				onStop()
			case w.Queue == "":
				onStop()
				d.sweepOnce(ctx)
			default:
				d.add(w.Queue)
			}
		case <-d.look:
			d.sweepOnce(ctx)
		case <-tick.C:
			d.sweepOnce(ctx)
		case <-soon.C:
			d.finishLeaving(ctx)
			d.updateSpare(ctx)
		}
	}
}

// add holds a queue where its tenant has workers here.
func (d *dispatcher) add(queue string) {
	tenant, ok := jobs.QueueTenant(queue)
	if !ok || d.limiter.limit(tenant) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.held[queue]; h != nil {
		h.used = time.Now()
		return
	}
	if len(d.held) >= maxQueues {
		return
	}
	if err := d.client.Queues().Add(queue, river.QueueConfig{MaxWorkers: d.workers}); err != nil {
		d.log.Warn("cannot add queue", "queue", queue, "error", err)
		return
	}
	d.held[queue] = &heldQueue{used: time.Now()}
	d.log.Debug("queue added", "queue", queue)
}

// sweepOnce adds the queues that have work and lets go of those that have none,
// or whose tenant has no workers here any longer.
func (d *dispatcher) sweepOnce(ctx context.Context) {
	busy, err := d.processes.BusyQueues(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn("cannot list busy queues", "error", err)
		}
		return
	}
	for _, queue := range busy {
		d.add(queue)
	}
	d.mu.Lock()
	for queue, h := range d.held {
		tenant, _ := jobs.QueueTenant(queue)
		if h.running == 0 && (d.limiter.limit(tenant) == 0 || time.Since(h.used) > d.idle) {
			h.leaving = true
		}
	}
	d.mu.Unlock()
	d.finishLeaving(ctx)
}

// updateSpare tells the limiter who else could do the work that waits here. Most
// of the time nothing waits, and nobody is asked.
func (d *dispatcher) updateSpare(ctx context.Context) {
	crowded := d.limiter.waitingTenants()
	if len(crowded) == 0 {
		return
	}
	free, err := d.processes.FreeWorkers(ctx, d.id, crowded)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn("cannot count free workers of other processes", "error", err)
		}
		return
	}
	d.limiter.spare(free)
}

// finishLeaving removes queues on their way out. Once asked, a queue fetches
// nothing more; it is gone when its last job is over.
func (d *dispatcher) finishLeaving(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for queue, h := range d.held {
		if !h.leaving {
			continue
		}
		waitCtx, cancel := context.WithTimeout(ctx, removeWait)
		err := d.client.Queues().Remove(waitCtx, queue)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			delete(d.held, queue)
			d.log.Debug("queue removed", "queue", queue)
			// It may have got work, or workers, in between.
			d.requestSweep()
		}
	}
}
