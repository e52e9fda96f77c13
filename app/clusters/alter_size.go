package clusters

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"loom/app/loom"
	"loom/app/store"
	"loom/solver"
)

// question asks the solver about a cluster that is there. Nodes go by their numbers,
// which its sentences name.
func question(cluster loom.Cluster, nodes []loom.Node, services map[string]loom.Service) solver.Cluster {
	c := solver.Cluster{Input: present(cluster, cluster.Template, nodes, nil, services)}
	for _, n := range nodes {
		c.Nodes = append(c.Nodes, solver.Node{ID: strconv.Itoa(n.Number), NodeLayout: loom.NodeLayout{
			HardwareType: n.HardwareType, ImageType: n.ImageType, Services: slices.Sorted(slices.Values(n.Services)),
		}})
	}
	return c
}

// withNumbers gives the nodes of some numbers, as the solver knows them.
func withNumbers(nodes []loom.Node, names []string) []loom.NodeID {
	var ids []loom.NodeID
	for _, n := range nodes {
		if slices.Contains(names, strconv.Itoa(n.Number)) {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

func unsolvable(unsat *loom.Unsat, nodes []loom.Node, ways []solver.Way) error {
	for _, w := range ways {
		s := w.Suggestion
		s.Nodes, s.Services = withNumbers(nodes, w.Nodes), w.Services
		unsat.Suggestions = append(unsat.Suggestions, s)
	}
	return &loom.Error{Kind: loom.Unsolvable, Message: unsat.Headline, Unsat: unsat}
}

// readTypes reads the hardware and image types of the catalog.
func (u *Clusters) readTypes(ctx context.Context, tenant loom.TenantID) (*world, error) {
	entries, err := store.NewestCatalogEntries(ctx, u.db, tenant, loom.KindHardwareType, loom.KindImageType)
	if err != nil {
		return nil, err
	}
	w := &world{}
	for _, stored := range entries {
		switch e := stored.Entry.(type) {
		case *loom.HardwareType:
			w.hardware = append(w.hardware, *e)
		case *loom.ImageType:
			w.images = append(w.images, *e)
		}
	}
	return w, nil
}

// draftExpand adds nodes up to the total that is asked for.
func (u *Clusters) draftExpand(ctx context.Context, d *liveDraft, cluster loom.Cluster, in ChangeInput) error {
	have := len(d.Nodes)
	switch {
	case in.Machines <= 0:
		return invalid("numMachines", "Give the number of nodes that the cluster is to have; it has %d.", have)
	case in.Machines <= have:
		return invalid("numMachines", "The cluster has %s; an expand leads to more.", count(have, "node"))
	case in.Machines > u.opts.MaxMachines:
		return invalid("numMachines", "This installation makes clusters of at most %d nodes.", u.opts.MaxMachines)
	}
	// What the tenant may have comes before what the template allows.
	quota, err := store.QuotaUse(ctx, u.db, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	if err := quota.Check(0, in.Machines-have); err != nil {
		return err
	}
	w, err := u.readTypes(ctx, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	grown, err := u.grow(ctx, cluster, d.Nodes, w, in.Machines)
	if err != nil {
		return err
	}
	number, err := store.NextNodeNumber(ctx, u.db, cluster.Owner.Tenant, cluster.ID)
	if err != nil {
		return err
	}
	for _, n := range grown.Nodes[have:] {
		node := loom.Node{
			ID: loom.NodeID(uuid.NewString()), Cluster: cluster.ID, Number: number, Incarnation: 1, State: loom.NodePlanned,
			Hostname:     loom.Hostname(cluster.Name, cluster.ID, number, cluster.DNSSuffix),
			HardwareType: n.HardwareType, ImageType: n.ImageType, Services: n.Services, Automators: automatorsOf(n.Services, cluster.Services),
		}
		d.furnish(w, &node)
		d.Nodes = append(d.Nodes, node)
		number++
	}
	return nil
}

// grow asks the solver for machines up to a total. Where all nodes have one hardware
// type, or one image type, further ones get it as well, since the request for the
// cluster may have named it; where that cannot be, the template's default counts.
func (u *Clusters) grow(ctx context.Context, cluster loom.Cluster, nodes []loom.Node, w *world, total int) (solver.Outcome, error) {
	solving, stop := u.solving(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
	defer stop()
	c := question(cluster, nodes, cluster.Services)
	c.Input.HardwareTypes, c.Input.ImageTypes, c.Input.MaxMachines = w.hardware, w.images, u.opts.MaxMachines
	usual := cluster.Template.Defaults
	hardware := common(nodes, func(n loom.Node) string { return n.HardwareType })
	image := common(nodes, func(n loom.Node) string { return n.ImageType })
	c.Input.HardwareType, c.Input.ImageType = cmp.Or(hardware, usual.HardwareType), cmp.Or(image, usual.ImageType)
	out, unsat, err := solver.Expand(solving, c, total)
	if err == nil && unsat != nil && (c.Input.HardwareType != usual.HardwareType || c.Input.ImageType != usual.ImageType) {
		c.Input.HardwareType, c.Input.ImageType = usual.HardwareType, usual.ImageType
		out, unsat, err = solver.Expand(solving, c, total)
	}
	if err != nil || unsat == nil {
		return out, err
	}
	// The request cannot choose types.
	ways := slices.DeleteFunc(solver.SuggestExpand(solving, c, total, unsat), func(w solver.Way) bool {
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

// draftShrink takes nodes away: those named, or the ones whose layouts come last.
// Nodes that an earlier operation left on their way out go only when they are named.
func (u *Clusters) draftShrink(ctx context.Context, d *liveDraft, cluster loom.Cluster, in ChangeInput) error {
	var stay, out []loom.Node
	for _, n := range d.Nodes {
		if n.Leaving {
			out = append(out, n)
		} else {
			stay = append(stay, n)
		}
	}
	var leaving []loom.NodeID
	switch {
	case in.Machines != 0 && len(in.Nodes) > 0:
		return invalid("nodes", "Give either numMachines or nodes, not both.")
	case len(in.Nodes) > 0:
		if err := known(cluster, d.Nodes, in.Nodes); err != nil {
			return err
		}
		leaving = in.Nodes
	case in.Machines <= 0:
		return invalid("numMachines", "Give the number of nodes that the cluster is to keep, or the nodes that leave; it has %s.", count(len(stay), "node"))
	case in.Machines >= len(stay):
		return invalid("numMachines", "The cluster has %s; a shrink leads to fewer.", count(len(stay), "node"))
	}
	left, err := u.reduce(ctx, d, cluster, stay, leaving, in.Machines)
	if err != nil {
		return err
	}
	goes := func(n loom.Node) bool { return slices.Contains(left, n.ID) }
	d.Altered.Was.Nodes = slices.DeleteFunc(d.Altered.Was.Nodes, func(n loom.Node) bool { return n.Leaving && !goes(n) })
	d.Nodes = slices.DeleteFunc(stay, goes)
	d.warnOfOut(slices.DeleteFunc(out, goes))
	return nil
}

// reduce gives the nodes that leave: those named, or as many that machines are left.
func (u *Clusters) reduce(ctx context.Context, d *liveDraft, cluster loom.Cluster, stay []loom.Node, named []loom.NodeID, machines int) ([]loom.NodeID, error) {
	solving, stop := u.solving(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
	defer stop()
	c := question(cluster, stay, cluster.Services)
	if named == nil {
		out, unsat, err := solver.Shrink(solving, c, machines)
		if err != nil {
			return nil, err
		}
		if unsat != nil {
			return nil, unsolvable(unsat, stay, solver.SuggestShrink(solving, c, machines, unsat))
		}
		d.Altered.Why = out.Why
		return withNumbers(stay, out.Leaving), nil
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
	_, unsat, err := solver.ShrinkNodes(solving, c, asked)
	if err != nil {
		return nil, err
	}
	if unsat != nil {
		return nil, unsolvable(unsat, stay, solver.SuggestShrinkNodes(solving, c, asked, unsat))
	}
	return named, nil
}

// known returns Invalid, about the field nodes, for ids that are not among the nodes.
func known(cluster loom.Cluster, nodes []loom.Node, ids []loom.NodeID) error {
	var errs []loom.FieldError
	for _, id := range ids {
		if !slices.ContainsFunc(nodes, func(n loom.Node) bool { return n.ID == id }) {
			errs = append(errs, loom.FieldError{Field: "nodes",
				Message: fmt.Sprintf("Cluster %s has no node “%.40s”; name nodes by the ids that the cluster lists.", cluster.ID, id)})
		}
		if len(errs) == 10 {
			break
		}
	}
	return loom.InvalidFields(errs)
}
