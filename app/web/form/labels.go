package form

import (
	"strings"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/views/ui"
)

// Labels is a text of several lines, key=value, for an object of texts.
type Labels struct {
	Path Path
	Face ui.FieldModel
}

func (l Labels) shown(doc *Doc) string {
	labels := map[string]string{}
	for _, key := range doc.Keys(l.Path) {
		labels[key] = doc.Text(l.Path.To(key))
	}
	return strings.Join(loom.LabelTexts(labels), "\n")
}

// Read implements Part.
func (l Labels) Read(in *Input) {
	given, posted := in.Get(l.Path.String())
	given = strings.ReplaceAll(strings.TrimSpace(given), "\r\n", "\n")
	if !posted || given == l.shown(in.Doc) {
		return
	}
	labels, errs := loom.ReadLabels(given)
	for _, e := range errs {
		in.Fail(l.Path, given, e.Message)
		return
	}
	if len(labels) == 0 {
		in.Doc.Delete(l.Path)
		return
	}
	in.Doc.Set(l.Path, labels)
}

// Show implements Part.
func (l Labels) Show(out *Output) templ.Component {
	m := l.Face
	m.Name, m.Kind, m.Rows, m.Mono, m.Optional, m.Value = l.Path.String(), ui.FieldTextarea, 2, true, true, l.shown(out.Doc)
	m.ID = out.ID(m.Name)
	m.Error = out.Claim(l.Path, m.ID, m.Label)
	if raw, failed := out.Raw(l.Path); failed {
		m.Value = raw
	}
	return ui.Field(m)
}
