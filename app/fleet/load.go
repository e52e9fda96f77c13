package fleet

import (
	"context"
	"errors"

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
	load, err := store.LoadOfNode(ctx, f.db, actor.Tenant, id, node)
	if errors.Is(err, loom.NotFound) {
		err = loom.NewError(loom.NotFound, "Cluster %s has no node “%.40s”.", id, node)
	}
	return load, err
}
