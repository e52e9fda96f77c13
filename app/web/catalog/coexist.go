package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/formview"
	"loom/views/templateview"
	"loom/views/ui"
)

// coexistPart is which services share nodes: a matrix whose cells are buttons, and
// the groups as lists. Both show and change the same two lists of the document.
type coexistPart struct{ draft *templateDraft }

var (
	mustPath = form.At("constraints", "layout", "mustcoexist")
	cantPath = form.At("constraints", "layout", "cantcoexist")
)

// layoutOf reads the two lists of a document.
func layoutOf(doc *form.Doc) loom.LayoutConstraints {
	sets := func(p form.Path) [][]string {
		var out [][]string
		for i := range doc.Len(p) {
			out = append(out, doc.Texts(p.To(i)))
		}
		return out
	}
	return loom.LayoutConstraints{MustCoexist: sets(mustPath), CantCoexist: sets(cantPath)}
}

// setLayout writes the two lists, each only where it changed.
func setLayout(doc *form.Doc, before, after loom.LayoutConstraints) {
	same := func(a, b [][]string) bool { return slices.EqualFunc(a, b, slices.Equal) }
	if !same(before.MustCoexist, after.MustCoexist) {
		doc.Set(mustPath, append([][]string{}, after.MustCoexist...))
	}
	if !same(before.CantCoexist, after.CantCoexist) {
		doc.Set(cantPath, append([][]string{}, after.CantCoexist...))
	}
}

func (p coexistPart) picker(at form.Path, choices []form.Choice) form.Picker {
	picker := form.Picker{Path: at, Legend: "Services", Filter: "Filter services", Choices: choices}
	if choices == nil {
		picker.Free, picker.FreeHelp = "More services", "Separate several by commas."
	}
	return picker
}

// Read implements form.Part: first the lists, then what a button does.
func (p coexistPart) Read(in *form.Input) {
	for _, list := range []form.Path{mustPath, cantPath} {
		for i := range in.Doc.Len(list) {
			p.picker(list.To(i), nil).Read(in)
		}
	}
	before := layoutOf(in.Doc)
	if pair, relation, ok := templateview.ParseRelate(in.Values.Get(form.FieldDo)); ok {
		setLayout(in.Doc, before, before.Relate(pair, relation))
		return
	}
	for _, list := range []form.Path{mustPath, cantPath} {
		n := in.Doc.Len(list)
		if in.Does("add", list) {
			in.Doc.Append(list, []string{})
			in.Added(list.To(n))
			return
		}
		for i := range n {
			switch at := list.To(i); {
			case in.Does("remove", at):
				in.Doc.Delete(at)
				return
			case in.Does("split", at):
				setLayout(in.Doc, before, before.SplitCant(i))
				return
			}
		}
	}
}

// Show implements form.Part.
func (p coexistPart) Show(out *form.Output) templ.Component {
	t := *p.draft.t
	t.Constraints.Layout = layoutOf(out.Doc)
	services := matrixServices(&t)
	clashes := t.LayoutClashes(p.draft.services)
	m := templateview.CoexistModel{Clashes: clashModels(clashes), StepURL: out.StepURL, Empty: "Choose compatible or default services first: rules are about two or more."}
	tooLarge := t.Constraints.Layout.TooLarge()
	if len(services) > maxInMatrix || tooLarge {
		m.Empty = fmt.Sprintf("These are %d services, too many for a table of all pairs; write the groups below.", len(services))
	} else {
		m.Matrix = matrixOf(t.Constraints.Layout, services, clashes)
	}
	if !tooLarge {
		m.Notes = chainNotes(t.Constraints.Layout)
	}
	m.Matrix.StepURL = out.StepURL
	choices := p.choices(services)
	if len(choices)*(out.Doc.Len(mustPath)+out.Doc.Len(cantPath)) > maxGroupBoxes {
		choices = nil
	}
	m.Must = p.group(out, mustPath, "must", choices, clashes, &m)
	m.Must.Legend, m.Must.Empty = "Same node", "No services must share their nodes."
	m.Must.Help = "Of each group, a node that has one of its services has all of them, as far as they are on the cluster."
	m.Cant = p.group(out, cantPath, "cant", choices, clashes, &m)
	m.Cant.Legend, m.Cant.Empty = "Never same node", "All services may share nodes."
	m.Cant.Help = "No node has all services of a group. A group of more than two forbids only the full set."
	out.Beside(templateview.CoexistPicture(m.Matrix, m.Clashes, m.Notes, m.Empty))
	return templateview.CoexistLists(m)
}

// choices offers services with the descriptions that the catalog has.
func (p coexistPart) choices(services []string) []form.Choice {
	choices := form.Names(services...)
	for i := range choices {
		choices[i].Description = p.draft.services[choices[i].Value].Description
	}
	return choices
}

// group is one of the two lists.
func (p coexistPart) group(out *form.Output, list form.Path, word string, choices []form.Choice, clashes []loom.LayoutClash, m *templateview.CoexistModel) formview.GroupModel {
	g := formview.GroupModel{ID: out.ID("group-" + list.String())}
	step := func(b ui.ButtonModel, verb string, at form.Path) ui.ButtonModel {
		b = out.Step(b, verb, at, templateview.CoexistListsID)
		b.Attrs["hx-select-oob"] = "#" + formview.BaseID + ",#" + templateview.CoexistPictureID
		return b
	}
	for i := range out.Doc.Len(list) {
		at := list.To(i)
		set := out.Doc.Texts(at)
		title := "Group " + strconv.Itoa(i+1)
		row := formview.RowModel{Title: groupTitle(set, i), Note: map[bool]string{true: title}[len(set) > 0]}
		reading := mustReading(set)
		if word == "cant" {
			reading = cantReading(set)
			if len(slices.Compact(slices.Sorted(slices.Values(set)))) > 2 {
				row.Buttons = append(row.Buttons, step(ui.ButtonModel{Label: "Split into pairs", Small: true}, "split", at))
			}
		}
		id := "reading-" + word + "-" + strconv.Itoa(i)
		m.ReadingIDs = append(m.ReadingIDs, id)
		out.Within(title, func() {
			fold := form.Fold{Title: "Choose services", Open: len(set) < 2, Parts: []form.Part{p.picker(at, choices)}}
			row.Parts = append([]templ.Component{templateview.Reading(id, reading, idleAt(clashes, word, i))}, out.Parts([]form.Part{fold})...)
		})
		row.Buttons = append(row.Buttons, step(ui.ButtonModel{Label: "Remove group " + strconv.Itoa(i+1), Icon: "trash", IconOnly: true, Small: true, Kind: ui.Quiet}, "remove", at))
		g.Rows = append(g.Rows, row)
	}
	add := step(ui.ButtonModel{Label: "Add group", Icon: "plus", Small: true, Attrs: nil}, "add", list)
	g.Add = &add
	g.Error = out.Claim(list, g.ID, map[string]string{"must": "Same node", "cant": "Never same node"}[word])
	return g
}

// idleAt are the odd things about a group that are no contradiction of services.
func idleAt(clashes []loom.LayoutClash, word string, i int) []string {
	var found []string
	for _, c := range clashes {
		at := c.Must
		if word == "cant" {
			at = c.Cant
		}
		if len(c.Services) > 0 && c.Idle && len(at) > 0 && at[0] == i {
			found = append(found, c.Message)
		}
	}
	return found
}

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
