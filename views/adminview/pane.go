package adminview

import (
	"strconv"

	"github.com/a-h/templ"

	"loom/views/formview"
	"loom/views/ui"
)

// PaneModel is the JSON pane beside the form of an entry: the document that the form
// shows, as a text that can be changed as well.
type PaneModel struct {
	// Text is the document, or what was typed and could not be taken. Of tells which
	// text the form says: a pane with another one was typed into.
	Text, Of string
	// Open shows the pane unfolded.
	Open bool
	// Typed says that Text was typed and is not in the form yet.
	Typed bool
	// Problem says why the text was not taken, with its place; 0 where it has none.
	Problem      string
	Line, Column int
	// Note tells of something about a text that was taken: blanked secrets.
	Note string
	// Took says that the text was just taken over into the form.
	Took    bool
	StepURL string
}

// Names of the controls of the pane, and of its parts in the page.
const (
	FieldPane   = "json"
	FieldPaneOf = "json.of"

	// FieldLeft holds the ids of the controls of the form that somebody has left, separated
	// by blanks: what is wrong elsewhere is no mistake yet. LeftAll stands for all.
	FieldLeft = "left"
	LeftAll   = "*"

	// FormParts is the id of the sections of the form.
	FormParts = "form-parts"

	paneID     = "json-pane"
	paneSaidID = "json-said"
)

// Values of form.FieldDo: take the text of the pane over into the form, or the other
// way round.
const (
	DoTakePane = "take"
	DoShowPane = "show"
)

// takes posts the pane and puts what the form is then into the page, and of the pane
// only what is said about its text.
func (m PaneModel) takes() templ.Attributes {
	attrs := formview.Step(m.StepURL, FormParts)
	attrs["hx-select"], attrs["hx-swap"] = "#"+FormParts+" > *", "innerHTML"
	attrs["hx-select-oob"] = "#" + formview.BaseID + ",#" + paneSaidID
	attrs["hx-sync"] = "#editor:queue last"
	return attrs
}

// area is the text itself.
func (m PaneModel) area() ui.FieldModel {
	attrs := m.takes()
	attrs["form"], attrs["aria-describedby"] = "editor", ui.FieldID("", FieldPane)+"-help "+paneSaidID
	attrs["hx-trigger"], attrs["hx-vals"] = "input changed delay:800ms", `{"do":"`+DoTakePane+`"}`
	if m.Problem != "" {
		attrs["aria-invalid"] = "true"
	}
	return ui.FieldModel{Name: FieldPane, Label: "Definition as JSON", LabelHidden: true, Kind: ui.FieldJSON, Value: m.Text, Rows: 18, Optional: true, Attrs: attrs,
		Help: "Says what the form says, and the other way round. Secrets are left out."}
}

// button is one of the pane's two, for those who browse without scripts or do not want
// to wait.
func (m PaneModel) button(label, do string) ui.ButtonModel {
	return ui.ButtonModel{Label: label, Small: true, Submit: true, Name: "do", Value: do, FormAction: m.StepURL, Attrs: templ.Attributes{"form": "editor"}}
}

func (m PaneModel) line() string   { return strconv.Itoa(m.Line) }
func (m PaneModel) column() string { return strconv.Itoa(m.Column) }
