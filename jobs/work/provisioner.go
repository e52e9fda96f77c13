package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"loom/app/loom"
	"loom/app/processes"
	"loom/jobs"
	"loom/provisioner"
)

// Provisioner is a process that executes tasks. Zero times mean their defaults.
type Provisioner struct {
	Common
	// Runner carries out attempts.
	Runner Runner
	// Watcher looks at machines, and Fleet records what it sees; nil watches nothing.
	// HealthRate is how many nodes are looked at in a second at most.
	Watcher    Watcher
	HealthRate int
	// Watching, if any, hears how many nodes are watched.
	Watching func(nodes int)
	// Capacity is how many tasks may run at once, over all tenants.
	Capacity int
	// OnlyTenant is the name of the one tenant to work for, "" for all.
	OnlyTenant string
	// Plugins returns the plugin types that the runner knows now, for the list of
	// processes; nil lists none.
	Plugins func() []string
	// Versions returns the releases of those that are no part of Loom, by type; nil lists
	// none.
	Versions func() map[string]string
	// Local is what this process says of its host, for machines there.
	Local loom.LocalHost
	// DataDir holds results that could not be recorded, "" keeps none.
	DataDir string
	// DrainTimeout is how long running attempts may go on after ctx of Run ended,
	// 30 minutes; negative means no time at all.
	DrainTimeout time.Duration
	// StopGrace is how long attempts that were told to stop are waited for, 1 minute.
	StopGrace time.Duration
	// Hurry, when closed, ends the drain at once.
	Hurry <-chan struct{}
	// Sweep is how often queues are looked over, 10 s; QueueIdle how long one is
	// held without work, 60 s.
	Sweep, QueueIdle time.Duration
	// Retry is the first delay before a result is offered again, 1 s.
	Retry time.Duration
}

func (p *Provisioner) defaults() {
	if p.Plugins == nil {
		p.Plugins = func() []string { return nil }
	}
	if p.Versions == nil {
		p.Versions = func() map[string]string { return nil }
	}
	if p.DrainTimeout == 0 {
		p.DrainTimeout = 30 * time.Minute
	}
	if p.StopGrace <= 0 {
		p.StopGrace = time.Minute
	}
	if p.Sweep <= 0 {
		p.Sweep = 10 * time.Second
	}
	if p.QueueIdle <= 0 {
		p.QueueIdle = time.Minute
	}
	if p.Retry <= 0 {
		p.Retry = time.Second
	}
}

// Run works until ctx ends and the running attempts are over or were
// interrupted. A process that lost its lease begins again under a new id. It
// returns an error only when it cannot begin for a reason that will not pass,
// such as an unknown tenant.
func (p *Provisioner) Run(ctx context.Context) error {
	p.defaults()
	p.recordErrors()
	if p.Capacity <= 0 {
		return loom.NewError(loom.Invalid, "A provisioner needs a capacity of at least 1 task; LOOM_PROVISIONER_CAPACITY is %d.", p.Capacity)
	}
	kept, err := openPending(p.DataDir)
	if err != nil {
		return err
	}
	defer func() {
		if err := kept.close(); err != nil {
			p.logger().Warn("cannot close file of unrecorded results", "error", err)
		}
	}()
	return restartLoop(ctx, &p.Common, func(ctx context.Context) error { return p.runOnce(ctx, kept) })
}

// restartLoop runs lives of a process, one after the other, until ctx ends.
func restartLoop(ctx context.Context, c *Common, live func(ctx context.Context) error) error {
	delay := 100 * time.Millisecond
	for {
		began := time.Now()
		err := live(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, loom.NotFound), errors.Is(err, loom.Invalid):
			return err
		case err != nil:
			c.logger().Error("process failed, restarting", "error", err)
		}
		if time.Since(began) > time.Minute {
			delay = 100 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(delay):
		}
		delay = min(2*delay, 10*time.Second)
	}
}

// session is one time of a provisioner under one id.
type session struct {
	p         *Provisioner
	id        loom.ProcessID
	client    *riverClient
	limiter   *limiter
	attempts  *attempts
	committer *committer
	dispatch  *dispatcher
	draining  atomic.Bool
	// stuck says that an attempt did not end although it was told to.
	stuck bool
	nudge chan struct{}
	lost  chan error
}

// runOnce registers the process and works until ctx ends or the lease is lost.
func (p *Provisioner) runOnce(ctx context.Context, kept *pending) error {
	carried, versions := p.Plugins(), p.Versions()
	id, err := p.Processes.Register(ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Port: p.Port, Version: p.Version,
		Capacity: p.Capacity, Plugins: carried, Versions: versions, Local: p.Local, OnlyTenant: p.OnlyTenant, LastError: p.lastError})
	if err != nil {
		return err
	}
	l := &session{p: p, id: id, limiter: newLimiter(p.Capacity), attempts: newAttempts(), nudge: make(chan struct{}, 1), lost: make(chan error, 1)}
	p.metrics().LeaseHeld(loom.ProcessProvisioner, true)
	defer p.metrics().LeaseHeld(loom.ProcessProvisioner, false)
	p.metrics().Slots(l.limiter.slots)
	// What runs outlives ctx by the drain.
	base := context.WithoutCancel(ctx)
	lifeCtx, endLife := context.WithCancel(base)
	defer endLife()
	l.committer = newCommitter(p.Operations, id, l.limiter, p.metrics())
	worker := &runTask{ops: p.Operations, runner: p.Runner, limiter: l.limiter, committer: l.committer, attempts: l.attempts,
		pending: kept, limit: p.Operations.LongestLimit(), log: p.logger().With("process_id", id), retry: p.Retry, session: lifeCtx, watch: p.metrics()}
	l.committer.recorded = worker.forget
	// What is asked of providers does not: another provisioner asks again.
	asking, endAsking := context.WithCancel(ctx)
	defer endAsking()
	l.client, err = newRiver(asking, &p.Common, id, true, map[string]river.QueueConfig{
		jobs.ProbeQueue: {MaxWorkers: probeWorkers}, jobs.SweepQueue: {MaxWorkers: sweepWorkers}, jobs.JournalQueue: {MaxWorkers: journalWorkers}}, worker)
	if err != nil {
		return errors.Join(err, p.Processes.Deregister(base, id))
	}
	defer func() {
		if l.stuck {
			go l.client.pool.Close() // it waits for what does not end
			return
		}
		l.client.pool.Close()
	}()
	l.dispatch = newDispatcher(l.client, id, p.Processes, l.limiter, p.Capacity, p.Sweep, p.QueueIdle, worker.log)
	worker.note = l.dispatch.note

	var background sync.WaitGroup
	defer background.Wait()
	leaseCtx, endLease := context.WithCancel(base)
	defer endLease()
	commitCtx, endCommit := context.WithCancel(base)
	defer endCommit()
	background.Go(func() { l.committer.run(commitCtx) })
	p.replay(ctx, worker, kept)
	background.Go(func() { l.holdLease(leaseCtx) })
	if p.Watcher != nil {
		background.Go(func() { l.watch(leaseCtx) })
	}
	background.Go(func() { l.publishPlugins(leaseCtx, carried, versions) })
	if err := l.client.Start(base); err != nil {
		return errors.Join(fmt.Errorf("start River's client: %w", err), p.Processes.Deregister(base, id))
	}
	wakeups, err := p.Processes.Wakeups(leaseCtx, p.DSN)
	if err != nil {
		return errors.Join(err, l.client.StopAndCancel(base), p.Processes.Deregister(base, id))
	}
	dispatchCtx, endDispatch := context.WithCancel(leaseCtx)
	var dispatching sync.WaitGroup
	dispatching.Go(func() { l.dispatch.run(dispatchCtx, wakeups, l.renewSoon) })
	worker.log.Info("provisioner started", "capacity", p.Capacity)

	var lost error
	select {
	case <-ctx.Done():
	case lost = <-l.lost:
	}
	endAsking()
	endDispatch()
	dispatching.Wait()
	lost = l.drain(base, lost, endLife)
	if lost == nil {
		endLease()
		return p.Processes.Deregister(base, id)
	}
	return lost
}

// renewSoon asks for a renewal now: it tells which attempts to stop.
func (l *session) renewSoon() {
	select {
	case l.nudge <- struct{}{}:
	default:
	}
}

// holdLease holds the lease and acts on what each renewal tells.
func (l *session) holdLease(ctx context.Context) {
	err := l.p.Processes.HoldLease(ctx, l.id, l.nudge, l.draining.Load, func(r processes.Renewal) {
		l.attempts.setLease(r.Until)
		if l.limiter.set(r.Workers) {
			l.dispatch.requestSweep()
		}
		for _, key := range r.Stop {
			l.attempts.stop(key, provisioner.ErrAborted)
		}
	})
	if err != nil {
		l.p.metrics().LeaseHeld(loom.ProcessProvisioner, false)
		// At once, before anybody else takes over.
		l.attempts.stopAll(fmt.Errorf("%w: %w", provisioner.ErrInterrupted, err))
		l.lost <- err
	}
}

// drain takes nothing new and waits for what runs: as long as it may, then it
// interrupts. It returns why the lease was lost, nil if it was not.
func (l *session) drain(ctx context.Context, lost error, endLife func()) error {
	l.draining.Store(true)
	l.renewSoon()
	l.limiter.close()
	stopped := make(chan error, 1)
	go func() { stopped <- l.client.Stop(ctx) }()
	var timeUp, giveUp <-chan time.Time
	interrupt := func(why string) {
		if why != "" {
			l.attempts.stopAll(fmt.Errorf("%w: %s", provisioner.ErrInterrupted, why))
		}
		if giveUp == nil {
			giveUp = time.After(l.p.StopGrace)
		}
	}
	leaseLost := func() {
		// Keeping the lease stopped them already.
		interrupt("")
		time.AfterFunc(5*time.Second, endLife)
	}
	switch {
	case lost != nil:
		leaseLost()
	case l.p.DrainTimeout < 0:
		interrupt("the process ends")
	default:
		timer := time.NewTimer(l.p.DrainTimeout)
		defer timer.Stop()
		timeUp = timer.C
	}
	hurry := l.p.Hurry
	for {
		select {
		case err := <-stopped:
			if err != nil {
				l.p.logger().Warn("River client did not stop cleanly", "process_id", l.id, "error", err)
			}
			return lost
		case <-timeUp:
			interrupt("the process ends")
			timeUp = nil
		case <-hurry:
			interrupt("the process ends at once")
			hurry = nil
		case lost = <-l.lost:
			leaseLost()
		case <-giveUp:
			l.p.logger().Error("attempts did not stop in time", "process_id", l.id, "count", l.limiter.load())
			l.stuck = true
			return lost
		}
	}
}

// replay offers the results that an earlier process could not record. Most are
// refused by now, then their files go; those that cannot be offered stay.
func (p *Provisioner) replay(ctx context.Context, w *runTask, kept *pending) {
	left, err := kept.unrecorded()
	if err != nil {
		w.log.Warn("cannot read unrecorded results", "error", err)
	}
	for _, k := range left {
		counts, err := w.offer(ctx, k.Key, *k.Result)
		if errors.Is(err, loom.NotFound) {
			err = nil // the task is gone, as after a change of the database
		}
		if err == nil {
			err = kept.forget(k.Key)
		}
		w.log.Info("unrecorded result submitted", "task_id", k.Key.Task, "attempt", k.Key.Attempt, "counted", counts, "error", err)
	}
}

// pluginsEvery is how often a provisioner looks whether its plugins are still those
// that the list of processes shows.
const pluginsEvery = time.Second

// publishPlugins keeps the list of processes right while plugins are read again, until
// ctx ends; told and shown are what it shows.
func (l *session) publishPlugins(ctx context.Context, told []string, shown map[string]string) {
	ticker := time.NewTicker(pluginsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		names, versions := l.p.Plugins(), l.p.Versions()
		if slices.Equal(names, told) && maps.Equal(versions, shown) {
			continue
		}
		if err := l.p.Processes.SetPlugins(ctx, l.id, names, versions); err != nil {
			if ctx.Err() == nil {
				l.p.logger().Warn("cannot update plugins of process", "process_id", l.id, "error", err)
			}
			continue
		}
		told, shown = names, versions
	}
}
