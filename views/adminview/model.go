// Package adminview holds the pages of administrators: the catalog with its JSON editor,
// plugin resources, and the tables, forms and cards that the pages of a tenant and of the
// installation consist of (page.go).
//
// It must not know use cases; models are flat and ready to print. Sealed values
// of providers never reach a model: a definition says only that they are set. Newcomers'
// usual mistakes: putting a refused body back into the editor as it came (the handler
// blanks its secrets first); a cell with state shown by color alone (a state is a word).
package adminview

import (
	"time"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/views/formview"
	"loom/views/sharedview"
	"loom/views/ui"
)

// OverviewModel is the start page of the admin area.
type OverviewModel struct {
	Groups []FindingGroup
	// Empty says that the catalog holds nothing yet, Starter that the starter catalog can be
	// loaded.
	Empty, Starter bool
	// Now and More follow the findings: clusters, quotas, what happened.
	Now, More []templ.Component
}

// ListModel is a list of entries of one kind.
type ListModel struct {
	Kind   loom.EntityKind
	Now    time.Time
	Rows   []EntryRow
	Q      string
	Show   []ui.Option
	Facets []ui.FieldModel
	Bulk   sharedview.BulkBar
	// Filtered says that the list is narrowed down by Q or Show.
	Filtered               bool
	NameSort, UpdateSort   string
	NameOrder, UpdateOrder ui.SortOrder
	Text                   string
	Next, Prev             string
	// CSV and JSON are all entries that the filters leave, as files; empty for none.
	CSV, JSON string
	// Deleted says that the rows are of entries that were deleted: Updated and Author say
	// when and by whom, Href leads to having them again.
	Deleted bool
}

// EntryRow is an entry in a list, with who stored it and when.
type EntryRow struct {
	Entry *loom.Base
	Info  loom.VersionInfo
	Href  string
	// Icon is that of its tile.
	Icon string
	// Uses is how many entries name it; Worst is the worst that was found of it, "" for
	// nothing.
	Uses  int
	Worst loom.FindingSeverity
	// Test is how the last test of a provider went, TestTime when, TestHref its page; TestOld
	// says that the provider was saved since.
	Test     ui.State
	TestTime time.Time
	TestOld  bool
	TestHref string
}

// HeadModel is the head of all pages of an entry.
type HeadModel struct {
	Kind       loom.EntityKind
	Name       string
	Label      string
	Deprecated bool
	Tabs       []ui.Tab
	EditHref   string
	// Menu is what is done to it besides.
	Menu []ui.MenuItem
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
	// DeprecateAction takes the message of a deprecated version, on a page of a version;
	// Deprecation is the present one.
	DeprecateAction, Deprecation string
	// Ties is the picture around a service, or of the services of a template; Order
	// says where the actions of a service fall. Both may be nil.
	Ties  *ui.TiesModel
	Order *OrderModel
	// InUse is how many clusters have each version of a service; nil for other kinds.
	InUse *InUseModel
	// Lacks is what would not work of the newest version. Unused says that no template
	// names the service.
	Lacks  []LostService
	Unused bool
	// Connection is the test of a provider, and TestAction where another one begins; NextText
	// says what is to be done next, and the link leads there.
	Connection                    *ConnectionModel
	TestAction                    string
	NextText, NextLabel, NextHref string
}

// InUseModel are the versions of a service by clusters, the newest first. None says that no
// cluster has any.
type InUseModel struct {
	Bars []SharesModel
	None bool
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

// releasable reports whether versions can be released and withdrawn.
func (m VersionsModel) releasable() bool { return m.Kind.Releasable() }

// counted reports whether clusters keep versions of the entry.
func (m VersionsModel) counted() bool {
	return m.Kind == loom.KindTemplate || m.Kind == loom.KindService
}

func (m VersionsModel) columns() []ui.Column {
	columns := []ui.Column{{Label: "Version"}}
	if m.counted() {
		columns = append(columns, ui.Column{Label: "Clusters", Numeric: true})
	}
	return append(columns, ui.Column{Label: "Saved"}, ui.Column{Label: "By"}, ui.Column{Label: "Actions", LabelHidden: true})
}

// VersionRow is a saved version; RestoreHref opens the editor with its body.
type VersionRow struct {
	loom.VersionInfo
	Href, RestoreHref string
	// Current marks the newest released version, Newest the newest of all.
	Current, Newest bool
	// ClustersHref leads to the clusters on it.
	ClustersHref string
}

// act is what can be done with a version: withdraw a released one, release another.
func (v VersionRow) act() string {
	if v.Released {
		return VersionWithdraw
	}
	return VersionRelease
}

func (v VersionRow) actButton() ui.ButtonModel {
	b := ui.ButtonModel{Label: "Release", Busy: "Releasing…", Small: true, Submit: true}
	if v.Released {
		b.Label, b.Busy = "Withdraw", "Withdrawing…"
	}
	b.Attrs = versionLabel(b.Label, v.Version)
	return b
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

// EditorModel is the editor of an entry, as a form or as JSON; Name is empty for a
// new one.
type EditorModel struct {
	Kind   loom.EntityKind
	Name   string
	Action string
	Body   string
	// Expected is the version the body started from, "" for a new entry.
	Expected string
	Errors   ui.FormErrors
	// Beside is what the form shows beside itself.
	Beside []templ.Component
	// Message stands at the field: a syntax error with its place.
	Message      string
	Line, Column int
	// Note tells of something about the body: a restored version, blanked secrets.
	Note  string
	Check CheckModel
	// Types are the plugin types of the help panel: of providers for providers, of
	// automators for services.
	Types []PluginHelp
	// HasForm says that the kind has a form, FormMode that it is shown: Sections made
	// from the document Base. StepURL is where it is changed without being saved.
	HasForm, FormMode bool
	Sections          []formview.SectionModel
	Base, StepURL     string
	// Left are the ids of the controls that somebody has left, as FieldLeft.
	Left string
	// Files says that the form may have controls for files.
	Files bool
	// Changed says that what is shown is not what is stored; Restored is when it was
	// kept, where it is a draft of before.
	Changed  bool
	Restored time.Time
	Now      time.Time
	// Affects are what names the entry, the first of them; AffectsMore says how many
	// there are besides.
	Affects     []Use
	AffectsMore string
	// Tabs are the parts of a form that has several, Tab the one that is shown.
	Tabs []EditorTab
	Tab  string
	// Rotation warns of replacing credentials that operations use; nil where none does.
	Rotation *RotationModel
	// Pane is the JSON beside the form, nil where the editor is JSON itself.
	Pane *PaneModel
	// Connection is the test of a provider's connection, nil for other kinds.
	Connection *ConnectionModel
}

// RotationModel names the operations that use the credentials of a provider. More is how
// many there are besides those.
type RotationModel struct {
	Text    string
	Links   []RotationLink
	More    int
	Confirm ui.FieldModel
}

// RotationLink is an operation at work.
type RotationLink struct {
	Name, Href, Operation string
	State                 ui.State
}

// EditorTab is a part of a form. Its URL takes the draft along.
type EditorTab struct {
	// Key is its name in addresses.
	Key        string
	Label, URL string
	Current    bool
	Errors     int
}

// FoldTitle is the title of a fold of the form, with the id of its element.
type FoldTitle struct{ ID, Text string }

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
	// Listed says that the form begins with a list of them.
	Listed bool
	// Needed are fields that nobody has left yet and that are not right, each once: no
	// mistakes so far. Blocked says that one of them keeps the draft from being saved.
	Needed  []Problem
	Blocked bool
	// Warnings would not stop a save; Unknown are members that will be dropped.
	Warnings []Problem
	Unknown  []string
	// Breaks are others that would not work any more.
	Breaks []Broken
	// Files says of each field of a form that names one whether it is there.
	Files []LostFiles
	// Folds are the titles of folds that say what they hold.
	Folds []FoldTitle
	// Checked is false while nothing was checked yet.
	Checked bool
	// Draft is the document of the form that was checked, for the pane beside it; nil
	// where there is none.
	Draft *PaneModel
}

// trouble counts what keeps the draft from being saved, and leads to the first of it: the field
// where it is on the page, else the line beside the form. "" for nothing.
func (m CheckModel) trouble() (text, href string) {
	list := m.Problems
	switch {
	case len(m.Problems) > 0:
		text = ui.Count(len(m.Problems), "error", "errors")
	case m.Blocked && len(m.Needed) > 0:
		list, text = m.Needed, ui.Count(len(m.Needed), "field missing", "fields missing")
	default:
		return "", ""
	}
	if id := list[0].FieldID; id != "" {
		return text, "#" + id
	}
	return text, "#" + CheckID
}

// Broken is an entry that a change of another one breaks.
type Broken struct{ Kind, Name, Href, Text string }

// Problem is a mistake in a draft; Line is 0 when its place is not known. FieldID is
// the control of a form, "" in JSON.
type Problem struct {
	Path, Message string
	Line, Column  int
	FieldID       string
	// TabURL leads to the control where that is on another tab, with the draft.
	TabURL string
}

// ConflictModel compares what is stored with what was to be saved.
type ConflictModel struct {
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
	// StepURL is where the editor goes on, as a form if the kind HasForm.
	StepURL string
	HasForm bool
}

// Names of the fields of the forms; the handlers read them.
const (
	FieldQ        = "q"
	FieldShow     = "show"
	FieldSort     = "sort"
	FieldBody     = "body"
	FieldExpected = "expected"
	FieldTab      = "tab"
	FieldTouched  = "touched"
	FieldName     = "name"
	FieldPlugin   = "plugin"
	FieldKind     = "kind"
	FieldType     = "type"
	FieldVersion  = "version"
	FieldFile     = "file"
	FieldText     = "text"
	FieldTask     = "task"
	FieldSeen     = "seen"
	FieldEntry    = "entry"
	FieldFrom     = "from"
	FieldTo       = "to"
	FieldCode     = "code"
	FieldValue    = "value"
	FieldFix      = "fix"
	FieldDigest   = "digest"
	FieldFindings = "findings"

	FieldDeprecated = "deprecated"
)

// Values of form.FieldDo that change how a draft is shown.
const (
	DoJSON = "json"
	DoForm = "form"
	// DoDiscard forgets the draft and shows what is stored, DoCancel leaves the editor.
	DoDiscard = "discard"
	DoCancel  = "cancel"
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
		return "A service is software that Loom puts on nodes, with the actions that install, configure and run it."
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
