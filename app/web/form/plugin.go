package form

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/views/formview"
	"loom/views/ui"
)

// PluginFields are the fields that a plugin type declares, for an object that
// holds their values. Members that the type does not declare stay in the document;
// show them with Pairs.
type PluginFields struct {
	Path  Path
	Group loom.FieldGroup
	// Sealed are the sensitive fields with a stored value, which is never shown.
	Sealed map[string]Sealed
	Now    time.Time
	// AsText stores every value as text, as actions of services have them.
	AsText bool
	// Resources gives the plugin resources of a type that can be chosen; nil offers
	// a text field.
	Resources func(resourceType string) []Choice
	// Upload, if set, is shown after each field that names a resource: a file is uploaded
	// there. The field and it are the group with the id, which alone is exchanged.
	Upload func(name, label, groupID string) Part
	// Override, if set, is the column beside each field that users may change, where the type
	// allows that: it says whether they may.
	Override func(name, label string) Part
	// Methods are the choices that were posted, by the title of their section; others are
	// those that the document implies.
	Methods map[string]string
	// Choices are values that fields of text suggest, by field; others can be typed. Unless it
	// is nil there may be more of them later.
	Choices map[string][]ui.Option
}

// Sealed says who stored a sensitive value, and when.
type Sealed struct {
	By   string
	Time time.Time
}

// Preset writes the defaults of the type for what the document does not say. It is
// for a type that was just chosen, never for a document that somebody stored.
func (p PluginFields) Preset(doc *Doc) {
	for _, name := range p.Group.Names() {
		schema, at := p.Group.Fields[name], p.Path.To(name)
		if schema.Default == nil || schema.IsSensitive() || doc.Has(at) {
			continue
		}
		if p.AsText {
			doc.Set(at, loom.FieldText(schema.Default))
		} else {
			doc.Set(at, schema.Default)
		}
	}
}

// Missing gives an error for each field of the set that is nearest to complete,
// when none is, among those of the methods that are chosen. Sealed fields count as given.
func (p PluginFields) Missing(doc *Doc) []loom.FieldError {
	sets := p.Group.Fitting(p.methods(doc))
	var least []string
	for _, set := range sets {
		var absent []string
		for _, name := range set {
			if !p.has(doc, name) {
				absent = append(absent, name)
			}
		}
		if len(absent) == 0 {
			return nil
		}
		if least == nil || len(absent) < len(least) {
			least = absent
		}
	}
	var errs []loom.FieldError
	for _, name := range least {
		message := "Required."
		if len(sets) > 1 {
			message = "Required, unless another set of fields is complete."
		}
		errs = append(errs, loom.FieldError{Field: p.Path.To(name).String(), Message: message})
	}
	return errs
}

func (p PluginFields) given(doc *Doc, name string) string {
	text, ok := doc.scalar(p.Path.To(name))
	if !ok {
		return doc.JSON(p.Path.To(name))
	}
	return text
}

// has reports whether a field has a value, or a switch is on.
func (p PluginFields) has(doc *Doc, name string) bool {
	if _, sealed := p.Sealed[name]; sealed {
		return true
	}
	text := strings.TrimSpace(p.given(doc, name))
	if p.Group.Fields[name].Type == "checkbox" {
		return loom.SwitchedOn(text)
	}
	return text != ""
}

// methods are the methods in use by the title of their section: those that were posted, else
// what the document implies.
func (p PluginFields) methods(doc *Doc) map[string]string {
	used := map[string]string{}
	for _, s := range p.Group.Sections() {
		used[s.Title] = p.method(doc, s)
	}
	return used
}

func (p PluginFields) method(doc *Doc, s loom.FieldSection) string {
	if posted := p.Methods[s.Title]; slices.Contains(s.Methods, posted) {
		return posted
	}
	return p.Group.MethodOf(s, func(name string) bool { return p.has(doc, name) })
}

// MethodName is the name of the radio buttons with which a method of a section is chosen.
func MethodName(title string) string { return "method." + title }

// switchMethods puts another method into use, where one was posted: what belongs to others
// goes, but for what is sealed, since plugins go by what is there.
func (p PluginFields) switchMethods(doc *Doc) {
	for _, s := range p.Group.Sections() {
		now := p.method(doc, s)
		if now == p.Group.MethodOf(s, func(name string) bool { return p.has(doc, name) }) {
			continue
		}
		for _, name := range s.Names {
			f, at := p.Group.Fields[name], p.Path.To(name)
			switch {
			case f.IsMethod() && p.AsText:
				doc.Set(at, strconv.FormatBool(f.Method == now))
			case f.IsMethod():
				doc.Set(at, f.Method == now)
			case f.Method != "" && f.Method != now:
				doc.Delete(at)
			}
		}
	}
}

// Read implements Part. Fields of methods that are not chosen change nothing.
func (p PluginFields) Read(in *Input) {
	p.switchMethods(in.Doc)
	used := p.methods(in.Doc)
	for _, name := range p.Group.Names() {
		f := p.Group.Fields[name]
		if f.IsMethod() || f.Method != "" && f.Method != used[f.Section()] {
			continue
		}
		in.Parts(p.override(name))
		in.Parts(p.upload(name, ""))
		if p.Group.Fields[name].IsSensitive() {
			// What is empty keeps the stored value, and what was typed is not shown again.
			if given, _ := in.Get(p.Path.To(name).String()); given != "" {
				in.Doc.Set(p.Path.To(name), given)
			}
			continue
		}
		p.field(in.Doc, name).Read(in)
	}
}

// field makes the field of a declared name.
func (p PluginFields) field(doc *Doc, name string) Field {
	schema := p.Group.Fields[name]
	f := Field{Path: p.Path.To(name), AsText: p.AsText, Odd: "not among the options", Face: ui.FieldModel{Label: cmp.Or(schema.Label, name), Help: schema.Tip}}
	f.Face.Optional = !p.required(doc, name)
	if schema.Method != "" || schema.Group == loom.SectionAdvanced {
		// What is not shown may be empty, and of folded fields most are optional.
		f.Face.Optional, f.Face.Attrs = f.Face.Optional && schema.Group != loom.SectionAdvanced, templ.Attributes{"required": false}
	}
	usual := loom.FieldText(schema.Default)
	if usual != "" && schema.Type != "checkbox" {
		f.Face.Placeholder = usual
	}
	switch schema.Type {
	case "select":
		f.Face.Kind, f.Face.Width = ui.FieldSelect, "m"
		if f.Face.Optional || !doc.Has(f.Path) {
			none := "not given"
			if usual != "" {
				none = "as the plugin does: " + usual
			}
			f.Face.Options = append(f.Face.Options, ui.Option{Value: "", Label: none})
		}
		for _, o := range schema.Options {
			if o != "" {
				f.Face.Options = append(f.Face.Options, ui.Option{Value: o, Label: o})
			}
		}
	case "checkbox":
		f.Face.Kind, f.Fallback = ui.FieldCheckbox, "false"
		if usual == "true" || usual == "on" {
			f.Fallback = "true"
		}
	case "textarea":
		f.Face.Kind, f.Face.Mono, f.Face.Rows = ui.FieldTextarea, true, 5
	case "number":
		f.Face.Kind = ui.FieldNumber
		f.Face.Help = strings.TrimSpace(f.Face.Help + " " + bounds(schema))
	case "resource":
		p.resource(&f, schema)
	case "text":
		f = p.Suggesting(doc, f, schema.ResourceType)
		if p.Choices != nil {
			f.Suggest, f.Face.SuggestLater = append(f.Suggest, p.Choices[name]...), true
		}
	}
	return f
}

// required reports whether each set that can be completed has a field, with its own method chosen.
func (p PluginFields) required(doc *Doc, name string) bool {
	used := p.methods(doc)
	if f := p.Group.Fields[name]; f.Method != "" {
		used[f.Section()] = f.Method
	}
	sets := p.Group.Fitting(used)
	return len(sets) > 0 && !slices.ContainsFunc(sets, func(set []string) bool { return !slices.Contains(set, name) })
}

func bounds(schema loom.FieldSchema) string {
	switch {
	case schema.Min != nil && schema.Max != nil:
		return fmt.Sprintf("From %g to %g.", *schema.Min, *schema.Max)
	case schema.Min != nil:
		return fmt.Sprintf("From %g.", *schema.Min)
	case schema.Max != nil:
		return fmt.Sprintf("Up to %g.", *schema.Max)
	}
	return ""
}

// Suggesting lets a text that may name a resource of a type suggest those there are,
// and says which version of the named one is active.
func (p PluginFields) Suggesting(doc *Doc, f Field, resourceType string) Field {
	if resourceType == "" || p.Resources == nil {
		return f
	}
	named := doc.Text(f.Path)
	for _, c := range p.Resources(resourceType) {
		facts := strings.Join(c.Facts, "; ")
		f.Suggest = append(f.Suggest, ui.Option{Value: c.Value, Label: facts})
		if c.Value == named {
			f.Face.Help = strings.TrimSpace(f.Face.Help + " Now " + named + ", " + facts + ".")
		}
	}
	return f
}

// resource makes the field a choice among the resources of its type.
func (p PluginFields) resource(f *Field, schema loom.FieldSchema) {
	f.Face.Mono = true
	var choices []Choice
	if p.Resources != nil {
		choices = p.Resources(schema.ResourceType)
	}
	if len(choices) == 0 {
		where := ""
		if p.Upload == nil {
			where = " under Files"
		}
		f.Face.Help = strings.TrimSpace(f.Face.Help + " None is uploaded" + where + " yet.")
		return
	}
	f.Face.Kind, f.Face.Width, f.Odd = ui.FieldSelect, "m", "not active or staged"
	if !f.Face.Optional {
		f.Face.Options = append(f.Face.Options, ui.Option{Value: "", Label: "choose …"})
	} else {
		f.Face.Options = append(f.Face.Options, ui.Option{Value: "", Label: "none"})
	}
	for _, c := range choices {
		label := c.Value
		if len(c.Facts) > 0 {
			label += " – " + strings.Join(c.Facts, ", ")
		}
		f.Face.Options = append(f.Face.Options, ui.Option{Value: c.Value, Label: label})
	}
}

// Show implements Part.
func (p PluginFields) Show(out *Output) templ.Component {
	out.enter(p.Path)
	used, verifying := p.methods(out.Doc), p.Group.Verifying()
	var shown []formview.SettingsModel
	for _, s := range p.Group.Sections() {
		first := len(out.claims)
		m := formview.SettingsModel{Title: s.Title, ID: out.ID("section." + s.Title), Bare: s.Title == loom.SectionSettings, Folded: s.Title == loom.SectionAdvanced}
		if len(s.Methods) > 0 {
			m.MethodName, m.MethodID = MethodName(s.Title), out.ID(MethodName(s.Title))
		}
		for _, method := range s.Methods {
			m.Methods = append(m.Methods, ui.Choice{Value: method, Label: method, Checked: method == used[s.Title]})
		}
		for _, name := range s.Names {
			f := p.Group.Fields[name]
			if f.IsMethod() {
				continue
			}
			row := formview.SettingRow{Method: 1 + slices.Index(s.Methods, f.Method)}
			if slices.Contains(verifying, name) {
				row.Warning = "While this is off: " + loom.Unverifiable
				m.Open = m.Open || p.field(out.Doc, name).shown(out.Doc) != "true"
			}
			if f.IsSensitive() {
				row.Field = p.secret(out, name)
			} else {
				row.Field = p.open(out, name)
			}
			if may := out.Parts(p.override(name)); len(may) > 0 {
				row.Override, m.Overrides = may[0], true
			}
			m.Rows = append(m.Rows, row)
		}
		m.Open = m.Open || out.failsSince(first)
		shown = append(shown, m)
	}
	return formview.Settings(shown)
}

// open shows a field that is no secret, with the place for a file that it may name.
func (p PluginFields) open(out *Output, name string) templ.Component {
	field := p.field(out.Doc, name).Show(out)
	id := out.ID("group-" + p.Path.To(name).String())
	uploads := out.Parts(p.upload(name, id))
	if len(uploads) == 0 {
		return field
	}
	return formview.Uploading(id, field, uploads[0])
}

// upload is the place for a file that a field names.
func (p PluginFields) upload(name, groupID string) []Part {
	if schema := p.Group.Fields[name]; schema.ResourceType != "" && p.Upload != nil {
		return []Part{p.Upload(name, cmp.Or(schema.Label, name), groupID)}
	}
	return nil
}

// override is what follows a field that users may change.
func (p PluginFields) override(name string) []Part {
	if schema := p.Group.Fields[name]; schema.Override && p.Override != nil {
		return []Part{p.Override(name, cmp.Or(schema.Label, name))}
	}
	return nil
}

// secret shows a sensitive field: never its value.
func (p PluginFields) secret(out *Output, name string) templ.Component {
	f := p.field(out.Doc, name)
	m := f.Face
	m.Kind, m.Autocomplete, m.Placeholder = ui.FieldPassword, "off", ""
	m.Name = f.Path.String()
	m.ID = out.ID(m.Name)
	m.Error = out.Claim(f.Path, m.ID, m.Label)
	sealed, set := p.Sealed[name]
	if !set {
		return ui.Field(m)
	}
	m.Optional, m.Autofocus = true, false
	return formview.Sealed(formview.SealedModel{Field: m, By: sealed.By, Time: sealed.Time, Now: p.Now})
}
