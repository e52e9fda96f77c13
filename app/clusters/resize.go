package clusters

import (
	"context"

	"loom/solver"
)

// draftResize gives nodes machines of another hardware type.
func draftResize(ctx context.Context, u *Clusters, r request, c *change) error {
	cluster, in := r.cluster, r.in.Change
	if in.HardwareType == "" {
		return invalid("hardwaretype", "Name the hardware type that the nodes are to have.")
	}
	if err := checkOnCluster(cluster, in.Services); err != nil {
		return err
	}
	cv, err := u.readTypes(ctx, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	if cv.hardwareType(in.HardwareType).Name == "" {
		return missing("hardwaretype", "There is no hardware type “%.255s”.", in.HardwareType)
	}
	solving, stop := u.startSearch(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
	defer stop()
	q := solverCluster(cluster, c.After.Nodes, cluster.Services)
	q.Input.HardwareTypes, q.Input.ImageTypes = cv.hardware, cv.images
	out, unsat, err := solver.Resize(solving, q, in.HardwareType, in.Services)
	if err != nil {
		return err
	}
	if unsat != nil {
		return unsolvable(unsat, c.After.Nodes, solver.SuggestResize(solving, q, in.HardwareType, in.Services, unsat))
	}
	changed := false
	for i := range c.After.Nodes {
		n := &c.After.Nodes[i]
		if n.HardwareType == out.Nodes[i].HardwareType {
			continue
		}
		n.HardwareType, changed = out.Nodes[i].HardwareType, true
		n.Incarnation++
		c.applyTypeSettings(cv, n)
	}
	if !changed {
		return invalid("hardwaretype", "All of these nodes have the hardware type “%s” already.", in.HardwareType)
	}
	return nil
}

func summarizeResize(v *PreviewView) string {
	return "Gives " + count(v.NodesReplaced, "node") + " other hardware" + v.reconfigures()
}
