package draw

import (
	"cmp"
	"slices"
	"time"
)

// MostTicks is how many ticks an axis has at most, the first one included.
const MostTicks = 7

// Span is a stretch of time from Start to End; one that has not ended has the end of
// the axis.
type Span struct{ Start, End time.Time }

// Part is a place on an axis, in thousandths of a percent of its length.
type Part struct{ X, Width int }

// Axis is a stretch of time with ticks at round distances.
type Axis struct {
	Span
	Ticks []Tick
}

// Tick is a mark on an axis: so long after its start, at that place.
type Tick struct {
	After time.Duration
	X     int
}

// whole is the length of an axis in the units of Part.
const whole = 100_000

// leastWidth keeps the shortest bar visible: about 2 px of 800.
const leastWidth = 250

// steps are round distances of ticks.
var steps = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
	15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// NewAxis makes the axis of a stretch of time. One without length gets a second.
func NewAxis(start, end time.Time) Axis {
	if end.Sub(start) < time.Second {
		end = start.Add(time.Second)
	}
	a := Axis{Span: Span{start, end}}
	length := end.Sub(start)
	step := steps[len(steps)-1]
	for length/step >= MostTicks {
		step *= 2 // days
	}
	for _, s := range steps {
		if length/s < MostTicks {
			step = min(step, s)
			break
		}
	}
	for at := time.Duration(0); at <= length; at += step {
		a.Ticks = append(a.Ticks, Tick{at, a.place(start.Add(at))})
	}
	return a
}

func (a *Axis) place(t time.Time) int {
	part := float64(t.Sub(a.Start)) / float64(a.End.Sub(a.Start))
	return int(max(0, min(1, part)) * whole)
}

// Place puts spans of one lane on the axis, in the order given. Short ones are drawn
// wider than they were, though not over the next.
func (a *Axis) Place(spans []Span) []Part {
	parts := make([]Part, len(spans))
	order := make([]int, len(spans))
	for i, s := range spans {
		x := a.place(s.Start)
		parts[i], order[i] = Part{x, a.place(s.End) - x}, i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(parts[i].X, parts[j].X) })
	for k, i := range order {
		next := whole
		if k+1 < len(order) {
			next = parts[order[k+1]].X
		}
		p := &parts[i]
		p.Width = max(p.Width, min(leastWidth, next-p.X), 1)
		if p.X+p.Width > whole {
			p.X = whole - p.Width
		}
	}
	return parts
}
