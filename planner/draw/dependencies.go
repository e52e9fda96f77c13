package draw

import (
	"cmp"
	"fmt"
	"slices"

	"loom/planner/dependencies"
)

// Sizes of a picture of dependencies, in pixels; boxes are those of a plan.
const (
	// EdgeGap is wide enough for a label between two columns.
	EdgeGap = 112
	// LabelHeight is the room of a label.
	LabelHeight = 16
	// parallel is how far apart several edges of the same two boxes run.
	parallel = 14
)

// MaxVertices and MaxEdges bound a picture: nobody can read a larger one, and placing it
// takes more than quadratic time.
const (
	MaxVertices = 300
	MaxEdges    = 1000
)

// DependencyGraph is a picture of how services depend on each other. The zero value is the
// picture of none.
type DependencyGraph struct {
	Width, Height int
	// Vertices come by column, then row: the order for the keyboard.
	Vertices []VertexBox
	Edges    []EdgeLine
}

// VertexBox is a vertex of a graph. X and Y are its upper left corner.
type VertexBox struct {
	dependencies.Vertex
	// ID is unique in the picture, like "s3"; the number is Index.
	ID string
	// Index is the index of the vertex in the graph.
	Index int
	X, Y  int
}

// EdgeLine is an edge as a curve, which starts at From and ends at To.
type EdgeLine struct {
	dependencies.Edge
	// FromID and ToID are ids of boxes.
	FromID, ToID string
	// Path is the content of an SVG path's d attribute. It runs from left to right,
	// so Backwards reports whether it begins at To.
	Path      string
	Backwards bool
	// Text is the label where there is room for it, its middle at X, Y; else "".
	Text string
	X, Y int
}

// Dependencies places the vertices of a graph in columns: a service left of what it needs,
// and vertices without edges below all others. A cycle is cut at its weakest edge, which
// then leads from right to left. No two boxes or labels overlap. The picture is zero if the
// graph is empty or exceeds MaxVertices or MaxEdges.
func Dependencies(w dependencies.Graph) DependencyGraph {
	if len(w.Vertices) == 0 || len(w.Vertices) > MaxVertices || len(w.Edges) > MaxEdges {
		return DependencyGraph{}
	}
	g := &graph{along: BoxWidth, across: BoxHeight, gap: EdgeGap}
	level := levels(w)
	connected := make([]bool, len(w.Vertices))
	for _, t := range w.Edges {
		connected[t.From], connected[t.To] = true, true
	}
	boxOf := make([]int, len(w.Vertices))
	var alone []int
	for i := range w.Vertices {
		if !connected[i] {
			alone = append(alone, i)
			continue
		}
		boxOf[i] = len(g.boxes)
		g.boxes = append(g.boxes, Box{ID: vertexID(i), Level: level[i], column: level[i], Tasks: []int{i}})
	}
	for i, t := range w.Edges {
		if level[t.From] == level[t.To] {
			continue // drawn within its column, once boxes are placed
		}
		from, to := boxOf[t.From], boxOf[t.To]
		if level[t.From] > level[t.To] {
			from, to = to, from
		}
		g.edges = append(g.edges, line{from: end{box, from}, to: end{box, to}, item: i})
	}
	if len(g.boxes) > 0 {
		g.layer()
		g.reduceCrossings()
		g.place()
	}
	return g.dependencies(w, alone)
}

func vertexID(index int) string { return fmt.Sprintf("s%d", index) }

// levels returns the column of each vertex, from 0: a service comes before what it needs.
// Edges are taken in the order of their strength; one that would close a cycle with
// those before it is skipped.
func levels(w dependencies.Graph) []int {
	n := len(w.Vertices)
	on := make([][]int, n)
	for _, t := range byStrength(w.Edges) {
		from, to := t.From, t.To
		if t.Kind == dependencies.Provides {
			from, to = to, from // a name comes after the services that want it, before those that provide it
		}
		if !reaches(on, to, from) {
			on[from] = append(on[from], to)
		}
	}
	back := make([]int, n)
	for _, next := range on {
		for _, y := range next {
			back[y]++
		}
	}
	var order []int
	for x := range n {
		if back[x] == 0 {
			order = append(order, x)
		}
	}
	level := make([]int, n)
	first := make([]bool, n)
	for _, x := range order {
		first[x] = true
	}
	for i := 0; i < len(order); i++ {
		for _, y := range on[order[i]] {
			level[y] = max(level[y], level[order[i]]+1)
			if back[y]--; back[y] == 0 {
				order = append(order, y)
			}
		}
	}
	// A vertex without predecessors moves next to what it needs.
	for _, x := range order {
		if !first[x] || len(on[x]) == 0 {
			continue
		}
		nearest := n
		for _, y := range on[x] {
			nearest = min(nearest, level[y])
		}
		level[x] = nearest - 1
	}
	return level
}

// byStrength returns the edges that place vertices, the strongest first. Conflicts
// place nothing.
func byStrength(all []dependencies.Edge) []dependencies.Edge {
	rank := map[dependencies.Kind]int{dependencies.Provides: 0, dependencies.Requires: 1, dependencies.Uses: 2, dependencies.Follows: 3}
	kept := slices.DeleteFunc(slices.Clone(all), func(t dependencies.Edge) bool { return t.Kind == dependencies.Conflicts })
	slices.SortStableFunc(kept, func(a, b dependencies.Edge) int { return cmp.Compare(rank[a.Kind], rank[b.Kind]) })
	return kept
}

// reaches reports whether a path leads from one vertex to another.
func reaches(on [][]int, from, to int) bool {
	seen := make([]bool, len(on))
	queue := []int{from}
	for len(queue) > 0 {
		x := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if x == to {
			return true
		}
		if !seen[x] {
			seen[x] = true
			queue = append(queue, on[x]...)
		}
	}
	return false
}
