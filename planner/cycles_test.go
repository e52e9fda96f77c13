package planner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"loom/app/loom"
)

// TestCyclesAreThoseOfTheServices holds the search over services and names
// against the plain graph of services, in which names are replaced by all that
// provide them.
func TestCyclesAreThoseOfTheServices(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 7))
		names := []string{"a", "b", "c", "d", "e", "x", "y"}
		some := func() []string {
			var out []string
			for range random.IntN(3) {
				out = append(out, names[random.IntN(len(names))])
			}
			return out
		}
		catalog := map[string]loom.Service{}
		for _, name := range names[:2+random.IntN(4)] {
			s := loom.Service{Base: loom.Base{Name: name}}
			s.Dependencies.Provides, s.Dependencies.Install.Requires, s.Dependencies.Install.Uses = some(), some(), some()
			catalog[name] = s
		}
		c := newCatalog(catalog, nil)
		deps := c.dependencies(installPhase)
		var want []string
		for _, set := range components(deps) {
			if len(set) > 1 {
				want = append(want, fmt.Sprint(set[0], shortestWay(deps, set)))
			}
		}
		var got []string
		for _, path := range c.cycles(installPhase) {
			for i := range path[:len(path)-1] {
				if !slices.Contains(deps[c.index[path[i]]], c.index[path[i+1]]) {
					t.Fatalf("seed %d: %v is no circle", seed, path)
				}
			}
			least := len(deps)
			for _, set := range components(deps) {
				if slices.Contains(set, c.index[path[0]]) {
					least = set[0]
				}
			}
			got = append(got, fmt.Sprint(least, len(path)-1))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: sets and lengths %v, want %v", seed, got, want)
		}
	}
}

// shortestWay is the length of a shortest circle within a set.
func shortestWay(deps [][]int, set []int) int {
	best := len(deps) + 1
	for _, start := range set {
		distance := map[int]int{}
		reached := []int{start}
		for steps := 1; len(reached) > 0 && steps < best; steps++ {
			var next []int
			for _, x := range reached {
				for _, d := range deps[x] {
					if d == start {
						best = min(best, steps)
					} else if distance[d] == 0 {
						distance[d] = steps
						next = append(next, d)
					}
				}
			}
			reached = next
		}
	}
	return best
}
