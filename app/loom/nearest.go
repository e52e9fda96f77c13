package loom

import "strings"

// Nearest gives the known word that word was probably meant to be: the same in
// another case, or off by two letters at most and by less than half of them. ""
// when there is none; the first of those equally near wins.
func Nearest(word string, known []string) string {
	const most = 2 // letters that may be wrong
	if len(word) > 100 {
		return ""
	}
	best, least := "", most+1
	for _, k := range known {
		if d := distance([]rune(strings.ToLower(word)), []rune(strings.ToLower(k))); d < least && 2*d < len([]rune(k)) {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to add, drop or change to get from a to b.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		before := row[0]
		row[0] = i + 1
		for j, y := range b {
			changed := before
			if x != y {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
