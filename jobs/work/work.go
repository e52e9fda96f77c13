// Package work carries out background work: the River clients of schedulers and
// provisioners and one worker per kind, with what stands around them. The
// dispatcher holds queues only while they have work, the limiter keeps each
// tenant to its workers, the committer records starts and results in batches.
//
// It decides nothing about operations: what is due, what follows a result and
// every limit come from the use cases. What a newcomer gets wrong: a worker
// returns nil once an outcome is recorded, a failed script included. An error
// would make River try again by its own rules.
package work

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"loom/app/execution"
	"loom/app/fleet"
	"loom/app/hook"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/store"
	"loom/jobs"
)

// Runner carries out one attempt and always gives a result; the cause with which
// ctx is cancelled is part of it. Package provisioner has the real one.
type Runner interface {
	Run(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) loom.TaskResult
}

// Common is what every process that works needs.
type Common struct {
	// DSN of the database, for River's own small pool and for listening.
	DSN string
	// Operations and Processes are the use cases.
	Operations *execution.Operations
	Processes  *processes.Processes
	// Fleet knows what was seen of nodes.
	Fleet *fleet.Fleet
	// BeginRepair begins what Fleet decides to repair; nil repairs nothing.
	BeginRepair fleet.BeginRepair
	// AdvanceRollouts takes rollouts further; nil leaves them alone.
	AdvanceRollouts func(ctx context.Context) error
	// Hooks sends notices. It is called in schedulers only; nil elsewhere.
	Hooks *hook.Hooks
	// Asker asks providers what no task is about. It is called in provisioners
	// only; nil elsewhere.
	Asker processes.Asker
	// Follower follows journals. It is called in provisioners only; nil elsewhere.
	Follower fleet.Follower
	// Expire deletes clusters whose lease is over; nil does nothing. It is called
	// in schedulers only.
	Expire func(ctx context.Context) error
	// LinkAudit links new entries of the audit, once a second; KeepAudit notes the
	// newest one and removes old ones, once an hour. Nil does nothing. They are
	// called in schedulers only.
	LinkAudit, KeepAudit func(ctx context.Context) error
	// SweepBucket deletes files of plugin resources that nothing knows; nil does
	// nothing. It is called in schedulers only.
	SweepBucket func(ctx context.Context) error
	// KeepDone is how long River's completed and canceled jobs stay, KeepFailed how long discarded
	// ones do; 0 means River's own 24 hours and 7 days, -1 forever.
	KeepDone, KeepFailed time.Duration
	// Version of the program, for the list of processes.
	Version string
	// Port of the process's health address, 0 for none.
	Port int
	// Logger; nil means slog's default.
	Logger *slog.Logger
	// Metrics is told what happens, for metrics; nil for nobody.
	Metrics Metrics
	// Test makes River start its services without the usual random delays.
	Test bool

	// lastError has the last error of the process, once remember was called.
	lastError *processes.LastError
}

// recordErrors makes the list of processes show the last error that is logged.
func (c *Common) recordErrors() {
	c.lastError = &processes.LastError{}
	c.Logger = c.lastError.Log(c.logger())
}

func (c *Common) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.Default()
	}
	return c.Logger
}

func (c *Common) metrics() Metrics {
	if c.Metrics == nil {
		return noopMetrics{}
	}
	return c.Metrics
}

// Times of River's clients.
const (
	fetchCooldown = time.Millisecond
	fetchPoll     = 10 * time.Second
	// poolConns are the connections of a River client: fetching, completing and
	// one for LISTEN. A thousand slots fit on sixteen.
	poolConns = 12
)

// riverClient is a client with its pool.
type riverClient struct {
	*river.Client[pgx.Tx]
	pool *pgxpool.Pool
}

// newRiver makes a client that works queues under the id of its process; ctx ends
// when that shall stop. Every client knows every kind and the same periodic list,
// since any of them may become River's leader; its queues alone say what it works.
// Its sessions say that they are River's: what it answers about tasks does not count
// (loom_answer).
//
// With relaxed, what River itself writes is not waited for on disk. That is right
// for tasks: a delivery counts only with loom_start, which does wait, and with it
// for all that was written before. A delivery that a crash of the database takes
// back was never begun.
func newRiver(ctx context.Context, c *Common, id loom.ProcessID, relaxed bool, queues map[string]river.QueueConfig, runTask river.Worker[jobs.RunTask]) (*riverClient, error) {
	config, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, fmt.Errorf("read the database URL for River: %w", err)
	}
	config.MaxConns = poolConns
	config.ConnConfig.RuntimeParams["application_name"] = "loom " + string(id)
	config.ConnConfig.RuntimeParams["loom.river"] = "on"
	for name, value := range store.SessionSettings() {
		if config.ConnConfig.RuntimeParams[name] == "" {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	if relaxed {
		config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open River's pool: %w", err)
	}
	limit := c.Operations.LongestLimit() + time.Minute
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		ID:                          string(id),
		Queues:                      queues,
		Workers:                     workers(ctx, c, id, runTask),
		PeriodicJobs:                periodics(),
		FetchCooldown:               fetchCooldown,
		FetchPollInterval:           fetchPoll,
		JobTimeout:                  limit,
		RescueStuckJobsAfter:        limit + 15*time.Minute,
		CompletedJobRetentionPeriod: c.KeepDone,
		CancelledJobRetentionPeriod: c.KeepDone,
		DiscardedJobRetentionPeriod: c.KeepFailed,
		ReindexerIndexNames:         reindexed(),
		Logger:                      quiet(c.logger()),
		TestOnly:                    c.Test,
	})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("make River's client: %w", err)
	}
	return &riverClient{client, pool}, nil
}

// quiet keeps River's own news out of the log: it tells of every client and every
// few seconds of counts.
func quiet(log *slog.Logger) *slog.Logger { return slog.New(atLeastWarn{log.Handler()}) }

// atLeastWarn passes on warnings and errors only.
type atLeastWarn struct{ slog.Handler }

// Enabled reports whether lines of a level are passed on.
func (h atLeastWarn) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

// WithAttrs keeps the limit.
func (h atLeastWarn) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeastWarn{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the limit.
func (h atLeastWarn) WithGroup(name string) slog.Handler {
	return atLeastWarn{h.Handler.WithGroup(name)}
}

// reindexed are River's indexes without the two that a migration drops.
func reindexed() []string {
	var names []string
	for _, name := range river.ReindexerIndexNamesDefault() {
		if name != "river_job_args_index" && name != "river_job_metadata_index" {
			names = append(names, name)
		}
	}
	return names
}

func workers(ctx context.Context, c *Common, id loom.ProcessID, runTask river.Worker[jobs.RunTask]) *river.Workers {
	w := river.NewWorkers()
	river.AddWorker(w, runTask)
	river.AddWorker(w, &endOperation{ops: c.Operations})
	river.AddWorker(w, &deliverHook{hooks: c.Hooks, ops: c.Operations, watch: c.metrics()})
	river.AddWorker(w, &probeProvider{processes: c.Processes, asker: c.Asker, process: id, until: ctx, log: c.logger().With("process_id", id)})
	river.AddWorker(w, &followJournal{fleet: c.Fleet, ops: c.Operations, follower: c.Follower, process: id, until: ctx})
	river.AddWorker(w, newPeriodicWorker[jobs.SweepProviders]("ask for sweeps of providers", c.Processes.RequestSweeps))
	river.AddWorker(w, newPeriodicWorker[jobs.ExpireClusters]("expire clusters", c.Expire))
	river.AddWorker(w, newPeriodicWorker[jobs.PurgeSessions]("purge sessions", c.Operations.PurgeSessions))
	river.AddWorker(w, newPeriodicWorker[jobs.TrimEvents]("trim events", c.Operations.TrimEvents))
	river.AddWorker(w, newPeriodicWorker[jobs.TrimLogs]("trim task logs", c.Operations.TrimLogs))
	river.AddWorker(w, newPeriodicWorker[jobs.KeepAudit]("keep the audit", c.KeepAudit))
	river.AddWorker(w, newPeriodicWorker[jobs.SweepBucket]("sweep the bucket", c.SweepBucket))
	return w
}

// noopWorker stands for run_task in processes that hold no tenant's queue. It is
// never delivered; should it be, the job goes on as if it had not been.
type noopWorker struct {
	river.WorkerDefaults[jobs.RunTask]
}

// Timeout is that of runTask: River's rescuer asks it, in whatever process it runs.
func (noopWorker) Timeout(*river.Job[jobs.RunTask]) time.Duration { return riverLimit }

// Work returns the job back.
func (noopWorker) Work(context.Context, *river.Job[jobs.RunTask]) error {
	return river.JobSnooze(time.Second)
}
