// Package templateview holds the pages on which administrators try out cluster
// templates and write them and partial templates as forms.
//
// It must not know use cases: models are flat and ready to print, and what the
// rules of a template come to has been worked out before. A newcomer's usual
// mistake: reading a template here; what a page shows of one is said by the handler.
package templateview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loom/views/ui"
)

// SizeState is what is known about a number of machines.
type SizeState string

// The states of a size.
const (
	SizeFits      SizeState = "fits"
	SizeCannot    SizeState = "cannot"
	SizeUndecided SizeState = "undecided"
	SizeUntried   SizeState = "untried"
)

// state is the badge of a size.
func (s SizeState) state() ui.State {
	switch s {
	case SizeFits:
		return ui.State{Word: "Fits", Icon: "check-circle", Tone: ui.ToneOK}
	case SizeCannot:
		return ui.State{Word: "Cannot fit", Icon: "error", Tone: ui.ToneBad}
	case SizeUndecided:
		return ui.State{Word: "Not sure", Icon: "alert", Tone: ui.ToneWarn}
	}
	return ui.State{Word: "Not tried", Icon: "circle", Tone: ui.ToneIdle}
}

// mark tells the states apart in the picture without colour; what fits is a bar.
func (s SizeState) mark() string {
	switch s {
	case SizeCannot:
		return "×"
	case SizeUndecided:
		return "?"
	case SizeUntried:
		return "–"
	}
	return ""
}

// SizesModel is which numbers of machines have a layout, as a chart and a table.
type SizesModel struct {
	// Summary is the answer in a sentence, Note what else is to know.
	Summary, Note string
	Rows          []SizeRow
}

// SizeRow is a number of machines.
type SizeRow struct {
	Machines int
	State    SizeState
	// Layout lists the nodes, nothing where that is not known. Why is one sentence, for one
	// that has none.
	Layout []SizeNodes
	Why    string
	// Asked marks the size that is looked at closely; Href looks at this one instead.
	Asked bool
	Href  string
}

// SizeNodes is how many nodes of a size have the same services: "db, lb".
type SizeNodes struct {
	Count    int
	Services string
}

// String says it as "1 × db, lb".
func (n SizeNodes) String() string { return strconv.Itoa(n.Count) + " × " + n.Services }

// Sizes of the chart in pixels, and how far its bars reach into their steps.
const (
	sizesPlot  = 120
	sizesTop   = 18
	sizesFoot  = 22
	sizesAxis  = 28
	sizesMarks = 10
	sizesBar   = .72
)

// sizesColumns is how many columns the chart has at most.
const sizesColumns = 50

// picture is the sizes that the chart shows: of many, one of each few that follow each other,
// the one that is looked at, or the first that does not work, or the last.
func (m SizesModel) picture() SizesModel {
	step := (len(m.Rows) + sizesColumns - 1) / sizesColumns
	if step <= 1 {
		return m
	}
	shown := make([]SizeRow, 0, sizesColumns)
	for rows := range slices.Chunk(m.Rows, step) {
		at := slices.IndexFunc(rows, func(r SizeRow) bool { return r.Asked })
		if at < 0 {
			at = slices.IndexFunc(rows, func(r SizeRow) bool { return r.State != SizeFits })
		}
		if at < 0 {
			at = len(rows) - 1
		}
		shown = append(shown, rows[at])
	}
	m.Rows = shown
	return m
}

func (m SizesModel) height() string { return strconv.Itoa(sizesTop + sizesPlot + sizesFoot) }

// sizesID names the chart.
const sizesID = "sizes-chart"

// otherKinds is what is said of the kinds of nodes for which there is no pattern left.
const otherKinds = "other kinds of nodes"

// kinds are what nodes run, over all sizes, in the order in which they come up: as many
// as the chart tells apart.
func (m SizesModel) kinds() []string {
	var found []string
	for _, r := range m.Rows {
		for _, n := range r.Layout {
			if !slices.Contains(found, n.Services) {
				found = append(found, n.Services)
			}
		}
	}
	if len(found) > ui.MaxSeries {
		found = append(found[:ui.MaxSeries-1], otherKinds)
	}
	return found
}

// sizeBar is a piece of the bar of a size: its nodes of one kind.
type sizeBar struct{ kind, y, height int }

// bars stack the nodes of a size by kind. One whose layout is not known has none.
func (m SizesModel) bars(r SizeRow) []sizeBar {
	kinds := m.kinds()
	counts := make([]int, len(kinds))
	for _, n := range r.Layout {
		at := slices.Index(kinds, n.Services)
		if at < 0 {
			at = len(kinds) - 1
		}
		counts[at] += n.Count
	}
	var found []sizeBar
	below := 0
	for kind, n := range counts {
		if n > 0 {
			top := m.y(below + n)
			found = append(found, sizeBar{kind, top, m.y(below) - top})
		}
		below += n
	}
	return found
}

// highest is the top of the scale: at least 2, so that a bar of 1 is no wall.
func (m SizesModel) highest() int {
	high := 2
	for _, r := range m.Rows {
		if len(r.Layout) > 0 {
			high = max(high, r.Machines)
		}
	}
	return high
}

// asked says whether one of the sizes is looked at closely.
func (m SizesModel) asked() bool {
	return slices.ContainsFunc(m.Rows, func(r SizeRow) bool { return r.Asked })
}

// marks are the states that have a mark of their own and occur.
func (m SizesModel) marks() []SizeState {
	var found []SizeState
	for _, state := range []SizeState{SizeCannot, SizeUndecided, SizeUntried} {
		if slices.ContainsFunc(m.Rows, func(r SizeRow) bool { return r.State == state }) {
			found = append(found, state)
		}
	}
	return found
}

type sizeTick struct {
	y    int
	text string
}

// ticks are at most five whole numbers of the vertical axis.
func (m SizesModel) ticks() []sizeTick {
	high := m.highest()
	step := max(1, (high+3)/4)
	var found []sizeTick
	for n := 0; n <= high; n += step {
		found = append(found, sizeTick{m.y(n), strconv.Itoa(n)})
	}
	return found
}

func (m SizesModel) y(machines int) int { return sizesTop + sizesPlot - sizesPlot*machines/m.highest() }

func percent(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) + "%" }

// left, wide and middle are where the step of a row stands, in percent.
func (m SizesModel) left(row int) string {
	step := 100 / float64(max(len(m.Rows), 1))
	return percent(step*float64(row) + step*(1-sizesBar)/2)
}

func (m SizesModel) wide() string {
	return percent(100 / float64(max(len(m.Rows), 1)) * sizesBar)
}

func (m SizesModel) middle(row int) string {
	step := 100 / float64(max(len(m.Rows), 1))
	return percent(step * (float64(row) + .5))
}

// labelled says whether a row has its number below it: so many that they stay apart,
// and always the first.
func (m SizesModel) labelled(row int) bool {
	every := max(1, (len(m.Rows)+sizesMarks-1)/sizesMarks)
	return row%every == 0
}

// sizeSpan is a range of sizes: all impossible for the same reason, or each with one node more than
// the one before.
type sizeSpan struct {
	SizeRow
	last int
	// more are the services of the nodes that come with the size; "" for one size.
	more string
}

// Lines say how many nodes there are of each kind, as "n−1 × nginx" where that grows.
func (s sizeSpan) lines() []string {
	var lines []string
	for _, n := range s.Layout {
		count := strconv.Itoa(n.Count)
		if n.Services == s.more {
			if count = "n"; n.Count < s.Machines {
				count += "−" + strconv.Itoa(s.Machines-n.Count)
			}
		}
		lines = append(lines, count+" × "+n.Services)
	}
	return lines
}

// grows gives the services of the one node that a size has more than the size before; "" where
// they differ otherwise.
func grows(before, after SizeRow) string {
	counts := map[string]int{}
	for _, n := range before.Layout {
		if counts[n.Services] != 0 {
			return "" // on nodes of several types
		}
		counts[n.Services] = -n.Count
	}
	for _, n := range after.Layout {
		if counts[n.Services] == 0 {
			return "" // a kind that was not there
		}
		counts[n.Services] += n.Count
	}
	more := ""
	for services, n := range counts {
		switch {
		case n == 1 && more == "":
			more = services
		case n != 0:
			return ""
		}
	}
	return more
}

func (s sizeSpan) machines() string {
	if s.last == s.Machines {
		return strconv.Itoa(s.Machines)
	}
	return strconv.Itoa(s.Machines) + "–" + strconv.Itoa(s.last)
}

func (m SizesModel) spans() []sizeSpan {
	var out []sizeSpan
	for i, r := range m.Rows {
		if n := len(out) - 1; n >= 0 && out[n].State == r.State && out[n].Why == r.Why {
			more := ""
			if r.State == SizeFits {
				more = grows(m.Rows[i-1], r)
			}
			if r.State != SizeFits || more != "" && (out[n].more == "" || out[n].more == more) {
				out[n].last, out[n].more = r.Machines, more
				out[n].Asked = out[n].Asked && r.Asked
				continue
			}
		}
		out = append(out, sizeSpan{SizeRow: r, last: r.Machines})
	}
	return out
}

// Label is a row in words.
func (r SizeRow) Label() string {
	text := ui.Count(r.Machines, "node", "nodes") + ": " + strings.ToLower(r.State.state().Word)
	for i, n := range r.Layout {
		if i == 0 {
			text += ": " + n.String()
		} else {
			text += "; " + n.String()
		}
	}
	return text
}

// Describe is the chart in words: ranges of sizes with the same state.
func (m SizesModel) Describe() string {
	var parts []string
	for i := 0; i < len(m.Rows); {
		j := i
		for j+1 < len(m.Rows) && m.Rows[j+1].State == m.Rows[i].State {
			j++
		}
		word := strings.ToLower(m.Rows[i].State.state().Word)
		if i == j {
			parts = append(parts, fmt.Sprintf("%d %s", m.Rows[i].Machines, word))
		} else {
			parts = append(parts, fmt.Sprintf("%d–%d %s", m.Rows[i].Machines, m.Rows[j].Machines, word))
		}
		i = j + 1
	}
	if len(parts) == 0 {
		return "No size was tried."
	}
	return "Nodes: " + strings.Join(parts, ", ") + "."
}
