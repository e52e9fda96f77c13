package planner

import "loom/app/loom"

// Coverage names, in order, the services that a start, stop or restart of the
// named services covers: start also what they depend on at runtime, stop and
// restart also what depends on them. For other actions it is the names alone.
// Services are those of the cluster. Errors: NotFound for a name that is not
// among them, Invalid for services that depend on each other in a circle.
func Coverage(action loom.ClusterAction, names []string, services map[string]loom.Service) ([]string, error) {
	c := newCatalog(services, nil)
	covered := make([]bool, len(c.names))
	for _, name := range names {
		s, ok := c.index[name]
		if !ok {
			return nil, loom.NewError(loom.NotFound, "There is no service “%s” on this cluster.", name)
		}
		covered[s] = true
	}
	if cycles := c.cycles(runtimePhase); len(cycles) > 0 {
		return nil, cycleError(runtimePhase, cycles)
	}
	c.relation(runtimePhase).cover(action, covered)
	var all []string
	for s, in := range covered {
		if in {
			all = append(all, c.names[s])
		}
	}
	return all, nil
}

// cover widens a set of services to what a runtime action on them covers.
func (r *relation) cover(action loom.ClusterAction, covered []bool) {
	asked := newBitset(len(covered))
	for s, in := range covered {
		if in {
			asked.add(s)
		}
	}
	switch action {
	case loom.StartServices:
		for s := range covered {
			if asked.has(s) {
				for d := range covered {
					covered[d] = covered[d] || r.implies[s].has(d)
				}
			}
		}
	case loom.StopServices, loom.RestartServices:
		for s := range covered {
			for d := range covered {
				if asked.has(d) && r.implies[s].has(d) {
					covered[s] = true
				}
			}
		}
	}
}
