// Package execution holds the use cases by which operations run: starting and
// finishing attempts, what follows a failure, the end of an operation, task logs,
// and the scheduler's duties that keep all of it true.
//
// It is called by jobs/work, and for pause, resume and abort by the surfaces. It
// must not run tasks itself, and it leaves to the planner what follows a
// failure. What a newcomer gets wrong: River only delivers. Whether a task runs,
// and whether a result counts, is decided by the task's own row and the attempt
// number in it.
package execution

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/cache"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
	"loom/planner"
)

// AttemptKey names one try of one task.
type AttemptKey = store.AttemptKey

// Options are the limits of running tasks; a zero value means its default.
type Options struct {
	// MaxAttempts is how often a task is tried; 0 means the planner's default.
	MaxAttempts int
	// Limits are the time limits of attempts that differ from the defaults.
	Limits loom.TaskLimits
	// Grace is how long after its limit an attempt that did not end by itself is
	// given up; 0 means a minute.
	Grace time.Duration
	// LogAge is how long task logs are kept, counted from the day on which their
	// attempt began; 0 means 90 days, a negative one forever.
	LogAge time.Duration
	// LogBytes is how much of task logs is kept per tenant, the newest ones; 0: all.
	LogBytes int64
	// LogPatience is how long the end of a log waits for a database that is away, for
	// example restarted; 0 means 10 s. The result of the task could not be recorded
	// meanwhile either.
	LogPatience time.Duration
	// Logger takes what goes wrong in the background; nil means slog's default.
	Logger *slog.Logger
	// Ended learns of each operation that ended here, Logged of the bytes of task
	// logs that were stored, for metrics; nil tells nobody.
	Ended  func(action loom.ClusterAction, status loom.OperationStatus)
	Logged func(bytes int)
}

// Operations runs operations.
type Operations struct {
	db         *sqlx.DB
	ring       *secret.Ring
	opts       Options
	nodesCache nodeCache
	// servicesCache are the services of clusters while an operation runs: every node of a big
	// cluster asks for them once.
	servicesCache cache.Cache[loom.OperationRef, map[string]loom.Service]
	// checksCache says how the nodes of clusters are checked, until the next operation.
	checksCache  cache.Cache[loom.OperationRef, store.ClusterChecks]
	prepared     *store.Prepared
	permitsCache cache.Cache[loom.TenantID, loom.Permits]
	logs         logStore

	// timeoutsCache are the time limits that plugin types set, by plugin.
	timeoutsCache cache.Cache[struct{}, map[string]loom.PluginTimeouts]
}

// New makes the use cases. The ring opens sealed values when a task starts.
func New(db *sqlx.DB, ring *secret.Ring, opts Options) *Operations {
	if opts.MaxAttempts <= 0 {
		opts.MaxAttempts = planner.DefaultMaxAttempts
	}
	if opts.Grace <= 0 {
		opts.Grace = time.Minute
	}
	if opts.LogAge == 0 {
		opts.LogAge = 90 * 24 * time.Hour
	}
	if opts.LogPatience == 0 {
		opts.LogPatience = 10 * time.Second
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if opts.Ended == nil {
		opts.Ended = func(loom.ClusterAction, loom.OperationStatus) {}
	}
	if opts.Logged == nil {
		opts.Logged = func(int) {}
	}
	o := &Operations{db: db, ring: ring, opts: opts, prepared: store.Prepare(db), logs: logStore{db: db},
		nodesCache: nodeCache{clusters: map[nodeView]*clusterNodes{}, loading: map[nodeView]*sync.Mutex{}}}
	o.servicesCache.Most = maxClusters
	o.checksCache.Most = maxClusters
	o.permitsCache.Age, o.permitsCache.Most = permitsAge, maxPermits
	o.timeoutsCache.Age, o.timeoutsCache.Most = timeoutsFor, 1
	return o
}

// StartTasks begins attempts of delivered tasks for a process and returns those
// that began, with the time by the database clock; nothing is to be done for the
// others. Asking again after an error is safe: what began under this process is found.
func (o *Operations) StartTasks(ctx context.Context, process loom.ProcessID, keys []AttemptKey) (begun []AttemptKey, at time.Time, err error) {
	keys = slices.SortedFunc(slices.Values(keys), func(a, b AttemptKey) int { return cmp.Compare(a.Task, b.Task) })
	err = store.Exec(ctx, o.db, func(tx *sqlx.Tx) (err error) {
		begun, at, err = store.StartTasksAllTenants(ctx, o.prepared, tx, process, keys)
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	return begun, at, nil
}

// Finished is a success to record.
type Finished struct {
	Key    AttemptKey
	Result loom.TaskResult
}

// CompleteTasks records successes in one transaction and returns the tasks whose result
// counts. One that is missing is late: somebody else has the task.
func (o *Operations) CompleteTasks(ctx context.Context, finished []Finished) (map[loom.TaskID]bool, error) {
	slices.SortFunc(finished, func(a, b Finished) int { return cmp.Compare(a.Key.Task, b.Key.Task) })
	keys, results := make([]AttemptKey, len(finished)), make([]loom.TaskResult, len(finished))
	facts, files := map[loom.TaskID]taskFacts{}, map[loom.TaskID]map[string]int{}
	for i, f := range finished {
		keys[i], results[i] = f.Key, f.Result
		if f.Result.Files != nil {
			files[f.Key.Task] = f.Result.Files
		}
		if len(f.Result.Result) > 0 {
			l := splitResults(f.Key.Task, f.Result.Result)
			facts[f.Key.Task], results[i].Result = l, l.open
		}
	}
	accepted := make(map[loom.TaskID]bool, len(finished))
	err := store.Exec(ctx, o.db, func(tx *sqlx.Tx) error {
		done, err := store.CompleteTasksAllTenants(ctx, o.prepared, tx, keys, results)
		if err != nil {
			return err
		}
		var hidden []taskFacts
		for _, id := range done {
			accepted[id] = true
			if l, ok := facts[id]; ok {
				hidden = append(hidden, l)
			}
		}
		if err := recordFiles(ctx, tx, done, files); err != nil {
			return err
		}
		return o.sealHidden(ctx, tx, hidden...)
	})
	if err != nil {
		return nil, err
	}
	return accepted, nil
}

// StoreFact makes results of a running attempt durable on its node at once.
// Conflict says that the attempt does not hold its task any longer.
func (o *Operations) StoreFact(ctx context.Context, key AttemptKey, facts map[string]any) error {
	l := splitResults(key.Task, facts)
	held, err := store.InTx(ctx, o.db, func(tx *sqlx.Tx) (bool, error) {
		held, err := store.MergeFactsAllTenants(ctx, tx, key, l.open)
		if err != nil || !held {
			return held, err
		}
		return true, o.sealHidden(ctx, tx, l)
	})
	if err != nil {
		return err
	}
	if !held {
		return loom.NewError(loom.Conflict, "Attempt %d no longer holds its task.", key.Attempt)
	}
	return nil
}
