package execution

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// EndOperation looks whether an operation has ended and, if so, gives it and its
// cluster their final state. Calling it early or twice changes
// nothing.
func (o *Operations) EndOperation(ctx context.Context, id loom.OperationID) error {
	var action loom.ClusterAction
	var status loom.OperationStatus
	err := store.Exec(ctx, o.db, func(tx *sqlx.Tx) error {
		e, err := store.LockEndingAllTenants(ctx, tx, id)
		if err != nil {
			return err
		}
		op := &e.Operation
		if !mayEnd(&e) {
			return nil
		}
		if err := endBatch(ctx, tx, &e); err != nil {
			return err
		}
		end, over := final(&e)
		if !over {
			return nil
		}
		if shouldUndo(&e, end) {
			if over, err := o.undo(ctx, tx, &e, &end); err != nil || !over {
				return err
			}
		}
		if err := finalize(ctx, tx, op, end); err != nil {
			return err
		}
		wipe := end.Cluster == loom.ClusterTerminated && (end.Operation == loom.OperationComplete || end.Operation == loom.OperationRolledBack)
		if op.Started.IsZero() {
			// Refused or aborted before it began: the cluster is what it was before.
			if end.Cluster = e.Before; e.Before == "" {
				end.Cluster, wipe = loom.ClusterTerminated, true
			}
			if err := store.TakeBackConfig(ctx, tx, op); err != nil {
				return err
			}
			if !op.Retries { // which changed nothing of it
				if err := restoreLayout(ctx, tx, op); err != nil {
					return err
				}
			}
		}
		if err := recordLeftovers(ctx, tx, op, &end); err != nil {
			return err
		}
		action, status = op.Action, end.Operation
		return store.EndOperation(ctx, tx, op, end.Operation, end.Cluster, end.Message, wipe)
	})
	if err == nil && status != "" {
		o.opts.Ended(action, status)
	}
	return err
}

// mayEnd reports whether nothing of an operation is at work any longer that its end would
// wait for.
func mayEnd(e *store.Ending) bool {
	switch e.Operation.Status {
	case loom.OperationRunning, loom.OperationRollingBack:
		return e.Done
	case loom.OperationFailing:
		return !e.Running
	}
	return false // it has ended, or it is held, and resuming asks again
}

// final says how an operation ends by what its tasks came to.
func final(e *store.Ending) (planner.FinalState, bool) {
	op := &e.Operation
	in := planner.FinalInput{
		Action: op.Action, Status: op.Status, Aborted: op.Aborted, Message: op.Message,
		Tasks: taskEnds(e.Ends), MachinesExist: e.MachinesExist,
	}
	if op.Undone {
		// Whatever ended it, it is undone when all that was to be taken back is.
		if in.Status = loom.OperationRollingBack; e.Done {
			in.Tasks = nil
		}
	}
	end, over := planner.Final(in)
	if op.Action == loom.Rollback && e.Empty {
		// It leads to before the cluster was made.
		switch end.Cluster {
		case loom.ClusterActive:
			end.Cluster = loom.ClusterTerminated
		case loom.ClusterInconsistent:
			end.Cluster = loom.ClusterIncomplete
		}
	}
	return end, over
}

// finalize brings the records of a cluster in line with what became of its operation.
func finalize(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, end planner.FinalState) error {
	switch {
	case end.Operation == loom.OperationRolledBack && end.Cluster == loom.ClusterTerminated:
		return store.DropMade(ctx, tx, op.Tenant, op.Ref.Cluster)
	case end.Operation == loom.OperationRolledBack:
		if err := restoreLayout(ctx, tx, op); err != nil {
			return err
		}
		return store.SettleNodes(ctx, tx, op.Tenant, op.Ref.Cluster, true)
	case end.Operation == loom.OperationComplete && op.Mends:
		// What failed before is right now, also where nothing had to be done for that.
		if err := store.TrimLayout(ctx, tx, op.Tenant, op.Ref.Cluster); err != nil {
			return err
		}
		return store.SettleNodes(ctx, tx, op.Tenant, op.Ref.Cluster, true)
	case end.Operation == loom.OperationComplete && op.Action == loom.Rollback:
		if err := store.TrimLayout(ctx, tx, op.Tenant, op.Ref.Cluster); err != nil {
			return err
		}
		return store.SettleNodes(ctx, tx, op.Tenant, op.Ref.Cluster, false)
	case end.Operation == loom.OperationComplete && op.Action == loom.RemoveServices:
		return store.SettleNodes(ctx, tx, op.Tenant, op.Ref.Cluster, false)
	}
	return nil
}

// taskEnds puts distinct outcomes into the planner's form: it only asks which
// statuses and codes there are.
func taskEnds(ends []store.TaskEnd) []planner.TaskEnd {
	out := make([]planner.TaskEnd, len(ends))
	for i, e := range ends {
		out[i].Status = e.Status
		if e.Tried {
			out[i].Codes = []int{e.Code}
		}
	}
	return out
}

// recordLeftovers notes what the delete of a cluster could not delete and words its
// end; any other operation that ran makes the machines the cluster's own again. The
// caller holds cluster and operation, which is about to end as said.
func recordLeftovers(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, end *planner.FinalState) error {
	if op.Started.IsZero() || !end.Operation.Final() {
		return nil
	}
	deletes := op.Action == loom.ClusterDelete
	if err := store.SettleLeftovers(ctx, tx, op.Tenant, op.Ref.Cluster, !deletes || end.Operation == loom.OperationComplete); err != nil {
		return err
	}
	// Whoever aborted a delete may want to keep what is there.
	if !deletes || end.Operation != loom.OperationFailed {
		return nil
	}
	failed, err := store.FailedDeletes(ctx, tx, op)
	if err != nil || len(failed) == 0 {
		return err
	}
	end.Message = leftoverMessage(failed)
	return store.PutLeftovers(ctx, tx, op.Tenant, op.Row)
}

// leftoverMessage says how many machines are left and why the first of them is.
func leftoverMessage(failed []store.FailedDelete) string {
	f := failed[0]
	if len(failed) == 1 {
		return fmt.Sprintf("The machine of node %d could not be deleted; Loom keeps trying. Task %d failed: %s", f.NodeNumber, f.Number, f.Message)
	}
	return fmt.Sprintf("%d machines could not be deleted; Loom keeps trying. Task %d on node %d failed first: %s", len(failed), f.Number, f.NodeNumber, f.Message)
}
