package draw

import (
	"cmp"
	"fmt"
	"slices"

	"loom/planner/ties"
)

// Sizes of a picture of ties, in pixels; boxes are those of a plan.
const (
	// TieGap is wide enough for a label between two columns.
	TieGap = 112
	// LabelHeight is the room of a label.
	LabelHeight = 16
	// parallel is how far apart several ties of the same two boxes run.
	parallel = 14
)

// MostThings and MostTies are how much a picture shows: of more nobody sees anything, and
// placing it costs more than its square.
const (
	MostThings = 300
	MostTies   = 1000
)

// Web is a picture of what services have to do with each other. The zero Web is
// that of none.
type Web struct {
	Width, Height int
	// Things come by column, then row: the order for the keyboard.
	Things []ThingBox
	Ties   []TieLine
}

// ThingBox is a thing of a web. X and Y are its upper left corner.
type ThingBox struct {
	ties.Thing
	// ID is unique in the picture, like "s3"; the number is Index.
	ID string
	// Index is that of the thing in the web.
	Index int
	X, Y  int
}

// TieLine is a tie as a curve, which starts at From and ends at To.
type TieLine struct {
	ties.Tie
	// FromID and ToID are ids of boxes.
	FromID, ToID string
	// Path is the content of an SVG path's d attribute. It runs from left to right,
	// so Backwards says that it begins at To.
	Path      string
	Backwards bool
	// Text is the label where there is room for it, its middle at X, Y; else "".
	Text string
	X, Y int
}

// Ties places the things of a web in columns: what needs others left of what it
// needs, and what has to do with nothing below all others. A circle is cut at its
// weakest tie, which then leads from right to left. No two boxes or labels overlap.
// The Web is zero where there is nothing, and where there is more than MostThings or
// MostTies.
func Ties(w ties.Web) Web {
	if len(w.Things) == 0 || len(w.Things) > MostThings || len(w.Ties) > MostTies {
		return Web{}
	}
	g := &graph{gap: TieGap}
	level := levels(w)
	tied := make([]bool, len(w.Things))
	for _, t := range w.Ties {
		tied[t.From], tied[t.To] = true, true
	}
	boxOf := make([]int, len(w.Things))
	var alone []int
	for i := range w.Things {
		if !tied[i] {
			alone = append(alone, i)
			continue
		}
		boxOf[i] = len(g.boxes)
		g.boxes = append(g.boxes, Box{ID: thingID(i), Level: level[i], column: level[i], Tasks: []int{i}})
	}
	for i, t := range w.Ties {
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
	return g.web(w, alone)
}

func thingID(index int) string { return fmt.Sprintf("s%d", index) }

// levels gives each thing its column, from 0: what needs others stands before
// them. Ties are taken in the order of their strength; one that would close a
// circle with those before it is left out.
func levels(w ties.Web) []int {
	n := len(w.Things)
	on := make([][]int, n)
	for _, t := range byStrength(w.Ties) {
		from, to := t.From, t.To
		if t.Kind == ties.Provides {
			from, to = to, from // who wants a name stands before it, who provides it behind
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
	// What nothing stands before moves up to what it needs.
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

// byStrength gives the ties that place things, the strongest first. Conflicts
// place nothing.
func byStrength(all []ties.Tie) []ties.Tie {
	rank := map[ties.Kind]int{ties.Provides: 0, ties.Requires: 1, ties.Uses: 2, ties.Follows: 3}
	kept := slices.DeleteFunc(slices.Clone(all), func(t ties.Tie) bool { return t.Kind == ties.Conflicts })
	slices.SortStableFunc(kept, func(a, b ties.Tie) int { return cmp.Compare(rank[a.Kind], rank[b.Kind]) })
	return kept
}

// reaches reports whether a way leads from one thing to another.
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
