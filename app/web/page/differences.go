package page

import (
	"bytes"
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/views/ui"
)

// configInline is up to how many characters a value stands in the line itself; a
// longer one, and one of several lines, is folded below it.
const configInline = 100

// ConfigFolded bounds the lines of a folded value.
const ConfigFolded = 400

// ConfigChange is a line about one value; nil stands for none.
func (b *LineBudget) ConfigChange(sign ui.ChangeSign, path string, old, now *any) ui.ChangeModel {
	c := ui.ChangeModel{Sign: sign, Name: path}
	var left, right []string
	if old != nil {
		c.Old, left = configValue(*old)
	}
	if now != nil {
		c.New, right = configValue(*now)
	}
	if left == nil && right == nil {
		return c
	}
	if left == nil && old != nil {
		left = []string{c.Old}
	}
	if right == nil && now != nil {
		right = []string{c.New}
	}
	c.Old, c.New = linesWord(old != nil, left, c.Old), linesWord(now != nil, right, c.New)
	lines, more := b.DiffLines(left, right, ConfigFolded)
	if more > 0 {
		lines = append(lines, "… "+ui.Count(more, "more line", "more lines"))
	}
	c.Lines = strings.Join(lines, "\n")
	return c
}

// linesWord is what stands in the line for a value of which the lines are folded below.
func linesWord(there bool, lines []string, text string) string {
	if !there || len(lines) < 2 {
		return text
	}
	return ui.Count(len(lines), "line", "lines")
}

// configValue writes a value for people: texts without quotes where nothing else could be
// meant. Of one that is long, or has several lines, it gives the lines as well; what stays
// in the line itself is cut.
func configValue(value any) (text string, lines []string) {
	text, plain := value.(string)
	if !plain {
		text = loom.JSONText(value)
	} else if !strings.Contains(text, "\n") && ambiguous(text) {
		text = strconv.Quote(text)
	}
	runes := []rune(text)
	if len(runes) <= configInline && !strings.Contains(text, "\n") {
		return text, nil
	}
	full := text
	if !plain {
		var indented bytes.Buffer
		if json.Indent(&indented, []byte(text), "", "  ") == nil {
			full = indented.String()
		}
	}
	return string(runes[:min(len(runes), configInline)]) + "…", strings.Split(strings.TrimSuffix(full, "\n"), "\n")
}

// ambiguous says that a text without quotes could be taken for something else, or not be
// seen.
func ambiguous(text string) bool {
	return text == "" || strings.TrimSpace(text) != text || json.Valid([]byte(text))
}

// MaxDiffCells bounds the work of comparing the texts of a page, a cell being a line of one
// compared with a line of the other.
const MaxDiffCells = 4_000_000

// LineBudget is how many cells are left. Where two texts need more, all that differs counts
// as replaced.
type LineBudget int

// DiffLines gives the lines that were taken out of a text, with "− " before them, and
// those that were put in, with "+ ", in the order of the new text: the first ones up to
// most, and how many more there are. Nothing when both are the same.
func (b *LineBudget) DiffLines(old, fresh []string, most int) (out []string, more int) {
	for len(old) > 0 && len(fresh) > 0 && old[0] == fresh[0] {
		old, fresh = old[1:], fresh[1:]
	}
	for len(old) > 0 && len(fresh) > 0 && old[len(old)-1] == fresh[len(fresh)-1] {
		old, fresh = old[:len(old)-1], fresh[:len(fresh)-1]
	}
	emit := func(sign string, lines ...string) {
		room := min(len(lines), most-len(out))
		for _, line := range lines[:room] {
			out = append(out, sign+" "+line)
		}
		more += len(lines) - room
	}
	high, cells := bits.Mul(uint(len(old)), uint(len(fresh)))
	if high > 0 || cells > uint(max(*b, 0)) {
		emit("−", old...)
		emit("+", fresh...)
		return out, more
	}
	*b -= LineBudget(cells)
	// row[j] is how many lines old[i:] and fresh[j:] have in common, in order, below is that
	// of i+1; out of each cell leads a bit: whether taking out a line keeps as many.
	row, below := make([]int32, len(fresh)+1), make([]int32, len(fresh)+1)
	takes := make([]uint64, cells/64+1)
	for i := len(old) - 1; i >= 0; i-- {
		row, below = below, row
		for j := len(fresh) - 1; j >= 0; j-- {
			if old[i] == fresh[j] {
				row[j] = below[j+1] + 1
				continue
			}
			row[j] = max(below[j], row[j+1])
			if below[j] >= row[j+1] {
				cell := i*len(fresh) + j
				takes[cell/64] |= 1 << (cell % 64)
			}
		}
	}
	i, j := 0, 0
	for i < len(old) && j < len(fresh) {
		cell := i*len(fresh) + j
		switch {
		case old[i] == fresh[j]:
			i, j = i+1, j+1
		case takes[cell/64]&(1<<(cell%64)) != 0:
			emit("−", old[i])
			i++
		default:
			emit("+", fresh[j])
			j++
		}
	}
	emit("−", old[i:]...)
	emit("+", fresh[j:]...)
	return out, more
}
