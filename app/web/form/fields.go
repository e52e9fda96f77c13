package form

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/a-h/templ"

	"loom/views/formview"
	"loom/views/ui"
)

// Empty says what an emptied field leaves in the document.
type Empty int

// The kinds: the member goes, it stays as an empty text, or it becomes null.
const (
	Leave Empty = iota
	EmptyText
	EmptyNull
)

// Field is a single control for a text, number or boolean: a text field, a
// textarea, a number, a select or a checkbox. Face is how it looks; its name,
// value, id, error and, for selects, the chosen option are filled in.
type Field struct {
	Path Path
	Face ui.FieldModel
	// Empty says what an emptied field leaves.
	Empty Empty
	// Fallback is shown, and counts as unchanged, where the document has nothing:
	// the default of a checkbox or a select.
	Fallback string
	// AsText stores numbers and booleans as text, for members that are always text.
	AsText bool
	// Odd is said of a value of a select that is not among its options; "not in the
	// catalog" without.
	Odd string
	// Refresh is the id of a group that depends on the field: it is made anew when
	// the field changes.
	Refresh string
	// Suggest are values that a text field offers; others can be typed.
	Suggest []ui.Option
}

// shown is what the control shows for the document; nothing for an object or a
// list, which stays as it is.
func (f Field) shown(doc *Doc) string {
	text := f.Fallback
	if doc.Has(f.Path) {
		text = doc.Text(f.Path)
	}
	if f.Face.Kind == ui.FieldCheckbox {
		if t, plain := doc.scalar(f.Path); plain && t == "" { // nothing, for plugins
			text = f.Fallback
		}
		return strconv.FormatBool(text == "true" || text == "on")
	}
	return text
}

// oneLine is what a browser makes of a text in a field of one line.
func (f Field) oneLine(text string) string {
	if f.Face.Kind == ui.FieldTextarea {
		return text
	}
	return strings.NewReplacer("\n", "", "\r", "").Replace(text)
}

// Read implements Part.
func (f Field) Read(in *Input) {
	name := f.Path.String()
	given, posted := in.Get(name)
	if f.Face.Kind == ui.FieldCheckbox {
		given, posted = strconv.FormatBool(given == "true"), in.has(name)
	}
	if !posted && !in.whole || given == f.oneLine(strings.ReplaceAll(f.shown(in.Doc), "\r\n", "\n")) {
		return
	}
	if f.Face.Kind != ui.FieldTextarea && f.Face.Kind != ui.FieldPassword {
		given = strings.TrimSpace(given)
	}
	switch {
	case given == "" && f.Empty == Leave:
		in.Doc.Delete(f.Path)
	case given == "" && f.Empty == EmptyNull:
		in.Doc.Set(f.Path, nil)
	case f.AsText || given == "":
		in.Doc.Set(f.Path, given)
	case f.Face.Kind == ui.FieldCheckbox:
		in.Doc.Set(f.Path, given == "true")
	case f.Face.Kind == ui.FieldNumber && isNumber(given):
		in.Doc.Set(f.Path, json.Number(given))
	default:
		in.Doc.Set(f.Path, given) // whoever reads the entry says what is wrong with it
	}
}

// ShownName is the name of the hidden control that says that a control was there,
// for those that post nothing when nothing is chosen.
func ShownName(name string) string { return name + "?" }

// isNumber reports whether a text is a JSON number.
func isNumber(text string) bool {
	if !json.Valid([]byte(text)) {
		return false
	}
	c := text[0]
	return c == '-' || c >= '0' && c <= '9'
}

// Show implements Part.
func (f Field) Show(out *Output) templ.Component {
	m := f.face(out)
	if m.Kind == ui.FieldCheckbox && !out.whole {
		return formview.Shown(ShownName(m.Name), ui.Field(m))
	}
	m.Suggest = f.Suggest
	return formview.Refreshing(ui.Field(m), out.refreshURL(f.Refresh))
}

// face fills in the model of the control.
func (f Field) face(out *Output) ui.FieldModel {
	m := f.Face
	m.Name = f.Path.String()
	if m.ID == "" {
		m.ID = out.ID(m.Name)
	}
	m.Value = f.shown(out.Doc)
	m.Error = out.Claim(f.Path, m.ID, m.Label)
	m.Autofocus = m.Autofocus || out.TakesFocus()
	switch m.Kind {
	case ui.FieldCheckbox:
		m.Checked = m.Value == "true"
	case ui.FieldSelect:
		m.Options = chosen(m.Options, m.Value, f.Odd)
	case ui.FieldNumber:
		if out.whole {
			break
		}
		// A browser would empty what is no number, and the draft lose it; so it is a text
		// field that brings up the keys for numbers.
		m.Kind = ui.FieldText
		if m.Width == "" {
			m.Width = "xs"
		}
		m.Attrs = with(m.Attrs, "inputmode", "decimal")
	}
	if f.Refresh != "" {
		for k, v := range formview.Step(out.StepURL, f.Refresh) {
			m.Attrs = with(m.Attrs, k, v)
		}
		m.Attrs["hx-trigger"] = "change"
	}
	return m
}

// chosen marks the option of a value; one that is not offered is added, so that it
// is neither hidden nor lost.
func chosen(options []ui.Option, value, odd string) []ui.Option {
	out := make([]ui.Option, 0, len(options)+1)
	found := false
	for _, o := range options {
		o.Selected = o.Value == value
		if o.Selected {
			found, o.WhyNot = true, ""
		}
		out = append(out, o)
	}
	if !found {
		if odd == "" {
			odd = "not in the catalog"
		}
		label := value + " (" + odd + ")"
		if value == "" {
			label = "choose …"
		}
		out = append([]ui.Option{{Value: value, Label: label, Selected: true}}, out...)
	}
	return out
}

func with(attrs templ.Attributes, key string, value any) templ.Attributes {
	out := templ.Attributes{key: value}
	for k, v := range attrs {
		if k != key {
			out[k] = v
		}
	}
	return out
}

func itoa(n int) string { return strconv.Itoa(n) }

func lowerFirst(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	if next, _ := utf8.DecodeRuneInString(text[size:]); unicode.IsUpper(next) {
		return text // "URL"
	}
	return string(unicode.ToLower(r)) + text[size:]
}

// Words is a line of words or numbers, separated by blanks or commas, for a list of them.
type Words struct {
	Path Path
	Face ui.FieldModel
	// Lines says that each line is one text, blanks and commas included.
	Lines bool
}

// split and join go from what was typed to the texts, and back.
func (w Words) split(given string) []string {
	if !w.Lines {
		return strings.Fields(strings.ReplaceAll(given, ",", " "))
	}
	var lines []string
	for line := range strings.Lines(given) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func (w Words) join(texts []string) string {
	if w.Lines {
		return strings.Join(texts, "\n")
	}
	return strings.Join(texts, " ")
}

// Read implements Part.
func (w Words) Read(in *Input) {
	given, posted := in.Get(w.Path.String())
	words := w.split(given)
	if (posted || in.whole) && !slices.Equal(words, in.Doc.Texts(w.Path)) {
		in.Doc.Set(w.Path, append([]string{}, words...))
	}
}

// Show implements Part.
func (w Words) Show(out *Output) templ.Component {
	m := w.Face
	m.Name, m.Value = w.Path.String(), w.join(out.Doc.Texts(w.Path))
	m.ID = out.ID(m.Name)
	m.Error = out.claimList(w.Path, m.ID, m.Label)
	return ui.Field(m)
}

// Reader reads controls that a page shows itself.
type Reader func(in *Input)

// Read implements Part.
func (r Reader) Read(in *Input) { r(in) }

// Show implements Part.
func (Reader) Show(*Output) templ.Component { return nil }

// Unshown is read, so that what it refuses is said, and not shown.
type Unshown struct{ Part }

// Show implements Part.
func (Unshown) Show(*Output) templ.Component { return nil }

// Fixed is a value that cannot be changed here, with the reason.
type Fixed struct {
	Path  Path
	Label string
	// Value is shown for the member, its own text if empty.
	Value string
	Why   string
	Mono  bool
}

// Read implements Part: there is nothing to read.
func (f Fixed) Read(*Input) {}

// Show implements Part.
func (f Fixed) Show(out *Output) templ.Component {
	m := ui.FieldModel{Name: f.Path.String(), Label: f.Label, Value: f.Value, LockedWhy: f.Why, Mono: f.Mono}
	if m.Value == "" {
		m.Value = out.Doc.Text(f.Path)
	}
	m.ID = out.ID(m.Name)
	m.Error = out.Claim(f.Path, m.ID, m.Label)
	return ui.Field(m)
}

// Row puts short fields side by side.
type Row struct{ Parts []Part }

// Read implements Part.
func (r Row) Read(in *Input) { in.Parts(r.Parts) }

// Show implements Part.
func (r Row) Show(out *Output) templ.Component { return formview.Pair(out.Parts(r.Parts)) }

// Fold hides parts behind a line until it is opened; it is open when one of its
// fields has an error.
type Fold struct {
	Title string
	// Says, if set, gives what follows the title: what the parts hold. It is told again when
	// a draft is checked; Key is unlike those of other folds then.
	Says  func(doc *Doc) string
	Key   string
	Open  bool
	Parts []Part
}

// FoldTitle is the title of a fold that says what it holds, with the id of its element.
type FoldTitle struct{ ID, Text string }

// Read implements Part.
func (f Fold) Read(in *Input) { in.Parts(f.Parts) }

// Show implements Part.
func (f Fold) Show(out *Output) templ.Component {
	first := len(out.claims)
	title := FoldTitle{Text: f.Title}
	if f.Says != nil {
		title = FoldTitle{ID: out.ID("fold." + f.Key), Text: f.Title + f.Says(out.Doc)}
		out.folds = append(out.folds, title)
	}
	parts := out.Parts(f.Parts)
	return formview.Fold(title.Text, title.ID, f.Open || out.failsSince(first), parts)
}

// failsSince reports whether one of the controls from the claim on has an error.
func (out *Output) failsSince(first int) bool {
	return slices.ContainsFunc(out.errs.Items, func(item ui.FormError) bool { return best(out.claims, item.Field) >= first })
}

// Folds are short titles side by side; what is opened takes the width.
type Folds []Fold

// Read implements Part.
func (f Folds) Read(in *Input) {
	for _, fold := range f {
		fold.Read(in)
	}
}

// Show implements Part.
func (f Folds) Show(out *Output) templ.Component {
	shown := make([]templ.Component, len(f))
	for i, fold := range f {
		shown[i] = fold.Show(out)
	}
	return formview.Folds(shown)
}

// Note is a component that has no control.
type Note struct{ Component templ.Component }

// Read implements Part: there is nothing to read.
func (n Note) Read(*Input) {}

// Show implements Part.
func (n Note) Show(*Output) templ.Component { return n.Component }
