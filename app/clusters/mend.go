package clusters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner"
	"loom/solver"
)

// An operation that failed because of what the catalog or the config said is mended: a
// retry leads to where it was to lead to, with newer versions of services, another
// config, or without services. Undone, it goes back to before the failed one.

// mending is what a retry changes.
type mending struct {
	// Newest are services that come in their newest version, Remove those that leave.
	Newest, Remove []string
	// Config is another config, nil for none.
	Config *ConfigureInput
}

// draftOtherWord works out a configure or a removal of services of a cluster whose
// latest operation failed: a retry of that with the change.
func (u *Clusters) draftOtherWord(ctx context.Context, actor loom.Actor, d *liveDraft, cluster loom.Cluster, in PreviewInput) error {
	op, err := lastBegun(ctx, u.db, cluster)
	if err != nil {
		return err
	}
	if in.Kind == loom.ChangeConfigure {
		half, err := u.halfDone(ctx, cluster)
		if err != nil {
			return err
		}
		if half == nil || half.Ref != op.Ref || op.Undone || op.Action == loom.ClusterDelete {
			if cluster.Status == loom.ClusterIncomplete {
				return loom.NewError(loom.Conflict, "The cluster is incomplete, and no operation is left to go on with; repair or delete it.")
			}
			return u.draftConfig(ctx, d, cluster, in.Configure) // there is nothing to go on with
		}
	}
	change := mending{Config: in.Configure}
	if in.Kind == loom.ChangeRemoveServices {
		if change = (mending{Remove: in.Change.Services}); len(change.Remove) == 0 {
			return invalid("services", "Name the services to remove.")
		}
	}
	if err := u.draftMend(ctx, actor, d, cluster, *op, in.Change, change); err != nil {
		return err
	}
	d.Configure = in.Configure
	return nil
}

// draftMend works out a retry that changes what failed.
func (u *Clusters) draftMend(ctx context.Context, actor loom.Actor, d *liveDraft, cluster loom.Cluster, op loom.Operation, asked ChangeInput, change mending) error {
	if op.Action == loom.ClusterDelete {
		return loom.NewError(loom.Conflict, "Operation %d is a delete; retry it as it is, since what it takes away needs no other version or config.", op.Ref.Number)
	}
	f := &following{Asked: asked, Of: op.Ref.Number, By: actor.User, Mends: true}
	if err := u.readPresent(ctx, cluster, f); err != nil {
		return err
	}
	if f.Failed != op.Ref.Number {
		return loom.NewError(loom.Conflict, "Operation %d left nothing half done; there is nothing to go on with.", op.Ref.Number)
	}
	of, err := f.lineage(ctx, u.db, cluster.Owner.Tenant, op.Ref)
	if err != nil {
		return err
	}
	if of.Goal == nil && op.Action != loom.ClusterCreate && of.First == nil {
		return loom.NewError(loom.Conflict, "Operation %d was begun by an earlier release, which did not keep the layout before it; retry it as it is.", op.Ref.Number)
	}
	f.After.Nodes = of.After.Nodes
	if len(f.After.Nodes) == 0 {
		return loom.NewError(loom.Conflict, "Operation %d leads to no nodes, so there is nothing to change of it; retry it as it is.", op.Ref.Number)
	}
	d.Action, d.Followed = op.Action, f
	if err := d.policy(asked.OnFailure, op.OnFailure); err != nil {
		return err
	}
	d.Altered = &alteration{Was: planner.State{Nodes: f.After.Nodes, Services: cluster.Services}, Versions: []store.EntryVersion{}}
	d.Nodes = slices.Clone(f.After.Nodes)
	d.Services = maps.Clone(cluster.Services)
	d.Altered.Asked = asked
	if err := u.mendServices(ctx, d, cluster, change); err != nil {
		return err
	}
	if err := u.mendConfig(ctx, d, cluster, change.Config); err != nil {
		return err
	}
	f.To = planner.State{Nodes: d.Nodes, Services: d.Services, Config: cluster.Config}
	if f.Config {
		f.To.Config = d.After
	}
	if err := f.compute(ctx, u.db, cluster.Owner.Tenant, cluster.ID, d.Kind); err != nil {
		return err
	}
	if cluster.Protected && op.Action == loom.Rollback && deletes(f.plan) {
		return isProtected()
	}
	return nil
}

// mendServices takes newest versions, and takes services off.
func (u *Clusters) mendServices(ctx context.Context, d *liveDraft, cluster loom.Cluster, change mending) error {
	if err := onCluster(cluster, slices.Concat(change.Newest, change.Remove)); err != nil {
		return err
	}
	for _, name := range change.Newest {
		if slices.Contains(change.Remove, name) {
			return invalid("services", "“%s” is to be removed; do not name it among those that come in their newest version.", name)
		}
	}
	catalog, err := store.Services(ctx, u.db, cluster.Owner.Tenant)
	if err != nil {
		return err
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(change.Newest))) {
		newest, there := catalog[name]
		switch {
		case !there:
			return invalid("services", "The catalog no longer has a service “%s”, so there is nothing newer.", name)
		case newest.Version == cluster.Services[name].Version:
			d.warn("Nothing is newer than version %d of “%s”.", newest.Version, name)
		default:
			d.Services[name] = newest
			d.Altered.Services = append(d.Altered.Services, name)
			d.version(loom.KindService, &newest.Base)
		}
	}
	remove := slices.Compact(slices.Sorted(slices.Values(change.Remove)))
	if len(remove) > 0 {
		solving, stop := u.solving(ctx, cluster.Owner.Tenant, u.opts.SolveTime)
		defer stop()
		c := question(cluster, d.Nodes, d.Services)
		_, unsat, err := solver.Remove(solving, c, remove)
		if err != nil {
			return err
		}
		if unsat != nil {
			return unsolvable(unsat, d.Nodes, removals(remove, solver.SuggestChange(solving, c, nil, remove, unsat)))
		}
	}
	maps.DeleteFunc(d.Services, func(name string, _ loom.Service) bool { return slices.Contains(remove, name) })
	for i := range d.Nodes {
		n := &d.Nodes[i]
		kept := slices.DeleteFunc(slices.Clone(n.Services), func(name string) bool { return slices.Contains(remove, name) })
		if len(kept) < len(n.Services) || slices.ContainsFunc(kept, func(name string) bool { return slices.Contains(d.Altered.Services, name) }) {
			n.Services, n.Automators = kept, automatorsOf(kept, d.Services)
		}
	}
	if len(d.Altered.Services) > 0 {
		d.warnOfUses(d.Altered.Services)
		if err := u.stillValid(ctx, cluster, d.Nodes, on(d.Nodes, d.Services)); err != nil {
			return err
		}
	}
	d.Followed.Newest, d.Followed.Removed = slices.Clone(d.Altered.Services), remove
	return nil
}

// mendConfig lays defaults of newer versions below the config that is asked for.
func (u *Clusters) mendConfig(ctx context.Context, d *liveDraft, cluster loom.Cluster, asked *ConfigureInput) error {
	field := "config"
	if asked != nil {
		field = asked.field()
		if err := loom.InvalidFields(asked.check()); err != nil {
			return err
		}
		if err := u.draftConfig(ctx, d, cluster, asked); err != nil {
			return err
		}
		cluster.Config = d.After
	}
	before := d.Before
	if before == nil {
		before = cluster.Config
	}
	d.Before, d.After, d.Configure = nil, nil, nil
	base := cluster
	if err := d.underlay(base, d.Followed.Newest); err != nil {
		return err
	}
	after := base.Config
	if d.After != nil {
		after = d.After
	}
	d.Before, d.After = nil, nil
	if !sameJSON(before, after) {
		d.Followed.Config, d.Before, d.After = true, before, after
	}
	return d.checkMacros(cluster.Owner.User, field, after)
}

// lineage reads what Back is asked about: the operation and those it goes on with.
func (f *following) lineage(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (*loom.Lineage, error) {
	op, err := store.OperationByRef(ctx, q, tenant, ref)
	if err != nil {
		return nil, err
	}
	return store.LineageOf(ctx, q, tenant, op, loom.Snapshot(f.After))
}

// computeMend plans what leads on from what failed.
func (f *following) computeMend(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID) error {
	of, err := f.lineage(ctx, q, tenant, loom.OperationRef{Cluster: cluster, Number: f.Failed})
	if err != nil {
		return err
	}
	in := planner.RollbackInputOf(of)
	in.To, in.Mends, in.Batch = f.To, true, 1
	if in.Plan.Action == loom.ClusterCreate {
		in.Batch = len(f.To.Nodes) // nothing serves yet
	}
	in.HasMachine = func(id loom.NodeID) bool { return slices.Contains(f.Machines, id) }
	plan, err := planner.PlanRollback(in)
	f.plan, f.old = plan, in.Definitions()
	return err
}

// storedMend is what is stored of a retry that changes what failed, beside its plan.
func (f *following) storedMend(op store.NewOperation) store.NewOperation {
	op.Concerns = f.Of
	start, before := *op.Before, *op.Before
	before.Services = maps.Clone(before.Services)
	if before.Services == nil {
		before.Services = map[string]loom.Service{}
	}
	maps.Copy(before.Services, f.old)
	op.Start, op.Before = &start, &before
	return op
}

// mended says what a retry changes.
func (v *PreviewView) mended() string {
	var parts []string
	if len(v.Newest) > 0 {
		parts = append(parts, "takes the newest version of "+strings.Join(v.Newest, ", "))
	}
	if len(v.Removed) > 0 {
		parts = append(parts, "removes "+strings.Join(v.Removed, ", "))
	}
	if v.Config != nil {
		parts = append(parts, "changes the config")
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf(", %s", strings.Join(parts, ", "))
}
