package ui

import (
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/static"
)

// FieldKind is the sort of control of a field.
type FieldKind string

// The kinds of fields. FieldJSON and FieldCode are textareas that a script gives line
// numbers and indentation; it colors FieldCode.
const (
	FieldText     FieldKind = ""
	FieldNumber   FieldKind = "number"
	FieldPassword FieldKind = "password"
	FieldSearch   FieldKind = "search"
	FieldEmail    FieldKind = "email"
	FieldDate     FieldKind = "date"
	FieldTime     FieldKind = "time"
	FieldTextarea FieldKind = "textarea"
	FieldJSON     FieldKind = "json"
	FieldCode     FieldKind = "code"
	FieldSelect   FieldKind = "select"
	FieldCheckbox FieldKind = "checkbox"
	FieldFile     FieldKind = "file"
)

// FieldModel is a form row: label, help, control, error, wired by ids.
type FieldModel struct {
	// ID defaults to "f-" and the name.
	ID    string
	Name  string
	Label string
	Kind  FieldKind
	Value string
	// Help is one sentence beneath the label: format, range, consequence.
	Help string
	// Error is a sentence saying what is wrong and what to do.
	Error string
	// ErrorLine and ErrorColumn, from 1, place the error of a JSON field.
	ErrorLine, ErrorColumn int
	// Optional marks the field; required is the norm and not marked.
	Optional bool
	// LabelHidden hides the label from sight, for search fields in toolbars.
	LabelHidden bool
	Placeholder string
	// Width is the expected content: "xs" (a number), "s", "m" (default), "l",
	// "full".
	Width string
	// Min, Max and Step apply to numbers and are told to the browser as they are.
	Min, Max, Step string
	// MaxLength in characters; 0 is no limit.
	MaxLength int
	// Language is that of a FieldCode, one of those that highlight.js has here, or "". SavedBy
	// is the id of the button that Ctrl+S presses in it.
	Language, SavedBy string
	// Rows of a textarea; 0 is 4, for JSON 16.
	Rows    int
	Options []Option
	// Suggest are values that a text field offers; others can be typed.
	Suggest []Option
	// SuggestLater says that there may be some later.
	SuggestLater bool
	Checked      bool
	// Mono uses the fixed-width type, for ids, keys and hostnames.
	Mono bool
	// Autocomplete is the attribute of that name; empty leaves it to the browser.
	Autocomplete string
	// LockedWhy shows Value as text with a lock and this reason instead of a control.
	LockedWhy string
	// Echo is the id of an element the control describes itself with as well, such
	// as the parsed meaning of a duration.
	Echo string
	// Autofocus moves the caret here when the page opens; at most one per page.
	Autofocus bool
	// Attrs are added to the control: hx-post, hx-trigger and the like.
	Attrs templ.Attributes
}

// Option is a choice of a select.
type Option struct {
	Value, Label string
	Selected     bool
	// WhyNot disables the choice and is shown behind its label.
	WhyNot string
}

// isCode reports whether the field is a textarea with line numbers.
func (m FieldModel) isCode() bool { return m.Kind == FieldJSON || m.Kind == FieldCode }

// code are the attributes that tell the script of a FieldCode how to color and save it.
func (m FieldModel) code() templ.Attributes {
	if m.Kind != FieldCode {
		return nil
	}
	attrs := templ.Attributes{"data-code": true}
	if m.Language != "" {
		attrs["data-highlight"], attrs["data-grammar"] = static.URL("vendor/highlight-"+highlightVersion+".min.js"), static.URL("vendor/highlight-"+m.Language+"-"+highlightVersion+".min.js")
	}
	if m.SavedBy != "" {
		attrs["data-save"] = m.SavedBy
	}
	return attrs
}

// highlightVersion is that of the vendored files.
const highlightVersion = "11.12.0"

func (m FieldModel) id() string { return FieldID(m.ID, m.Name) }

// FieldID is the id of a field's control: id when set, else made from the name.
// Error summaries link to it.
func FieldID(id, name string) string {
	if id != "" {
		return id
	}
	var b strings.Builder
	b.WriteString("f-")
	for _, r := range name {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
	}
	return b.String()
}

// help is that of the field; one for JSON says how much it takes.
func (m FieldModel) help() string {
	if m.Kind == FieldJSON && m.LockedWhy == "" && !strings.Contains(m.Help, "KiB") {
		return strings.TrimSpace(m.Help + " At most 256 KiB.")
	}
	return m.Help
}

func (m FieldModel) describedBy() string {
	var ids []string
	if m.help() != "" {
		ids = append(ids, m.id()+"-help")
	}
	if m.Echo != "" {
		ids = append(ids, m.Echo)
	}
	if m.Error != "" {
		ids = append(ids, m.id()+"-error")
	}
	return strings.Join(ids, " ")
}

func (m FieldModel) width() string {
	switch {
	case m.Width != "":
		return m.Width
	case m.Kind == FieldNumber:
		return "xs"
	case m.Kind == FieldTextarea, m.isCode():
		return "full"
	}
	return "m"
}

func (m FieldModel) rows() string {
	switch {
	case m.Rows > 0:
		return strconv.Itoa(m.Rows)
	case m.Kind == FieldJSON:
		return "16"
	}
	return "4"
}

// controlAttrs are those common to every control.
func (m FieldModel) controlAttrs() templ.Attributes {
	a := templ.Attributes{"id": m.id(), "name": m.Name}
	if d := m.describedBy(); d != "" {
		a["aria-describedby"] = d
	}
	if m.Error != "" {
		a["aria-invalid"] = "true"
	}
	if !m.Optional && m.Kind != FieldCheckbox && m.Kind != FieldSearch {
		a["required"] = true
	}
	if m.Placeholder != "" {
		a["placeholder"] = m.Placeholder
	}
	if m.MaxLength > 0 {
		a["maxlength"] = strconv.Itoa(m.MaxLength)
	}
	if m.Autocomplete != "" {
		a["autocomplete"] = m.Autocomplete
	}
	if m.Autofocus {
		a["autofocus"] = true
	}
	if m.Mono || m.isCode() || m.Kind == FieldPassword {
		a["spellcheck"] = "false"
		a["autocapitalize"] = "none"
	}
	if m.SuggestLater || len(m.Suggest) > 0 {
		a["list"] = m.id() + "-list"
	}
	for k, v := range m.Attrs {
		a[k] = v
	}
	return a
}

// inputAttrs adds what only <input> has.
func (m FieldModel) inputAttrs() templ.Attributes {
	a := m.controlAttrs()
	switch m.Kind {
	case FieldNumber:
		a["type"] = "number"
		a["inputmode"] = "numeric"
		for k, v := range map[string]string{"min": m.Min, "max": m.Max, "step": m.Step} {
			if v != "" {
				a[k] = v
			}
		}
	case FieldPassword, FieldSearch, FieldEmail, FieldDate, FieldTime, FieldFile:
		a["type"] = string(m.Kind)
	default:
		a["type"] = "text"
	}
	// A secret is write-only: it is never sent back to the browser. A file cannot be.
	if m.Kind != FieldPassword && m.Kind != FieldFile {
		a["value"] = m.Value
	}
	return a
}

// FormErrors are the errors of a form, in the order of its fields.
type FormErrors struct {
	// Title says what did not happen: "The cluster was not created."
	Title string
	Items []FormError
}

// FormError is one error; FieldID is the id of the control it links to, or empty
// for an error of the form as a whole.
type FormError struct {
	Field   string
	FieldID string
	Label   string
	Message string
}

// NewFormErrors turns field errors into those of a form, each linked to the
// control that Field makes for a field of that name.
func NewFormErrors(title string, fields []loom.FieldError) FormErrors {
	errs := FormErrors{Title: title}
	for _, f := range fields {
		e := FormError{Field: f.Field, Message: f.Message}
		if f.Field != "" {
			e.FieldID = FieldID("", f.Field)
		}
		errs.Items = append(errs.Items, e)
	}
	return errs
}

// For gives the message for a field, or the empty text; several are joined.
func (e FormErrors) For(field string) string {
	var found []string
	for _, item := range e.Items {
		if item.Field == field {
			found = append(found, item.Message)
		}
	}
	return strings.Join(found, " ")
}

// ChoiceModel is a group of radio cards or a checkbox picker.
type ChoiceModel struct {
	// ID defaults to that of a field of the name.
	ID     string
	Name   string
	Legend string
	Help   string
	Error  string
	// Optional marks the group.
	Optional bool
	Choices  []Choice
	// Filter labels a field that narrows the list; it is shown only with scripts
	// and when there are more than seven choices.
	Filter string
	// Attrs are added to every control.
	Attrs templ.Attributes
}

// Choice is one card or one box.
type Choice struct {
	Value, Label string
	// Description is a sentence; Facts are short pieces shown beneath it.
	Description string
	Facts       []string
	Checked     bool
	// WhyNot disables the choice and says why.
	WhyNot string
	// Icon gives it a tile, "" none.
	Icon string
}

func (m ChoiceModel) id() string { return FieldID(m.ID, m.Name) }

// choiceID of the first choice is the id of the group, so that an error summary
// leads to a control.
func (m ChoiceModel) choiceID(i int) string {
	if i == 0 {
		return m.id()
	}
	return m.id() + "-" + strconv.Itoa(i)
}

func (m ChoiceModel) describedBy() string {
	return FieldModel{ID: m.ID, Name: m.Name, Help: m.Help, Error: m.Error}.describedBy()
}
