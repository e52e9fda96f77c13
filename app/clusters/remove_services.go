package clusters

import (
	"context"
	"maps"
	"slices"

	"loom/app/loom"
	"loom/solver"
)

// draftRemove takes services off; after an operation that failed it is a retry without them.
func draftRemove(ctx context.Context, u *Clusters, r request, c *change) error {
	if r.cluster.Status == loom.ClusterActive {
		return layoutDraft(draftRemoval)(ctx, u, r, c)
	}
	op, err := lastBegun(ctx, u.q, r.cluster)
	if err != nil {
		return err
	}
	if len(r.in.Change.Services) == 0 {
		return invalid("services", "Name the services to remove.")
	}
	return u.draftAmended(ctx, r, c, *op, amendment{Remove: r.in.Change.Services})
}

// draftRemoval takes services off all nodes. Their config stays: other services may
// read it, and so may they themselves when they come again.
func draftRemoval(ctx context.Context, u *Clusters, r request, c *change) error {
	cluster, in := r.cluster, r.in.Change
	names := slices.Compact(slices.Sorted(slices.Values(in.Services)))
	if len(names) == 0 {
		return invalid("services", "Name the services to remove.")
	}
	if err := loom.InvalidFields(checkNamed(names, contains(cluster.Services))); err != nil {
		return err
	}
	solving, stop := u.startSearch(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
	defer stop()
	q := solverCluster(cluster, c.After.Nodes, cluster.Services)
	_, unsat, err := solver.Remove(solving, q, names)
	if err != nil {
		return err
	}
	if unsat != nil {
		return unsolvable(unsat, c.After.Nodes, removals(names, solver.SuggestChange(solving, q, nil, names, unsat)))
	}
	c.Services = names
	c.After.Services = maps.Clone(cluster.Services)
	maps.DeleteFunc(c.After.Services, func(name string, _ loom.Service) bool { return slices.Contains(names, name) })
	for i := range c.After.Nodes {
		n := &c.After.Nodes[i]
		kept := slices.DeleteFunc(slices.Clone(n.Services), func(name string) bool { return slices.Contains(names, name) })
		if len(kept) < len(n.Services) {
			n.Services, n.Automators = kept, automatorsOf(kept, c.After.Services)
		}
	}
	return nil
}

// removals are the suggestions that a request to remove services can follow, each
// with the whole list of services to name.
func removals(names []string, all []loom.Suggestion) []solver.Way {
	var ways []solver.Way
	for _, s := range all {
		add, remove := solver.Adjust(nil, names, s)
		changed := len(s.AddServices)+len(s.RemoveServices) > 0
		if len(add) > 0 || changed && len(remove) == 0 {
			continue
		}
		w := solver.Way{Suggestion: s}
		if changed {
			w.Services = remove
		}
		ways = append(ways, w)
	}
	return ways
}

func summarizeRemove(v *PreviewView) string {
	return "Removes " + count(len(v.Changed), "service") + " from the cluster" + v.reconfigures()
}
