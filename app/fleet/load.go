package fleet

import (
	"context"

	"loom/app/loom"
	"loom/app/store"
)

// RecordLoad records the load of machines over the step that has just ended, each node once,
// in one statement. Points of machines that are replaced or gone are dropped, and all if the
// lease of the process is over.
func (f *Fleet) RecordLoad(ctx context.Context, process loom.ProcessID, points []loom.LoadPoint) error {
	return store.InsertLoad(ctx, f.db, process, points)
}

// Load reads the load of a node's machine over the last day; it is empty where nothing was
// recorded. NotFound.
func (f *Fleet) Load(ctx context.Context, actor loom.Actor, id loom.ClusterID, node loom.NodeID) (loom.NodeLoad, error) {
	if err := f.may(ctx, actor, loom.See, id); err != nil {
		return loom.NodeLoad{}, err
	}
	loads, err := store.LoadsOfNodes(ctx, f.db, actor.Tenant, id, []loom.NodeID{node})
	load, ok := loads[node]
	if err == nil && !ok {
		err = loom.NewError(loom.NotFound, "Cluster %s has no node “%.40s”.", id, node)
	}
	return load, err
}

// Loads reads those of several nodes; nodes that the cluster never had are left out.
func (f *Fleet) Loads(ctx context.Context, actor loom.Actor, id loom.ClusterID, nodes []loom.NodeID) (map[loom.NodeID]loom.NodeLoad, error) {
	if err := f.may(ctx, actor, loom.See, id); err != nil {
		return nil, err
	}
	return store.LoadsOfNodes(ctx, f.db, actor.Tenant, id, nodes)
}
