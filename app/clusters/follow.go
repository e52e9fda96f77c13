package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
)

// following is an operation that goes on with an earlier one, or takes it back: part of
// the body of a preview. What it holds does not change any more, nor does what it
// names: the plan, which is computed from both, is not stored.
type following struct {
	Asked ChangeInput `json:"asked"`
	// Of is the number of the operation that is retried or rolled back.
	Of int `json:"of"`
	// Failed is the number of the newest operation that left things half done, 0 for
	// none; After is the layout that it was to lead to, or else the one that is there,
	// To where a rollback goes, Machines the nodes that had a machine when it was drafted.
	Failed   int           `json:"failed,omitempty"`
	After    planner.State `json:"after"`
	To       planner.State `json:"to"`
	Machines []loom.NodeID `json:"machines,omitempty"`
	// Lost are nodes of To of which there is no record any more.
	Lost []loom.NodeID `json:"lost,omitempty"`
	// Config says that the config goes back, By who leaves out tasks.
	Config bool        `json:"config,omitempty"`
	By     loom.UserID `json:"by,omitempty"`
	// Mends says that a retry leads to something else than the operation it is about.
	Mends bool `json:"mends,omitempty"`
	// Newest are the services that come in another version then, Removed those that leave.
	Newest  []string `json:"newest,omitempty"`
	Removed []string `json:"removed,omitempty"`

	old     map[string]loom.Service
	plan    loom.Plan
	skipped map[int]store.Skip
}

// followsUp reports whether requests of a kind follow an earlier operation.
func followsUp(kind loom.ChangeKind) bool {
	return kind == loom.ChangeRetry || kind == loom.ChangeRollback
}

// compute makes the plan of a drafted retry or rollback.
func (f *following) compute(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, kind loom.ChangeKind) error {
	if f.Mends {
		return f.computeMend(ctx, q, tenant, cluster)
	}
	if kind == loom.ChangeRetry {
		return f.computeRetry(ctx, q, tenant, loom.OperationRef{Cluster: cluster, Number: f.Of})
	}
	return f.computeRollback(ctx, q, tenant, cluster)
}

// replan computes what the body of a stored preview leaves out.
func (u *Clusters) replan(ctx context.Context, actor loom.Actor, p loom.Preview, body *previewBody) error {
	if body.Live == nil || body.Live.Followed == nil {
		return nil
	}
	return body.Live.Followed.compute(ctx, u.db, actor.Tenant, p.Cluster, p.Kind)
}

// operationOf reads an operation that a request names. NotFound, about its field.
func (u *Clusters) operationOf(ctx context.Context, cluster loom.Cluster, number int) (loom.Operation, error) {
	op, err := store.OperationByRef(ctx, u.db, cluster.Owner.Tenant, loom.OperationRef{Cluster: cluster.ID, Number: number})
	if isNotFound(err) {
		return op, missing("operation", "Cluster %s has no operation %d.", cluster.ID, number)
	}
	return op, err
}

// stored completes what is stored of an operation that follows another one.
func (d *liveDraft) stored(ctx context.Context, tx *sqlx.Tx, op store.NewOperation) (store.NewOperation, error) {
	f := d.Followed
	if f == nil {
		return op, nil
	}
	if f.Mends {
		return f.storedMend(op), nil
	}
	op.Concerns, op.Retries, op.Skipped = f.Of, d.Kind == loom.ChangeRetry, f.skipped
	if op.Retries {
		// It ends where the first one would have, and goes back to before that.
		before, err := store.SnapshotBefore(ctx, tx, op.Tenant, loom.OperationRef{Cluster: op.Cluster, Number: f.Of})
		op.Before = before
		return op, err
	}
	if f.Failed == 0 {
		return op, nil
	}
	// What a failed operation was to remove may still be there, and is known from
	// before it only.
	before, err := store.SnapshotBefore(ctx, tx, op.Tenant, loom.OperationRef{Cluster: op.Cluster, Number: f.Failed})
	if err != nil || before == nil {
		return op, err
	}
	services := maps.Clone(before.Services)
	maps.Copy(services, f.After.Services)
	op.Before.Services = services
	return op, nil
}

// followedLayout is what is stored when the operation begins: nothing for a retry.
func (d *liveDraft) followedLayout(was *loom.Snapshot) store.NewLayout {
	f := d.Followed
	if d.Kind == loom.ChangeRetry && !f.Mends {
		return store.NewLayout{}
	}
	stays := make(map[loom.NodeID]bool, len(f.To.Nodes))
	for _, n := range f.To.Nodes {
		stays[n.ID] = true
	}
	var l store.NewLayout
	for _, n := range f.To.Nodes {
		if slices.Contains(f.Lost, n.ID) {
			l.Made = append(l.Made, n)
		} else {
			l.Changed = append(l.Changed, n)
		}
	}
	services := maps.Clone(f.To.Services)
	for _, n := range was.Nodes {
		if stays[n.ID] {
			continue
		}
		l.Leaving = append(l.Leaving, n.ID)
		// What is on a node that leaves stays known until it is gone.
		for _, name := range n.Services {
			if _, known := services[name]; known {
				continue
			}
			if s, there := was.Services[name]; there && services != nil {
				services[name] = s
			}
		}
	}
	if len(f.To.Nodes) > 0 {
		l.Services = services
	}
	return l
}

// on gives those of the services that are on a node.
func on(nodes []loom.Node, services map[string]loom.Service) map[string]loom.Service {
	there := map[string]loom.Service{}
	for _, n := range nodes {
		for _, name := range n.Services {
			if s, known := services[name]; known {
				there[name] = s
			}
		}
	}
	return there
}

// followed says what is done about the earlier operation.
func (v *PreviewView) followed() string {
	if v.Kind == loom.ChangeRetry {
		left := ""
		if v.Skipped > 0 {
			left = ", leaves out " + count(v.Skipped, "task")
		}
		if v.Mends {
			left = v.mended()
		}
		return fmt.Sprintf("Goes on with operation %d%s", v.Of, left)
	}
	what := fmt.Sprintf("Goes back to before operation %d", v.Of)
	for _, part := range []struct {
		n    int
		word string
	}{{v.Made, "adds"}, {v.Replaced, "replaces"}, {v.Left, "removes"}} {
		if part.n > 0 {
			what += ", " + part.word + " " + count(part.n, "node")
		}
	}
	return what
}
