package clusters

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"loom/app/loom"
	"loom/app/store"
	"loom/solver"
)

// draftExpand adds nodes up to the total that is asked for.
func draftExpand(ctx context.Context, u *Clusters, r request, c *change) error {
	cluster, in := r.cluster, r.in.Change
	have := len(c.After.Nodes)
	switch {
	case in.Machines <= 0:
		return invalid("numMachines", "Enter the number of nodes that the cluster is to have; it has %d.", have)
	case in.Machines <= have:
		return invalid("numMachines", "The cluster has %s; an expand leads to more.", count(have, "node"))
	case in.Machines > u.opts.MaxMachines:
		return invalid("numMachines", "This installation makes clusters of at most %d nodes.", u.opts.MaxMachines)
	}
	// What the tenant may have comes before what the template allows.
	quota, err := store.QuotaUse(ctx, u.q, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	if err := quota.Check(0, in.Machines-have); err != nil {
		return err
	}
	cv, err := u.readTypes(ctx, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	grown, err := u.grow(ctx, cluster, c.After.Nodes, cv, in.Machines)
	if err != nil {
		return err
	}
	number, err := store.NextNodeNumber(ctx, u.q, cluster.Owner.Tenant, cluster.ID)
	if err != nil {
		return err
	}
	for _, n := range grown.Nodes[have:] {
		node := loom.Node{
			ID: loom.NodeID(uuid.NewString()), Cluster: cluster.ID, Number: number, Incarnation: 1, State: loom.NodePlanned,
			Hostname:     loom.Hostname(cluster.Name, cluster.ID, number, cluster.DNSSuffix),
			HardwareType: n.HardwareType, ImageType: n.ImageType, Services: n.Services, Automators: automatorsOf(n.Services, cluster.Services),
		}
		c.applyTypeSettings(cv, &node)
		c.After.Nodes = append(c.After.Nodes, node)
		number++
	}
	return nil
}

// grow asks the solver for machines up to a total. Where all nodes have one hardware
// type, or one image type, further ones get it as well, since the request for the
// cluster may have named it; where that cannot be, the template's default counts.
func (u *Clusters) grow(ctx context.Context, cluster loom.Cluster, nodes []loom.Node, cv *catalogView, total int) (solver.Outcome, error) {
	solving, stop := u.startSearch(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
	defer stop()
	q := solverCluster(cluster, nodes, cluster.Services)
	q.Input.HardwareTypes, q.Input.ImageTypes, q.Input.MaxMachines = cv.hardware, cv.images, u.opts.MaxMachines
	usual := cluster.Template.Defaults
	hardware := common(nodes, func(n loom.Node) string { return n.HardwareType })
	image := common(nodes, func(n loom.Node) string { return n.ImageType })
	q.Input.HardwareType, q.Input.ImageType = cmp.Or(hardware, usual.HardwareType), cmp.Or(image, usual.ImageType)
	out, unsat, err := solver.Expand(solving, q, total)
	if err == nil && unsat != nil && (q.Input.HardwareType != usual.HardwareType || q.Input.ImageType != usual.ImageType) {
		q.Input.HardwareType, q.Input.ImageType = usual.HardwareType, usual.ImageType
		out, unsat, err = solver.Expand(solving, q, total)
	}
	if err != nil || unsat == nil {
		return out, err
	}
	// The request cannot choose types.
	ways := slices.DeleteFunc(solver.SuggestExpand(solving, q, total, unsat), func(w solver.Way) bool {
		return w.HardwareType != "" || w.ImageType != ""
	})
	return out, unsolvable(unsat, nodes, ways)
}

// common is what all nodes have, "" where they differ.
func common(nodes []loom.Node, of func(loom.Node) string) string {
	if len(nodes) == 0 || slices.ContainsFunc(nodes, func(n loom.Node) bool { return of(n) != of(nodes[0]) }) {
		return ""
	}
	return of(nodes[0])
}

func summarizeExpand(v *PreviewView) string {
	return "Adds " + count(v.NodesAdded, "node") + v.reconfigures()
}

// Sizes returns the numbers of machines that a cluster could be brought to, as far as
// its rules, the quota of its tenant and this installation allow; within the range
// there may be gaps. The present number always counts. Errors: NotFound, Conflict.
func (u *Clusters) Sizes(ctx context.Context, actor loom.Actor, id loom.ClusterID) (loom.SizeRange, error) {
	var none loom.SizeRange
	if err := actor.May(loom.Operate.Reading(), actor.Mine()); err != nil {
		return none, err
	}
	cluster, nodes, err := u.consistentRead(ctx, actor, PreviewInput{Kind: loom.ChangeExpand, Cluster: id})
	if err != nil {
		return none, err
	}
	quota, err := store.QuotaUse(ctx, u.q, cluster.Owner.Tenant)
	if err != nil {
		return none, err
	}
	high := min(u.opts.MaxMachines, len(nodes)+max(0, quota.MaxNodes-quota.Nodes))
	cv, err := u.readTypes(ctx, cluster.Owner.Tenant)
	if err != nil {
		return none, err
	}
	sizes := loom.SizeRange{Min: len(nodes), Max: len(nodes)}
	if high > len(nodes) {
		_, err := u.grow(ctx, cluster, nodes, cv, high)
		sizes.Max = max(len(nodes), sizeReached(err, high, func(r *loom.SizeRange) int { return min(r.Max, high) }))
	}
	if len(nodes) > 1 {
		solving, stop := u.startSearch(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
		defer stop()
		_, unsat, err := solver.Shrink(solving, solverCluster(cluster, nodes, cluster.Services), 1)
		switch {
		case err == nil && unsat == nil:
			sizes.Min = 1
		case unsat != nil && unsat.Sizes != nil:
			sizes.Min = min(len(nodes), unsat.Sizes.Min)
		}
	}
	return sizes, nil
}

// sizeReached is the figure that an attempt at the highest one leads to; 0 for none.
func sizeReached(err error, high int, of func(r *loom.SizeRange) int) int {
	if err == nil {
		return high
	}
	if e := loom.AsError(err); e.Unsat != nil && e.Unsat.Sizes != nil {
		return of(e.Unsat.Sizes)
	}
	return 0
}
