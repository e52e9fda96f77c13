package lifecycle

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
		d.Warnings = append(d.Warnings, fmt.Sprintf("No running provisioner carries the provider plugin “%s”, so no machine could be made; use another provider, or start a provisioner that has it.", d.Provider.Type))
	}
	var automators []string
	for _, n := range d.Nodes {
		automators = append(automators, n.Automators...)
	}
	d.Warnings = append(d.Warnings, notCarried(carried, automators)...)
	return nil
}

// warnOfAutomators says the same of the automators of services that are added.
func (u *Clusters) warnOfAutomators(ctx context.Context, tenant loom.TenantID, d *liveDraft) error {
	live, carried, err := store.CarriedPlugins(ctx, u.db, tenant)
	if err != nil || live == 0 {
		return err
	}
	d.Warnings = append(d.Warnings, notCarried(carried, automatorsOf(d.Added.New, d.Services))...)
	return nil
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
