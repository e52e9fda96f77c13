package planner

import "loom/app/loom"

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
