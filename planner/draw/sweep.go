package draw

import (
	"cmp"
	"slices"
)

// maxRounds bounds the sweeps against crossings.
const maxRounds = 8

// reduceCrossings orders the layers by median sweeps, forth and back, and keeps
// the order with the fewest crossings; the order of task numbers wins a tie.
func (g *graph) reduceCrossings() {
	best, fewest := g.order(), g.crossings()
	for round := 0; round < maxRounds && fewest > 0; round++ {
		g.sweep(round%2 == 0)
		if n := g.crossings(); n < fewest {
			best, fewest = g.order(), n
		}
	}
	for i := range g.layers {
		g.layers[i] = best[i]
	}
}

func (g *graph) order() [][]int {
	order := make([][]int, len(g.layers))
	for i, layer := range g.layers {
		order[i] = slices.Clone(layer)
	}
	return order
}

// sweep sorts each layer by the medians of the positions of its neighbours in
// the layer before it, or behind it when going back. A vertex without
// neighbours there keeps its place.
func (g *graph) sweep(forth bool) {
	position := make([]int, len(g.vertices))
	note := func(layer []int) {
		for i, v := range layer {
			position[v] = i
		}
	}
	for _, layer := range g.layers {
		note(layer)
	}
	for i := range g.layers {
		layer := g.layers[i]
		if !forth {
			layer = g.layers[len(g.layers)-1-i]
		}
		// Medians are doubled, so that they stay whole numbers.
		medians := make(map[int]int, len(layer))
		var movable, places []int
		for at, v := range layer {
			near := g.vertices[v].back
			if !forth {
				near = g.vertices[v].on
			}
			if len(near) == 0 {
				continue
			}
			medians[v] = doubledMedian(near, position)
			movable, places = append(movable, v), append(places, at)
		}
		slices.SortStableFunc(movable, func(a, b int) int { return cmp.Compare(medians[a], medians[b]) })
		for k, v := range movable {
			layer[places[k]] = v
		}
		note(layer)
	}
}

func doubledMedian(near, value []int) int {
	values := make([]int, len(near))
	for i, v := range near {
		values[i] = value[v]
	}
	slices.Sort(values)
	n := len(values)
	return values[(n-1)/2] + values[n/2]
}

// crossings counts the pairs of edge parts that cross.
func (g *graph) crossings() int {
	total := 0
	position := make([]int, len(g.vertices))
	for i := 0; i+1 < len(g.layers); i++ {
		for at, v := range g.layers[i+1] {
			position[v] = at
		}
		// Ends in the order of starts; each inversion is a crossing, counted with a
		// binary indexed tree over the positions seen so far.
		tree := make([]int, len(g.layers[i+1])+1)
		seen := 0
		for _, v := range g.layers[i] {
			ends := make([]int, 0, len(g.vertices[v].on))
			for _, w := range g.vertices[v].on {
				ends = append(ends, position[w])
			}
			for _, end := range ends {
				notAbove := 0
				for k := end + 1; k > 0; k -= k & -k {
					notAbove += tree[k]
				}
				total += seen - notAbove
			}
			for _, end := range ends {
				for k := end + 1; k < len(tree); k += k & -k {
					tree[k]++
				}
				seen++
			}
		}
	}
	return total
}
