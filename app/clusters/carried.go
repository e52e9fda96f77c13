package clusters

import (
	"context"
	"fmt"
	"slices"

	"loom/app/loom"
	"loom/app/store"
)

// warnOfPlugins says which plugins a create needs and no live provisioner
// carries: its tasks would fail. While no provisioner runs at all, that is said
// elsewhere, and nothing is known of plugins.
func (u *Clusters) warnOfPlugins(ctx context.Context, tenant loom.TenantID, d *draft) error {
	live, carried, err := store.CarriedPlugins(ctx, u.db, tenant)
	if err != nil || live == 0 {
		return err
	}
	if !slices.Contains(carried, d.Provider.Type) {
		d.Warnings = append(d.Warnings, noProvider(d.Provider.Type))
	}
	var automators []string
	for _, n := range d.Nodes {
		automators = append(automators, n.Automators...)
	}
	d.Warnings = append(d.Warnings, notCarried(carried, automators)...)
	return nil
}

// warnOfCarriers says the same of what an operation on a cluster brings: automators
// of services that come in any version, and the provider where machines are made.
func (u *Clusters) warnOfCarriers(ctx context.Context, tenant loom.TenantID, d *liveDraft) error {
	var automators []string
	makes := false
	switch {
	case d.Added != nil:
		automators = automatorsOf(d.Added.New, d.Services)
	case d.Altered != nil:
		fresh := slices.Concat(d.made(), d.replaced())
		for _, n := range fresh {
			automators = append(automators, n.Automators...)
		}
		if makes = len(fresh) > 0; d.Kind == loom.ChangeUpgrade {
			automators = automatorsOf(d.Altered.Services, d.Services)
		}
	default:
		return nil
	}
	live, carried, err := store.CarriedPlugins(ctx, u.db, tenant)
	if err != nil || live == 0 {
		return err
	}
	if makes && !slices.Contains(carried, d.Provider.Type) {
		d.Warnings = append(d.Warnings, noProvider(d.Provider.Type))
	}
	d.Warnings = append(d.Warnings, notCarried(carried, automators)...)
	return nil
}

func noProvider(name string) string {
	return fmt.Sprintf("No running provisioner carries the provider plugin “%s”, so no machine could be made; use another provider, or start a provisioner that has it.", name)
}

func notCarried(carried, automators []string) []string {
	var warnings []string
	slices.Sort(automators)
	for _, name := range slices.Compact(automators) {
		if !slices.Contains(carried, name) {
			warnings = append(warnings, fmt.Sprintf("No running provisioner carries the automator plugin “%s”, so services that use it could not be set up; start a provisioner that has it.", name))
		}
	}
	return warnings
}
