package dependencies

import (
	"slices"

	"loom/app/loom"
	"loom/planner"
)

// findCycles looks for cycles among the vertices that are services, at install
// and at run time, and marks the edges that make them.
func (w *Graph) findCycles(services map[string]loom.Service) {
	for _, install := range []bool{true, false} {
		phase := make(map[string]loom.Service, len(w.Vertices))
		for _, vertex := range w.Vertices {
			if vertex.Sort != Service {
				continue
			}
			s := services[vertex.Name]
			if install {
				s.Dependencies.Runtime = loom.PhaseDependency{}
			} else {
				s.Dependencies.Install = loom.PhaseDependency{}
			}
			phase[vertex.Name] = s
		}
		var paths [][]string
		for _, path := range planner.CheckCycles(phase) {
			w.Cycles = append(w.Cycles, Cycle{Install: install, Path: path})
			paths = append(paths, path)
		}
		w.mark(paths, install)
	}
}

// mark marks the needs by which a service of a cycle leads to the next one, or to a
// name that the next one provides. No service is in two of the cycles.
func (w *Graph) mark(cycles [][]string, install bool) {
	if len(cycles) == 0 {
		return
	}
	next := map[string]string{}
	for _, path := range cycles {
		for i := 1; i < len(path); i++ {
			next[path[i-1]] = path[i]
		}
	}
	name := func(vertex int) string {
		if w.Vertices[vertex].Sort == Service {
			return w.Vertices[vertex].Name
		}
		return "" // no service has this name
	}
	type offer struct {
		by string
		as int
	}
	offers, led := map[offer]bool{}, map[offer]bool{}
	for _, t := range w.Edges {
		if t.Kind == Provides {
			offers[offer{name(t.From), t.To}] = true
		}
	}
	for i, t := range w.Edges {
		to, on := next[name(t.From)]
		if !on || !t.Kind.Needs() || install && !t.Install || !install && !t.Runtime {
			continue
		}
		if o := (offer{to, t.To}); name(t.To) == to || offers[o] {
			w.Edges[i].Cycle = true
			led[o] = true
		}
	}
	for i, t := range w.Edges {
		if t.Kind == Provides && led[offer{name(t.From), t.To}] {
			w.Edges[i].Cycle = true
		}
	}
}

// at returns the index of a service.
func (w *Graph) at(service string) int {
	return slices.IndexFunc(w.Vertices, func(t Vertex) bool { return t.Sort == Service && t.Name == service })
}
