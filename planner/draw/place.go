package draw

import (
	"fmt"
	"slices"
	"strings"
)

// placeRounds is how often heights are passed on, forth and back.
const placeRounds = 4

// spacing is the least distance between the centres of two neighbours of a layer.
func (g *graph) spacing(a, b kind) int {
	height := map[kind]int{box: g.across, joint: 2 * JointRadius, bend: 4}
	gap := RowGap
	if a != box && b != box {
		gap = RowGap / 2
	}
	return (height[a]+height[b])/2 + gap
}

// place returns each vertex a height: as near to its neighbours' as the order and
// the spacing of its layer allow.
func (g *graph) place() {
	for _, layer := range g.layers {
		y := 0
		for i, v := range layer {
			if i > 0 {
				y += g.spacing(g.vertices[layer[i-1]].kind, g.vertices[v].kind)
			}
			g.vertices[v].y = y
		}
	}
	heights := make([]int, len(g.vertices))
	for v := range g.vertices {
		heights[v] = g.vertices[v].y
	}
	for round := range 2 * placeRounds {
		forth := round%2 == 0
		for i := range g.layers {
			layer := g.layers[i]
			if !forth {
				layer = g.layers[len(g.layers)-1-i]
			}
			wanted := make([]int, len(layer))
			for k, v := range layer {
				near := g.vertices[v].back
				if !forth {
					near = g.vertices[v].on
				}
				wanted[k] = heights[v]
				if len(near) > 0 {
					wanted[k] = doubledMedian(near, heights) / 2
				}
			}
			g.settle(layer, wanted)
			for _, v := range layer {
				heights[v] = g.vertices[v].y
			}
		}
	}
	top := g.vertices[0].y
	for v := range g.vertices {
		top = min(top, g.vertices[v].y-g.half(v))
	}
	for v := range g.vertices {
		g.vertices[v].y += Margin - top
	}
}

func (g *graph) half(v int) int {
	switch g.vertices[v].kind {
	case box:
		return g.across / 2
	case joint:
		return JointRadius
	}
	return 0
}

// settle moves the vertices of a layer to the heights with the least sum of
// squared distances to the wanted ones that keeps order and spacing: with the
// spacing taken off, neighbours out of order share the mean of their wishes.
func (g *graph) settle(layer, wanted []int) {
	type block struct{ sum, count, first int }
	var blocks []block
	offset := make([]int, len(layer))
	for i := range layer {
		if i > 0 {
			offset[i] = offset[i-1] + g.spacing(g.vertices[layer[i-1]].kind, g.vertices[layer[i]].kind)
		}
		b := block{wanted[i] - offset[i], 1, i}
		for len(blocks) > 0 {
			last := blocks[len(blocks)-1]
			if last.sum*b.count <= b.sum*last.count {
				break
			}
			b = block{last.sum + b.sum, last.count + b.count, last.first}
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		for i := b.first; i < b.first+b.count; i++ {
			g.vertices[layer[i]].y = floorDiv(b.sum, b.count) + offset[i]
		}
	}
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// left and right are the x at which curves reach and leave a vertex.
func (g *graph) left(v int) int {
	x := Margin + g.vertices[v].layer/2*(g.along+g.gap)
	if g.vertices[v].layer%2 == 1 {
		x += g.along + g.gap/2
	}
	if g.vertices[v].kind == joint {
		x -= JointRadius
	}
	return x
}

func (g *graph) right(v int) int {
	switch {
	case g.vertices[v].kind == joint:
		return g.left(v) + 2*JointRadius
	case g.vertices[v].layer%2 == 0:
		return g.left(v) + g.along
	}
	return g.left(v)
}

// drawing reads the picture off the graph, whose layers become rows: what the layout calls x
// goes down.
func (g *graph) drawing() Drawing {
	d := Drawing{Grouped: g.grouped, Capped: g.capped}
	for _, layer := range g.layers {
		for _, v := range layer {
			switch vx := g.vertices[v]; vx.kind {
			case box:
				b := g.boxes[vx.item]
				b.X, b.Y = vx.y-BoxWidth/2, g.left(v)
				d.Boxes = append(d.Boxes, b)
			case joint:
				j := g.joints[vx.item]
				j.X, j.Y = vx.y, g.left(v)+JointRadius
				d.Joints = append(d.Joints, j)
			}
			d.Width = max(d.Width, g.vertices[v].y+g.half(v)+Margin)
		}
	}
	for _, b := range d.Boxes {
		d.Height = max(d.Height, b.Y+BoxHeight+Margin)
	}
	for _, e := range g.edges {
		d.Edges = append(d.Edges, Edge{
			From: g.id(e.from), To: g.id(e.to), Path: writeDown(g.curves(e.via, 0)), Critical: e.critical,
		})
	}
	return d
}

func (g *graph) id(e end) string {
	if e.kind == joint {
		return g.joints[e.item].ID
	}
	return g.boxes[e.item].ID
}

// curves returns the curves of an edge, one through each gap, moved down by shift.
// Bends in gaps only served the order, so curves ignore them.
func (g *graph) curves(via []int, shift int) []cubic {
	via = slices.DeleteFunc(slices.Clone(via), func(v int) bool {
		return g.vertices[v].kind == bend && g.vertices[v].layer%2 == 1
	})
	var curves []cubic
	x, y := g.right(via[0]), g.vertices[via[0]].y+shift
	for _, v := range via[1:] {
		toX, toY := g.left(v), g.vertices[v].y+shift
		middle := (x + toX) / 2
		curves = append(curves, cubic{{x, y}, {middle, y}, {middle, toY}, {toX, toY}})
		x, y = toX, toY
		if g.vertices[v].kind == bend {
			x = g.right(v)
		}
	}
	return curves
}

// cubic is a curve: its start, the two points that pull it, and its end.
type cubic [4][2]int

// point returns the point at a percentage of a curve's parameter.
func (c cubic) point(percent int) [2]int {
	t, u := percent, 100-percent
	var p [2]int
	for axis := range p {
		p[axis] = (u*u*u*c[0][axis] + 3*u*u*t*c[1][axis] + 3*u*t*t*c[2][axis] + t*t*t*c[3][axis]) / 1000000
	}
	return p
}

// writeDown returns curves of a picture that goes down.
func writeDown(curves []cubic) string {
	for i, c := range curves {
		for k, p := range c {
			curves[i][k] = [2]int{p[1], p[0]}
		}
	}
	return write(curves)
}

// write returns curves as an SVG path, with straight lines between them.
func write(curves []cubic) string {
	var b strings.Builder
	for i, c := range curves {
		switch {
		case i == 0:
			fmt.Fprintf(&b, "M%d %d", c[0][0], c[0][1])
		case c[0] != curves[i-1][3]:
			fmt.Fprintf(&b, "L%d %d", c[0][0], c[0][1])
		}
		fmt.Fprintf(&b, "C%d %d %d %d %d %d", c[1][0], c[1][1], c[2][0], c[2][1], c[3][0], c[3][1])
	}
	return b.String()
}
