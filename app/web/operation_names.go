package web

import (
	"context"
	"time"

	"loom/app/cache"
	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/planner/draw"
)

// namesKept is of how many large operations the names of nodes are kept.
const namesKept = 100

// nodeNames keeps which nodes large operations are about: to find them all tasks are
// looked at, and they do not change but with the plan. Their host names may be as old as
// those of kept plans.
type nodeNames struct {
	cache.Cache[planKey, []lifecycle.NodeName]
}

// of gives the nodes of an operation that the actor has just read, by number.
func (n *nodeNames) of(ctx context.Context, clusters *lifecycle.Clusters, actor loom.Actor, op loom.Operation, now func() time.Time) ([]lifecycle.NodeName, error) {
	key := planKey{op.Row, op.Progress().Total}
	if key.tasks <= draw.GroupAbove {
		return clusters.OperationNodes(ctx, actor, op.Ref)
	}
	return n.Get(ctx, key, now, func(ctx context.Context) ([]lifecycle.NodeName, error) {
		return clusters.OperationNodes(ctx, actor, op.Ref)
	})
}
