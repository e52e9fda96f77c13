package planner

import (
	"maps"
	"slices"

	"loom/app/loom"
)

// phase is one of the two kinds of dependencies of services.
type phase int

const (
	installPhase phase = iota
	runtimePhase
	phases
)

func (p phase) String() string {
	if p == installPhase {
		return "install"
	}
	return "runtime"
}

// catalog indexes services by their names in order.
type catalog struct {
	names    []string
	index    map[string]int
	services []loom.Service
	// providers of a name, the service of that very name included.
	providers map[string][]int
}

// newCatalog takes the services whose names are in present; nil takes all.
func newCatalog(services map[string]loom.Service, present map[string]bool) *catalog {
	c := &catalog{index: map[string]int{}, providers: map[string][]int{}}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if present != nil && !present[name] {
			continue
		}
		c.index[name] = len(c.names)
		c.names = append(c.names, name)
		c.services = append(c.services, services[name])
	}
	for i, s := range c.services {
		c.providers[c.names[i]] = append(c.providers[c.names[i]], i)
		for _, provided := range s.Dependencies.Provides {
			if provided != c.names[i] {
				c.providers[provided] = append(c.providers[provided], i)
			}
		}
	}
	return c
}

// union takes the services of a cluster before or after a change under numbers
// that both share: names are those of both. One that is absent here does nothing,
// depends on nothing and provides nothing.
func union(names []string, services map[string]loom.Service, present map[string]bool) *catalog {
	c := &catalog{names: names, index: make(map[string]int, len(names)), services: make([]loom.Service, len(names)), providers: map[string][]int{}}
	for i, name := range names {
		c.index[name] = i
		if !present[name] {
			continue
		}
		c.services[i] = services[name]
		c.providers[name] = append(c.providers[name], i)
		for _, provided := range services[name].Dependencies.Provides {
			if provided != name {
				c.providers[provided] = append(c.providers[provided], i)
			}
		}
	}
	return c
}

// dependencies resolves, for each service, the names it depends on to
// services. Names without any service vanish, and so does a service's
// dependency on itself, which is met wherever the service is.
func (c *catalog) dependencies(p phase) [][]int {
	deps := make([][]int, len(c.services))
	for i := range c.services {
		d := c.services[i].Dependencies.Install
		if p == runtimePhase {
			d = c.services[i].Dependencies.Runtime
		}
		for _, names := range [][]string{d.Requires, d.Uses} {
			for _, name := range names {
				deps[i] = append(deps[i], c.providers[name]...)
			}
		}
		slices.Sort(deps[i])
		deps[i] = slices.DeleteFunc(slices.Compact(deps[i]), func(d int) bool { return d == i })
	}
	return deps
}

// relation is "depends on" between the services of a cluster in one phase,
// without circles and reduced: it lacks what follows from the rest.
type relation struct {
	deps [][]int
	// implies[x] holds the services of which x, once it has waited for all it
	// depends on, surely had every instance done before it. A service of scope
	// "node" may have waited for a part only, so it implies nothing.
	implies []bitset
}

// relation builds the relation of a phase, which must be free of circles.
func (c *catalog) relation(p phase) *relation {
	full := c.dependencies(p)
	r := &relation{deps: make([][]int, len(full)), implies: make([]bitset, len(full))}
	for x := range full {
		r.close(c, p, full, x)
	}
	for x, deps := range full {
		r.deps[x] = r.minimal(deps)
	}
	return r
}

func (r *relation) close(c *catalog, p phase, full [][]int, x int) bitset {
	if r.implies[x] != nil {
		return r.implies[x]
	}
	set := newBitset(len(full))
	nodeScope := p == installPhase && c.nodeScope(x)
	for _, d := range full[x] {
		below := r.close(c, p, full, d)
		if !nodeScope {
			set.add(d)
			set.union(below)
		}
	}
	r.implies[x] = set
	return set
}

// minimal drops from a set of services those that another one implies.
func (r *relation) minimal(set []int) []int {
	var reduced []int
	for _, x := range set {
		implied := slices.ContainsFunc(set, func(y int) bool { return y != x && r.implies[y].has(x) })
		if !implied {
			reduced = append(reduced, x)
		}
	}
	return reduced
}

// nearest finds the services that x has to wait for: its dependencies, each
// one for which has is false replaced by its own dependencies, and so on.
func (r *relation) nearest(x int, has func(int) bool) []int {
	var found []int
	visited := newBitset(len(r.deps))
	var walk func(int)
	walk = func(y int) {
		for _, d := range r.deps[y] {
			if visited.has(d) {
				continue
			}
			visited.add(d)
			if has(d) {
				found = append(found, d)
			} else {
				walk(d)
			}
		}
	}
	walk(x)
	slices.Sort(found)
	return r.minimal(found)
}

func (c *catalog) nodeScope(s int) bool {
	return c.services[s].Dependencies.Install.Scope == "node"
}

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, n/64+1) }

func (s bitset) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s bitset) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s bitset) union(t bitset) {
	for i := range t {
		s[i] |= t[i]
	}
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
