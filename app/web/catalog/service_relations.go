package catalog

import (
	"slices"
	"strings"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// relationLists are the lists of names that a service has of others, the columns of the table.
var relationLists = []form.Path{
	form.At("dependencies", "install", "requires"), form.At("dependencies", "install", "uses"),
	form.At("dependencies", "runtime", "requires"), form.At("dependencies", "runtime", "uses"),
	form.At("follows"), form.At("dependencies", "conflicts"),
}

// relationsPath is what the buttons of the table are about, addedRelation the list that a
// service is put into when it is added: Start requires.
var (
	relationsPath = form.At("dependencies")
	addedRelation = relationLists[2]
)

const (
	// relationPrefix is that of the boxes of a column, addRelation the field for one more name.
	relationPrefix = "relation."
	addRelation    = "relation.add"
	// fewServices are shown all, more of them only where they are related.
	fewServices = 10
)

// relations is the table of services and what this one has to do with each.
type relations struct{ e *serviceEditor }

// names are the rows: those in the lists, and where the catalog is small all services.
func (t relations) names(doc *form.Doc) []string {
	var names []string
	if len(t.e.services) <= fewServices {
		names = slices.DeleteFunc(page.SortedKeys(t.e.services), func(name string) bool { return name == t.e.name })
	}
	for _, list := range relationLists {
		for _, name := range doc.Texts(list) {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Read implements form.Part: ticked services are added to a list and unticked ones removed;
// everything else in the list stays.
func (t relations) Read(in *form.Input) {
	rows := t.names(in.Doc)
	for _, list := range relationLists {
		name := relationPrefix + list.String()
		if _, shown := in.Get(form.ShownName(name)); !shown {
			continue
		}
		for _, row := range rows {
			at := placeOf(in.Doc, list, row)
			switch ticked := slices.Contains(in.Values[name], row); {
			case ticked && at < 0:
				in.Doc.Append(list, row)
			case !ticked && at >= 0:
				for ; at >= 0; at = placeOf(in.Doc, list, row) {
					in.Doc.Delete(list.To(at))
				}
			}
		}
	}
	if t.e.r.URL.Path == route.AdminValidate(loom.KindService) {
		return // a name that is being typed is not one yet
	}
	text, _ := in.Get(addRelation)
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		switch wrong := loom.CheckName("name", name); {
		case len(wrong) > 0:
			in.Fail(form.At("relation", "add"), text, wrong[0].Message)
		case !slices.Contains(in.Doc.Texts(addedRelation), name):
			in.Doc.Append(addedRelation, name)
		}
	}
}

// placeOf is the place of a name in a list, -1 for none.
func placeOf(doc *form.Doc, list form.Path, name string) int {
	for i := range doc.Len(list) {
		if doc.Text(list.To(i)) == name {
			return i
		}
	}
	return -1
}

// Show implements form.Part.
func (t relations) Show(out *form.Output) templ.Component {
	m := adminview.RelationsModel{ID: "relations"}
	for _, list := range relationLists {
		words := loom.Describe(loom.KindService, strings.Split(list.String(), ".")...)
		m.Columns = append(m.Columns, adminview.Relation{Label: words.Label, Help: words.Help, Name: relationPrefix + list.String(), Shown: form.ShownName(relationPrefix + list.String())})
	}
	choices := t.e.needChoices()
	for _, name := range t.names(out.Doc) {
		row := adminview.RelatedService{Name: name, Label: name, Missing: !slices.ContainsFunc(choices, func(c form.Choice) bool { return c.Value == name })}
		if s, known := t.e.services[name]; known && s.Label != "" {
			row.Label = s.Label
		}
		for _, list := range relationLists {
			row.Ticked = append(row.Ticked, slices.Contains(out.Doc.Texts(list), name))
		}
		m.Rows = append(m.Rows, row)
	}
	add := ui.FieldModel{Name: addRelation, ID: out.ID(addRelation), Label: "Service or provided name", LabelHidden: true, Placeholder: "Another service", Optional: true, Width: "m", Autocomplete: "off", SuggestLater: true}
	for _, c := range choices {
		add.Suggest = append(add.Suggest, ui.Option{Value: c.Value, Label: c.Label})
	}
	add.Error = out.Claim(form.At("relation", "add"), add.ID, "Service")
	if raw, failed := out.Raw(form.At("relation", "add")); failed {
		add.Value = raw
	}
	claim := func(p form.Path, id, label string) {
		if message := out.Claim(p, id, label); message != "" {
			m.Errors = append(m.Errors, label+": "+message)
		}
	}
	for i, list := range relationLists {
		id := add.ID
		if len(m.Rows) > 0 {
			id = m.BoxID(0, i)
		}
		claim(list, id, m.Columns[i].Label)
		for k, name := range out.Doc.Texts(list) {
			if row := slices.IndexFunc(m.Rows, func(r adminview.RelatedService) bool { return r.Name == name }); row >= 0 {
				claim(list.To(k), m.BoxID(row, i), m.Columns[i].Label)
			}
		}
	}
	m.Add, m.Button = add, out.Step(ui.ButtonModel{Label: "Add service", Icon: "plus", Small: true}, "add", relationsPath, m.ID)
	return adminview.Relations(m)
}

// relationsText is what the title of the table says: what it holds, in words.
func relationsText(doc *form.Doc) string {
	var parts []string
	for _, list := range relationLists {
		if names := some(doc.Texts(list)); names != "" {
			label := loom.Describe(loom.KindService, strings.Split(list.String(), ".")...).Label
			parts = append(parts, strings.ToLower(label[:1])+label[1:]+" "+names)
		}
	}
	if len(parts) == 0 {
		return ": none"
	}
	return ": " + strings.Join(parts, "; ")
}
