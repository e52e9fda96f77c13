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
		if d := EditDistance(strings.ToLower(word), strings.ToLower(k), least); d < least && 2*d < len([]rune(k)) {
			best, least = k, d
		}
	}
	return best
}

// EditDistance returns how many letters to insert, delete, replace or swap with their
// neighbor lead from one word to another. From limit on it may be any larger number.
func EditDistance(from, to string, limit int) int {
	a, b := []rune(from), []rune(to)
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		next[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
