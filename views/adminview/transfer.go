package adminview

import (
	"github.com/a-h/templ"

	"loom/views/ui"
)

// ExportModel is the form with which entries are chosen and downloaded. Action sends
// the bundle, Mark shows the page again with what the chosen entries need.
type ExportModel struct {
	Action, Mark string
	Groups       []ExportGroup
	Total        int
	// Needs is the name of the box that takes along what the entries need.
	Needs string
}

// ExportGroup is the entries of a kind.
type ExportGroup struct {
	Choices ui.ChoiceModel
	Marked  int
}

// ArchiveModel is the form with which plugin resources are chosen and downloaded. All
// labels the link to all of them; empty where there are none. Note tells what stays.
type ArchiveModel struct {
	Action, All, Note string
	Choices           ui.ChoiceModel
}

// UploadModel is a form with a file.
type UploadModel struct {
	Action                    string
	Errors                    ui.FormErrors
	File, FileLabel, FileHelp string
	// Accept is what the browser offers to choose.
	Accept   string
	Optional bool
	// Before and Parts stand above and below the file.
	Before, Parts []templ.Component
	Button, Busy  string
}

// ChooseModel is a line of buttons that set choices of a form, with a field for the last.
type ChooseModel struct {
	Label   string
	Buttons []ui.ButtonModel
	Field   ui.FieldModel
	Last    ui.ButtonModel
}

// FoundModel is what an import would break, or bring along.
type FoundModel struct {
	ID, Title string
	Groups    []FindingGroup
}

// ContentsModel is a fold with entries of a bundle in one state: a table with the choices, or only
// their names.
type ContentsModel struct {
	ID, Title string
	Count     int
	// Kinds counts them by kind.
	Kinds string
	Open  bool
	Table *TableModel
	Names []string
}
