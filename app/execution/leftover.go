package execution

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// keepLeftovers notes what the delete of a cluster could not delete and words its
// end; any other operation that ran makes the machines the cluster's own again. The
// caller holds cluster and operation, which is about to end as said.
func keepLeftovers(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, end *planner.FinalState) error {
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
	end.Message = leftMessage(failed)
	return store.PutLeftovers(ctx, tx, op.Tenant, op.Row)
}

// leftMessage says how many machines are left and why the first of them is.
func leftMessage(failed []store.FailedDelete) string {
	f := failed[0]
	if len(failed) == 1 {
		return fmt.Sprintf("The machine of node %d could not be deleted; Loom goes on trying. Task %d failed: %s", f.NodeNumber, f.Number, f.Message)
	}
	return fmt.Sprintf("%d machines could not be deleted; Loom goes on trying. Task %d on node %d failed first: %s", len(failed), f.Number, f.NodeNumber, f.Message)
}
