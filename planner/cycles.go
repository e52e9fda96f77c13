package planner

import (
	"slices"
	"strings"

	"loom/app/loom"
)

// CheckCycles finds services that depend on each other in a circle, at install
// or at runtime, given names replaced by all that provide them. Each answer is
// a path that ends where it began: [a b a]. There is one, a shortest, per set of
// services that cannot be ordered, so mending it may uncover another. Two
// services that provide the same name both count, although a cluster may
// hold only one of them: that is a warning at save, not a refusal.
func CheckCycles(services map[string]loom.Service) [][]string {
	c := newCatalog(services, nil)
	cycles := append(c.cycles(installPhase), c.cycles(runtimePhase)...)
	slices.SortFunc(cycles, slices.Compare[[]string])
	return slices.CompactFunc(cycles, slices.Equal[[]string])
}

func cycleError(p phase, cycles [][]string) error {
	e := loom.NewError(loom.Invalid, "The services cannot be ordered: they depend on each other in a circle at %s, %s. Remove one of these dependencies.",
		p, strings.Join(cycles[0], " → "))
	for _, cycle := range cycles {
		e.Fields = append(e.Fields, loom.FieldError{
			Field:   "services." + cycle[0] + ".dependencies." + p.String(),
			Message: "Circle: " + strings.Join(cycle, " → ") + ".",
		})
	}
	return e
}

// cycles gives one shortest circle for each strongly connected set.
func (c *catalog) cycles(p phase) [][]string {
	deps := c.dependencies(p)
	var cycles [][]string
	for _, set := range components(deps) {
		if len(set) < 2 {
			continue
		}
		var best []int
		for _, start := range set {
			if path := shortestCycle(deps, start); best == nil || len(path) < len(best) {
				best = path
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

// shortestCycle finds a shortest way from start back to itself, which exists.
func shortestCycle(deps [][]int, start int) []int {
	from := make([]int, len(deps))
	for i := range from {
		from[i] = -1
	}
	queue := []int{start}
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		for _, d := range deps[x] {
			if d == start {
				path := []int{start}
				for y := x; y != start; y = from[y] {
					path = append(path, y)
				}
				path = append(path, start)
				slices.Reverse(path)
				return path
			}
			if from[d] < 0 {
				from[d] = x
				queue = append(queue, d)
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
		at := slices.Index(stack, x)
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
