package provisioner

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// create calls CREATE where the machine is to be made. A node for which a machine was
// asked for elsewhere, by an earlier attempt whose answer may be lost, gets that machine:
// only when there is none is another one made.
func (r *Runner) create(ctx context.Context, p provider.Provider, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	described, _ := r.Providers.Describe(spec.Provider.Type)
	present, before := described.Placing(spec.Provider.Fields), loom.Placed(spec.Results)
	place := present
	if len(before) > 0 && !maps.Equal(before, present) {
		there, err := r.machineAt(ctx, p, spec, before)
		if ctx.Err() != nil {
			return loom.TaskResult{}, context.Cause(ctx)
		}
		if err != nil {
			return loom.TaskResult{Status: 1, Message: fmt.Sprintf("the node may have a machine at %s, where it was asked for before, and that cannot be looked at: %s", loom.JSONText(before), said(err))}, nil
		}
		if there {
			place = before
		}
	}
	given := *spec
	given.Provider, given.Place = spec.Provider.AtPlace(place), place
	return p.Create(ctx, &given, sink)
}

// machineAt reports whether a node has, or may have, its machine at a place.
func (r *Runner) machineAt(ctx context.Context, p provider.Provider, spec *loom.TaskSpec, place map[string]any) (bool, error) {
	lister, ok := p.(provider.Lister)
	if id, _ := spec.Results["providerid"].(string); id != "" || !ok {
		return true, nil // it stays where it is
	}
	machines, err := lister.List(ctx, &loom.ProviderCall{Tenant: spec.Tenant, Provider: spec.Provider.AtPlace(place), ResourceSet: spec.ResourceSet,
		Sensitive: spec.Sensitive, PrivateKey: spec.PrivateKey, Facts: spec.Results, Reach: spec.Reach})
	return slices.ContainsFunc(machines, func(m loom.TaggedMachine) bool { return m.Key == spec.IdempotencyKey }), err
}
