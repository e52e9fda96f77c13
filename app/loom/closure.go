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
// themselves: add are further services, sorted, with all that those
// require in turn; open is what has to be chosen.
func RequiredServices(chosen []string, services map[string]Service) (add []string, open []Requirement) {
	offers := offerings(services)
	offered, wanted := map[string]bool{}, map[string][]string{}
	queue := distinct(chosen)
	take := func(name string) {
		offered[name] = true
		for _, also := range services[name].Dependencies.Provides {
			offered[also] = true
		}
	}
	for _, name := range queue {
		take(name)
	}
	// Whatever is added is the only service that fills its requirement, so the order in which
	// services are looked at makes no difference.
	for ; len(queue) > 0; queue = queue[1:] {
		d := services[queue[0]].Dependencies
		for _, required := range slices.Concat(d.Install.Requires, d.Runtime.Requires) {
			only := offers[required]
			switch {
			case offered[required]:
			case len(only) == 1:
				take(only[0])
				add, queue = append(add, only[0]), append(queue, only[0])
			default:
				wanted[required] = append(wanted[required], queue[0])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !offered[name] {
			open = append(open, Requirement{Name: name, By: distinct(wanted[name]), Offers: offers[name]})
		}
	}
	return distinct(add), open
}

// offerings lists the services that fill a requirement: the one of that name, else
// those that provide it.
func offerings(services map[string]Service) map[string][]string {
	offers := map[string][]string{}
	for name := range services {
		offers[name] = []string{name}
	}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		for _, also := range distinct(services[name].Dependencies.Provides) {
			if _, is := services[also]; !is {
				offers[also] = append(offers[also], name)
			}
		}
	}
	return offers
}
