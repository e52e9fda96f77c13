package provisioner

import (
	"context"
	"fmt"
	"maps"

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
		if err != nil {
			return loom.TaskResult{}, err
		}
		if there.Status != 0 {
			return there, nil
		}
		if there.Result != nil {
			place = before
		}
	}
	given := *spec
	given.Provider, given.Place = spec.Provider.AtPlace(place), place
	return p.Create(ctx, &given, sink)
}

// machineAt looks for the machine of a node at a place: the result has its id where
// there is one, and a status where nobody can tell.
func (r *Runner) machineAt(ctx context.Context, p provider.Provider, spec *loom.TaskSpec, place map[string]any) (loom.TaskResult, error) {
	if id, _ := spec.Results["providerid"].(string); id != "" {
		return loom.TaskResult{Result: map[string]any{"providerid": id}}, nil
	}
	lister, ok := p.(provider.Lister)
	if !ok {
		return loom.TaskResult{Result: map[string]any{}}, nil // it stays where it is
	}
	machines, err := lister.List(ctx, &loom.ProviderCall{Tenant: spec.Tenant, Provider: spec.Provider.AtPlace(place), ResourceSet: spec.ResourceSet,
		Sensitive: spec.Sensitive, PrivateKey: spec.PrivateKey, Facts: spec.Results, Reach: spec.Reach})
	if ctx.Err() != nil {
		return loom.TaskResult{}, context.Cause(ctx)
	}
	if err != nil {
		return loom.TaskResult{Status: 1, Message: fmt.Sprintf("the node may have a machine at %s, where it was asked for before, and that cannot be looked at: %s", loom.JSONText(place), said(err))}, nil
	}
	for _, m := range machines {
		if m.Key == spec.IdempotencyKey {
			return loom.TaskResult{Result: map[string]any{"providerid": m.ID}}, nil
		}
	}
	return loom.TaskResult{}, nil
}
