package execution

import (
	"context"
	"slices"
	"strings"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

// services gives the services of a task's cluster, as the operation leaves them.
func (o *Operations) services(ctx context.Context, f *store.SpecFacts) (map[string]loom.Service, error) {
	ref := f.Ref.Operation
	return o.known.Get(ctx, ref, time.Now, func(ctx context.Context) (map[string]loom.Service, error) {
		all, err := store.ServicesOfClusters(ctx, o.db, f.Tenant, []loom.ClusterID{ref.Cluster})
		return all[ref.Cluster], err
	})
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
