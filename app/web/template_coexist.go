package web

import (
	"fmt"
	"maps"
	"slices"

	"loom/app/loom"
	"loom/views/templateview"
)

// matrixServices are the services that a template's layout can be about: those
// compatible, or where all are, its defaults; and whatever its rules name.
func matrixServices(t *loom.Template) []string {
	names := slices.Clone(t.Compatibility.Services)
	if len(names) == 0 {
		names = slices.Clone(t.Defaults.Services)
	}
	l := t.Constraints.Layout
	for _, sets := range [][][]string{l.MustCoexist, l.CantCoexist} {
		for _, set := range sets {
			names = append(names, set...)
		}
	}
	names = slices.AppendSeq(names, maps.Keys(t.Constraints.Services))
	slices.Sort(names)
	return slices.Compact(slices.DeleteFunc(names, func(name string) bool { return name == "" }))
}

// Bounds of the form of a layout: the matrix has a button for each two services, and each
// group a list of all.
const (
	maxInMatrix   = 60
	maxGroupBoxes = 20_000
)

// matrixOf marks what a layout says of each pair of services.
func matrixOf(l loom.LayoutConstraints, services []string, clashes []loom.LayoutClash) templateview.MatrixModel {
	marks := map[loom.Pair]templateview.MatrixMark{}
	for _, set := range l.CantCoexist {
		distinct := slices.Compact(slices.Sorted(slices.Values(set)))
		mark := templateview.MarkPart
		if len(distinct) == 2 {
			mark = templateview.MarkCant
		}
		for i, a := range distinct {
			for _, b := range distinct[i+1:] {
				if p := loom.NewPair(a, b); marks[p] != templateview.MarkCant {
					marks[p] = mark
				}
			}
		}
	}
	cant, must := map[loom.Pair]bool{}, map[loom.Pair]bool{}
	for _, p := range l.CantPairs() {
		cant[p] = true
	}
	for _, p := range l.MustPairs() {
		must[p] = true
	}
	for _, group := range l.MustGroups() {
		for i, a := range group {
			for _, b := range group[i+1:] {
				if p := loom.NewPair(a, b); marks[p] == templateview.MarkNone || marks[p] == templateview.MarkPart {
					marks[p] = templateview.MarkChain
				}
			}
		}
	}
	for p := range must {
		marks[p] = templateview.MarkMust
	}
	for _, c := range clashes {
		for _, p := range c.Pairs {
			if !c.Idle {
				marks[p] = templateview.MarkClash
			}
		}
	}
	m := templateview.MatrixModel{ID: "matrix", Services: services, Cells: make([][]templateview.MatrixCell, len(services))}
	for i, a := range services {
		m.Cells[i] = make([]templateview.MatrixCell, len(services))
		for j, b := range services {
			p := loom.NewPair(a, b)
			m.Cells[i][j] = templateview.MatrixCell{Mark: marks[p], Next: nextRelation(must[p], cant[p])}
		}
	}
	return m
}

// nextRelation is what pressing a pair makes of it: free, must, can't, free. A pair
// that is in both lists becomes free.
func nextRelation(must, cant bool) loom.Relation {
	switch {
	case must && !cant:
		return loom.RelationCant
	case cant:
		return loom.RelationNone
	}
	return loom.RelationMust
}

// clashModels words the clashes of a layout.
func clashModels(found []loom.LayoutClash) []templateview.ClashModel {
	var out []templateview.ClashModel
	for _, c := range found {
		if !c.Idle { // those stand at their group
			out = append(out, templateview.ClashModel{Text: c.Message})
		}
	}
	return out
}

// mustReading and cantReading say in a sentence what a group means.
func mustReading(set []string) string {
	names := slices.Compact(slices.Sorted(slices.Values(set)))
	switch len(names) {
	case 0:
		return "Choose the services that share their nodes, two or more."
	case 1:
		return "Choose at least one more service; " + names[0] + " alone means nothing."
	case 2:
		return "If both are on a cluster, every node with " + loom.Or(names) + " has both."
	}
	return fmt.Sprintf("Where any of %s is, all of them are, as far as they are on the cluster.", loom.And(names))
}

func cantReading(set []string) string {
	names := slices.Compact(slices.Sorted(slices.Values(set)))
	switch len(names) {
	case 0:
		return "Choose the services that may not share a node, two or more."
	case 1:
		return "Choose at least one more service; " + names[0] + " alone would be on no node at all."
	case 2:
		return "No node has both " + loom.And(names) + "."
	}
	return fmt.Sprintf("No node has all of %s; any fewer of them may share one.", loom.And(names))
}

// chainNotes tell which groups hang together, so that more services share their
// nodes than any one group says.
func chainNotes(l loom.LayoutConstraints) []string {
	var notes []string
	direct := map[loom.Pair]bool{}
	for _, p := range l.MustPairs() {
		direct[p] = true
	}
	for _, group := range l.MustGroups() {
		all := true
		for i, a := range group {
			for _, b := range group[i+1:] {
				all = all && direct[loom.NewPair(a, b)]
			}
		}
		if !all {
			notes = append(notes, fmt.Sprintf("Groups that overlap chain together: with all of %s on a cluster, every node with one of them has them all.", loom.And(group)))
		}
	}
	return notes
}
