package execution

import (
	"context"
	"fmt"

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
			return false, keepMachine(ctx, tx, &h, result)
		}
		l := learn(key.Task, result.Result)
		result.Result = l.open
		if err := store.CloseAttempt(ctx, tx, &h, outcome(result), result); err != nil {
			return false, err
		}
		if err := o.keepHidden(ctx, tx, l); err != nil {
			return false, err
		}
		if err := o.follow(ctx, tx, &h, result); err != nil {
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

// keepMachine notes the machine of a late CREATE where the node has none, so
// that its DELETE finds it.
func keepMachine(ctx context.Context, tx *sqlx.Tx, h *store.HeldTask, r loom.TaskResult) error {
	id, made := r.Result["providerid"]
	if h.Action != loom.ActionCreate || !made || id == nil || h.HasMachine {
		return nil
	}
	return store.AddFacts(ctx, tx, h.Operation.Tenant, h.Node, map[string]any{"providerid": id})
}

// follow does what comes after the attempt, which is closed.
func (o *Operations) follow(ctx context.Context, tx *sqlx.Tx, h *store.HeldTask, r loom.TaskResult) error {
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
	why = failedTask(h.Number, h.Action, h.Service, h.Hostname, h.NodeNumber) + why
	if h.Action == loom.ActionDelete && h.Operation.Action == loom.ClusterDelete {
		return store.PassTask(ctx, tx, h, why) // the other machines do not wait for this one
	}
	finishes, err := finishesBatch(ctx, tx, h)
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
