package execution

import (
	"context"
	"fmt"
	"maps"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// wantsUndo reports whether an operation that would end as said takes back what it
// did first (planner.md 10): it failed or was aborted, its policy says so, and it has
// not tried yet. One that never began did nothing, and neither did a create that
// leaves no cluster.
func wantsUndo(e *store.Ending, end planner.FinalState) bool {
	op := &e.Operation
	return op.Status == loom.OperationFailing && op.OnFailure == loom.OnFailureUndo && !op.Undone && !op.Started.IsZero() &&
		planner.Undoable(op.Action) && end.Cluster != loom.ClusterTerminated
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
	of, plan, err := undoPlan(ctx, tx, op, after)
	if err != nil {
		domain := loom.AsError(err)
		if domain.Kind == loom.Internal || domain.Kind == loom.Unavailable { // it is tried again
			return false, err
		}
		end.Message = fmt.Sprintf("%s It could not be undone: %s", sentence(op.Message), domain.Message)
		return true, nil
	}
	if err := store.BeginUndo(ctx, tx, op, of, after, plan); err != nil {
		return false, err
	}
	changed, err := store.ReturnLayout(ctx, tx, op, after)
	if err != nil {
		return false, err
	}
	if changed {
		if err := store.InsertConfigRevision(ctx, tx, op.Tenant, op.Ref, op.RequestedBy); err != nil {
			return false, err
		}
	}
	if len(plan.Tasks) > 0 {
		return false, nil
	}
	*end, _ = planner.Final(planner.FinalInput{Action: op.Action, Status: loom.OperationRollingBack, Message: op.Message})
	return true, nil
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

// undoPlan plans what takes the operation back. Its tasks carry out services as the
// operation brought them, unless they are old: then as they were before it.
func undoPlan(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, after *loom.Snapshot) (*loom.Lineage, loom.Plan, error) {
	of, err := store.LineageOf(ctx, tx, op.Tenant, *op, *after)
	if err != nil {
		return nil, loom.Plan{}, err
	}
	before := of.Goal
	if before == nil {
		if op.Action != loom.ClusterCreate {
			return nil, loom.Plan{}, loom.NewError(loom.Conflict, "An earlier release began it, which did not keep the layout before it.")
		}
		before = &loom.Snapshot{}
	}
	machines, err := store.NodesWithMachine(ctx, tx, op.Tenant, op.Ref.Cluster)
	if err != nil {
		return nil, loom.Plan{}, err
	}
	in := planner.InputOf(of)
	in.HasMachine = func(node loom.NodeID) bool { return machines[node] }
	if of.First != nil {
		in.To = planner.State{Nodes: append([]loom.Node{}, before.Nodes...), Services: before.Services, Config: before.Config}
		// What goes was there at different times.
		after.Services = maps.Clone(after.Services)
		maps.Copy(after.Services, in.Definitions())
	}
	plan, err := planner.Back(in)
	if err != nil {
		return nil, loom.Plan{}, err
	}
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		// Back counts from where it starts, the operation from where it started.
		_, was := before.Services[t.Service]
		t.Old, t.Undo = was && !t.Old, true
	}
	return of, plan, nil
}

// sentence ends a message with a full stop.
func sentence(message string) string {
	if n := len(message); n > 0 && message[n-1] != '.' && message[n-1] != '!' && message[n-1] != '?' {
		return message + "."
	}
	return message
}
