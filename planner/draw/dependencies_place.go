package draw

import (
	"slices"
	"unicode/utf8"

	"loom/planner/dependencies"
)

// dependencies reads the picture off the graph and adds the vertices that stand alone.
func (g *graph) dependencies(w dependencies.Graph, alone []int) DependencyGraph {
	var d DependencyGraph
	columns := max(3, (len(g.layers)+1)/2)
	for _, layer := range g.layers {
		for _, v := range layer {
			if g.vertices[v].kind == box {
				d.add(w, g.boxes[g.vertices[v].item].Tasks[0], g.left(v), g.vertices[v].y-BoxHeight/2)
			}
			d.Height = max(d.Height, g.vertices[v].y+g.half(v)+Margin)
		}
	}
	top := Margin
	if d.Height > 0 {
		top = d.Height + RowGap
	}
	for i, vertex := range alone {
		x, y := Margin+i%columns*(BoxWidth+RowGap), top+i/columns*(BoxHeight+RowGap)
		d.add(w, vertex, x, y)
		d.Height = max(d.Height, y+BoxHeight+Margin)
	}
	for _, b := range d.Vertices {
		d.Width = max(d.Width, b.X+BoxWidth+Margin)
	}
	d.label(d.lines(w, g))
	return d
}

func (d *DependencyGraph) add(w dependencies.Graph, vertex, x, y int) {
	d.Vertices = append(d.Vertices, VertexBox{Vertex: w.Vertices[vertex], ID: vertexID(vertex), Index: vertex, X: x, Y: y})
}

// lines adds every edge: those between columns as the layout has them, those within
// a column as bows in the gap behind it. It returns the curves of each.
func (d *DependencyGraph) lines(w dependencies.Graph, g *graph) (along [][]cubic) {
	at := make([]VertexBox, len(w.Vertices))
	for _, b := range d.Vertices {
		at[b.Index] = b
	}
	via := map[int][]int{}
	for _, e := range g.edges {
		via[e.item] = e.via
	}
	shifts := apart(w.Edges)
	for i, t := range w.Edges {
		l := EdgeLine{Edge: t, FromID: vertexID(t.From), ToID: vertexID(t.To)}
		a, b := at[t.From], at[t.To]
		var curves []cubic
		if route, across := via[i]; across {
			l.Backwards = a.X > b.X
			curves = g.curves(route, shifts[i])
		} else {
			curves = []cubic{bow(a, b, shifts[i])}
			d.Width = max(d.Width, a.X+BoxWidth+EdgeGap*3/4+Margin)
		}
		l.Path = write(curves)
		d.Edges = append(d.Edges, l)
		along = append(along, curves)
	}
	return along
}

// apart returns how far each edge is moved down, so that several between the same two
// vertices run side by side.
func apart(all []dependencies.Edge) []int {
	pair := func(t dependencies.Edge) [2]int { return [2]int{min(t.From, t.To), max(t.From, t.To)} }
	count, nth := map[[2]int]int{}, map[[2]int]int{}
	for _, t := range all {
		count[pair(t)]++
	}
	shifts := make([]int, len(all))
	for i, t := range all {
		p := pair(t)
		shifts[i] = nth[p]*parallel - (count[p]-1)*parallel/2
		nth[p]++
	}
	return shifts
}

// bow leads from the right side of one box to that of another in its column.
func bow(a, b VertexBox, shift int) cubic {
	x, from, to := a.X+BoxWidth, a.Y+BoxHeight/2+shift, b.Y+BoxHeight/2+shift
	return cubic{{x, from}, {x + EdgeGap*3/4, from}, {x + EdgeGap*3/4, to}, {x, to}}
}

// area is the room of a label.
type area struct{ left, top, right, bottom int }

func (a area) meets(b area) bool {
	return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}

// LabelWidth is an upper bound of the width of a label, in pixels.
func LabelWidth(text string) int { return 7*utf8.RuneCountInString(text) + 8 }

// label puts each edge's label at the first place on its curve where it meets no
// box and no other label. If there is none, it is omitted: the line itself shows
// the kind, and the table below the picture shows all.
func (d *DependencyGraph) label(along [][]cubic) {
	var taken []area
	for _, b := range d.Vertices {
		taken = append(taken, area{b.X - 2, b.Y - 2, b.X + BoxWidth + 2, b.Y + BoxHeight + 2})
	}
	for i := range d.Edges {
		text := d.Edges[i].Label()
		half := LabelWidth(text) / 2
		for _, p := range places(along[i]) {
			room := area{p[0] - half, p[1] - LabelHeight/2, p[0] + half, p[1] + LabelHeight/2}
			if room.left < 0 || room.top < 0 || room.right > d.Width || room.bottom > d.Height ||
				slices.ContainsFunc(taken, room.meets) {
				continue
			}
			d.Edges[i].Text, d.Edges[i].X, d.Edges[i].Y = text, p[0], p[1]
			taken = append(taken, room)
			break
		}
	}
}

// places returns points of a line in the order in which labels try them: the middles of
// its curves first.
func places(curves []cubic) [][2]int {
	var found [][2]int
	for _, t := range []int{50, 40, 60, 30, 70} {
		for _, c := range curves {
			found = append(found, c.point(t))
		}
	}
	return found
}
