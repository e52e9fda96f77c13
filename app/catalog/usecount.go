package catalog

import (
	"context"

	"loom/app/loom"
	"loom/app/store"
)

// UseCounts says for each entry of a kind how many other entries of the actor's
// tenant name it, a service also under the names that it provides; those that nothing
// names are left out. It reads the newest versions of the whole catalog, in one
// query, however many entries are asked for.
func (c *Catalog) UseCounts(ctx context.Context, actor loom.Actor, kind loom.EntityKind) (map[string]int, error) {
	if _, err := readTenant(actor, kind); err != nil {
		return nil, err
	}
	stored, err := store.NewestCatalogEntries(ctx, c.db, actor.Tenant, loom.TenantKinds...)
	if err != nil {
		return nil, err
	}
	// Services by the names under which they are found.
	known := map[string][]string{}
	for _, s := range stored {
		if service, ok := s.Entry.(*loom.Service); ok && kind == loom.KindService {
			for _, provided := range service.Dependencies.Provides {
				known[provided] = append(known[provided], service.Name)
			}
		}
	}
	counts := map[string]int{}
	for _, s := range stored {
		user, named := s.Entry.Meta().Name, map[string]bool{}
		for _, r := range references(s.Entry) {
			if r.kind != kind {
				continue
			}
			named[r.name] = true
			if r.provided {
				for _, provider := range known[r.name] {
					named[provider] = true
				}
			}
		}
		if s.Kind == kind {
			delete(named, user)
		}
		for name := range named {
			counts[name]++
		}
	}
	return counts, nil
}
