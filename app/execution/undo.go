package execution

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// shouldUndo reports whether an operation that would end as said takes back what it
// did first: it failed or was aborted, its policy says so, and it has
// not tried yet. One that never began did nothing, and neither did a create that
// leaves no cluster.
func shouldUndo(e *store.Ending, end planner.FinalState) bool {
	op := &e.Operation
	return op.Status == loom.OperationFailing && op.OnFailure == loom.OnFailureUndo && !op.Undone && !op.Started.IsZero() &&
		op.Action.Undoable() && end.Cluster != loom.ClusterTerminated
}

// undo lets a failing operation take back what it did. It reports true when the
// operation ends at once after all, as end says then: because nothing is to be taken
// back, or because nobody can say how.
func (o *Operations) undo(ctx context.Context, tx *sqlx.Tx, e *store.Ending, end *planner.FinalState) (bool, error) {
	op := &e.Operation
	after, err := layoutAfter(ctx, tx, op)
	if err != nil {
		return false, err
	}
	of, back, err := planUndo(ctx, tx, op, after)
	if err != nil {
		domain := loom.AsError(err)
		if domain.Kind == loom.Internal || domain.Kind == loom.Unavailable { // it is tried again
			return false, err
		}
		end.Message = fmt.Sprintf("%s It could not be undone: %s", sentence(op.Message), domain.Message)
		return true, nil
	}
	if err := store.BeginUndo(ctx, tx, op, of, &back.After, back.Plan); err != nil {
		return false, err
	}
	if err := revertLayout(ctx, tx, op, back.After); err != nil {
		return false, err
	}
	if len(back.Plan.Tasks) > 0 {
		return false, nil
	}
	*end, _ = planner.Final(planner.FinalInput{Action: op.Action, Status: loom.OperationRollingBack, Message: op.Message})
	return true, nil
}

// planUndo reads what the planner has to know of an operation that takes back what it did.
func planUndo(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, after *loom.Snapshot) (*loom.Lineage, planner.Undo, error) {
	of, err := store.LineageOf(ctx, tx, op.Tenant, *op, *after)
	if err != nil {
		return nil, planner.Undo{}, err
	}
	machines, err := store.NodesWithMachine(ctx, tx, op.Tenant, op.Ref.Cluster)
	if err != nil {
		return nil, planner.Undo{}, err
	}
	undo, err := planner.MakeUndo(of, func(node loom.NodeID) bool { return machines[node] })
	return of, undo, err
}

// revertLayout returns the cluster of an operation that begins to take back what it did
// the layout and config from before it. After a create there is nothing to return to.
func revertLayout(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, after loom.Snapshot) error {
	before, err := store.SnapshotBefore(ctx, tx, op.Tenant, op.Ref)
	if err != nil || before == nil {
		return err
	}
	if err := store.RestoreLayout(ctx, tx, op.Tenant, op.Ref.Cluster, planner.WhileUndone(*before, after)); err != nil {
		return err
	}
	changed, err := store.ConfigDiffers(ctx, tx, op.Tenant, op.Ref.Cluster, after.Config)
	if err != nil || !changed {
		return err
	}
	return store.InsertConfigRevision(ctx, tx, op.Tenant, op.Ref, op.RequestedBy)
}

// restoreLayout returns the cluster of an operation that never began, or was undone, the
// layout from before it. An operation without a layout before it changes nothing.
func restoreLayout(ctx context.Context, tx *sqlx.Tx, op *loom.Operation) error {
	read := store.SnapshotBefore
	if op.Mends && op.Started.IsZero() {
		read = store.SnapshotStart
	}
	before, err := read(ctx, tx, op.Tenant, op.Ref)
	if err != nil || before == nil {
		return err
	}
	return store.RestoreLayout(ctx, tx, op.Tenant, op.Ref.Cluster, *before)
}

// layoutAfter is what the operation was to make of its cluster: the nodes that are
// not on their way out, with the services and the config of now.
func layoutAfter(ctx context.Context, tx *sqlx.Tx, op *loom.Operation) (*loom.Snapshot, error) {
	cluster, err := store.ClusterByID(ctx, tx, op.Tenant, op.Ref.Cluster)
	if err != nil {
		return nil, err
	}
	nodes, err := store.NodesByCluster(ctx, tx, op.Tenant, op.Ref.Cluster)
	if err != nil {
		return nil, err
	}
	after := &loom.Snapshot{Nodes: []loom.Node{}, Services: cluster.Services, Config: cluster.Config}
	for _, n := range nodes {
		if !n.Leaving {
			n.Results, n.Actions = nil, nil // facts may hold credentials
			after.Nodes = append(after.Nodes, n)
		}
	}
	return after, nil
}

// sentence ends a message with a full stop.
func sentence(message string) string {
	if n := len(message); n > 0 && message[n-1] != '.' && message[n-1] != '!' && message[n-1] != '?' {
		return message + "."
	}
	return message
}
