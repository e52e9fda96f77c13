// Package adminview holds the pages of tenant administrators: the catalog with
// its JSON editor, and plugin resources.
//
// It must not know use cases; models are flat and ready to print. Sealed values
// of providers never reach a model: a definition says only that they are set. A
// newcomer's usual mistake: putting a body that was refused back into the editor
// as it came; the handler blanks its secrets first.
package adminview

import (
	"time"

	"loom/app/loom"
	"loom/views/ui"
)

// OverviewModel is the start page of the admin area.
type OverviewModel struct {
	Tiles    []ui.TileModel
	Findings []Finding
	// Empty says that the catalog holds nothing yet.
	Empty bool
}

// Finding is something in the catalog that would not work.
type Finding struct {
	Kind, Name, Href string
	Text             string
	FixHref          string
}

// ListModel is a list of entries of one kind.
type ListModel struct {
	Kind loom.EntityKind
	Now  time.Time
	Rows []EntryRow
	Q    string
	Show []ui.Option
	// Filtered says that the list is narrowed down by Q or Show.
	Filtered               bool
	NameSort, UpdateSort   string
	NameOrder, UpdateOrder ui.SortOrder
	Text                   string
	Next, Prev             string
	JSONHref               string
}

// EntryRow is an entry in a list.
type EntryRow struct {
	Name, Label, Description, Href string
	Version                        string
	Author                         string
	Updated                        time.Time
	Deprecated                     bool
}

// HeadModel is the head of all pages of an entry.
type HeadModel struct {
	Kind              loom.EntityKind
	Name              string
	Label             string
	Deprecated        bool
	Tabs              []ui.Tab
	EditHref, DupHref string
	DeleteHref        string
	// Old is a banner on a version that is not the newest, empty else.
	Old, OldAction, OldHref string
}

// EntryModel is the details of an entry.
type EntryModel struct {
	HeadModel
	Now         time.Time
	Description string
	Facts       []ui.Def
	Sections    []Section
	Updated     time.Time
	Author      string
	Version     string
	// Changes are the differences to the version before, on a page of a version.
	Changes     []ui.ChangeModel
	ShowChanges bool
}

// Section is a part of an entry's definition: facts, a table or a code block.
type Section struct {
	// ID must be unique in the page.
	ID, Title string
	// Note is a sentence under the title, or what is said when there is nothing.
	Note    string
	Facts   []ui.Def
	Columns []ui.Column
	Rows    [][]string
	// Keys says that the first column holds names as they are written.
	Keys  bool
	Items []string
	Code  string
}

// VersionsModel is the list of stored versions.
type VersionsModel struct {
	HeadModel
	Now  time.Time
	Rows []VersionRow
}

// VersionRow is a stored version; RestoreHref opens the editor with its body.
type VersionRow struct {
	Version, Href, RestoreHref string
	Author                     string
	Time                       time.Time
	Newest                     bool
}

// UsesModel lists what names an entry.
type UsesModel struct {
	HeadModel
	Uses []Use
}

// Use is an entry that names another one at a field.
type Use struct {
	Kind, Name, Href, Field string
}

// EntryJSONModel is the JSON tab.
type EntryJSONModel struct {
	HeadModel
	JSON ui.JSONModel
}

// EditorModel is the JSON editor of an entry; Name is empty for a new one.
type EditorModel struct {
	Kind   loom.EntityKind
	Name   string
	Action string
	Back   string
	Body   string
	// Expected is the version the body started from, "" for a new entry.
	Expected string
	Errors   ui.FormErrors
	// Message stands at the field: a syntax error with its place.
	Message      string
	Line, Column int
	// Note tells of something about the body: a restored version, blanked secrets.
	Note  string
	Check CheckModel
	// Types are the plugin types of the help panel: of providers for providers, of
	// automators for services.
	Types []PluginHelp
}

// PluginHelp describes the fields of a plugin type.
type PluginHelp struct {
	Name, Description string
	Fields            []PluginField
}

// PluginField is a field that a plugin type declares.
type PluginField struct {
	Name, Type, Tip string
	Sealed          bool
}

// CheckModel is what the server says of a draft.
type CheckModel struct {
	Problems []Problem
	// Warnings would not stop a save; Unknown are members that will be dropped.
	Warnings []string
	Unknown  []string
	// Checked is false while nothing was checked yet.
	Checked bool
}

// Problem is a mistake in a draft; Line is 0 when its place is not known.
type Problem struct {
	Path, Message string
	Line, Column  int
}

// ConflictModel compares what is stored with what was to be saved.
type ConflictModel struct {
	Kind   loom.EntityKind
	Name   string
	Action string
	// Message says who was faster. Gone says that the entry was deleted.
	Message  string
	Gone     bool
	Now      time.Time
	Author   string
	Time     time.Time
	Version  string
	Expected string
	// Base is what the author started from, empty when that is not stored any more.
	Base   string
	Theirs string
	Mine   string
	// Note tells of blanked secrets.
	Note     string
	Changes  []ui.ChangeModel
	TakeHref string
}

// DeleteModel asks whether to delete an entry.
type DeleteModel struct {
	Kind     loom.EntityKind
	Name     string
	Versions string
	Uses     []Use
	Back     string
}

// Names of the fields of the forms; the handlers read them.
const (
	FieldQ        = "q"
	FieldShow     = "show"
	FieldSort     = "sort"
	FieldBody     = "body"
	FieldExpected = "expected"
	FieldName     = "name"
	FieldPlugin   = "plugin"
	FieldKind     = "kind"
	FieldType     = "type"
	FieldVersion  = "version"
	FieldFile     = "file"
	FieldStage    = "stage"
)

// MaxBody is the largest document of the editor, in bytes.
const MaxBody = 256 << 10

// Plural is the word for many entries of a kind, for headings.
func Plural(kind loom.EntityKind) string {
	switch kind {
	case loom.KindProvider:
		return "Providers"
	case loom.KindHardwareType:
		return "Hardware types"
	case loom.KindImageType:
		return "Image types"
	case loom.KindService:
		return "Services"
	case loom.KindTemplate:
		return "Templates"
	case loom.KindPartialTemplate:
		return "Partial templates"
	}
	return string(kind)
}

// KindIcon is the icon of a kind.
func KindIcon(kind loom.EntityKind) string {
	switch kind {
	case loom.KindProvider:
		return "cloud"
	case loom.KindHardwareType:
		return "cpu"
	case loom.KindImageType:
		return "disk"
	case loom.KindService:
		return "box"
	case loom.KindPartialTemplate:
		return "layers"
	}
	return "template"
}

// KindIs says in a sentence what a kind is.
func KindIs(kind loom.EntityKind) string {
	switch kind {
	case loom.KindProvider:
		return "A provider is a place where machines are made, with the settings and credentials it needs."
	case loom.KindHardwareType:
		return "A hardware type is a named size of machine, translated for each provider."
	case loom.KindImageType:
		return "An image type is a named operating system image, translated for each provider."
	case loom.KindService:
		return "A service is software that Loom puts on machines, with the actions that install, configure and run it."
	case loom.KindTemplate:
		return "A template is what users make clusters from: services, defaults and rules."
	case loom.KindPartialTemplate:
		return "A partial template is a part that several templates include."
	}
	return ""
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
