package processes

import (
	"context"

	"loom/app/loom"
	"loom/app/store"
)

// Offers gives what the providers of the actor's tenant answered when they were
// last asked, by name: the sizes and images that forms suggest. It asks nobody.
func (f *Processes) Offers(ctx context.Context, actor loom.Actor) (map[string]loom.Probe, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	return store.NewestProbes(ctx, f.db, actor.Tenant)
}

// ProbeOutcomes gives how the newest probes of the providers of the actor's tenant went, by
// name. Those never probed are left out.
func (f *Processes) ProbeOutcomes(ctx context.Context, actor loom.Actor) (map[string]store.ProbeOutcome, error) {
	if err := actor.May(loom.Publish.Reading(), actor.InTenant()); err != nil {
		return nil, err
	}
	rows, err := store.ProbeOutcomes(ctx, f.db, actor.Tenant)
	found := make(map[string]store.ProbeOutcome, len(rows))
	for _, r := range rows {
		found[r.Provider] = r
	}
	return found, err
}
