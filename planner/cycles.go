package planner

import (
	"slices"
	"sort"
	"strings"

	"loom/app/loom"
)

// CheckCycles finds services that depend on each other in a circle, at install
// or at runtime, given names replaced by all that provide them. Each answer is
// a path that ends where it began: [a b a]. There is one, a shortest (in sets of
// hundreds a short one), per set of services that cannot be ordered, so mending it
// may uncover another. Two services that provide the same name both count,
// although a cluster may hold only one of them: that is a warning at save, not a
// refusal.
func CheckCycles(services map[string]loom.Service) [][]string {
	c := newCatalog(services, nil)
	cycles := append(c.cycles(installPhase), c.cycles(runtimePhase)...)
	slices.SortFunc(cycles, slices.Compare[[]string])
	return slices.CompactFunc(cycles, slices.Equal[[]string])
}

// CycleError is the cause of the error for services that depend on each other in
// a circle.
type CycleError struct {
	// Phase is "install" or "runtime".
	Phase string
	// Path ends where it began.
	Path []string
}

// Error returns the path.
func (e *CycleError) Error() string { return e.Phase + ": " + strings.Join(e.Path, " → ") }

func cycleError(p phase, cycles [][]string) error {
	e := loom.NewError(loom.Invalid, "The services cannot be ordered: they depend on each other in a circle at %s, %s. Remove one of these dependencies.",
		p, strings.Join(cycles[0], " → "))
	e.Err = &CycleError{p.String(), cycles[0]}
	for _, cycle := range cycles {
		e.Fields = append(e.Fields, loom.FieldError{
			Field:   "services." + cycle[0] + ".dependencies." + p.String(),
			Message: "Circle: " + strings.Join(cycle, " → ") + ".",
		})
	}
	return e
}

// maxStarts is from how many services of a set a shortest circle is looked for.
const maxStarts = 100

// cycles returns one circle for each strongly connected set: a shortest one, or in
// sets of more than maxStarts services a short one. Between services stand the
// names that some depend on and others provide, so that the work grows with what
// is written, not with how many services provide one name.
func (c *catalog) cycles(p phase) [][]string {
	g := c.ringGraph(p)
	var cycles [][]string
	for _, set := range components(g.edges()) {
		set = set[:sort.SearchInts(set, len(c.services))] // names have the higher numbers
		if len(set) < 2 {
			continue
		}
		var best []int
		for _, start := range set[:min(len(set), maxStarts)] {
			if path := g.ring(start); best == nil || len(path) < len(best) {
				best = path
			}
			if len(best) == 3 {
				break // there is none shorter
			}
		}
		var names []string
		for _, s := range best {
			names = append(names, c.names[s])
		}
		cycles = append(cycles, names)
	}
	return cycles
}

// ringGraph is "depends on" with the names between the services: wants holds the
// names for each service, offers the services for each name.
type ringGraph struct{ wants, offers [][]int }

func (c *catalog) ringGraph(p phase) ringGraph {
	g := ringGraph{wants: make([][]int, len(c.services))}
	numbers := map[string]int{}
	for i := range c.services {
		d := c.services[i].Dependencies.Install
		if p == runtimePhase {
			d = c.services[i].Dependencies.Runtime
		}
		for _, name := range slices.Concat(d.Requires, d.Uses) {
			n, known := numbers[name]
			if !known {
				n = len(g.offers)
				numbers[name] = n
				g.offers = append(g.offers, c.providers[name])
			}
			g.wants[i] = append(g.wants[i], n)
		}
	}
	return g
}

// edges returns the whole graph, the names numbered after the services.
func (g ringGraph) edges() [][]int {
	edges := make([][]int, 0, len(g.wants)+len(g.offers))
	for _, wants := range g.wants {
		names := make([]int, len(wants))
		for i, n := range wants {
			names[i] = len(g.wants) + n
		}
		edges = append(edges, names)
	}
	return append(edges, g.offers...)
}

// ring finds a shortest way from start back to itself through other services,
// which exists. A service that provides what it depends on itself is no circle, so
// that a name may have to be passed twice: by start, and by another service.
func (g ringGraph) ring(start int) []int {
	from := make([]int, len(g.wants))
	for i := range from {
		from[i] = -1
	}
	type passed struct{ byStart, byOther bool }
	names := make([]passed, len(g.offers))
	queue := []int{start}
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		for _, n := range g.wants[x] {
			seen := &names[n].byOther
			if x == start {
				seen = &names[n].byStart
			}
			if *seen {
				continue
			}
			*seen = true
			for _, d := range g.offers[n] {
				switch {
				case d == x:
				case d == start:
					path := []int{start}
					for y := x; y != start; y = from[y] {
						path = append(path, y)
					}
					path = append(path, start)
					slices.Reverse(path)
					return path
				case from[d] < 0:
					from[d] = x
					queue = append(queue, d)
				}
			}
		}
	}
	return nil
}

// components finds the strongly connected sets (Tarjan), each in index order,
// the sets by their first member.
func components(deps [][]int) [][]int {
	n := len(deps)
	order, low, onStack := make([]int, n), make([]int, n), make([]bool, n)
	var stack []int
	var sets [][]int
	next := 0
	var visit func(int)
	visit = func(x int) {
		next++
		order[x], low[x] = next, next
		stack, onStack[x] = append(stack, x), true
		for _, d := range deps[x] {
			if order[d] == 0 {
				visit(d)
				low[x] = min(low[x], low[d])
			} else if onStack[d] {
				low[x] = min(low[x], order[d])
			}
		}
		if low[x] != order[x] {
			return
		}
		at := len(stack) - 1
		for stack[at] != x {
			at--
		}
		set := slices.Clone(stack[at:])
		stack = stack[:at]
		for _, y := range set {
			onStack[y] = false
		}
		slices.Sort(set)
		sets = append(sets, set)
	}
	for x := range deps {
		if order[x] == 0 {
			visit(x)
		}
	}
	slices.SortFunc(sets, slices.Compare[[]int])
	return sets
}
