package catalog

import (
	"slices"

	"github.com/a-h/templ"

	"loom/app/web/form"
	"loom/views/formview"
	"loom/views/ui"
)

// fixedPath names the fields of a provider that users may not change for their cluster,
// although its type would let them.
var fixedPath = form.At("fixed")

// overridePart says of one field of a provider whether users may give another value.
type overridePart struct{ name, label string }

func mayOverride(name, label string) form.Part { return overridePart{name, label} }

func (o overridePart) control() string { return "may-override." + o.name }

// Read implements form.Part.
func (o overridePart) Read(in *form.Input) {
	if _, shown := in.Get(form.ShownName(o.control())); !shown {
		return
	}
	allowed, _ := in.Get(o.control())
	if fixed := allowed != "true"; fixed != slices.Contains(in.Doc.Texts(fixedPath), o.name) {
		setFixed(in.Doc, o.name, fixed)
	}
}

// setFixed puts a field into the list of fixed ones, or takes it out.
func setFixed(doc *form.Doc, name string, fixed bool) {
	names := slices.DeleteFunc(doc.Texts(fixedPath), func(n string) bool { return n == name })
	if fixed {
		names = append(names, name)
	}
	if len(names) == 0 {
		doc.Delete(fixedPath)
		return
	}
	doc.Set(fixedPath, names)
}

// Show implements form.Part.
func (o overridePart) Show(out *form.Output) templ.Component {
	name := o.control()
	m := ui.FieldModel{Name: name, ID: out.ID(name), Label: "Users may change", Kind: ui.FieldCheckbox,
		Checked: !slices.Contains(out.Doc.Texts(fixedPath), o.name), Attrs: templ.Attributes{"aria-label": o.label + ": users may change"}}
	return formview.Shown(form.ShownName(name), ui.Field(m))
}
