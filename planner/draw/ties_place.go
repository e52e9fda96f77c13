package draw

import (
	"slices"
	"unicode/utf8"

	"loom/planner/ties"
)

// web reads the picture off the graph and adds the things that stand alone.
func (g *graph) web(w ties.Web, alone []int) Web {
	var d Web
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
	for i, thing := range alone {
		x, y := Margin+i%columns*(BoxWidth+RowGap), top+i/columns*(BoxHeight+RowGap)
		d.add(w, thing, x, y)
		d.Height = max(d.Height, y+BoxHeight+Margin)
	}
	for _, b := range d.Things {
		d.Width = max(d.Width, b.X+BoxWidth+Margin)
	}
	d.label(d.lines(w, g))
	return d
}

func (d *Web) add(w ties.Web, thing, x, y int) {
	d.Things = append(d.Things, ThingBox{Thing: w.Things[thing], ID: thingID(thing), Index: thing, X: x, Y: y})
}

// lines adds every tie: those between columns as the layout has them, those within
// a column as bows in the gap behind it. It gives the curves of each.
func (d *Web) lines(w ties.Web, g *graph) (along [][]cubic) {
	at := make([]ThingBox, len(w.Things))
	for _, b := range d.Things {
		at[b.Index] = b
	}
	via := map[int][]int{}
	for _, e := range g.edges {
		via[e.item] = e.via
	}
	shifts := apart(w.Ties)
	for i, t := range w.Ties {
		l := TieLine{Tie: t, FromID: thingID(t.From), ToID: thingID(t.To)}
		a, b := at[t.From], at[t.To]
		var curves []cubic
		if route, across := via[i]; across {
			l.Backwards = a.X > b.X
			curves = g.curves(route, shifts[i])
		} else {
			curves = []cubic{bow(a, b, shifts[i])}
			d.Width = max(d.Width, a.X+BoxWidth+TieGap*3/4+Margin)
		}
		l.Path = write(curves)
		d.Ties = append(d.Ties, l)
		along = append(along, curves)
	}
	return along
}

// apart says how far each tie is moved down, so that several of the same two
// things are seen side by side.
func apart(all []ties.Tie) []int {
	pair := func(t ties.Tie) [2]int { return [2]int{min(t.From, t.To), max(t.From, t.To)} }
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
func bow(a, b ThingBox, shift int) cubic {
	x, from, to := a.X+BoxWidth, a.Y+BoxHeight/2+shift, b.Y+BoxHeight/2+shift
	return cubic{{x, from}, {x + TieGap*3/4, from}, {x + TieGap*3/4, to}, {x, to}}
}

// area is the room of a label.
type area struct{ left, top, right, bottom int }

func (a area) meets(b area) bool {
	return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}

// LabelWidth is an upper bound of the width of a label, in pixels.
func LabelWidth(text string) int { return 7*utf8.RuneCountInString(text) + 8 }

// label writes each tie's label at the first place on its curve where it meets no
// box and no other label. Where there is none, it is left out: the line itself says
// the kind, and the table below the picture says all.
func (d *Web) label(along [][]cubic) {
	var taken []area
	for _, b := range d.Things {
		taken = append(taken, area{b.X - 2, b.Y - 2, b.X + BoxWidth + 2, b.Y + BoxHeight + 2})
	}
	for i := range d.Ties {
		text := d.Ties[i].Label()
		half := LabelWidth(text) / 2
		for _, p := range places(along[i]) {
			room := area{p[0] - half, p[1] - LabelHeight/2, p[0] + half, p[1] + LabelHeight/2}
			if room.left < 0 || room.top < 0 || room.right > d.Width || room.bottom > d.Height ||
				slices.ContainsFunc(taken, room.meets) {
				continue
			}
			d.Ties[i].Text, d.Ties[i].X, d.Ties[i].Y = text, p[0], p[1]
			taken = append(taken, room)
			break
		}
	}
}

// places are points of a line in the order in which a label would like them: the
// middles of its curves first.
func places(curves []cubic) [][2]int {
	var found [][2]int
	for _, t := range []int{50, 40, 60, 30, 70} {
		for _, c := range curves {
			found = append(found, c.point(t))
		}
	}
	return found
}
