package templateview

import (
	"net/url"
	"strconv"
	"strings"

	"loom/app/loom"
)

// MatrixMark is what a cell of the matrix says of two services.
type MatrixMark string

// The marks. A chain follows from must-coexist groups that overlap, a part from a
// can't-coexist group of more than two, and a clash is a contradiction.
const (
	MarkNone  MatrixMark = ""
	MarkMust  MatrixMark = "must"
	MarkCant  MatrixMark = "cant"
	MarkChain MatrixMark = "chain"
	MarkPart  MatrixMark = "part"
	MarkClash MatrixMark = "clash"
)

// sign is what stands in the cell, so that no colour is needed.
func (m MatrixMark) sign() string {
	switch m {
	case MarkMust:
		return "="
	case MarkCant:
		return "×"
	case MarkChain:
		return "≈"
	case MarkPart:
		return "(×)"
	case MarkClash:
		return "!"
	}
	return ""
}

// words is the mark in words, "" for none.
func (m MatrixMark) words() string {
	switch m {
	case MarkMust:
		return "must share their nodes"
	case MarkCant:
		return "never share a node"
	case MarkChain:
		return "share their nodes by way of others"
	case MarkPart:
		return "never all share with others"
	case MarkClash:
		return "contradict each other"
	}
	return "free"
}

// MatrixModel is services by services with what the layout says of each pair. It is
// symmetric, so that any row tells all about its service.
type MatrixModel struct {
	// ID is that of the scroll region.
	ID       string
	Services []string
	// Cells by row and column; those of the diagonal are not shown.
	Cells [][]MatrixCell
	// StepURL is where cells post as buttons of a form; without it the matrix is only
	// looked at.
	StepURL string
}

// MatrixCell is a pair of services.
type MatrixCell struct {
	Mark MatrixMark
	// Next is the relation that pressing the cell gives the pair.
	Next loom.Relation
}

// relateVerb begins the value of a cell's button.
const relateVerb = "relate"

// RelateValue is the value of the button that gives two services a relation.
func RelateValue(p loom.Pair, r loom.Relation) string {
	word := string(r)
	if r == loom.RelationNone {
		word = "none"
	}
	return relateVerb + ":" + word + " " + url.QueryEscape(p.A) + " " + url.QueryEscape(p.B)
}

// ParseRelate is the reverse of RelateValue.
func ParseRelate(value string) (p loom.Pair, r loom.Relation, ok bool) {
	rest, isRelate := strings.CutPrefix(value, relateVerb+":")
	words := strings.Fields(rest)
	if !isRelate || len(words) != 3 {
		return p, r, false
	}
	a, errA := url.QueryUnescape(words[1])
	b, errB := url.QueryUnescape(words[2])
	switch words[0] {
	case "none":
	case string(loom.RelationMust), string(loom.RelationCant):
		r = loom.Relation(words[0])
	default:
		return p, r, false
	}
	return loom.NewPair(a, b), r, errA == nil && errB == nil && a != b
}

func (m MatrixModel) value(row, column int) string {
	return RelateValue(loom.NewPair(m.Services[row], m.Services[column]), m.Cells[row][column].Next)
}

func (m MatrixModel) label(row, column int) string {
	return m.Services[row] + " and " + m.Services[column] + ": " + m.Cells[row][column].Mark.words()
}

func (m MatrixModel) cellID(row, column int) string {
	return m.ID + "-" + strconv.Itoa(row) + "-" + strconv.Itoa(column)
}
