package clusters

import (
	"context"
	"fmt"
	"slices"

	"loom/app/loom"
	"loom/app/store"
)

// warnLive lists what a person should know before it happens.
func (u *Clusters) warnLive(ctx context.Context, actor loom.Actor, d *liveDraft) error {
	for _, n := range d.Nodes {
		switch {
		case n.State != loom.NodeFailed || d.Kind == loom.ChangeAuthorize: // which leaves it out
		case d.Kind == loom.ChangeDelete:
			d.Warnings = append(d.Warnings, fmt.Sprintf("Node %d failed before; look whether its machine is really gone afterwards.", n.Number))
		default:
			d.Warnings = append(d.Warnings, fmt.Sprintf("Node %d failed before; its tasks may fail again.", n.Number))
		}
	}
	if d.Kind == loom.ChangeDelete {
		return nil
	}
	if plan, err := d.plan(); err != nil {
		return err
	} else if len(plan.Tasks) == 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("No service defines an action that this needs, so nothing runs on the nodes (%s).", d.Action.Verb()))
	}
	if err := u.warnOfCarriers(ctx, actor.Tenant, d); err != nil {
		return err
	}
	if d.Altered != nil {
		d.warnOfLoss()
	}
	if d.Action == loom.ClusterConfigure {
		d.Warnings = append(d.Warnings, "Services are not restarted; one that reads its settings only when it starts keeps the old ones.")
	}
	if d.Kind == loom.ChangeRetry {
		if err := u.warnOfVersions(ctx, actor.Tenant, d); err != nil {
			return err
		}
	}
	tenant, err := store.Tenant(ctx, u.db, actor.Tenant)
	if err == nil && tenant.Workers == 0 {
		d.Warnings = append(d.Warnings, noWorkers)
	}
	return err
}

// warnOfVersions says which services have a newer version in the catalog that does other
// work, as an upgrade counts it, since a retry carries out those that the cluster has.
func (u *Clusters) warnOfVersions(ctx context.Context, tenant loom.TenantID, d *liveDraft) error {
	catalog, err := store.Services(ctx, u.db, tenant)
	if err != nil {
		return err
	}
	for _, name := range sortedNames(d.Services) {
		present := d.Services[name]
		if newest, there := catalog[name]; there && newest.Version > present.Version && !newest.SameWork(&present) {
			d.warn("The retry carries out version %d of “%s”; name it among the services of the retry to take version %d of the catalog.", present.Version, name, newest.Version)
		}
	}
	return nil
}

// warnOfLoss says what is gone afterwards.
func (d *liveDraft) warnOfLoss() {
	warn := func(format string, args ...any) { d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...)) }
	if gone := d.leavers(); len(gone) > 0 {
		warn("%s is lost.", these(gone, "leaves: what is on the disks of its machine", "leave: what is on the disks of their machines"))
	}
	if other := d.replaced(); len(other) > 0 {
		warn("%s is lost.", these(other, "gets another machine: what is on the disks of the present one", "get other machines: what is on the disks of the present ones"))
	}
	if dead := d.pick(func(before, _ *loom.Node) bool {
		return before != nil && slices.Contains(d.Altered.Asked.Dead, before.ID)
	}); len(dead) > 0 {
		warn("%s as dead: nothing is drained or stopped there, and what is on the disks is not saved.", these(dead, "counts", "count"))
	}
	for _, why := range d.Altered.Why {
		warn("%s", why)
	}
	d.pairs(func(before, after *loom.Node) {
		if before == nil || after == nil || before.Incarnation == after.Incarnation || d.Kind != loom.ChangeRepair {
			return
		}
		for _, c := range []struct{ word, was, is string }{{"flavor", before.Flavor, after.Flavor}, {"image", before.Image, after.Image}} {
			if c.was != c.is {
				warn("Node %d gets the %s “%s”, as its type says now; it had “%s”.", after.Number, c.word, c.is, c.was)
			}
		}
	})
	var removed []string
	switch {
	case d.Followed != nil:
		removed = d.Followed.Removed
	case d.Kind == loom.ChangeRemoveServices:
		removed = d.Altered.Services
	}
	for _, name := range removed {
		if s := d.Altered.Was.Services[name]; !s.Defines(loom.ActionRemove) {
			warn("“%s” has no remove action: its files stay on the machines.", name)
		}
	}
}

// warnOfOut names nodes that an earlier operation left on their way out.
func (d *liveDraft) warnOfOut(out []loom.Node) {
	if len(out) > 0 {
		d.Warnings = append(d.Warnings, these(out, "is", "are")+" on the way out since an earlier operation and may still have a machine; name "+
			them(out)+" in a shrink to finish that, or in a repair to keep "+them(out)+".")
	}
}
