package loom

import (
	"maps"
	"slices"
)

// Requirement is a name that services require and that cannot be filled in by
// itself: several services would do, or none.
type Requirement struct {
	Name string
	// By are the services that require it, Offers those that would do, both sorted.
	By, Offers []string
}

// RequiredServices gives what is missing for a choice of services to stand by
// themselves (solver.md 4): add are further services, sorted, with all that those
// require in turn; open is what has to be chosen.
func RequiredServices(chosen []string, services map[string]Service) (add []string, open []Requirement) {
	there := distinct(chosen)
	for {
		wanted := unmet(there, services)
		grown := false
		open = nil
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			offers := offering(name, services)
			if len(offers) == 1 {
				if !slices.Contains(there, offers[0]) {
					there, add, grown = append(there, offers[0]), append(add, offers[0]), true
				}
				continue
			}
			open = append(open, Requirement{Name: name, By: distinct(wanted[name]), Offers: offers})
		}
		if !grown {
			return distinct(add), open
		}
	}
}

// unmet gives who requires what is neither there nor provided.
func unmet(there []string, services map[string]Service) map[string][]string {
	offered := map[string]bool{}
	for _, name := range there {
		offered[name] = true
		for _, also := range services[name].Dependencies.Provides {
			offered[also] = true
		}
	}
	wanted := map[string][]string{}
	for _, name := range there {
		d := services[name].Dependencies
		for _, required := range slices.Concat(d.Install.Requires, d.Runtime.Requires) {
			if !offered[required] {
				wanted[required] = append(wanted[required], name)
			}
		}
	}
	return wanted
}

// offering lists the services that fill a requirement: the one of that name, else
// those that provide it.
func offering(name string, services map[string]Service) []string {
	if _, there := services[name]; there {
		return []string{name}
	}
	var found []string
	for _, s := range slices.Sorted(maps.Keys(services)) {
		if slices.Contains(services[s].Dependencies.Provides, name) {
			found = append(found, s)
		}
	}
	return found
}
