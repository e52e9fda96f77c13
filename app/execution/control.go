package execution

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/jobs"
)

// Pause lets nothing more of a running operation start; tasks under way finish.
// It gives the operation as it is then. In any other state it changes nothing.
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
// attempts are told to stop. One that fails already or has ended stays as it is.
func (o *Operations) Abort(ctx context.Context, actor loom.Actor, ref loom.OperationRef) (loom.Operation, error) {
	return o.control(ctx, actor, ref, "abort", func(tx *sqlx.Tx, op *loom.Operation) (bool, error) {
		if op.Status.Final() || op.Status == loom.OperationFailing {
			return false, nil
		}
		return true, store.FailOperation(ctx, tx, op, fmt.Sprintf("Aborted by %s.", actor.User), true)
	})
}

// control checks rights, locks the operation, lets act change it and keeps an
// audit record of a change. NotFound for what the actor may not know of.
func (o *Operations) control(ctx context.Context, actor loom.Actor, ref loom.OperationRef, verb string,
	act func(tx *sqlx.Tx, op *loom.Operation) (bool, error)) (loom.Operation, error) {
	return store.InTx(ctx, o.db, func(tx *sqlx.Tx) (loom.Operation, error) {
		owner, err := store.ClusterOwner(ctx, tx, actor.Tenant, ref.Cluster)
		if err != nil {
			return loom.Operation{}, err
		}
		if !actor.MaySee(owner) {
			return loom.Operation{}, loom.NewError(loom.NotFound, "There is no operation %s.", ref)
		}
		if err := actor.Require(loom.ScopeClusterWrite); err != nil {
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
