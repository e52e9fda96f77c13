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
	// attempt began; 0 means 90 days, a negative one for ever.
	LogAge time.Duration
	// LogBytes is how much of task logs is kept per tenant, the newest ones; 0: all.
	LogBytes int64
	// LogPatience is how long the end of a log waits for a database that is away, for
	// example restarted; 0 means 10 s. The result of the task could not be recorded
	// meanwhile either.
	LogPatience time.Duration
	// Logger takes what goes wrong in the background; nil means slog's default.
	Logger *slog.Logger
	// Ended is told of each operation that ended here, Logged of the bytes of task
	// logs that were stored, for metrics; nil tells nobody.
	Ended  func(action loom.ClusterAction, status loom.OperationStatus)
	Logged func(bytes int)
}

// Operations runs operations.
type Operations struct {
	db        *sqlx.DB
	ring      *secret.Ring
	opts      Options
	cache     nodeCache
	known     serviceCache
	hot       *store.Hot
	permitted permits
	logs      logStore

	timeouts timeoutCache
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
	return &Operations{db: db, ring: ring, opts: opts, hot: store.PrepareHot(db), logs: logStore{db: db},
		cache: nodeCache{clusters: map[view]*clusterNodes{}, loading: map[view]*sync.Mutex{}}}
}

// StartTasks begins attempts of delivered tasks for a process and gives those
// that began, with the time by the database clock; nothing is to be done for the
// others.
func (o *Operations) StartTasks(ctx context.Context, process loom.ProcessID, keys []AttemptKey) (begun []AttemptKey, at time.Time, err error) {
	_, err = store.Single(ctx, o.db, func(tx *sqlx.Tx) (_ struct{}, err error) {
		begun, at, err = store.StartTasksAllTenants(ctx, o.hot, tx, process, keys)
		return struct{}{}, err
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

// Taken is an attempt that began in the process that recorded other ones.
type Taken = store.Taken

// Ends is what became of successes that were offered.
type Ends struct {
	// Accepted are the tasks whose result counts. One that is missing is late:
	// somebody else has the task.
	Accepted map[loom.TaskID]bool
	// Taken are the attempts that the process has to run now, At when they began by
	// the clock of the database.
	Taken []Taken
	At    time.Time
}

// FinishTasks records successes of a process in one transaction, which also begins
// what they set free: of each tenant as many tasks as the process has room for. After
// an error nobody knows whether it did; see HeldAttempts.
func (o *Operations) FinishTasks(ctx context.Context, process loom.ProcessID, finished []Finished, room map[loom.TenantID]int) (Ends, error) {
	slices.SortFunc(finished, func(a, b Finished) int { return cmp.Compare(a.Key.Task, b.Key.Task) })
	keys, results := make([]AttemptKey, len(finished)), make([]loom.TaskResult, len(finished))
	var facts map[loom.TaskID]learned
	files := map[loom.TaskID]map[string]int{}
	for i, f := range finished {
		keys[i], results[i] = f.Key, f.Result
		if f.Result.Files != nil {
			files[f.Key.Task] = f.Result.Files
		}
		if len(f.Result.Result) == 0 {
			continue
		}
		l := learn(f.Key.Task, f.Result.Result)
		if facts == nil {
			facts = map[loom.TaskID]learned{}
		}
		facts[f.Key.Task], results[i].Result = l, l.open
	}
	transaction := store.InTx[store.Ends]
	if facts == nil && len(files) == 0 {
		transaction = store.Single[store.Ends]
	}
	ends, err := transaction(ctx, o.db, func(tx *sqlx.Tx) (store.Ends, error) {
		ends, err := store.FinishTasksAllTenants(ctx, o.hot, tx, process, keys, results, room)
		if err == nil && len(files) > 0 {
			err = keepFiles(ctx, tx, ends.Accepted, files)
		}
		if err != nil || facts == nil {
			return ends, err
		}
		var kept []learned
		for _, id := range ends.Accepted {
			if l, ok := facts[id]; ok {
				kept = append(kept, l)
			}
		}
		// What was learned in secret is not yet in what came with the attempts that begin.
		for i := range ends.Taken {
			ends.Taken[i].Forget()
		}
		return ends, o.keepHidden(ctx, tx, kept...)
	})
	return endsOf(ends), err
}

// Fill begins, in one transaction, of each tenant as many of the tasks that wait as the
// process has room for. After an error nobody knows whether it did; see HeldAttempts.
func (o *Operations) Fill(ctx context.Context, process loom.ProcessID, room map[loom.TenantID]int) (Ends, error) {
	ends, err := store.Single(ctx, o.db, func(tx *sqlx.Tx) (store.Ends, error) {
		return store.FillAllTenants(ctx, o.hot, tx, process, room)
	})
	return endsOf(ends), err
}

func endsOf(ends store.Ends) Ends {
	out := Ends{Accepted: make(map[loom.TaskID]bool, len(ends.Accepted)), Taken: ends.Taken, At: ends.At}
	for _, id := range ends.Accepted {
		out.Accepted[id] = true
	}
	return out
}

// HeldAttempts gives the attempts that run in a process by what is stored. It is
// asked after an answer got lost, whether something began.
func (o *Operations) HeldAttempts(ctx context.Context, process loom.ProcessID) ([]Taken, error) {
	return store.HeldAttemptsAllTenants(ctx, o.db, process)
}

// StoreFact makes results of a running attempt durable on its node at once.
// Conflict says that the attempt does not hold its task any more.
func (o *Operations) StoreFact(ctx context.Context, key AttemptKey, facts map[string]any) error {
	l := learn(key.Task, facts)
	held, err := store.InTx(ctx, o.db, func(tx *sqlx.Tx) (bool, error) {
		held, err := store.MergeFactsAllTenants(ctx, tx, key, l.open)
		if err != nil || !held {
			return held, err
		}
		return true, o.keepHidden(ctx, tx, l)
	})
	if err != nil {
		return err
	}
	if !held {
		return loom.NewError(loom.Conflict, "Attempt %d does not hold its task any more.", key.Attempt)
	}
	return nil
}
