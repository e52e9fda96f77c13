package execution

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// RetryNow begins the next try of a task that failed and waits for it. Errors: NotFound,
// Forbidden, Conflict for a task that does not wait for a retry, or whose operation is
// paused.
func (o *Operations) RetryNow(ctx context.Context, actor loom.Actor, ref loom.TaskRef) error {
	return o.waiting(ctx, actor, ref, "retry-now", func(tx *sqlx.Tx, h *store.HeldTask, _ loom.Task) error {
		if h.Operation.Status == loom.OperationPaused {
			return loom.NewError(loom.Conflict, "Operation %d is paused; resume it first.", h.Operation.Ref.Number)
		}
		due, err := store.RetryNow(ctx, tx, h)
		if err == nil && !due {
			err = notRetried(ref, loom.TaskReady)
		}
		return err
	})
}

// StopRetrying gives up a task that failed and waits for its next try, and with it the
// operation. Errors as RetryNow, but it may be paused.
func (o *Operations) StopRetrying(ctx context.Context, actor loom.Actor, ref loom.TaskRef) error {
	return o.waiting(ctx, actor, ref, "stop-retrying", func(tx *sqlx.Tx, h *store.HeldTask, t loom.Task) error {
		why := fmt.Sprintf("failed, and %s stopped the retries", actor.User)
		if t.Message != "" {
			why += ": " + t.Message
		}
		code, err := store.LastCode(ctx, tx, h)
		if err != nil {
			return err
		}
		return o.giveUp(ctx, tx, h, loom.TaskResult{Status: code, Message: t.Message}, why)
	})
}

// waiting does something about a task that failed and waits for its next try.
func (o *Operations) waiting(ctx context.Context, actor loom.Actor, ref loom.TaskRef, verb string,
	act func(tx *sqlx.Tx, h *store.HeldTask, t loom.Task) error) error {
	_, err := o.control(ctx, actor, ref.Operation, verb, func(tx *sqlx.Tx, op *loom.Operation) (bool, error) {
		task, err := store.TaskByRef(ctx, tx, actor.Tenant, ref)
		if errors.Is(err, loom.NotFound) {
			return false, loom.NewError(loom.NotFound, "Operation %s has no task %d.", ref.Operation, ref.Number)
		}
		if err != nil {
			return false, err
		}
		h, err := store.LockTaskAllTenants(ctx, tx, task.Row)
		if err != nil {
			return false, err
		}
		// It may have begun while the lock was awaited.
		if !task.Again || h.Status != loom.TaskReady || h.Key.Attempt != task.Attempt {
			return false, notRetried(ref, h.Status)
		}
		if err := act(tx, &h, task); err != nil {
			return false, err
		}
		if err := store.SignalTask(ctx, tx, &h); err != nil {
			return false, err
		}
		return false, store.InsertAudit(ctx, tx, loom.AuditEntry{
			Actor: actor, Verb: verb, Kind: "task", Object: ref.String(), Result: "ok",
			Before: map[string]any{"status": task.Status, "attempt": task.Attempt},
		})
	})
	return err
}

func notRetried(ref loom.TaskRef, status loom.TaskStatus) error {
	return loom.NewError(loom.Conflict, "Task %d does not wait for a retry; it is %s.", ref.Number, status)
}
