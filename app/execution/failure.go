package execution

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// FailTask records an attempt that ended without success and does what the
// planner says: try again, make the machine anew first, or fail the operation.
// It reports false for a late result, which changes nothing except that the id
// of a machine nobody knew of is kept on its node.
func (o *Operations) FailTask(ctx context.Context, key AttemptKey, result loom.TaskResult) (bool, error) {
	if result.Status == 0 && (result.Interrupted || result.Aborted) {
		result.Status = -1
	}
	if result.Status == 0 {
		return false, fmt.Errorf("task %d: a success is not a failure", key.Task)
	}
	return store.InTx(ctx, o.db, func(tx *sqlx.Tx) (bool, error) {
		h, err := store.LockTaskAllTenants(ctx, tx, key.Task)
		if err != nil {
			return false, err
		}
		if h.Status != loom.TaskRunning || h.Key.Attempt != key.Attempt {
			return false, recordMachine(ctx, tx, &h, result)
		}
		l := splitResults(key.Task, result.Result)
		result.Result = l.open
		if err := store.CloseAttempt(ctx, tx, &h, outcome(result), result); err != nil {
			return false, err
		}
		if err := o.sealHidden(ctx, tx, l); err != nil {
			return false, err
		}
		if err := o.handleFailure(ctx, tx, &h, result); err != nil {
			return false, err
		}
		return true, store.SignalTask(ctx, tx, &h)
	})
}

func outcome(r loom.TaskResult) loom.AttemptStatus {
	switch {
	case r.Aborted:
		return loom.AttemptAborted
	case r.Interrupted:
		return loom.AttemptInterrupted
	}
	return loom.AttemptFailed
}

// recordMachine notes the machine of a late CREATE where the node has none, so
// that its DELETE finds it.
func recordMachine(ctx context.Context, tx *sqlx.Tx, h *store.HeldTask, r loom.TaskResult) error {
	id, made := r.Result["providerid"]
	if h.Action != loom.ActionCreate || !made || id == nil || h.HasMachine {
		return nil
	}
	return store.AddFacts(ctx, tx, h.Operation.Tenant, h.Node, map[string]any{"providerid": id})
}

// handleFailure does what comes after the attempt, which is closed.
func (o *Operations) handleFailure(ctx context.Context, tx *sqlx.Tx, h *store.HeldTask, r loom.TaskResult) error {
	switch h.Operation.Status {
	case loom.OperationRunning, loom.OperationPaused, loom.OperationRollingBack:
	case loom.OperationFailing:
		// Nothing starts again in an operation that fails.
		status := loom.TaskFailed
		if r.Aborted || r.Interrupted {
			status = loom.TaskDropped
		}
		if err := store.GiveUpTask(ctx, tx, h, status, r); err != nil {
			return err
		}
		return store.EndIfIdle(ctx, tx, &h.Operation)
	case loom.OperationNotSubmitted, loom.OperationComplete, loom.OperationFailed, loom.OperationAborted, loom.OperationRolledBack:
		return fmt.Errorf("operation %s is %s but its task %d runs", h.Operation.Ref, h.Operation.Status, h.Number)
	}
	decision := planner.Decide(planner.DecideInput{
		Action: h.Action, Row: h.Key.Task, History: h.History, Result: r, HasMachine: h.HasMachine, Made: h.Made, MaxAttempts: o.opts.MaxAttempts,
	})
	switch decision.Verdict {
	case planner.Retry:
		return store.RetryTask(ctx, tx, h, decision.Delay, r)
	case planner.Recreate:
		return store.RecreateFirst(ctx, tx, h, decision.First, r)
	case planner.Fail:
		return o.giveUp(ctx, tx, h, r, decision.Message)
	case planner.Complete:
	}
	return fmt.Errorf("task %d: the planner says %q of a failure", h.Key.Task, decision.Verdict)
}

// giveUp fails the task and with it the operation; the delete of a cluster goes on
// with its other machines, what comes in batches to the end of this one.
func (o *Operations) giveUp(ctx context.Context, tx *sqlx.Tx, h *store.HeldTask, r loom.TaskResult, why string) error {
	if err := store.GiveUpTask(ctx, tx, h, loom.TaskFailed, r); err != nil {
		return err
	}
	why = describeTask(h.Action, h.Service, h.NodeNumber) + why
	if h.Action == loom.ActionDelete && h.Operation.Action == loom.ClusterDelete {
		return store.PassTask(ctx, tx, h, why) // the other machines do not wait for this one
	}
	finishes, err := shouldFinishBatch(ctx, tx, h)
	if err != nil {
		return err
	}
	if finishes {
		return failBatch(ctx, tx, h, why)
	}
	if h.Operation.Status == loom.OperationRollingBack {
		why = fmt.Sprintf("%s It could not be undone: %s", sentence(h.Operation.Message), why)
	}
	return store.FailOperation(ctx, tx, &h.Operation, why, false)
}

// continuesNote ends the message of an operation that failed and finishes its batch.
const continuesNote = ". What does not wait for it is done first."

// describeTask begins to say that a task failed; how is to follow.
func describeTask(action loom.TaskAction, service string, node int) string {
	what := strings.ToUpper(string(action[:1])) + string(action[1:])
	if service != "" {
		what += " " + service
	}
	return fmt.Sprintf("%s on node %d ", what, node)
}

// shouldFinishBatch reports whether what does not wait for a task that was given up is
// still carried out.
func shouldFinishBatch(ctx context.Context, tx *sqlx.Tx, h *store.HeldTask) (bool, error) {
	if h.Operation.Status == loom.OperationRollingBack {
		return false, nil
	}
	if planner.FinishesBatch(h.Operation.Action, false) || !planner.FinishesBatch(h.Operation.Action, true) {
		return planner.FinishesBatch(h.Operation.Action, false), nil
	}
	return store.TellsOnly(ctx, tx, h)
}

// failBatch fails what waits for a task that was given up, and the operation where
// that is all that was left.
func failBatch(ctx context.Context, tx *sqlx.Tx, h *store.HeldTask, why string) error {
	over, err := store.DropBehind(ctx, tx, h)
	if err != nil {
		return err
	}
	if err := store.NoteFailure(ctx, tx, h, why+continuesNote); err != nil || !over {
		return err
	}
	message, err := firstFailure(ctx, tx, &h.Operation)
	if err != nil {
		return err
	}
	return store.FailOperation(ctx, tx, &h.Operation, message, false)
}

// endBatch makes an operation failing whose last batch came to its end although a task
// of it had failed. Deletes of clusters pass on what failed and are judged as they are.
func endBatch(ctx context.Context, tx *sqlx.Tx, e *store.Ending) error {
	op := &e.Operation
	if op.Status != loom.OperationRunning || op.Action == loom.ClusterDelete || !e.Failed() {
		return nil
	}
	message, err := firstFailure(ctx, tx, op)
	if err != nil {
		return err
	}
	return store.BeginFailing(ctx, tx, op, message)
}

// firstFailure is what failed first in an operation that went on.
func firstFailure(ctx context.Context, tx *sqlx.Tx, op *loom.Operation) (string, error) {
	f, err := store.FirstFailure(ctx, tx, op)
	if err != nil {
		return "", err
	}
	message := describeTask(loom.TaskAction(f.Action), f.Service, f.NodeNumber)
	if said := strings.TrimSuffix(op.Message, continuesNote); strings.HasPrefix(said, message) {
		return said, nil
	}
	return message + "failed: " + f.Message, nil // somebody paused or resumed it since
}

// RetryNow begins the next try of a task that failed and waits for it. Errors: NotFound,
// Forbidden, Conflict for a task that does not wait for a retry, or whose operation is
// paused.
func (o *Operations) RetryNow(ctx context.Context, actor loom.Actor, ref loom.TaskRef) error {
	return o.controlRetry(ctx, actor, ref, "retry-now", func(tx *sqlx.Tx, h *store.HeldTask, _ loom.Task) error {
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
	return o.controlRetry(ctx, actor, ref, "stop-retrying", func(tx *sqlx.Tx, h *store.HeldTask, t loom.Task) error {
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

// controlRetry does something about a task that failed and waits for its next try.
func (o *Operations) controlRetry(ctx context.Context, actor loom.Actor, ref loom.TaskRef, verb string,
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
