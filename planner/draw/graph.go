package draw

import (
	"cmp"
	"fmt"
	"slices"

	"loom/app/loom"
)

// graph is a picture in the making, from left to right; that of a plan is turned when it
// is done, and goes down. It is vertices in layers and the parts of the
// edges between neighboring layers. Layer 2·column holds boxes, the odd layer
// behind it the joints in the gap. An edge that passes a layer has a
// bend there.
type graph struct {
	// grouped and capped are as in a Drawing.
	grouped, capped bool
	// along and across are how long a box is in the direction of the edges and across it,
	// gap is the distance of columns.
	along, across, gap int
	boxes              []Box
	joints             []Joint
	edges              []line

	vertices []vertex
	layers   [][]int
}

type kind int

const (
	box kind = iota
	joint
	bend
)

// vertex is a box, a joint or a bend; item is its index among its kind's.
type vertex struct {
	kind  kind
	item  int
	layer int
	// y of its centre.
	y        int
	back, on []int
}

// line is an edge; via are its vertices from the first to the last.
type line struct {
	from, to end
	critical bool
	// item is the index of what the edge stands for, in a picture of dependencies.
	item int
	via  []int
}

// end is one end of an edge, a box or a joint.
type end struct {
	kind kind
	item int
}

// build chooses the boxes, joints and edges of a picture.
func build(plan loom.Plan, o Options) *graph {
	shows := make([]bool, len(plan.Tasks)+1)
	drawn := 0
	for _, t := range plan.Tasks {
		if o.Only == nil || o.Only(t.Number) {
			shows[t.Number] = true
			drawn++
		}
	}
	g := &graph{along: BoxHeight, across: BoxWidth, gap: StageGap, grouped: o.Grouping == Always || o.Grouping == Auto && drawn > GroupAbove}
	boxOf := g.box(plan, o, shows)
	if len(g.boxes) > MostBoxes {
		g.boxes, g.grouped, g.capped = nil, true, true
		boxOf = g.box(plan, Options{Grouping: Always}, shows)
	}
	d := newDraft(plan, g.boxes, shows, boxOf)
	d.straighten()
	g.connect(d)
	return g
}

// box makes the boxes of a picture and gives that of each task.
func (g *graph) box(plan loom.Plan, o Options, shows []bool) []int {
	boxOf := make([]int, len(plan.Tasks)+1)
	groups := map[Group]int{}
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		if !shows[t.Number] {
			continue
		}
		key := GroupOf(t, o.By)
		if !g.grouped {
			boxOf[t.Number] = len(g.boxes)
			g.boxes = append(g.boxes, Box{
				ID: fmt.Sprintf("t%d", t.Number), Level: t.Level, Action: t.Action, Service: t.Service,
				Node: t.Node, Tasks: []int{t.Number}, Critical: t.Critical,
			})
			continue
		}
		at, ok := groups[key]
		if !ok {
			at = len(g.boxes)
			groups[key] = at
			g.boxes = append(g.boxes, Box{
				ID: key.ID(), Level: t.Level, Action: t.Action, Service: t.Service, Node: t.Node, Group: true, Of: key,
			})
		}
		b := &g.boxes[at]
		b.Tasks = append(b.Tasks, t.Number)
		b.Critical = b.Critical || t.Critical
		if b.Service != t.Service {
			b.Service = ""
		}
		if b.Action != t.Action {
			b.Action = ""
		}
		if b.Node != t.Node {
			b.Node = ""
		}
		boxOf[t.Number] = at
	}
	return boxOf
}

// layer puts each vertex in its layer, in the order of task numbers, and gives
// edges a bend in every layer they pass.
func (g *graph) layer() {
	var levels []int
	for _, b := range g.boxes {
		levels = append(levels, b.column)
	}
	slices.Sort(levels)
	// A level without boxes takes no room.
	levels = slices.Compact(levels)
	g.layers = make([][]int, 2*len(levels))
	for i, b := range g.boxes {
		column, _ := slices.BinarySearch(levels, b.column)
		g.add(vertex{kind: box, item: i, layer: 2 * column})
	}
	joints := make([]int, len(g.joints))
	for _, e := range g.edges {
		if e.to.kind == joint {
			joints[e.to.item] = max(joints[e.to.item], g.vertices[g.at(e.from)].layer+1)
		}
	}
	for i, layer := range joints {
		g.add(vertex{kind: joint, item: i, layer: layer})
	}
	slices.SortStableFunc(g.edges, func(a, b line) int {
		return cmp.Or(cmp.Compare(g.at(a.from), g.at(b.from)), cmp.Compare(g.at(a.to), g.at(b.to)))
	})
	for i := range g.edges {
		e := &g.edges[i]
		last, to := g.at(e.from), g.at(e.to)
		e.via = []int{last}
		for layer := g.vertices[last].layer + 1; layer < g.vertices[to].layer; layer++ {
			v := g.add(vertex{kind: bend, item: i, layer: layer})
			g.link(last, v)
			e.via, last = append(e.via, v), v
		}
		g.link(last, to)
		e.via = append(e.via, to)
	}
}

func (g *graph) add(v vertex) int {
	g.vertices = append(g.vertices, v)
	at := len(g.vertices) - 1
	g.layers[v.layer] = append(g.layers[v.layer], at)
	return at
}

// at returns the vertex of a box or joint: boxes were added first, then joints.
func (g *graph) at(e end) int {
	if e.kind == joint {
		return len(g.boxes) + e.item
	}
	return e.item
}

func (g *graph) link(from, to int) {
	g.vertices[from].on = append(g.vertices[from].on, to)
	g.vertices[to].back = append(g.vertices[to].back, from)
}
