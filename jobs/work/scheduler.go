package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"loom/app/hook"
	"loom/app/loom"
	"loom/app/processes"
	"loom/jobs"
)

// Scheduler is a process for control work and the duties that keep the rest
// true: lost processes, due retries, overdue attempts, the reconciler. Any number
// may run. Zero times mean their defaults.
type Scheduler struct {
	Common
	// ReapEvery is the interval of looking for lost processes and due retries, 1 s.
	ReapEvery time.Duration
	// ReconcileEvery is that of the reconciler and of overdue attempts, 10 s.
	ReconcileEvery time.Duration
	// StopTimeout bounds how long control work may go on after ctx ended, 30 s.
	StopTimeout time.Duration
}

// controlWorkers is how many pieces of control work run at once.
const controlWorkers = 20

// queues are those that a scheduler works. Notices are sent only where there is
// what sends them.
func (s *Scheduler) queues() map[string]river.QueueConfig {
	queues := map[string]river.QueueConfig{jobs.ControlQueue: {MaxWorkers: controlWorkers}}
	if s.Hooks != nil {
		queues[jobs.HookQueue] = river.QueueConfig{MaxWorkers: hook.Calls}
	}
	return queues
}

// Run works until ctx ends.
func (s *Scheduler) Run(ctx context.Context) error {
	if s.ReapEvery <= 0 {
		s.ReapEvery = time.Second
	}
	if s.ReconcileEvery <= 0 {
		s.ReconcileEvery = 10 * time.Second
	}
	if s.StopTimeout <= 0 {
		s.StopTimeout = 30 * time.Second
	}
	s.recordErrors()
	return restartLoop(ctx, &s.Common, s.runOnce)
}

func (s *Scheduler) runOnce(ctx context.Context) error {
	id, err := s.Processes.Register(ctx, processes.NewProcess{Kind: loom.ProcessScheduler, Port: s.Port, Version: s.Version, LastError: s.lastError})
	if err != nil {
		return err
	}
	s.metrics().LeaseHeld(loom.ProcessScheduler, true)
	defer s.metrics().LeaseHeld(loom.ProcessScheduler, false)
	base := context.WithoutCancel(ctx)
	log := s.logger().With("process_id", id)
	client, err := newRiver(ctx, &s.Common, id, false, s.queues(), noopWorker{})
	if err != nil {
		return errors.Join(err, s.Processes.Deregister(base, id))
	}
	defer client.pool.Close()
	if err := client.Start(base); err != nil {
		return errors.Join(fmt.Errorf("start River's client: %w", err), s.Processes.Deregister(base, id))
	}
	var background sync.WaitGroup
	defer background.Wait()
	dutyCtx, endDuties := context.WithCancel(ctx)
	defer endDuties()
	background.Go(func() { every(dutyCtx, s.ReapEvery, func() { s.reap(dutyCtx, log) }) })
	background.Go(func() { s.sealNodes(dutyCtx, log) })
	if s.AdvanceRollouts != nil {
		background.Go(func() { every(dutyCtx, s.ReapEvery, func() { s.advanceRollouts(dutyCtx, log) }) })
	}
	if s.LinkAudit != nil {
		background.Go(func() { every(dutyCtx, s.ReapEvery, func() { s.linkAudit(dutyCtx, log) }) })
	}
	background.Go(func() { every(dutyCtx, s.ReconcileEvery, func() { s.reconcile(dutyCtx, log) }) })
	if s.Fleet != nil {
		background.Go(func() { every(dutyCtx, judgeEvery, func() { s.judge(dutyCtx, log) }) })
	}
	lost := make(chan error, 1)
	leaseCtx, endLease := context.WithCancel(base)
	defer endLease()
	background.Go(func() {
		lost <- s.Processes.HoldLease(leaseCtx, id, nil, func() bool { return ctx.Err() != nil }, func(processes.Renewal) {})
	})
	log.Info("scheduler started")

	var lostErr error
	select {
	case <-ctx.Done():
	case lostErr = <-lost:
		s.metrics().LeaseHeld(loom.ProcessScheduler, false)
	}
	endDuties()
	stopCtx, cancel := context.WithTimeout(base, s.StopTimeout)
	defer cancel()
	if err := client.Stop(stopCtx); err != nil {
		err = client.StopAndCancel(base)
		log.Warn("control work canceled", "error", err)
	}
	endLease()
	if lostErr != nil {
		return lostErr
	}
	return s.Processes.Deregister(base, id)
}

// every calls do now and then after each interval, until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// reap returns the work of lost processes and makes due retries available.
func (s *Scheduler) reap(ctx context.Context, log *slog.Logger) {
	lost, err := s.Processes.Reap(ctx)
	for _, l := range lost {
		log.Warn("process lost, requeueing tasks", "lost_process_id", l.Process, "kind", l.Kind, "tasks", len(l.Tasks))
		if _, weary := s.Operations.FailInterrupted(ctx, l.Tasks); weary != nil {
			err = errors.Join(err, weary)
		}
	}
	_, dueErr := s.Operations.ReleaseRetries(ctx)
	if err = errors.Join(err, dueErr); err != nil && ctx.Err() == nil {
		log.Error("reaping failed", "error", err)
	}
}

// reconcile puts right what crashes left and fails what is overdue.
func (s *Scheduler) reconcile(ctx context.Context, log *slog.Logger) {
	touched, err := s.Operations.Reconcile(ctx)
	if touched > 0 {
		log.Warn("reconciler repaired state", "count", touched)
	}
	revived, hookErr := s.Operations.ReconcileHooks(ctx)
	if revived > 0 {
		log.Warn("reconciler repaired hook deliveries", "count", revived)
	}
	err = errors.Join(err, hookErr)
	overdue, overdueErr := s.Operations.FailOverdue(ctx)
	if overdue > 0 {
		log.Warn("overdue attempts failed", "count", overdue)
	}
	if err = errors.Join(err, overdueErr); err != nil && ctx.Err() == nil {
		log.Error("reconciling failed", "error", err)
	}
}

// judgeEvery is how often what was seen of nodes is looked over for what is too old.
const judgeEvery = 15 * time.Second

// judge makes unknown what nobody heard of for too long, removes journals that are over, and
// decides about repairs.
func (s *Scheduler) judge(ctx context.Context, log *slog.Logger) {
	if _, err := s.Fleet.Judge(ctx); err != nil && ctx.Err() == nil {
		log.Error("judging the health of nodes failed", "error", err)
	}
	if err := s.Fleet.TrimJournals(ctx); err != nil && ctx.Err() == nil {
		log.Error("removing old journals failed", "error", err)
	}
	if s.BeginRepair == nil {
		return
	}
	decided, err := s.Fleet.DecideRepairs(ctx, s.BeginRepair)
	for _, i := range decided {
		log.Info("decided about an incident", "incident", i.ID, "cluster", i.Cluster, "node", i.Node, "kind", i.Kind, "service", i.Service, "decision", i.Decision, "reason", i.Reason, "operation", i.Operation)
		s.metrics().Decided(i)
	}
	if err != nil && ctx.Err() == nil {
		log.Error("deciding about repairs failed", "error", err)
	}
}

// advanceRollouts begins operations of rollouts, and records which ended.
func (s *Scheduler) advanceRollouts(ctx context.Context, log *slog.Logger) {
	if err := s.AdvanceRollouts(ctx); err != nil && ctx.Err() == nil {
		log.Error("advancing rollouts failed", "error", err)
	}
}

// linkAudit goes on with the chain of the audit.
func (s *Scheduler) linkAudit(ctx context.Context, log *slog.Logger) {
	if err := s.LinkAudit(ctx); err != nil && ctx.Err() == nil {
		log.Error("linking audit log failed", "error", err)
	}
}

// sealNodes seals what an earlier release left in clear.
func (s *Scheduler) sealNodes(ctx context.Context, log *slog.Logger) {
	n, err := s.Operations.SealNodes(ctx)
	if n > 0 {
		log.Warn("sealed machine passwords stored in clear", "count", n)
	}
	if err != nil && ctx.Err() == nil {
		log.Error("sealing machine passwords failed", "error", err)
	}
}
