package execution

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// EndOperation looks whether an operation has ended and, if so, gives it and its
// cluster their final state (planner.md 11). Calling it early or twice changes
// nothing.
func (o *Operations) EndOperation(ctx context.Context, id loom.OperationID) error {
	return store.Exec(ctx, o.db, func(tx *sqlx.Tx) error {
		e, err := store.LockEndingAllTenants(ctx, tx, id)
		if err != nil {
			return err
		}
		op := &e.Operation
		switch op.Status {
		case loom.OperationRunning, loom.OperationRollingBack:
			if !e.Done {
				return nil
			}
		case loom.OperationFailing:
			if e.Running {
				return nil
			}
		case loom.OperationNotSubmitted, loom.OperationPaused:
			// Resuming asks again.
			return nil
		case loom.OperationComplete, loom.OperationFailed, loom.OperationAborted, loom.OperationRolledBack:
			return nil
		}
		// Undoing what is done comes with its own plan of undo tasks; until then
		// every failure keeps what there is.
		end, over := planner.Final(planner.FinalInput{
			Action: op.Action, Status: op.Status, Aborted: op.Aborted, Message: op.Message,
			Tasks: taskEnds(e.Ends), MachinesExist: e.MachinesExist,
		})
		if !over {
			return nil
		}
		wipe := op.Action == loom.ClusterDelete && end.Operation == loom.OperationComplete
		if op.Started.IsZero() {
			// Refused or aborted before it began: the cluster is what it was before.
			if end.Cluster = e.Before; e.Before == "" {
				end.Cluster, wipe = loom.ClusterTerminated, true
			}
			if err := store.TakeBackConfig(ctx, tx, op); err != nil {
				return err
			}
			if err := store.RestoreLayout(ctx, tx, op); err != nil {
				return err
			}
		}
		return store.EndOperation(ctx, tx, op, end.Operation, end.Cluster, end.Message, wipe)
	})
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
