package adminview

import (
	"time"

	"github.com/a-h/templ"

	"loom/views/sharedview"
	"loom/views/ui"
)

// PageModel is a page: its head, and parts one below the other.
type PageModel struct {
	Title string
	// State stands behind the title, if set.
	State *ui.State
	// Intro is a sentence or two about what the page is for.
	Intro   string
	Actions []ui.ButtonModel
	// Menu is what is done besides; Delete comes last.
	Menu []ui.MenuItem
	// Tabs are links to the parts of an object; TabsLabel names them.
	TabsLabel string
	Tabs      []ui.Tab
	Banners   []ui.BannerModel
	Parts     []templ.Component
	// Calls are the calls of the REST API that do the same.
	Calls []ui.JSONCall
}

// Cell is a cell of a table. It shows Time, Text, State and Sub, those that are
// set, then the buttons.
type Cell struct {
	Text string
	Href string
	Mono bool
	// Sub is a second, muted line.
	Sub   string
	State *ui.State
	// Time is shown relative to now; ShowTime shows the zero time as "never".
	Time     time.Time
	ShowTime bool
	Buttons  []ui.ButtonModel
	// Part is anything else.
	Part templ.Component
}

// TableModel is a table. The cells of a row belong to its columns, the first is the
// head of the row.
type TableModel struct {
	ID, Caption string
	ShowCaption bool
	Columns     []ui.Column
	Rows        [][]Cell
	Now         time.Time
	Empty       ui.EmptyModel
	// Flow puts the values of a row behind one another where the window is narrow.
	Flow bool
	// Bulk is what can be done to several rows, if set; Keys are then the values of the boxes of the rows.
	Bulk *sharedview.BulkBar
	Keys []string
	// Pages is left out when its text is empty.
	Pages ui.PaginationModel
	// CSV and JSON give all rows that the filters leave, as files; empty for none.
	CSV, JSON string
}

// cards is how a narrow window shows the rows.
func (m TableModel) cards() any {
	if m.Flow {
		return "flow"
	}
	return true
}

// FiltersModel is the form above a list. It changes the table region with the id
// Target as one types, and is a plain form without scripts.
type FiltersModel struct {
	Action, Target string
	Fields         []ui.FieldModel
	// More are fields used less: they are folded, unless one of them is filled.
	More []ui.FieldModel
	// Clear is the list without filters, empty when there are none.
	Clear string
	// Button is what the button says, "Search" when empty.
	Button string
	// Whole fetches the whole page again as soon as something is chosen; a button is only there
	// without scripts. Target is not needed then.
	Whole bool
	// Label names the form.
	Label string
	// Ranges are links to the same list over other times. Chips are filters that no field shows,
	// each leads to the list without it. Hidden are both.
	Ranges      []ui.Tab
	RangesLabel string
	RangesError string
	Chips       []ui.Tab
	Hidden      []HiddenField
}

// HiddenField is sent with a form and not seen.
type HiddenField struct{ Name, Value string }

// FigureModel is a figure with its unit; Fact names it.
type FigureModel struct {
	Fact, Value, Unit string
	Notes             []string
}

// FormModel is a form that is sent once.
type FormModel struct {
	// ID is that of the form; "" for none.
	ID     string
	Action string
	Errors ui.FormErrors
	Parts  []templ.Component
	// Button says what happens, Busy the same while it does.
	Button, Busy string
	// Secondary leaves the filled button to another form of the page.
	Secondary bool
	// Cancel leads back; without it there is no such link.
	Cancel string
}

func (m FormModel) kind() ui.ButtonKind {
	if m.Secondary {
		return ui.Secondary
	}
	return ui.Primary
}

// ConfirmModel asks before something is done. With Type, a name must be typed.
type ConfirmModel struct {
	Action string
	Errors ui.FormErrors
	// Lines are the paragraphs of the question.
	Lines []string
	// Items is a list below, ItemsNote says what it holds.
	ItemsNote    string
	Items        []string
	Button, Busy string
	Cancel       string
	// WhyNot says that it cannot be done at all; no button then. Instead leads to what
	// has to be done first.
	WhyNot, Instead, InsteadHref string
	// Type is the name to be typed, Typed what was typed.
	Type, Typed string
	// Harmless fills the button in the usual colour.
	Harmless bool
	// Hidden are further fields, names and values in turn.
	Hidden []string
	// Fields are further fields to be seen, below the lines.
	Fields []ui.FieldModel
}

// SecretModel shows something once.
type SecretModel struct {
	Title, Warning string
	Facts          []ui.Def
	// All is the facts as a text to be handed on, if they are copied as a whole, and What
	// names them.
	All, What string
	// Back is where the button leads that says it was copied.
	Back, Button string
}

// DetailsModel is something folded.
type DetailsModel struct {
	Summary string
	Facts   []ui.Def
	Changes []ui.ChangeModel
	Code    *ui.CodeModel
}

// SharesModel is a bar of who holds how much of something: Used of Max, and in words its
// parts.
type SharesModel struct {
	Label     string
	Used, Max int
	// Parts are words such as "demo 50" and "free 49".
	Parts []string
	// Href is where those are that the bar counts, "" for nowhere.
	Href string
}

// FieldConfirm is the name of the field in which a name is typed.
const FieldConfirm = "confirm"
