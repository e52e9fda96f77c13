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
		for _, path := range planner.CheckCycles(phase) {
			w.Circles = append(w.Circles, Circle{Install: install, Path: path})
			for i := 1; i < len(path); i++ {
				w.mark(path[i-1], path[i], install)
			}
		}
	}
}

// mark marks the needs by which one service leads to the next: to it, or to a name
// that it provides.
func (w *Web) mark(from, to string, install bool) {
	first, next := w.at(from), w.at(to)
	names := map[int]bool{next: true}
	for _, t := range w.Ties {
		if t.Kind == Provides && t.From == next {
			names[t.To] = true
		}
	}
	led := map[int]bool{}
	for i, t := range w.Ties {
		if t.From == first && t.Kind.Needs() && names[t.To] && (install && t.Install || !install && t.Runtime) {
			w.Ties[i].Circle = true
			led[t.To] = true
		}
	}
	for i, t := range w.Ties {
		if t.Kind == Provides && t.From == next && led[t.To] {
			w.Ties[i].Circle = true
		}
	}
}

// at is the index of a service.
func (w *Web) at(service string) int {
	return slices.IndexFunc(w.Things, func(t Thing) bool { return t.Sort == Service && t.Name == service })
}
