package execution

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// ReleaseRetries makes retries available whose time has come and says how many there were.
func (o *Operations) ReleaseRetries(ctx context.Context) (int, error) {
	return store.InTx(ctx, o.db, func(tx *sqlx.Tx) (int, error) { return store.DueAllTenants(ctx, tx) })
}

// Reconcile puts right what a crash between two halves may leave and says how
// many things it touched.
func (o *Operations) Reconcile(ctx context.Context) (int, error) {
	open, err := store.OpenOperationsAllTenants(ctx, o.db)
	if err != nil {
		return 0, err
	}
	touched, err := store.InTx(ctx, o.db, func(tx *sqlx.Tx) (int, error) { return store.RecallAllTenants(ctx, tx) })
	errs := []error{err}
	for _, id := range open {
		n, err := store.InTx(ctx, o.db, func(tx *sqlx.Tx) (int, error) { return store.ReconcileAllTenants(ctx, tx, id) })
		touched += n
		errs = append(errs, err)
	}
	return touched, errors.Join(append(errs, store.WakeWaitingAllTenants(ctx, o.db))...)
}

// FailOverdue fails attempts that are past their limit and its grace: normally
// the provisioner stops at the limit by itself. It says how many there were.
func (o *Operations) FailOverdue(ctx context.Context) (int, error) {
	timeouts, err := o.pluginTimeouts(ctx)
	if err != nil {
		return 0, err
	}
	long, err := store.LongAttemptsAllTenants(ctx, o.db, o.opts.Limits.Shortest(timeouts)+o.opts.Grace)
	if err != nil {
		return 0, err
	}
	n := 0
	var errs []error
	for _, a := range long {
		limit := o.opts.Limits.Of(a.Action, timeouts, a.Plugins...)
		if a.Age < limit+o.opts.Grace {
			continue
		}
		recorded, err := o.FailTask(ctx, a.Key, loom.TaskResult{Status: -1,
			Message: fmt.Sprintf("timed out after %g s, and its process did not answer for it", limit.Seconds())})
		if recorded {
			n++
		}
		errs = append(errs, err)
	}
	return n, errors.Join(errs...)
}

// FailInterrupted fails those of the tasks that came back from lost processes whose
// attempts were interrupted too often in a row: a task that kills its
// provisioner would otherwise do so forever.
func (o *Operations) FailInterrupted(ctx context.Context, tasks []loom.TaskID) (int, error) {
	if len(tasks) == 0 {
		return 0, nil
	}
	keys, err := store.InterruptedTasksAllTenants(ctx, o.db, tasks, planner.MaxInterruptions)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, key := range keys {
		given, err := store.InTx(ctx, o.db, func(tx *sqlx.Tx) (bool, error) {
			h, err := store.LockTaskAllTenants(ctx, tx, key.Task)
			if err != nil || h.Status != loom.TaskReady || h.Key.Attempt != key.Attempt || h.Operation.Status == loom.OperationFailing {
				return false, err
			}
			r := loom.TaskResult{Status: -1, Message: "The process that ran it was lost."}
			if err := o.giveUp(ctx, tx, &h, r, fmt.Sprintf("was interrupted %d times in a row.", planner.MaxInterruptions)); err != nil {
				return false, err
			}
			return true, store.SignalTask(ctx, tx, &h)
		})
		if err != nil {
			return n, err
		}
		if given {
			n++
		}
	}
	return n, nil
}
