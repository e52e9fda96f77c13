package execution

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/jobs"
)

// Pause lets nothing more of a running operation start; tasks under way finish.
// It returns the operation as it is then. In any other state it changes nothing.
func (o *Operations) Pause(ctx context.Context, actor loom.Actor, ref loom.OperationRef) (loom.Operation, error) {
	return o.control(ctx, actor, ref, "pause", func(tx *sqlx.Tx, op *loom.Operation) (bool, error) {
		if op.Status != loom.OperationRunning {
			return false, nil
		}
		return true, store.PauseOperation(ctx, tx, op, fmt.Sprintf("Paused by %s.", actor.User))
	})
}

// Resume lets a paused operation go on. In any other state it changes nothing.
func (o *Operations) Resume(ctx context.Context, actor loom.Actor, ref loom.OperationRef) (loom.Operation, error) {
	return o.control(ctx, actor, ref, "resume", func(tx *sqlx.Tx, op *loom.Operation) (bool, error) {
		if op.Status != loom.OperationPaused {
			return false, nil
		}
		if err := store.ResumeOperation(ctx, tx, op, fmt.Sprintf("Resumed by %s.", actor.User)); err != nil {
			return false, err
		}
		// Its last task may have finished during the pause.
		return true, store.Enqueue(ctx, tx, jobs.EndOperation{OperationID: int64(op.Row)})
	})
}

// Abort fails an operation that has not ended: what waits is dropped, running
// attempts are told to stop. What it did is undone then if that is its policy; who
// aborts the undo as well keeps what there is. One that fails already or has ended
// stays as it is.
func (o *Operations) Abort(ctx context.Context, actor loom.Actor, ref loom.OperationRef) (loom.Operation, error) {
	return o.control(ctx, actor, ref, "abort", func(tx *sqlx.Tx, op *loom.Operation) (bool, error) {
		if op.Status.Final() || op.Status == loom.OperationFailing {
			return false, nil
		}
		message := fmt.Sprintf("Aborted by %s.", actor.User)
		if op.Status == loom.OperationRollingBack {
			message = fmt.Sprintf("%s The undo was aborted by %s.", sentence(op.Message), actor.User)
		}
		return true, store.FailOperation(ctx, tx, op, message, true)
	})
}

// control checks rights, locks the operation, lets act change it and keeps an
// audit record of a change. NotFound for what the actor may not know of.
func (o *Operations) control(ctx context.Context, actor loom.Actor, ref loom.OperationRef, verb string,
	act func(tx *sqlx.Tx, op *loom.Operation) (bool, error)) (op loom.Operation, err error) {
	// River's clients lock their jobs in no order.
	for range deadlockTries {
		if op, err = o.controlOnce(ctx, actor, ref, verb, act); !store.IsDeadlock(err) {
			return op, err
		}
	}
	return op, err
}

// deadlockTries is how often control begins again after a deadlock.
const deadlockTries = 3

func (o *Operations) controlOnce(ctx context.Context, actor loom.Actor, ref loom.OperationRef, verb string,
	act func(tx *sqlx.Tx, op *loom.Operation) (bool, error)) (loom.Operation, error) {
	return store.InTx(ctx, o.db, func(tx *sqlx.Tx) (loom.Operation, error) {
		o, err := store.ClusterObject(ctx, tx, actor.Tenant, ref.Cluster)
		if err != nil {
			return loom.Operation{}, err
		}
		err = actor.May(loom.Operate, o)
		if errors.Is(err, loom.NotFound) {
			return loom.Operation{}, loom.NewError(loom.NotFound, "There is no operation %s.", ref)
		}
		if err != nil {
			return loom.Operation{}, err
		}
		op, err := store.LockOperation(ctx, tx, actor.Tenant, ref)
		if err != nil {
			return loom.Operation{}, err
		}
		before := op.Status
		changed, err := act(tx, &op)
		if err != nil || !changed {
			return op, err
		}
		return op, store.InsertAudit(ctx, tx, loom.AuditEntry{
			Actor: actor, Verb: verb, Kind: "operation", Object: ref.String(), Result: "ok",
			Before: map[string]any{"status": before}, After: map[string]any{"status": op.Status},
		})
	})
}

// Skip leaves out a task of a paused operation, so that those behind it go on when it
// is resumed; only administrators may, with a reason. It must be next on its node:
// leaving out what still waits for others would let what is behind it run too early.
// Errors: NotFound, Forbidden, Invalid about the field reason, Conflict for an
// operation that is not paused and a task that does not wait to run.
func (o *Operations) Skip(ctx context.Context, actor loom.Actor, ref loom.TaskRef, reason string) error {
	_, err := o.control(ctx, actor, ref.Operation, "skip", func(tx *sqlx.Tx, op *loom.Operation) (bool, error) {
		if err := actor.May(loom.Override, actor.InTenant()); err != nil {
			return false, err
		}
		task, err := store.TaskByRef(ctx, tx, actor.Tenant, ref)
		if errors.Is(err, loom.NotFound) {
			return false, loom.NewError(loom.NotFound, "Operation %s has no task %d.", ref.Operation, ref.Number)
		}
		if err != nil {
			return false, err
		}
		if err := loom.InvalidFields(loom.CheckReason("reason", reason)); err != nil {
			return false, err
		}
		if why := op.WhyNotSkipped(&task); why != "" {
			return false, loom.NewError(loom.Conflict, "%s", why)
		}
		skipped, err := store.SkipTask(ctx, tx, task.Row, store.Skip{By: actor.User, Reason: reason})
		if err == nil && !skipped {
			err = loom.NewError(loom.Conflict, "Task %d is %s already.", ref.Number, task.Status)
		}
		if err != nil {
			return false, err
		}
		// It is the task that changed.
		return false, store.InsertAudit(ctx, tx, loom.AuditEntry{
			Actor: actor, Verb: "skip", Kind: "task", Object: ref.String(), Result: "ok",
			Before: map[string]any{"status": task.Status}, After: map[string]any{"status": loom.TaskSkipped, "reason": reason},
		})
	})
	return err
}
