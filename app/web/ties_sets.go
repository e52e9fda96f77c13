package web

import (
	"context"
	"maps"
	"slices"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/planner/ties"
	"loom/views/route"
	"loom/views/ui"
)

// services gives the newest version of every service of the actor's tenant by name.
func (s *Server) services(ctx context.Context, actor loom.Actor) (map[string]loom.Service, error) {
	found, err := s.Catalog.Newest(ctx, actor, loom.KindService)
	return servicesIn(found), err
}

// servicesIn picks the services out of entries.
func servicesIn(found map[loom.EntityKind][]loom.Entry) map[string]loom.Service {
	services := make(map[string]loom.Service, len(found[loom.KindService]))
	for _, e := range found[loom.KindService] {
		if s, ok := e.(*loom.Service); ok {
			services[s.Name] = *s
		}
	}
	return services
}

// serviceTies is the picture around a service of the catalog; page is where it is
// shown, href leads to services.
func serviceTies(services map[string]loom.Service, name string, hops int, page string, href func(string) string) ui.TiesModel {
	web := ties.Around(services, name, hops)
	if len(web.Ties) == 0 {
		return ui.TiesModel{ID: tiesID, Nothing: "It has nothing to do with other services: it needs none, and none names it."}
	}
	m := tiesModel(web, name, tieLabels{
		id: tiesID, title: "What " + name + " has to do with other services", href: href, line: versionLine(services), icon: iconsOf(services), missing: "not in the catalog",
	})
	m.Hops = tieHops(page, hops)
	return m
}

// templateTies is the picture of the services that clusters of a template may
// have; nil when it names none. A template that allows every service shows its own
// with all that they need.
func templateTies(services map[string]loom.Service, t loom.Template, href func(string) string) *ui.TiesModel {
	set := subset(services, t.Defaults.Services, t.Compatibility.Services)
	if len(t.Compatibility.Services) == 0 {
		set = closure(services, t.Defaults.Services)
	}
	if len(set) == 0 {
		return nil
	}
	m := tiesModel(ties.Of(set), "", tieLabels{
		id: tiesID, title: "Services of the template " + t.Name, href: href, icon: iconsOf(services), missing: "not in this template",
		line: func(name string) string { // of a picture, which has few
			switch {
			case slices.Contains(t.Defaults.Services, name):
				return "in a new cluster"
			case slices.Contains(t.Compatibility.Services, name):
				return "can be added"
			}
			return "needed by others"
		},
	})
	return &m
}

// clusterTies is the picture of the services of a cluster, as it has them; nil when
// it has none. Those that the catalog does not know any more lead to their row.
func clusterTies(v lifecycle.ClusterView, known map[string]loom.Service) *ui.TiesModel {
	if len(v.Services) == 0 {
		return nil
	}
	on := map[string]int{}
	for _, n := range v.Nodes {
		for _, name := range n.Services {
			on[name]++
		}
	}
	row := ui.TiesModel{ID: tiesID}
	m := tiesModel(ties.Of(v.Services), "", tieLabels{
		id: tiesID, title: "Services of the cluster " + v.Name, icon: iconsOf(v.Services), missing: "not on this cluster",
		line: func(name string) string { return "on " + ui.Count(on[name], "node", "nodes") },
		href: func(name string) string {
			if _, there := known[name]; there {
				return route.CatalogService(name)
			}
			return "#" + row.RowID(name)
		},
	})
	return &m
}

// closure adds to names what these require, as far as the catalog has it, the
// services that provide a required name included.
func closure(services map[string]loom.Service, names []string) map[string]loom.Service {
	providers := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		for _, also := range services[name].Dependencies.Provides {
			providers[also] = append(providers[also], name)
		}
	}
	set := map[string]loom.Service{}
	for queue := slices.Clone(names); len(queue) > 0; {
		name := queue[0]
		queue = queue[1:]
		s, there := services[name]
		if _, known := set[name]; known || !there {
			continue
		}
		set[name] = s
		for _, required := range slices.Concat(s.Dependencies.Install.Requires, s.Dependencies.Runtime.Requires) {
			queue = append(append(queue, required), providers[required]...)
		}
	}
	return set
}

// subset gives the services of these names that are there.
func subset(services map[string]loom.Service, names ...[]string) map[string]loom.Service {
	set := map[string]loom.Service{}
	for _, name := range slices.Concat(names...) {
		if s, there := services[name]; there {
			set[name] = s
		}
	}
	return set
}
