package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/store"
	"loom/solver"
)

// draftRemove takes services off all nodes. Their config stays: other services may
// read it, and so may they themselves when they come again.
func (u *Clusters) draftRemove(ctx context.Context, d *liveDraft, cluster loom.Cluster, in ChangeInput) error {
	names := slices.Compact(slices.Sorted(slices.Values(in.Services)))
	if len(names) == 0 {
		return invalid("services", "Name the services to remove.")
	}
	if err := loom.InvalidFields(checkNamed(names, has(cluster.Services))); err != nil {
		return err
	}
	solving, stop := u.solving(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
	defer stop()
	c := question(cluster, d.Nodes, cluster.Services)
	_, unsat, err := solver.Remove(solving, c, names)
	if err != nil {
		return err
	}
	if unsat != nil {
		return unsolvable(unsat, d.Nodes, removals(names, solver.SuggestChange(solving, c, nil, names, unsat)))
	}
	d.Altered.Services = names
	d.Services = maps.Clone(cluster.Services)
	maps.DeleteFunc(d.Services, func(name string, _ loom.Service) bool { return slices.Contains(names, name) })
	for i := range d.Nodes {
		n := &d.Nodes[i]
		kept := slices.DeleteFunc(slices.Clone(n.Services), func(name string) bool { return slices.Contains(names, name) })
		if len(kept) < len(n.Services) {
			n.Services, n.Automators = kept, automatorsOf(kept, d.Services)
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

// onCluster returns NotFound, about the field services, for one that is not there.
func onCluster(cluster loom.Cluster, names []string) error {
	for _, name := range names {
		if _, there := cluster.Services[name]; !there {
			return missing("services", "Cluster %s has no service “%.255s”.", cluster.ID, name)
		}
	}
	return nil
}

// changedFiles gives, by service of a cluster, the files that its actions ran and that are
// others now, such as “web.sh (version 3)”.
func (u *Clusters) changedFiles(ctx context.Context, cluster loom.Cluster) (map[string][]string, error) {
	all, err := store.ChangedFiles(ctx, u.db, cluster.Owner.Tenant, cluster.ID)
	if err != nil {
		return nil, err
	}
	changed := map[string][]string{}
	for _, f := range all {
		s, there := cluster.Services[f.Service]
		text := fmt.Sprintf("%s (version %d)", f.Name, f.Version)
		// What an action ran that there is no more, or by another automator, is past.
		if there && s.Provisioner.Actions[f.Action].Type == f.Plugin && !slices.Contains(changed[f.Service], text) {
			changed[f.Service] = append(changed[f.Service], text)
		}
	}
	return changed, nil
}

// UpgradeFiles gives, by service of a cluster that the actor may see, the files that are
// others now than when the service was set up. NotFound.
func (u *Clusters) UpgradeFiles(ctx context.Context, actor loom.Actor, id loom.ClusterID) (map[string][]string, error) {
	cluster, _, err := u.load(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	return u.changedFiles(ctx, cluster)
}

// ReleasedFile is a file of a service that came into use after the service failed.
type ReleasedFile = store.ReleasedFile

// ReleasedFiles lists the files of services that failed in an operation and that came into
// use since, each once for a service: a retry runs them. NotFound.
func (u *Clusters) ReleasedFiles(ctx context.Context, actor loom.Actor, ref loom.OperationRef) ([]ReleasedFile, error) {
	cluster, _, err := u.load(ctx, actor, ref.Cluster)
	if err != nil {
		return nil, err
	}
	all, err := store.ReleasedFiles(ctx, u.db, cluster.Owner.Tenant, ref)
	if err != nil {
		return nil, err
	}
	plugins := map[string]loom.PluginType{}
	var released []ReleasedFile
	for _, f := range all {
		plugin, known := plugins[f.Plugin]
		if !known {
			if plugin, err = store.AutomatorType(ctx, u.db, f.Plugin); err != nil && !errors.Is(err, loom.NotFound) {
				return nil, err
			}
			plugins[f.Plugin] = plugin
		}
		listed := slices.ContainsFunc(released, func(r ReleasedFile) bool { return r.Service == f.Service && r.ResourceRef == f.ResourceRef })
		if action := cluster.Services[f.Service].Provisioner.Actions[f.Action]; !listed && f.UsedBy(&plugin, action) {
			released = append(released, f)
		}
	}
	return released, nil
}

// draftUpgrade takes the newest versions of services from the catalog, and sets up again
// those whose files are others: of those named, or of all.
func (u *Clusters) draftUpgrade(ctx context.Context, d *liveDraft, cluster loom.Cluster, in ChangeInput) error {
	if err := onCluster(cluster, in.Services); err != nil {
		return err
	}
	catalog, err := store.Services(ctx, u.db, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	files, err := u.changedFiles(ctx, cluster)
	if err != nil {
		return err
	}
	d.Services = maps.Clone(cluster.Services)
	for _, name := range sortedNames(cluster.Services) {
		if len(in.Services) > 0 && !slices.Contains(in.Services, name) {
			continue
		}
		newest, there := catalog[name]
		present := cluster.Services[name]
		newer := there && newest.Version != present.Version && !newest.SameWork(&present)
		if len(files[name]) > 0 {
			if d.Altered.Files == nil {
				d.Altered.Files = map[string][]string{}
			}
			d.Altered.Files[name] = files[name]
		}
		switch {
		case newer || len(files[name]) > 0 && (there || len(in.Services) == 0):
			d.Altered.Services = append(d.Altered.Services, name)
			if newer {
				d.Services[name] = newest
				d.version(loom.KindService, &newest.Base)
			}
		case !there && len(in.Services) > 0:
			return invalid("services", "The catalog has no service “%s” any more, so there is nothing newer.", name)
		case !there:
			d.Warnings = append(d.Warnings, fmt.Sprintf("The catalog has no service “%s” any more; it stays as it is.", name))
		}
	}
	if len(d.Altered.Services) == 0 {
		return invalid("services", "Nothing is newer: the cluster has the newest versions of these services and their files.")
	}
	if err := u.stillValid(ctx, cluster, d.Nodes, d.Services); err != nil {
		return err
	}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if slices.ContainsFunc(n.Services, func(name string) bool { return slices.Contains(d.Altered.Services, name) }) {
			n.Automators = automatorsOf(n.Services, d.Services)
		}
	}
	d.warnOfUses(d.Altered.Services)
	return d.underlay(cluster, d.Altered.Services)
}

// stillValid returns Unsolvable, with the reasons, unless nodes with services as they
// are to be satisfy the rules.
func (u *Clusters) stillValid(ctx context.Context, cluster loom.Cluster, nodes []loom.Node, services map[string]loom.Service) error {
	solving, stop := u.solving(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
	defer stop()
	_, unsat, err := solver.Check(solving, question(cluster, nodes, services))
	if err == nil && unsat != nil {
		err = unsolvable(unsat, nodes, nil)
	}
	return err
}

// draftResize gives nodes machines of another hardware type.
func (u *Clusters) draftResize(ctx context.Context, d *liveDraft, cluster loom.Cluster, in ChangeInput) error {
	if in.HardwareType == "" {
		return invalid("hardwaretype", "Name the hardware type that the nodes are to have.")
	}
	if err := onCluster(cluster, in.Services); err != nil {
		return err
	}
	w, err := u.readTypes(ctx, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	if w.hardwareType(in.HardwareType).Name == "" {
		return missing("hardwaretype", "There is no hardware type “%.255s”.", in.HardwareType)
	}
	solving, stop := u.solving(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
	defer stop()
	c := question(cluster, d.Nodes, cluster.Services)
	c.Input.HardwareTypes, c.Input.ImageTypes = w.hardware, w.images
	out, unsat, err := solver.Resize(solving, c, in.HardwareType, in.Services)
	if err != nil {
		return err
	}
	if unsat != nil {
		return unsolvable(unsat, d.Nodes, solver.SuggestResize(solving, c, in.HardwareType, in.Services, unsat))
	}
	changed := false
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if n.HardwareType == out.Nodes[i].HardwareType {
			continue
		}
		n.HardwareType, changed = out.Nodes[i].HardwareType, true
		n.Incarnation++
		d.furnish(w, n)
	}
	if !changed {
		return invalid("hardwaretype", "All of these nodes have the hardware type “%s” already.", in.HardwareType)
	}
	return nil
}

// draftRepair makes the machines of nodes anew.
func (u *Clusters) draftRepair(ctx context.Context, d *liveDraft, cluster loom.Cluster, in ChangeInput) error {
	if len(in.Nodes) == 0 {
		return invalid("nodes", "Name the nodes to repair by their ids.")
	}
	if err := known(cluster, d.Nodes, in.Nodes); err != nil {
		return err
	}
	w, err := u.readTypes(ctx, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	var before, after, out, bare []loom.Node
	returns := false
	lost, err := u.lostToDelete(ctx, cluster)
	if err != nil {
		return err
	}
	past, err := u.pastOf(ctx, cluster, d.Nodes)
	if err != nil {
		return err
	}
	for _, n := range d.Nodes {
		was := n
		named := slices.Contains(in.Nodes, n.ID)
		switch {
		case named:
			returns = returns || n.Leaving
			n.Incarnation, n.Leaving = n.Incarnation+1, false
			d.furnish(w, &n)
		case n.Leaving && !lost[n.ID]:
			out = append(out, n)
			continue
		case past.bare(&n):
			bare = append(bare, n)
		}
		n.Leaving = false // the cluster lives on
		before, after = append(before, was), append(after, n)
	}
	if len(bare) > 0 {
		return invalid("nodes", "%s no machine; name %s as well.", these(bare, "has", "have"), them(bare))
	}
	d.Altered.Was.Nodes, d.Nodes = before, after
	d.warnOfOut(out)
	if err := u.draftRest(ctx, d, cluster, past); err != nil {
		return err
	}
	if returns {
		if err := u.stillValid(ctx, cluster, d.Nodes, d.Services); err != nil {
			return err
		}
	}
	if quota := d.more(); quota > 0 {
		use, err := store.QuotaUse(ctx, u.db, cluster.Owner.Tenant)
		if err != nil {
			return err
		}
		return use.Check(0, quota)
	}
	return nil
}

// lostToDelete gives the nodes that a delete, which failed, was to take away: with a
// repair they are the cluster again.
func (u *Clusters) lostToDelete(ctx context.Context, c loom.Cluster) (map[loom.NodeID]bool, error) {
	lost := map[loom.NodeID]bool{}
	if c.Status != loom.ClusterIncomplete || c.LatestOperation == 0 {
		return lost, nil
	}
	ref := loom.OperationRef{Cluster: c.ID, Number: c.LatestOperation}
	for ref.Number > 0 { // a delete that was retried was once begun by another operation
		op, err := store.OperationByRef(ctx, u.db, c.Owner.Tenant, ref)
		if err != nil {
			return nil, err
		}
		if op.Action != loom.ClusterDelete {
			return lost, nil
		}
		before, err := store.SnapshotBefore(ctx, u.db, c.Owner.Tenant, ref)
		if err != nil {
			return nil, err
		}
		if before != nil {
			for _, n := range before.Nodes {
				lost[n.ID] = true
			}
		}
		ref.Number = op.Concerns
	}
	return lost, nil
}

// withLost are the nodes of a cluster that can be repaired.
func (u *Clusters) withLost(ctx context.Context, c loom.Cluster, all []loom.Node) ([]loom.Node, error) {
	lost, err := u.lostToDelete(ctx, c)
	if err != nil {
		return nil, err
	}
	var nodes []loom.Node
	for _, n := range all {
		if n.State != loom.NodeDeleted || lost[n.ID] || !n.Leaving {
			n.Results, n.Actions = nil, nil
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// these words some nodes: "Node 1001 has", "Nodes 1001, 1002 have".
func these(nodes []loom.Node, one, many string) string {
	if len(nodes) == 1 {
		return fmt.Sprintf("Node %d %s", nodes[0].Number, one)
	}
	var names []string
	for i, n := range nodes {
		if i == 5 {
			names = append(names, fmt.Sprintf("%d more", len(nodes)-i))
			break
		}
		names = append(names, fmt.Sprint(n.Number))
	}
	return "Nodes " + strings.Join(names, ", ") + " " + many
}

func them(nodes []loom.Node) string {
	if len(nodes) == 1 {
		return "it"
	}
	return "them"
}
