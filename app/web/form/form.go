package form

import (
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/views/formview"
	"loom/views/ui"
)

// Form describes the form of a document.
type Form struct {
	Sections []Section
	// Tab is the one that is shown, of a form whose sections are on several.
	Tab string
	// Files says that the form may have controls for files.
	Files bool
	// Settle, if set, changes what follows from other changes, such as the fields of
	// a type that was just chosen. It is called after the parts have read.
	Settle func(before, after *Doc)
	// Check, if set, gives what the form refuses although it could be stored.
	Check func(doc *Doc) []loom.FieldError
	// whole says that each post holds all controls: a box that was not posted is not ticked,
	// and a field that was not is empty.
	whole bool
}

// Of makes a form of one section that is posted as a whole.
func Of(parts ...Part) Form { return Form{Sections: []Section{{Parts: parts}}, whole: true} }

// Edit is a form with the document that it changes. Once it was refused, Errors say why and
// Title what did not happen.
type Edit struct {
	Form
	Doc    *Doc
	Title  string
	Errors []loom.FieldError
	read   Result
}

// Over begins to edit what JSON writes for a value.
func (f Form) Over(v any) Edit { return Edit{Form: f, Doc: New(v)} }

// Refused is the form as it is shown again.
func (e Edit) Refused(title string, errs []loom.FieldError) Edit {
	e.Title, e.Errors = title, errs
	return e
}

// Text returns what the control of a path shows: what was typed where the document could
// not take it, else what write makes of the document.
func (e Edit) Text(p Path, write func() string) string {
	if raw, failed := e.read.Raw[p.String()]; failed {
		return raw
	}
	return write()
}

// Shown shows the form.
func (e Edit) Shown() Shown { return e.Show(e.Doc, "", e.Title, e.Errors, e.read) }

// Forget takes a member out of the document, with what was typed for it.
func (e *Edit) Forget(p Path) {
	e.Doc.Delete(p)
	delete(e.read.Raw, p.String())
	e.read.Errors = slices.DeleteFunc(e.read.Errors, func(err loom.FieldError) bool { return err.Field == p.String() })
}

// Fill lays a posted form over its document.
func (e *Edit) Fill(values url.Values) { e.read = e.Read(e.Doc, values) }

// Decode lays a posted form over its document and reads that.
func Decode[T any](e *Edit, values url.Values, read func(body []byte) (T, error)) (T, error) {
	e.Fill(values)
	return DecodeDoc(*e, read)
}

// DecodeDoc reads the document as the body of a REST request, which it is. Invalid, with
// what the form and the body cannot take.
func DecodeDoc[T any](e Edit, read func(body []byte) (T, error)) (T, error) {
	in, err := read([]byte(e.Doc.String()))
	if len(e.read.Errors) > 0 {
		err = loom.InvalidFields(append(slices.Clone(e.read.Errors), loom.AsError(err).Fields...))
	}
	return in, err
}

// Section is a titled piece of a form. ID is that of its element; the index of the
// page links to it.
type Section struct {
	ID, Title string
	// Tab is the one that the section is on. Sections of all tabs are read, for a form
	// is posted from one tab to another; what was not posted stays as it is.
	Tab string
	// Help is a sentence or two under the title.
	Help  string
	Parts []Part
}

// Part is a field, or a group of them.
type Part interface {
	// Read lays what was posted for the part over the document. Controls that were
	// not posted, and those that still say what the document says, change nothing.
	Read(in *Input)
	// Show makes the part as it is to be seen.
	Show(out *Output) templ.Component
}

// Names of the controls that belong to the form as a whole.
const (
	// FieldBase holds the document that the form was made from.
	FieldBase = "base"
	// FieldDo says which button was pressed, "add:links" and the like.
	FieldDo = "do"
)

// Input is a posted form on its way into the document.
type Input struct {
	Doc    *Doc
	Values url.Values
	// act is the verb of FieldDo, target what it is about.
	act, target string
	errs        []loom.FieldError
	raw         map[string]string
	fresh       string
	whole       bool
}

// Result is what reading a form gives besides the changed document: errors of
// values that cannot be laid into it, and those values by the path of their field,
// so that they can be shown again.
type Result struct {
	Errors []loom.FieldError
	Raw    map[string]string
	// Fresh is the path of a row that was added, "" for none.
	Fresh string
}

// Read lays a posted form over the document and then does what its button says.
// The form must be the one that was shown for the document.
func (f Form) Read(doc *Doc, values url.Values) Result {
	in := &Input{Doc: doc, Values: values, raw: map[string]string{}, whole: f.whole}
	in.act, in.target, _ = strings.Cut(values.Get(FieldDo), ":")
	before := doc
	if f.Settle != nil {
		before = doc.Clone()
	}
	for _, s := range f.Sections {
		in.Parts(s.Parts)
	}
	if f.Settle != nil {
		f.Settle(before, doc)
	}
	return Result{Errors: in.errs, Raw: in.raw, Fresh: in.fresh}
}

// Parts reads several parts.
func (in *Input) Parts(parts []Part) {
	for _, p := range parts {
		p.Read(in)
	}
}

// Get gives the posted value of a control, with line feeds as documents have them.
// posted is false when the form had no such control.
func (in *Input) Get(name string) (value string, posted bool) {
	values, posted := in.Values[name]
	if len(values) == 0 {
		return "", false
	}
	return strings.ReplaceAll(values[0], "\r\n", "\n"), posted
}

// has reports whether the form had a control that posts nothing when nothing is chosen.
func (in *Input) has(name string) bool { return in.whole || in.Values.Has(ShownName(name)) }

// Fail refuses the value of a field; raw is shown again in its place.
func (in *Input) Fail(p Path, raw, message string) {
	in.raw[p.String()] = raw
	in.errs = append(in.errs, loom.FieldError{Field: p.String(), Message: message})
}

// Does reports whether the pressed button does something at a path: "add",
// "remove", "up", "down" are the parts' own words.
func (in *Input) Does(verb string, p Path) bool { return in.act == verb && in.target == p.String() }

// Added says that a row was added, which then gets the focus.
func (in *Input) Added(p Path) { in.fresh = p.String() }

// Output is a document on its way into a form.
type Output struct {
	Doc *Doc
	// StepURL is where buttons post that change the form and save nothing.
	StepURL string
	errs    ui.FormErrors
	raw     map[string]string
	fresh   string
	focus   bool
	ids     map[string]bool
	claims  []claim
	folds   []FoldTitle
	group   string
	whole   bool
	beside  []templ.Component
}

// Beside adds to what is shown beside the form. It is outside of the form's element.
func (out *Output) Beside(c templ.Component) { out.beside = append(out.beside, c) }

// claim is a control that shows a path of the document.
type claim struct{ path, id, label string }

// Shown is a form ready to be put into a page: its sections, and its errors with
// each linked to its control.
type Shown struct {
	Sections []formview.SectionModel
	Errors   ui.FormErrors
	// Beside is what its parts show beside it.
	Beside []templ.Component
	// TabErrors counts the errors on each tab.
	TabErrors map[string]int
	// Away says of each error where its control is, for those on another tab.
	Away []Away
	// Folds are the titles of folds that say what they hold.
	Folds []FoldTitle
}

// Show makes the form of a document. errs are field errors by path, of the reading
// and of the use case; title says what did not happen.
func (f Form) Show(doc *Doc, stepURL, title string, errs []loom.FieldError, res Result) Shown {
	out := &Output{Doc: doc, StepURL: stepURL, raw: res.Raw, fresh: res.Fresh, ids: map[string]bool{}, whole: f.whole}
	if len(errs) > 0 {
		out.errs = ui.NewFormErrors(title, errs)
	}
	shown := Shown{TabErrors: map[string]int{}}
	ends := make([]int, len(f.Sections))
	models := make([]formview.SectionModel, len(f.Sections))
	for i, s := range f.Sections {
		out.beside = nil
		models[i] = formview.SectionModel{ID: s.ID, Title: s.Title, Help: s.Help, Parts: out.Parts(s.Parts)}
		ends[i] = len(out.claims)
		if s.Tab == f.Tab {
			shown.Beside = append(shown.Beside, out.beside...)
		}
	}
	shown.Errors, shown.Folds = out.errs, out.folds
	shown.Away = make([]Away, len(out.errs.Items))
	for i := range shown.Errors.Items {
		item := &shown.Errors.Items[i]
		item.FieldID, item.Label = "", strings.ReplaceAll(item.Field, ".", ".\u200b")
		at := best(out.claims, item.Field)
		if at < 0 {
			continue
		}
		item.FieldID = out.claims[at].id
		if out.claims[at].path == item.Field {
			item.Label = out.claims[at].label
		}
		section := slices.IndexFunc(ends, func(end int) bool { return at < end })
		models[section].Errors++
		f.away(&shown, section, i)
	}
	for i, s := range f.Sections {
		if s.Tab == f.Tab {
			shown.Sections = append(shown.Sections, models[i])
		}
	}
	return shown
}

// Parts returns those of the only section of a form.
func (s Shown) Parts() []templ.Component { return s.Sections[0].Parts }

// best finds the control for an error: that of its path, else the first of what
// lies below it, else that of the nearest thing around it; -1 for none.
func best(claims []claim, path string) int {
	if i := slices.IndexFunc(claims, func(c claim) bool { return c.path == path }); path == "" || i >= 0 {
		return i
	}
	for ; path != ""; path = path[:max(strings.LastIndexAny(path, ".["), 0)] {
		for i := range claims {
			if rest, below := strings.CutPrefix(claims[i].path, path); below && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				return i
			}
		}
	}
	return -1
}

// Parts shows several parts.
func (out *Output) Parts(parts []Part) []templ.Component {
	var shown []templ.Component
	for _, p := range parts {
		if c := p.Show(out); c != nil {
			shown = append(shown, c)
		}
	}
	return shown
}

// ID gives an id for the control of a name, unlike all others of the form. Each
// call gives another one.
func (out *Output) ID(name string) string {
	id := ui.FieldID("", name)
	for n := 2; out.ids[id]; n++ {
		id = ui.FieldID("", name) + "-" + itoa(n)
	}
	out.ids[id] = true
	return id
}

// Claim says that a control shows a path, so that the summary of errors leads to
// it, and gives the error to show there. label names the control in the summary.
func (out *Output) Claim(p Path, id, label string) (message string) {
	if out.group != "" {
		label = out.group + ", " + lowerFirst(label)
	}
	out.claims = append(out.claims, claim{path: p.String(), id: id, label: label})
	return out.errs.For(p.String())
}

// Raw gives what was typed where the document could not take it.
func (out *Output) Raw(p Path) (string, bool) {
	raw, ok := out.raw[p.String()]
	return raw, ok
}

// Within names a row while it is shown, such as "Link 2", for the labels of its
// errors.
func (out *Output) Within(group string, show func()) {
	before := out.group
	if before != "" {
		group = before + ", " + lowerFirst(group)
	}
	out.group = group
	show()
	out.group = before
}

// enter says that the row at a path is shown next: if it was just added, its first
// field gets the focus.
func (out *Output) enter(at Path) {
	out.focus = out.focus || out.fresh != "" && out.fresh == at.String()
}

// TakesFocus reports whether the field that is shown now is the first of a row that
// was just added. It says so once.
func (out *Output) TakesFocus() bool {
	focus := out.focus
	out.focus = false
	return focus
}

// Step makes a button that changes the form: it posts the form to StepURL and gets
// it back; with scripts only the group with that id is exchanged.
func (out *Output) Step(m ui.ButtonModel, verb string, p Path, groupID string) ui.ButtonModel {
	m.Submit, m.Name, m.Value, m.FormAction = true, FieldDo, verb+":"+p.String(), out.StepURL
	if m.ID == "" {
		m.ID = out.ID(verb + "-" + p.String())
	}
	m.Attrs = templ.Attributes{}
	for k, v := range formview.Step(out.StepURL, groupID) {
		m.Attrs[k] = v
	}
	return m
}

// refreshURL is where a control gets anew what depends on it; "" for none.
func (out *Output) refreshURL(group string) string {
	if group == "" {
		return ""
	}
	return out.StepURL
}
