package catalog

import (
	"loom/app/loom"
	"loom/app/store"
)

// useCounts says for each entry of a kind how many other entries of a catalog name it, a
// service also under the names that it provides; those that nothing names are left out.
func useCounts(stored []store.StoredEntry, kind loom.EntityKind) map[string]int {
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
	return counts
}
