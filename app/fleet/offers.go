package fleet

import (
	"context"

	"loom/app/loom"
	"loom/app/store"
)

// Offers gives what the providers of the actor's tenant answered when they were
// last asked, by name: the sizes and images that forms suggest. It asks nobody.
func (f *Fleet) Offers(ctx context.Context, actor loom.Actor) (map[string]loom.Probe, error) {
	if err := actor.RequireAdmin(loom.ScopeRead); err != nil {
		return nil, err
	}
	return store.NewestProbes(ctx, f.db, actor.Tenant)
}
