package wiring

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"loom/app/loom"
	"loom/app/telemetry"
	"loom/jobs/work"
	"loom/provisioner/remote"
)

// Common is what schedulers and provisioners share.
func (e *Environment) Common(s *System, port int) work.Common {
	return work.Common{
		DSN: s.dsn, Operations: s.operations, Processes: s.Processes, Fleet: s.Fleet, BeginRepair: s.Clusters.BeginRepair, AdvanceRollouts: s.Clusters.AdvanceRollouts, Version: telemetry.BuildVersion(), Port: port, Logger: e.Log,
		LinkAudit: s.Accounts.LinkAudit, KeepAudit: func(ctx context.Context) error { return e.keepAudit(ctx, s) },
		SweepBucket: func(ctx context.Context) error { return e.sweepBucket(ctx, s) },
		Expire:      s.Clusters.Expire, Hooks: s.Hooks, Metrics: watch{s.metrics, s.Health},
		KeepDone: e.keep("LOOM_JOB_HOURS", time.Hour), KeepFailed: e.keep("LOOM_FAILED_JOB_DAYS", 24*time.Hour),
	}
}

// keep returns how long something is kept by an option that counts in units; -1 for ever.
func (e *Environment) keep(option string, unit time.Duration) time.Duration {
	if n := e.Values.Number(option); n > 0 {
		return time.Duration(n) * unit
	}
	return -1
}

// uploadAge is how old a file of the bucket must be before a sweep may take it:
// longer than any upload takes.
const uploadAge = 24 * time.Hour

// sweepBucket deletes files that uploads which broke off, deleted versions and
// deleted tenants left behind.
func (e *Environment) sweepBucket(ctx context.Context, s *System) error {
	swept, err := s.Catalog.SweepBucket(ctx, uploadAge)
	if swept > 0 {
		e.Log.Info("files of plugin resources that nothing knows are deleted", "files", swept)
	}
	return err
}

// Scheduler makes a scheduler; it is the one that tells the metrics of the whole
// installation.
func (e *Environment) Scheduler(s *System, port int) *work.Scheduler {
	s.metrics.State(s.Processes.Figures, e.Log)
	// The last two are 0, and so the usual ones, where the lease is.
	return &work.Scheduler{Common: e.Common(s, port), ReapEvery: e.Lease / 10, ReconcileEvery: e.Lease}
}

// collect lets the memory of a provisioner grow further between collections than Go does by
// itself: what lives is small, and what thousands of short tasks leave is not worth collecting
// so often. That changes with the nodes that are watched: each has a connection that lives.
func collect(nodes int) { debug.SetGCPercent(max(50, 300*1000/max(1000, nodes))) }

// Provisioner makes a provisioner ready: its plugin types are in the catalog and
// the machines of this host run. done closes what it holds, and ends the builds of
// base roots.
func (e *Environment) Provisioner(ctx context.Context, s *System, p *Plugins, port int) (*work.Provisioner, func(), error) {
	if err := e.Register(ctx, s, p); err != nil {
		return nil, nil, err
	}
	if !hasTerminal() {
		e.RescanOnHangup(ctx, s, p)
	}
	host, adopted := e.adopt(ctx, p)
	s.metrics.Tenants(s.Processes.TenantNames, e.Log)
	runner, pool, err := e.Runner(p, s.Catalog)
	if err != nil {
		return nil, nil, err
	}
	dir, err := e.DataDir()
	if err != nil {
		return nil, nil, err
	}
	s.metrics.Plugins(p.Names())
	pool.Dialer().Dialed = s.metrics.Connected
	watching := collect
	if os.Getenv("GOGC") != "" {
		watching = func(int) {}
	}
	watching(0)
	hurry := secondSignal(ctx)
	common := e.Common(s, port)
	common.Asker, common.Follower = runner, runner
	return &work.Provisioner{
		Common: common, Runner: runner, Watcher: runner, HealthRate: e.Values.Number("LOOM_HEALTH_RATE"), Watching: watching, Capacity: e.Values.Number("LOOM_PROVISIONER_CAPACITY"),
		Plugins: p.Names, Versions: p.versions, Local: host, DataDir: filepath.Join(dir, "provisioner"), Hurry: hurry, Sweep: e.Lease,
	}, e.watchMachines(ctx, s, p, pool, adopted), nil
}

// watchMachines keeps the machines of this host to their disk, and removes base roots
// that no image type names, until the function that it gives is called.
func (e *Environment) watchMachines(ctx context.Context, s *System, p *Plugins, pool *remote.Pool, adopted func()) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Local.Watch(ctx, func(line string) { e.Log.Warn("local machines", "event", line) }, s.Catalog.ImagesAllTenants)
	}()
	return func() {
		cancel()
		<-done
		adopted()
		p.Local.Close()
		pool.Close()
	}
}

// adopt tells what the host lacks and what is changed of it, and begins to boot its
// machines that should run and do not, which nothing but tasks of these machines waits
// for. Trouble stops no other work: what a task then finds is said by the task. The
// function that it returns waits for the last machine, or the end of ctx.
func (e *Environment) adopt(ctx context.Context, p *Plugins) (loom.LocalHost, func()) {
	if err := p.Local.Ready(); err != nil {
		e.Log.Warn("this provisioner cannot make local machines", "error", err.Error())
		return loom.LocalHost{}, func() {}
	}
	host := p.Local.Host()
	for _, line := range host.Lacks {
		e.Log.Warn("local machines", "host", line)
	}
	said, err := p.Local.Raise()
	for _, line := range said {
		e.Log.Info("local machines", "host", line)
	}
	if err != nil {
		e.Log.Warn("settings of this host stay too low for its local machines", "error", err.Error())
	}
	ctx, cancel := context.WithCancel(ctx)
	tell := func(err error) {
		if ctx.Err() == nil {
			e.Log.Error("local machines after a start", "error", loom.Short(err.Error()))
		}
	}
	wait, err := p.Local.AdoptBeside(ctx, tell)
	if err != nil {
		tell(err)
		wait = func() {}
	}
	return host, func() { cancel(); wait() }
}

// secondSignal returns a channel that is closed by a signal after the one that
// ended ctx.
func secondSignal(ctx context.Context) <-chan struct{} {
	hurry := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		// The signal that ended ctx may still be in the channel.
		for began := time.Now(); ; {
			<-signals
			if time.Since(began) > 200*time.Millisecond {
				close(hurry)
				return
			}
		}
	}()
	return hurry
}

// keepAudit notes where the chain of the audit ends and removes what is too old.
// Whoever keeps the log elsewhere can tell later that the end was cut off.
func (e *Environment) keepAudit(ctx context.Context, s *System) error {
	mark, err := s.Accounts.NewestAudit(ctx)
	if err != nil {
		return err
	}
	if mark.Number > 0 {
		e.Log.Info("newest entry of the audit chain", "mark", mark.String())
	}
	gone, err := s.Accounts.TrimAudit(ctx, time.Duration(e.Values.Number("LOOM_AUDIT_DAYS"))*24*time.Hour)
	if gone > 0 {
		e.Log.Info("old entries of the audit were removed", "count", gone)
	}
	return err
}
