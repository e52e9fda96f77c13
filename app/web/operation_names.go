package web

import (
	"context"
	"maps"
	"sync"
	"time"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/planner/draw"
)

// namesKept is of how many large operations the names of nodes are kept.
const namesKept = 100

// nodeNames keeps which nodes large operations are about: to find them all tasks are
// looked at, and they do not change but with the plan. Their host names may be as old as
// those of kept plans. The zero value is ready.
type nodeNames struct {
	mu      sync.Mutex
	kept    map[planKey]keptNames
	reading together[planKey, []lifecycle.NodeName]
}

type keptNames struct {
	names []lifecycle.NodeName
	read  time.Time
}

// of gives the nodes of an operation that the actor has just read, by number.
func (n *nodeNames) of(ctx context.Context, clusters *lifecycle.Clusters, actor loom.Actor, op loom.Operation, now time.Time) ([]lifecycle.NodeName, error) {
	key := planKey{op.Row, op.Progress().Total}
	if key.tasks <= draw.GroupAbove {
		return clusters.OperationNodes(ctx, actor, op.Ref)
	}
	n.mu.Lock()
	k, there := n.kept[key]
	n.mu.Unlock()
	if there && now.Sub(k.read) <= planFor {
		return k.names, nil
	}
	return n.reading.do(ctx, key, func(ctx context.Context) ([]lifecycle.NodeName, error) {
		names, err := clusters.OperationNodes(ctx, actor, op.Ref)
		if err == nil {
			n.keep(key, keptNames{names, now})
		}
		return names, err
	})
}

// keep stores names and drops old ones, all others where there are too many.
func (n *nodeNames) keep(key planKey, k keptNames) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.kept, func(_ planKey, old keptNames) bool { return k.read.Sub(old.read) > planFor })
	if n.kept == nil || len(n.kept) >= namesKept {
		n.kept = map[planKey]keptNames{}
	}
	n.kept[key] = k
}
