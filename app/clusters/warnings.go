package clusters

import (
	"context"
	"fmt"
	"slices"

	"loom/app/loom"
	"loom/app/store"
)

// warnOf lists what a person should know before it happens.
func (u *Clusters) warnOf(ctx context.Context, actor loom.Actor, c *change) error {
	for _, n := range c.shown().Nodes {
		switch {
		case n.State != loom.NodeFailed || c.Kind == loom.ChangeAuthorize: // which leaves it out
		case c.Kind == loom.ChangeDelete:
			c.warn("Node %d failed before; look whether its machine is really gone afterwards.", n.Number)
		default:
			c.warn("Node %d failed before; its tasks may fail again.", n.Number)
		}
	}
	if c.Kind == loom.ChangeDelete {
		return nil
	}
	if len(c.plan.Tasks) == 0 {
		c.warn("No service defines an action that this needs, so nothing runs on the nodes (%s).", c.Action.Verb())
	}
	if err := u.warnOfPlugins(ctx, actor.Tenant, c); err != nil {
		return err
	}
	c.warnOfLoss()
	if c.Action == loom.ClusterConfigure {
		c.Warnings = append(c.Warnings, "Services are not restarted; one that reads its settings only when it starts keeps the old ones.")
	}
	if c.Kind == loom.ChangeRetry {
		if err := u.warnOfVersions(ctx, actor.Tenant, c); err != nil {
			return err
		}
	}
	tenant, err := store.Tenant(ctx, u.q, actor.Tenant)
	if err == nil && tenant.Workers == 0 {
		c.Warnings = append(c.Warnings, noWorkers)
	}
	return err
}

// warnOfVersions says which services have a newer version in the catalog that does other
// work, as an upgrade counts it, since a retry carries out those that the cluster has.
func (u *Clusters) warnOfVersions(ctx context.Context, tenant loom.TenantID, c *change) error {
	catalog, err := store.Services(ctx, u.q, tenant)
	if err != nil {
		return err
	}
	for _, name := range sortedNames(c.After.Services) {
		present := c.After.Services[name]
		if newest, there := catalog[name]; there && newest.Version > present.Version && !newest.SameWork(&present) {
			c.warn("The retry carries out version %d of “%s”; name it among the services of the retry to take version %d of the catalog.", present.Version, name, newest.Version)
		}
	}
	return nil
}

// warnOfLoss says what is gone afterwards.
func (c *change) warnOfLoss() {
	if gone := c.removed(); len(gone) > 0 {
		c.warn("%s is lost.", nodesText(gone, "leaves: what is on the disks of its machine", "leave: what is on the disks of their machines"))
	}
	if other := c.replaced(); len(other) > 0 {
		c.warn("%s is lost.", nodesText(other, "gets another machine: what is on the disks of the present one", "get other machines: what is on the disks of the present ones"))
	}
	if dead := c.filter(func(before, _ *loom.Node) bool {
		return before != nil && slices.Contains(c.Input.Change.Dead, before.ID)
	}); len(dead) > 0 {
		c.warn("%s as dead: nothing is drained or stopped there, and what is on the disks is not saved.", nodesText(dead, "counts", "count"))
	}
	for _, why := range c.Why {
		c.warn("%s", why)
	}
	c.diffNodes(func(before, after *loom.Node) {
		if before == nil || after == nil || before.Incarnation == after.Incarnation || c.Kind != loom.ChangeRepair {
			return
		}
		for _, f := range []struct{ word, was, is string }{{"flavor", before.Flavor, after.Flavor}, {"image", before.Image, after.Image}} {
			if f.was != f.is {
				c.warn("Node %d gets the %s “%s”, as its type says now; it had “%s”.", after.Number, f.word, f.is, f.was)
			}
		}
	})
	var removed []string
	switch {
	case c.Followed != nil:
		removed = c.Followed.Removed
	case c.Kind == loom.ChangeRemoveServices:
		removed = c.Services
	}
	for _, name := range removed {
		if s := c.Before.Services[name]; !s.Defines(loom.ActionRemove) {
			c.warn("“%s” has no remove action: its files stay on the machines.", name)
		}
	}
	after := loom.SecretKeysOf(c.After.Services)
	for _, name := range removed {
		for _, p := range c.Before.Services[name].Parameters {
			if p.Secret && !after.HidesAt(p.Key) {
				c.warn("“%s” stays in the config and is no longer hidden once “%s” is gone; remove it from the config.", p.Key, name)
			}
		}
	}
}

// warnOfPlugins says which plugins a change needs and no live provisioner carries: the
// provider where machines are made, and automators of what comes on them or in any
// version. While no provisioner runs at all, that is said elsewhere, and nothing is
// known of plugins.
func (u *Clusters) warnOfPlugins(ctx context.Context, tenant loom.TenantID, c *change) error {
	var automators []string
	fresh := slices.Concat(c.added(), c.replaced())
	for _, n := range fresh {
		automators = append(automators, n.Automators...)
	}
	if c.of.installs {
		automators = automatorsOf(c.Services, c.After.Services)
	}
	if len(fresh) == 0 && len(automators) == 0 {
		return nil
	}
	live, carried, err := store.CarriedPlugins(ctx, u.q, tenant)
	if err != nil || live == 0 {
		return err
	}
	if len(fresh) > 0 && !slices.Contains(carried, c.Provider.Type) {
		c.Warnings = append(c.Warnings, missingProvider(c.Provider.Type))
	}
	c.Warnings = append(c.Warnings, missingAutomators(carried, automators)...)
	return nil
}

func missingProvider(name string) string {
	return fmt.Sprintf("No running provisioner carries the provider plugin “%s”, so no machine could be made; use another provider, or start a provisioner that has it.", name)
}

func missingAutomators(carried, automators []string) []string {
	var warnings []string
	slices.Sort(automators)
	for _, name := range slices.Compact(automators) {
		if !slices.Contains(carried, name) {
			warnings = append(warnings, fmt.Sprintf("No running provisioner carries the automator plugin “%s”, so services that use it could not be set up; start a provisioner that has it.", name))
		}
	}
	return warnings
}
