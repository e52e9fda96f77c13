package ties

import (
	"slices"

	"loom/app/loom"
	"loom/planner"
)

// findCircles looks for circles among the things that are services, at install
// and at run time, and marks the ties that make them.
func (w *Web) findCircles(services map[string]loom.Service) {
	for _, install := range []bool{true, false} {
		phase := make(map[string]loom.Service, len(w.Things))
		for _, thing := range w.Things {
			if thing.Sort != Service {
				continue
			}
			s := services[thing.Name]
			if install {
				s.Dependencies.Runtime = loom.PhaseDependency{}
			} else {
				s.Dependencies.Install = loom.PhaseDependency{}
			}
			phase[thing.Name] = s
		}
		var paths [][]string
		for _, path := range planner.CheckCycles(phase) {
			w.Circles = append(w.Circles, Circle{Install: install, Path: path})
			paths = append(paths, path)
		}
		w.mark(paths, install)
	}
}

// mark marks the needs by which one service of a circle leads to the next: to it, or to a
// name that it provides. No service is in two of the circles.
func (w *Web) mark(circles [][]string, install bool) {
	if len(circles) == 0 {
		return
	}
	next := map[string]string{}
	for _, path := range circles {
		for i := 1; i < len(path); i++ {
			next[path[i-1]] = path[i]
		}
	}
	name := func(thing int) string {
		if w.Things[thing].Sort == Service {
			return w.Things[thing].Name
		}
		return "" // no service is called so
	}
	type offer struct {
		by string
		as int
	}
	offers, led := map[offer]bool{}, map[offer]bool{}
	for _, t := range w.Ties {
		if t.Kind == Provides {
			offers[offer{name(t.From), t.To}] = true
		}
	}
	for i, t := range w.Ties {
		to, on := next[name(t.From)]
		if !on || !t.Kind.Needs() || install && !t.Install || !install && !t.Runtime {
			continue
		}
		if o := (offer{to, t.To}); name(t.To) == to || offers[o] {
			w.Ties[i].Circle = true
			led[o] = true
		}
	}
	for i, t := range w.Ties {
		if t.Kind == Provides && led[offer{name(t.From), t.To}] {
			w.Ties[i].Circle = true
		}
	}
}

// at is the index of a service.
func (w *Web) at(service string) int {
	return slices.IndexFunc(w.Things, func(t Thing) bool { return t.Sort == Service && t.Name == service })
}
