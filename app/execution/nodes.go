package execution

import (
	"context"
	"sync"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner/macro"
)

// maxClusters is how many clusters' nodes are remembered.
const maxClusters = 64

// clusterNodes are the nodes of a cluster as tasks see them, shared by all tasks
// that run on the same facts. They never change.
type clusterNodes struct {
	operation, version int64
	properties         map[loom.NodeID]loom.NodeProperties
	// all are also those that others are not told of.
	all   map[loom.NodeID]loom.NodeProperties
	facts *macro.Facts
}

// view names the nodes that a task is told of: a node on its way out still knows
// the others that leave, the rest know those of the layout. What is taken back may
// stop at any point: its tasks know the nodes only that got an address.
type view struct {
	cluster       loom.ClusterID
	leaving, undo bool
}

func viewOf(f *store.SpecFacts) view {
	return view{f.Ref.Operation.Cluster, f.Node.Leaving, f.Undo}
}

// nodeCache remembers nodes by view: for ten thousand tasks of ten thousand nodes
// they are read a few times.
type nodeCache struct {
	mu       sync.Mutex
	clusters map[view]*clusterNodes
	// loading lets one task read while the others wait for it.
	loading map[view]*sync.Mutex
}

func (c *nodeCache) lookup(f *store.SpecFacts) (*clusterNodes, *sync.Mutex) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := viewOf(f)
	if n := c.clusters[id]; n != nil && n.operation == int64(f.Ref.Operation.Number) && n.version >= f.NodesVersion {
		return n, nil
	}
	if c.loading[id] == nil {
		c.loading[id] = &sync.Mutex{}
	}
	return nil, c.loading[id]
}

func (c *nodeCache) put(id view, n *clusterNodes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.clusters) >= maxClusters {
		for other := range c.clusters {
			delete(c.clusters, other)
			delete(c.loading, other)
			break
		}
	}
	c.clusters[id] = n
}

// nodes gives the nodes of a task's cluster, at least as new as its facts.
func (o *Operations) nodes(ctx context.Context, f *store.SpecFacts) (*clusterNodes, error) {
	n, loading := o.cache.lookup(f)
	if n != nil {
		return n, nil
	}
	loading.Lock()
	defer loading.Unlock()
	if n, _ := o.cache.lookup(f); n != nil {
		return n, nil
	}
	id := viewOf(f)
	properties, all, err := store.NodeProperties(ctx, o.db, f.Tenant, id.cluster, id.leaving, id.undo)
	if err != nil {
		return nil, err
	}
	// The version was read before the nodes: they may be newer than it says, never
	// older.
	n = &clusterNodes{int64(f.Ref.Operation.Number), f.NodesVersion, properties, all, macro.NewFacts(string(f.Owner), properties)}
	o.cache.put(id, n)
	return n, nil
}
