package dependencies

import (
	"slices"

	"loom/app/loom"
)

// MaxDistance is the largest distance that Around takes.
const MaxDistance = 3

// Around returns the part of the graph within a distance (1 to MaxDistance) of a service,
// with all edges in it. From one service to the next is one step, through a name too.
// Conflicts lead only away from the service in the middle: those of a neighbor say
// nothing about it. The Graph is empty when there is no such service.
func Around(services map[string]loom.Service, middle string, distance int) Graph {
	if _, there := services[middle]; !there {
		return Graph{}
	}
	distance = min(max(distance, 1), MaxDistance)
	full := newBuilder(services, true).graph()
	at := full.at(middle)
	half := full.distances(at)
	var w Graph
	index := make([]int, len(full.Vertices))
	for i, vertex := range full.Vertices {
		index[i] = -1
		if half[i] < 0 || half[i] > 2*distance {
			continue
		}
		vertex.Distance = (half[i] + 1) / 2
		index[i] = len(w.Vertices)
		w.Vertices = append(w.Vertices, vertex)
	}
	wanted := full.wanted(at)
	for _, t := range full.Edges {
		// Not those that only say that another service provides a name that nothing wants.
		idle := t.Kind == Provides && t.From != at && full.Vertices[t.To].Sort != Service && !wanted[t.To]
		if index[t.From] >= 0 && index[t.To] >= 0 && !idle {
			t.From, t.To, t.Cycle = index[t.From], index[t.To], false
			w.Edges = append(w.Edges, t)
		}
	}
	w.drop(at, index)
	w.findCycles(services)
	w.further(full.Cycles, middle)
	return w
}

// further adds the cycles of the middle that reach beyond the graph.
func (w *Graph) further(cycles []Cycle, middle string) {
	for _, c := range cycles {
		same := func(known Cycle) bool { return known.Install == c.Install && slices.Equal(known.Path, c.Path) }
		if !slices.Contains(c.Path, middle) || slices.ContainsFunc(w.Cycles, same) {
			continue
		}
		w.Cycles = append(w.Cycles, c)
		w.mark([][]string{c.Path}, c.Install)
	}
}

// wanted reports for each vertex whether something wants it, or the middle provides it.
func (w *Graph) wanted(middle int) []bool {
	wanted := make([]bool, len(w.Vertices))
	for _, t := range w.Edges {
		if t.Kind != Provides || t.From == middle {
			wanted[t.To] = true
		}
	}
	return wanted
}

// drop removes vertices without edges, except the middle.
func (w *Graph) drop(middle int, index []int) {
	connected := make([]bool, len(w.Vertices))
	connected[index[middle]] = true
	for _, t := range w.Edges {
		connected[t.From], connected[t.To] = true, true
	}
	to := make([]int, len(w.Vertices))
	kept := w.Vertices[:0:0]
	for i, vertex := range w.Vertices {
		to[i] = len(kept)
		if connected[i] {
			kept = append(kept, vertex)
		}
	}
	w.Vertices = kept
	for i := range w.Edges {
		w.Edges[i].From, w.Edges[i].To = to[w.Edges[i].From], to[w.Edges[i].To]
	}
}

// distances returns the distance of each vertex from the middle in half steps: a name lies
// half way between services. -1 is out of reach.
func (w *Graph) distances(middle int) []int {
	half := make([]int, len(w.Vertices))
	for i := range half {
		half[i] = -1
	}
	next := make([][]int, len(w.Vertices))
	for _, t := range w.Edges {
		if t.Kind == Conflicts && t.From != middle && t.To != middle {
			continue
		}
		next[t.From] = append(next[t.From], t.To)
		next[t.To] = append(next[t.To], t.From)
	}
	half[middle] = 0
	// Steps cost one half step at a name and two between services, so a vertex may be
	// reached twice, the second time nearer.
	queue := []int{middle}
	for len(queue) > 0 {
		x := queue[0]
		queue = queue[1:]
		for _, y := range next[x] {
			step := 2
			if w.Vertices[x].Sort != Service || w.Vertices[y].Sort != Service {
				step = 1
			}
			if half[y] < 0 || half[x]+step < half[y] {
				half[y] = half[x] + step
				queue = append(queue, y)
			}
		}
	}
	return half
}
