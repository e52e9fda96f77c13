package web

import "math/bits"

// maxDiffCells bounds the work of comparing the texts of a page, a cell being a line of one
// compared with a line of the other.
const maxDiffCells = 4_000_000

// lineBudget is how many cells are left. Where two texts need more, all that differs counts
// as replaced.
type lineBudget int

// diffLines gives the lines that were taken out of a text, with "− " before them, and
// those that were put in, with "+ ", in the order of the new text: the first ones up to
// most, and how many more there are. Nothing when both are the same.
func (b *lineBudget) diffLines(old, fresh []string, most int) (out []string, more int) {
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
	*b -= lineBudget(cells)
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
