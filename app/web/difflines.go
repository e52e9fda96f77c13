package web

// maxDiffCells bounds the work of comparing two texts; above it, all that differs
// counts as replaced.
const maxDiffCells = 4_000_000

// diffLines gives the lines that were taken out of a text, with "− " before them, and
// those that were put in, with "+ ", in the order of the new text. Nothing when both
// are the same.
func diffLines(old, fresh []string) []string {
	for len(old) > 0 && len(fresh) > 0 && old[0] == fresh[0] {
		old, fresh = old[1:], fresh[1:]
	}
	for len(old) > 0 && len(fresh) > 0 && old[len(old)-1] == fresh[len(fresh)-1] {
		old, fresh = old[:len(old)-1], fresh[:len(fresh)-1]
	}
	var out []string
	emit := func(sign string, lines ...string) {
		for _, line := range lines {
			out = append(out, sign+" "+line)
		}
	}
	if len(old)*len(fresh) > maxDiffCells {
		emit("−", old...)
		emit("+", fresh...)
		return out
	}
	// common[i][j] is how many lines old[i:] and fresh[j:] have in common, in order.
	common := make([][]int, len(old)+1)
	for i := range common {
		common[i] = make([]int, len(fresh)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(fresh) - 1; j >= 0; j-- {
			if old[i] == fresh[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(old) && j < len(fresh) {
		switch {
		case old[i] == fresh[j]:
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			emit("−", old[i])
			i++
		default:
			emit("+", fresh[j])
			j++
		}
	}
	emit("−", old[i:]...)
	emit("+", fresh[j:]...)
	return out
}
