// Package formview holds what forms of catalog entries are made of beyond single
// fields: sections, repeated groups, rows of key and value, sealed values.
//
// It must not know documents: package form fills in the models. A newcomer's usual
// mistake: a button that changes the form without the attributes of Step, which then loses what
// was typed in the other fields when scripts run.
package formview

import (
	"strconv"
	"time"

	"github.com/a-h/templ"

	"loom/views/ui"
)

// BaseID is the id of the hidden field with the document that a form was made from.
// Whatever exchanges a part of the form exchanges it too.
const BaseID = "form-base"

// EditorID is the id of the form of an entry, for controls beside it.
const EditorID = "editor"

// SectionModel is a titled piece of a form.
type SectionModel struct {
	ID, Title, Help string
	Parts           []templ.Component
	// Errors is how many errors are in it.
	Errors int
}

// GroupModel is a repeated group of fields.
type GroupModel struct {
	ID, Legend, Help, Error string
	Rows                    []RowModel
	// Empty is said where there is no row.
	Empty string
	// Choose is where rows have names: one of them is chosen for Add.
	Choose *ui.FieldModel
	Add    *ui.ButtonModel
	// After follows the rows.
	After templ.Component
	// Inline puts the title, the parts and the buttons of a row on one line where there is room.
	Inline bool
}

// RowModel is one row of a group.
type RowModel struct {
	Title, Note string
	Mono        bool
	Parts       []templ.Component
	Buttons     []ui.ButtonModel
}

// PairsModel is rows of key and value.
type PairsModel struct {
	ID, Legend, Help     string
	KeyLabel, ValueLabel string
	Rows                 []PairRow
	// BlanksName is the control that says how many of the rows, the last ones, have
	// no name yet.
	BlanksName string
	Blanks     int
	Add        ui.ButtonModel
}

// PairRow is one row.
type PairRow struct {
	Key, Value ui.FieldModel
	Remove     ui.ButtonModel
}

// SealedModel is a sensitive field that has a stored value.
type SealedModel struct {
	Field ui.FieldModel
	By    string
	Time  time.Time
	Now   time.Time
}

// SettingsModel is the fields of a plugin under one heading.
type SettingsModel struct {
	Title, ID string
	// Bare shows no heading; Folded hides the fields until Open.
	Bare, Folded, Open bool
	// Overrides says that some rows have the column of what users may change.
	Overrides bool
	// Methods are the choices of one that rows belong to.
	Methods              []ui.Choice
	MethodName, MethodID string
	Rows                 []SettingRow
}

// SettingRow is a field. Method is the number of the method that it belongs to, 0 for none.
type SettingRow struct {
	Field, Override templ.Component
	Method          int
	// Warning is shown while the box of the field is not ticked.
	Warning string
}

// count is how many rows a fold hides.
func (m SettingsModel) count() string { return strconv.Itoa(len(m.Rows)) }

// Step gives the attributes of a control that gets the form from url with a change,
// of which only the group with that id is put into the page.
func Step(url, groupID string) templ.Attributes {
	return templ.Attributes{
		"hx-post": url, "hx-target": "#" + groupID, "hx-select": "#" + groupID, "hx-swap": "outerHTML",
		"hx-select-oob": "#" + BaseID, "hx-sync": "closest form:queue all",
	}
}

// UploadModel is a fold in which a file is uploaded that the field above it names.
type UploadModel struct {
	Title    string
	Open     bool
	File, As ui.FieldModel
	Button   ui.ButtonModel
	// Said is told after an upload; Link leads to what is to be done next.
	Said, Link, Href string
}
