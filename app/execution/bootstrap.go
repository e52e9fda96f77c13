package execution

import (
	"context"
	"slices"
	"strings"
	"sync"

	"loom/app/loom"
	"loom/app/store"
)

// serviceCache remembers the services of clusters while an operation runs: every
// node of a big cluster asks for them once.
type serviceCache struct {
	mu sync.Mutex
	of map[loom.OperationRef]map[string]loom.Service
}

// services gives the services of a task's cluster, as the operation leaves them.
func (o *Operations) services(ctx context.Context, f *store.SpecFacts) (map[string]loom.Service, error) {
	o.known.mu.Lock()
	defer o.known.mu.Unlock()
	ref := f.Ref.Operation
	if services, there := o.known.of[ref]; there {
		return services, nil
	}
	all, err := store.ServicesOfClusters(ctx, o.db, f.Tenant, []loom.ClusterID{ref.Cluster})
	if err != nil {
		return nil, err
	}
	if len(o.known.of) >= maxClusters || o.known.of == nil {
		o.known.of = map[loom.OperationRef]map[string]loom.Service{}
	}
	o.known.of[ref] = all[ref.Cluster]
	return all[ref.Cluster], nil
}

// bootstrapFields gives the fields that the actions of a node's services set, by
// automator type: a BOOTSTRAP belongs to no service, but how its tool gets onto the
// machine is said there.
func bootstrapFields(names []string, services map[string]loom.Service) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, name := range slices.Sorted(slices.Values(names)) {
		for _, action := range loom.TaskActions {
			a, defined := services[name].Provisioner.Actions[action]
			if !defined {
				continue
			}
			if all[a.Type] == nil {
				all[a.Type] = map[string]string{}
			}
			for field, value := range a.Fields {
				if _, set := all[a.Type][field]; !set && strings.TrimSpace(value) != "" {
					all[a.Type][field] = value
				}
			}
		}
	}
	return all
}
