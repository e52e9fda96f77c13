package clusters

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"loom/app/loom"
	"loom/solver"
)

// draftShrink takes nodes away: those named, or the ones whose layouts come last.
// Nodes that an earlier operation left on their way out go only when they are named.
func draftShrink(ctx context.Context, u *Clusters, r request, c *change) error {
	cluster, in := r.cluster, r.in.Change
	var stay, out []loom.Node
	for _, n := range c.After.Nodes {
		if n.Leaving {
			out = append(out, n)
		} else {
			stay = append(stay, n)
		}
	}
	var leaving []loom.NodeID
	switch {
	case in.Machines != 0 && len(in.Nodes) > 0:
		return invalid("nodes", "Set either numMachines or nodes, not both.")
	case len(in.Nodes) > 0:
		if err := checkNodes(cluster, c.After.Nodes, in.Nodes); err != nil {
			return err
		}
		leaving = in.Nodes
	case in.Machines <= 0:
		return invalid("numMachines", "Enter the number of nodes to keep, or the nodes to remove. The cluster has %s.", count(len(stay), "node"))
	case in.Machines >= len(stay):
		return invalid("numMachines", "The cluster has %s; a shrink leads to fewer.", count(len(stay), "node"))
	}
	left, err := u.reduce(ctx, c, cluster, stay, leaving, in.Machines)
	if err != nil {
		return err
	}
	goes := func(n loom.Node) bool { return slices.Contains(left, n.ID) }
	c.Before.Nodes = slices.DeleteFunc(c.Before.Nodes, func(n loom.Node) bool { return n.Leaving && !goes(n) })
	c.After.Nodes = slices.DeleteFunc(stay, goes)
	c.warnOfLeaving(slices.DeleteFunc(out, goes))
	return nil
}

// reduce returns the nodes that leave: those named, or as many that machines are left.
func (u *Clusters) reduce(ctx context.Context, c *change, cluster loom.Cluster, stay []loom.Node, named []loom.NodeID, machines int) ([]loom.NodeID, error) {
	solving, stop := u.startSearch(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
	defer stop()
	q := solverCluster(cluster, stay, cluster.Services)
	if named == nil {
		out, unsat, err := solver.Shrink(solving, q, machines)
		if err != nil {
			return nil, err
		}
		if unsat != nil {
			return nil, unsolvable(unsat, stay, solver.SuggestShrink(solving, q, machines, unsat))
		}
		c.Why = out.Why
		return nodesNumbered(stay, out.Leaving), nil
	}
	var asked []string
	for _, n := range stay {
		if slices.Contains(named, n.ID) {
			asked = append(asked, strconv.Itoa(n.Number))
		}
	}
	if len(asked) == 0 {
		return named, nil // all of them are on their way out already
	}
	_, unsat, err := solver.ShrinkNodes(solving, q, asked)
	if err != nil {
		return nil, err
	}
	if unsat != nil {
		return nil, unsolvable(unsat, stay, solver.SuggestShrinkNodes(solving, q, asked, unsat))
	}
	return named, nil
}

// warnOfLeaving names nodes that an earlier operation left on their way out.
func (c *change) warnOfLeaving(out []loom.Node) {
	if len(out) > 0 {
		c.Warnings = append(c.Warnings, nodesText(out, "is", "are")+" on the way out since an earlier operation and may still have a machine; name "+
			itOrThem(out)+" in a shrink to finish that, or in a repair to keep "+itOrThem(out)+".")
	}
}

func summarizeShrink(v *PreviewView) string {
	return fmt.Sprintf("Removes %s with all that is on %s", count(v.NodesRemoved, "node"), map[bool]string{true: "it", false: "them"}[v.NodesRemoved == 1]) + v.reconfigures()
}
