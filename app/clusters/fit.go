package clusters

import (
	"context"

	"loom/app/loom"
	"loom/solver"
)

// fit looks for a layout of a new cluster. What it suggests instead of one keeps
// within the quota as well, which is the tenant's before the cluster is made. Errors
// are those of solver.Solve.
func (u *Clusters) fit(ctx context.Context, p *prepared, quota loom.QuotaUse) (solver.Problem, loom.Layout, *loom.Unsat, error) {
	in := u.input(p)
	problem, layout, unsat, err := solver.Create(ctx, in)
	if unsat == nil {
		return problem, layout, unsat, err
	}
	free := quota.MaxNodes - quota.Nodes
	for _, s := range unsat.Suggestions {
		if max(s.Machines, in.Machines) > free {
			unsat.Suggestions = u.within(ctx, p, quota)
			break
		}
	}
	return problem, layout, unsat, err
}

// within suggests changes of a request that keep within the quota of nodes; none
// where the request does, or where the tenant may have no further cluster.
func (u *Clusters) within(ctx context.Context, p *prepared, quota loom.QuotaUse) []loom.Suggestion {
	in := u.input(p)
	free := quota.MaxNodes - quota.Nodes
	if free < 1 || quota.Clusters >= quota.MaxClusters {
		return nil
	}
	in.MaxMachines = min(in.MaxMachines, free)
	_, _, unsat, err := solver.Create(ctx, in)
	if err != nil || unsat == nil {
		return nil // a search that takes too long helps nobody
	}
	return unsat.Suggestions
}
