package loom

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// LayoutClash is something in the layout rules of a template that cannot be, or that
// has no effect. Pairs are the relations it is about.
type LayoutClash struct {
	Services []string
	Pairs    []Pair
	// Must and Cant are the sets it is about, by their place in the lists.
	Must, Cant []int
	Message    string
	// Idle says that it is merely without effect.
	Idle bool
}

// LayoutClashes looks for contradictions between the layout sets of a template, and
// between them and its other rules. services is the catalog; without it conflicts
// of services are not seen. What is found concerns clusters that have all services
// named; the layout search alone tells whether a given one fits.
func (t *Template) LayoutClashes(services map[string]Service) []LayoutClash {
	l := t.Constraints.Layout
	if l.TooLarge() {
		return []LayoutClash{{Message: tooLargeLayout}}
	}
	var found []LayoutClash
	for _, group := range l.MustGroups() {
		found = append(found, t.bothLists(group)...)
		found = append(found, t.types(group, "hardware types", t.Compatibility.HardwareTypes, func(c ServiceConstraint) []string { return c.HardwareTypes })...)
		found = append(found, t.types(group, "image types", t.Compatibility.ImageTypes, func(c ServiceConstraint) []string { return c.ImageTypes })...)
		found = append(found, t.counts(group)...)
		found = append(found, t.foes(group, services)...)
	}
	return append(found, t.idleSets()...)
}

// bothLists finds can't-coexist sets within services that must share.
func (t *Template) bothLists(group []string) []LayoutClash {
	l := t.Constraints.Layout
	var found []LayoutClash
	for i, set := range l.CantCoexist {
		names := distinct(set)
		if len(names) < 2 || !isWithin(names, group) {
			continue
		}
		c := LayoutClash{Services: names, Pairs: pairsOf(names), Must: t.mustSets(group), Cant: []int{i}}
		direct := slices.IndexFunc(l.MustCoexist, func(must []string) bool { return isWithin(names, must) })
		switch {
		case direct >= 0 && len(names) == 2:
			c.Must = []int{direct}
			c.Message = fmt.Sprintf("%s are in both lists: they must share their nodes, and may not.", And(names))
		case direct >= 0:
			c.Must = []int{direct}
			c.Message = fmt.Sprintf("%s are in both lists: they must share their nodes, and may not all do so.", And(names))
		default:
			c.Message = fmt.Sprintf("%s may not share a node, but groups that must coexist chain them together: %s.", And(names), And(group))
		}
		found = append(found, c)
	}
	return found
}

// mustSets are the sets that lie within a group.
func (t *Template) mustSets(group []string) []int {
	var at []int
	for i, set := range t.Constraints.Layout.MustCoexist {
		if names := distinct(set); len(names) > 1 && isWithin(names, group) {
			at = append(at, i)
		}
	}
	return at
}

// types finds services that must share and have no type in common: the first two
// of them, or all where it takes more.
func (t *Template) types(group []string, word string, allowed []string, of func(ServiceConstraint) []string) []LayoutClash {
	var bound []string
	for _, name := range group {
		if len(of(t.Constraints.Services[name])) > 0 {
			bound = append(bound, name)
		}
	}
	common := func(names []string) bool {
		left := of(t.Constraints.Services[names[0]])
		if len(allowed) > 0 && !slices.ContainsFunc(left, func(s string) bool { return slices.Contains(allowed, s) }) {
			return true // a service that fits nowhere is no matter of this group
		}
		for _, name := range names[1:] {
			own := of(t.Constraints.Services[name])
			left = slices.DeleteFunc(slices.Clone(left), func(s string) bool { return !slices.Contains(own, s) })
		}
		return len(left) > 0
	}
	clash := func(names []string) []LayoutClash {
		var needs []string
		for _, name := range names {
			needs = append(needs, name+" "+Or(of(t.Constraints.Services[name])))
		}
		return []LayoutClash{{Services: names, Pairs: pairsOf(names), Must: t.mustSets(group),
			Message: fmt.Sprintf("%s must coexist, but need different %s: %s.", And(names), word, strings.Join(needs, ", "))}}
	}
	for i, a := range bound {
		for _, b := range bound[i+1:] {
			if !common([]string{a, b}) {
				return clash([]string{a, b})
			}
		}
	}
	if len(bound) > 2 && !common(bound) {
		return clash(bound)
	}
	return nil
}

// counts finds services that must share, of which one is on more nodes than another
// may be.
func (t *Template) counts(group []string) []LayoutClash {
	most, least := "", ""
	high, low := 0, Unlimited
	for _, name := range group {
		minimum, maximum := t.Constraints.Services[name].Quantities.Bounds()
		if minimum > high {
			most, high = name, minimum
		}
		if maximum < low {
			least, low = name, maximum
		}
	}
	if high <= low || most == least {
		return nil
	}
	names := distinct([]string{most, least})
	return []LayoutClash{{Services: names, Pairs: pairsOf(names), Must: t.mustSets(group),
		Message: fmt.Sprintf("%s must share their nodes, but %s has to be on %d or more and %s may be on %d at most.", And(names), most, high, least, low)}}
}

// Bounds returns the numbers of nodes, filled in where nothing is given.
func (q *Quantities) Bounds() (low, high int) {
	low, high = 1, Unlimited
	if q != nil && q.Min != nil {
		low = *q.Min
	}
	if q != nil && q.Max != nil {
		high = *q.Max
	}
	return low, high
}

// foes finds services that must share although they conflict.
func (t *Template) foes(group []string, services map[string]Service) []LayoutClash {
	var found []LayoutClash
	for _, way := range Foes(group, services) {
		p := NewPair(way.A, way.B)
		found = append(found, LayoutClash{Services: []string{p.A, p.B}, Pairs: []Pair{p}, Must: t.mustSets(group),
			Message: fmt.Sprintf("%s must coexist, but %s conflicts with %s: no cluster can have both.", And([]string{p.A, p.B}), way.A, way.B)})
	}
	return found
}

// maxFoes is how many pairs of foes are told.
const maxFoes = 100

// Foes gives the pairs of the named services that keep each other out of a cluster, by
// name, and the first 100 of very many. A is the one that says so.
func Foes(names []string, services map[string]Service) []Pair {
	offers := map[string][]string{}
	names = distinct(names)
	for _, name := range names {
		for _, offered := range distinct(append([]string{name}, services[name].Dependencies.Provides...)) {
			offers[offered] = append(offers[offered], name)
		}
	}
	known := map[Pair]bool{}
	var found []Pair
	for _, a := range names {
		for _, unwanted := range services[a].Dependencies.Conflicts {
			for _, b := range offers[unwanted] {
				p := NewPair(a, b)
				if a == b || known[p] {
					continue
				}
				if len(found) == maxFoes {
					return found
				}
				known[p] = true
				found = append(found, Pair{a, b})
			}
		}
	}
	slices.SortFunc(found, func(x, y Pair) int {
		p, q := NewPair(x.A, x.B), NewPair(y.A, y.B)
		return cmp.Or(cmp.Compare(p.A, q.A), cmp.Compare(p.B, q.B))
	})
	return found
}

// idleSets finds sets that say nothing, or nothing sensible.
func (t *Template) idleSets() []LayoutClash {
	l := t.Constraints.Layout
	var found []LayoutClash
	for i, set := range l.MustCoexist {
		switch names := distinct(set); len(names) {
		case 0:
			found = append(found, LayoutClash{Must: []int{i}, Idle: true, Message: "This group is empty and without effect."})
		case 1:
			found = append(found, LayoutClash{Services: names, Must: []int{i}, Idle: true, Message: fmt.Sprintf("This group names %s alone and is without effect.", names[0])})
		}
	}
	for i, set := range l.CantCoexist {
		names := distinct(set)
		switch {
		case len(names) == 0:
			found = append(found, LayoutClash{Cant: []int{i}, Idle: true, Message: "This group is empty and without effect."})
			continue
		case len(names) == 1:
			found = append(found, LayoutClash{Services: names, Cant: []int{i}, Message: fmt.Sprintf("This group names %s alone, so it may be on no node at all.", names[0])})
			continue
		}
		within := slices.IndexFunc(l.CantCoexist, func(other []string) bool {
			d := distinct(other)
			return len(d) > 1 && len(d) < len(names) && isWithin(d, names)
		})
		if within >= 0 {
			found = append(found, LayoutClash{Services: names, Cant: []int{i, within}, Idle: true,
				Message: fmt.Sprintf("This group adds nothing: %s may not share a node anyway.", And(distinct(l.CantCoexist[within])))})
		}
	}
	return found
}
