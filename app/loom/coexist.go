package loom

import (
	"cmp"
	"fmt"
	"slices"
)

// Layout sets as relations of two services. Must-coexist sets are a
// graph: each stands for all pairs within it, and on any choice of services those
// share a node that hang together. So the same graph always means the same, however
// it is cut into sets. A can't-coexist set of two is a pair; a larger one forbids
// only the whole of it and is no relation of pairs.

// Bounds of the layout rules of a template: each is held against all others.
const (
	maxLayoutServices = 100
	maxLayoutNames    = 5000
)

// tooLargeLayout says what is wrong with rules that are TooLarge.
var tooLargeLayout = fmt.Sprintf("The groups of mustcoexist and cantcoexist name at most %d services, and these at most %d times together. Take some groups out.", maxLayoutServices, maxLayoutNames)

// TooLarge reports whether these are more rules than may be stored. Older versions of
// templates may have them.
func (l LayoutConstraints) TooLarge() bool {
	names, n := map[string]bool{}, 0
	for _, set := range slices.Concat(l.MustCoexist, l.CantCoexist) {
		n += max(1, len(set))
		for _, name := range set {
			names[name] = true
		}
	}
	return len(names) > maxLayoutServices || n > maxLayoutNames
}

// Pair is two services, A before B.
type Pair struct{ A, B string }

// NewPair puts two services in order.
func NewPair(a, b string) Pair {
	if b < a {
		a, b = b, a
	}
	return Pair{a, b}
}

// Relation is what a layout says of two services.
type Relation string

// The relations.
const (
	RelationNone Relation = ""
	RelationMust Relation = "must"
	RelationCant Relation = "cant"
)

// MustPairs are the pairs that must-coexist sets name, sorted.
func (l LayoutConstraints) MustPairs() []Pair {
	var pairs []Pair
	for _, set := range l.MustCoexist {
		pairs = append(pairs, pairsOf(set)...)
	}
	return sortPairs(pairs)
}

// CantPairs are the can't-coexist sets of two services, sorted.
func (l LayoutConstraints) CantPairs() []Pair {
	var pairs []Pair
	for _, set := range l.CantCoexist {
		if names := distinct(set); len(names) == 2 {
			pairs = append(pairs, NewPair(names[0], names[1]))
		}
	}
	return sortPairs(pairs)
}

// WithPairs gives the layout whose pairs are exactly these. Sets that say so
// already stay as they are written, and so do can't-coexist sets of another size
// than two. What is given is not changed.
func (l LayoutConstraints) WithPairs(must, cant []Pair) LayoutConstraints {
	for _, p := range l.MustPairs() {
		if !slices.Contains(must, p) {
			l.MustCoexist = untie(l.MustCoexist, p)
		}
	}
	for _, p := range sortPairs(slices.Clone(must)) {
		if p.A != p.B {
			l.MustCoexist = tie(l.MustCoexist, p)
		}
	}
	old := l.CantPairs()
	kept := slices.DeleteFunc(slices.Clone(l.CantCoexist), func(set []string) bool {
		names := distinct(set)
		return len(names) == 2 && !slices.Contains(cant, NewPair(names[0], names[1]))
	})
	for _, p := range sortPairs(slices.Clone(cant)) {
		if p.A != p.B && !slices.Contains(old, p) {
			kept = append(kept, []string{p.A, p.B})
		}
	}
	l.CantCoexist = kept
	return l
}

// Relate gives the layout in which a relation holds between two services, and no
// other does.
func (l LayoutConstraints) Relate(p Pair, r Relation) LayoutConstraints {
	except := func(pairs []Pair) []Pair { return slices.DeleteFunc(pairs, func(q Pair) bool { return q == p }) }
	must, cant := except(l.MustPairs()), except(l.CantPairs())
	switch r {
	case RelationMust:
		must = append(must, p)
	case RelationCant:
		cant = append(cant, p)
	}
	return l.WithPairs(must, cant)
}

// SplitCant puts the pairs of a can't-coexist set in its place, so that no two of
// its services may share a node. A number of no set changes nothing.
func (l LayoutConstraints) SplitCant(i int) LayoutConstraints {
	if i < 0 || i >= len(l.CantCoexist) {
		return l
	}
	whole := l.CantCoexist[i]
	there := l.CantPairs()
	var pairs [][]string
	for _, p := range sortPairs(pairsOf(whole)) {
		if !slices.Contains(there, p) {
			pairs = append(pairs, []string{p.A, p.B})
		}
	}
	l.CantCoexist = slices.Replace(slices.Clone(l.CantCoexist), i, i+1, pairs...)
	return l
}

// MustGroups are the services that share every node when all of them are on a
// cluster: those that hang together by must-coexist sets, by two or more, sorted.
func (l LayoutConstraints) MustGroups() [][]string {
	var groups [][]string
	for _, set := range l.MustCoexist {
		joined := distinct(set)
		rest := groups[:0:0]
		for _, g := range groups {
			if slices.ContainsFunc(g, func(name string) bool { return slices.Contains(joined, name) }) {
				joined = distinct(append(joined, g...))
			} else {
				rest = append(rest, g)
			}
		}
		groups = append(rest, joined)
	}
	groups = slices.DeleteFunc(groups, func(g []string) bool { return len(g) < 2 })
	slices.SortFunc(groups, func(a, b []string) int { return slices.Compare(a, b) })
	return groups
}

// untie takes a pair out of must-coexist sets: a set with both falls into the two
// that lack one of them.
func untie(sets [][]string, p Pair) [][]string {
	var out, parts [][]string
	for _, set := range sets {
		names := distinct(set)
		if !slices.Contains(names, p.A) || !slices.Contains(names, p.B) {
			out = append(out, set)
			continue
		}
		for _, gone := range []string{p.A, p.B} {
			part := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == gone })
			if len(part) > 1 {
				parts = append(parts, part)
				out = append(out, part)
			}
		}
	}
	return withoutParts(out, parts)
}

// tie adds a pair to must-coexist sets. Where a set has one of the two, and the
// other is tied to all of it, the set takes the other in.
func tie(sets [][]string, p Pair) [][]string {
	tied := LayoutConstraints{MustCoexist: sets}.MustPairs()
	if slices.Contains(tied, p) {
		return sets
	}
	tied = append(tied, p)
	for i, set := range sets {
		names := distinct(set)
		for _, way := range [][2]string{{p.A, p.B}, {p.B, p.A}} {
			has, lacks := way[0], way[1]
			if len(names) < 2 || !slices.Contains(names, has) ||
				slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(tied, NewPair(name, lacks)) }) {
				continue
			}
			larger := distinct(append(slices.Clone(names), lacks))
			out := slices.Clone(sets)
			out[i] = larger
			return withoutParts(out, setsWithin(out, larger))
		}
	}
	return append(slices.Clone(sets), []string{p.A, p.B})
}

// setsWithin are the sets of two and more that another holds, but not those equal
// to it.
func setsWithin(sets [][]string, whole []string) [][]string {
	var out [][]string
	for _, set := range sets {
		if names := distinct(set); len(names) > 1 && len(names) < len(whole) && isWithin(names, whole) {
			out = append(out, set)
		}
	}
	return out
}

// withoutParts leaves out those of the given parts that another set holds, and
// repetitions of them.
func withoutParts(sets, parts [][]string) [][]string {
	out := [][]string{}
	for i, set := range sets {
		names := distinct(set)
		isPart := slices.ContainsFunc(parts, func(p []string) bool { return slices.Equal(distinct(p), names) })
		if isPart && slices.ContainsFunc(sets[:i], func(s []string) bool { return isWithin(names, distinct(s)) }) ||
			isPart && slices.ContainsFunc(sets[i+1:], func(s []string) bool { d := distinct(s); return len(d) > len(names) && isWithin(names, d) }) {
			continue
		}
		out = append(out, set)
	}
	return out
}

func isWithin(names, whole []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(whole, name) })
}

func pairsOf(set []string) []Pair {
	names := distinct(set)
	var pairs []Pair
	for i, a := range names {
		for _, b := range names[i+1:] {
			pairs = append(pairs, Pair{a, b})
		}
	}
	return pairs
}

func sortPairs(pairs []Pair) []Pair {
	slices.SortFunc(pairs, func(a, b Pair) int { return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B)) })
	return slices.Compact(pairs)
}

// distinct is a sorted copy without repetitions.
func distinct(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}
