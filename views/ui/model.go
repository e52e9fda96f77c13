package ui

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
)

// Live gives the attributes of an element that is fetched again from url and
// morphed in place whenever one of the topics is signalled. The element must
// have an id and the answer must be the same element.
func Live(url string, topics ...string) templ.Attributes {
	return templ.Attributes{
		"data-live":  strings.Join(topics, " "),
		"hx-get":     url,
		"hx-trigger": "loom:live",
		"hx-target":  "this",
		"hx-swap":    "morph:outerHTML",
		"hx-sync":    "this:queue last",
	}
}

// OpensDialog gives the attributes of a link or button whose target opens in the
// frame's dialog. The server tells by the header HX-Target "dialog" and answers
// with DialogContent.
func OpensDialog(url string) templ.Attributes {
	return templ.Attributes{
		"hx-get":        url,
		"hx-target":     "#dialog",
		"hx-swap":       "innerHTML",
		"aria-haspopup": "dialog",
	}
}

// SortOrder is the order of a sorted column, as aria-sort says it.
type SortOrder string

// The orders.
const (
	Unsorted   SortOrder = ""
	Ascending  SortOrder = "ascending"
	Descending SortOrder = "descending"
)

// TableModel is the frame of a table; the rows are its children.
type TableModel struct {
	// ID is that of the scroll region; the caption gets ID + "-caption", the body
	// ID + "-rows".
	ID            string
	Caption       string
	CaptionHidden bool
	Columns       []Column
	// Compact uses rows of 32 px.
	Compact bool
	// Attrs go to the region, for Live.
	Attrs templ.Attributes
}

// Column is a head cell.
type Column struct {
	Label string
	// LabelHidden keeps the label for those who do not see, for columns of actions.
	LabelHidden bool
	// Sort is the link that sorts by this column; empty is not sortable.
	Sort    string
	Sorted  SortOrder
	Numeric bool
	// Select is the column of boxes; its head selects all rows of the page where scripts
	// run.
	Select bool
	// Low columns are hidden below 40 rem; give the cells class u-wide.
	Low bool
}

// PaginationModel is the end of a list. Empty links are not shown.
type PaginationModel struct {
	// Label names the list: "Pages of clusters".
	Label string
	Prev  string
	Next  string
	// Text is "1–25 of 213".
	Text string
	// Sizes are links to pages of other lengths.
	Sizes []Tab
}

// EmptyModel is what a list says when it has nothing.
type EmptyModel struct {
	Icon string
	// Text is one sentence: what the thing is, or why there is none.
	Text string
	// Action is left out when its label is empty.
	Action ButtonModel
	// More is a second way out, as link.
	More     string
	MoreHref string
}

// ProgressModel is a bar with its text.
type ProgressModel struct {
	// Label says of what: "Progress of create".
	Label string
	Value int
	Max   int
	// Text is seen beside the bar: "49 of 81 tasks · 4 min 12 s".
	Text   string
	Failed bool
	// Runs says that it goes on, for Elapsed so far; Left is how long it may still
	// take: "about 3 min left".
	Runs    bool
	Elapsed time.Duration
	Left    string
}

func (m ProgressModel) max() string { return strconv.Itoa(max(m.Max, 1)) }

// SegmentsModel is a bar of five parts, in tasks.
type SegmentsModel struct {
	// ID makes the pattern ids of several bars on a page differ.
	ID                        string
	Complete, Running, Failed int
	// Retrying failed and are tried again; Rest is what is left.
	Retrying, Rest int
	// CompleteWord and RestWord say what those parts are, "complete" and "waiting" when empty.
	// Skipped are parts that nobody does.
	CompleteWord, RestWord string
	Skipped                int
}

// Summary is the bar in words: "70 complete, 2 running, 1 failed, 8 waiting".
func (m SegmentsModel) Summary() string {
	var parts []string
	for _, s := range m.segments() {
		if s.count > 0 {
			parts = append(parts, strconv.Itoa(s.count)+" "+s.word)
		}
	}
	if len(parts) == 0 {
		return "no tasks"
	}
	return strings.Join(parts, ", ")
}

type segment struct {
	word, tone string
	count      int
	// x and width are in thousandths of the bar.
	x, width int
}

// segmentScale is the width of a segmented bar in its own units.
const segmentScale = 1000

func (m SegmentsModel) segments() []segment {
	s := []segment{
		{word: cmp.Or(m.CompleteWord, "complete"), tone: "ok", count: max(m.Complete, 0)},
		{word: "running", tone: "run", count: max(m.Running, 0)},
		{word: "failed", tone: "bad", count: max(m.Failed, 0)},
		{word: "retrying", tone: "warn", count: max(m.Retrying, 0)},
		{word: "skipped", tone: "idle", count: max(m.Skipped, 0)},
		{word: cmp.Or(m.RestWord, "waiting"), tone: "idle", count: max(m.Rest, 0)},
	}
	total := 0
	for _, part := range s {
		total += part.count
	}
	if total == 0 {
		return s
	}
	before := 0
	for i := range s {
		s[i].x = before * segmentScale / total
		before += s[i].count
		s[i].width = before*segmentScale/total - s[i].x
	}
	return s
}

// Tab is a link to a part of an object; tabs are pages.
type Tab struct {
	Label   string
	Href    string
	Current bool
	// Count is shown behind the label when not empty; Bad marks it as errors.
	Count string
	Bad   bool
}

// Crumb is a step of the breadcrumbs; the last is the page itself, without Href.
type Crumb struct {
	Label string
	Href  string
}

// CodeModel is a block of code with a label and a copy button.
type CodeModel struct {
	// ID must be unique in the page.
	ID    string
	Label string
	Text  string
	// Wrap breaks long lines instead of scrolling.
	Wrap bool
	// Download is a link to the same as a file.
	Download string
}

// TileModel is a number that leads somewhere.
type TileModel struct {
	Number string
	Label  string
	Note   string
	Tone   Tone
	Href   string
}

// BannerModel is a message above the page's content, or within it.
type BannerModel struct {
	Tone Tone
	Text string
	// Key, when set, lets the reader close the banner for a day; Return is the page to
	// come back to where scripts do not run.
	Key, Return string
	// Action is an optional link at the end, or with Post a button.
	Action     string
	ActionHref string
	Post       bool
}

func (m BannerModel) icon() string { return ToneIcon(m.Tone) }

// ToneIcon is the icon of a message in a tone.
func ToneIcon(t Tone) string {
	switch t {
	case ToneOK:
		return "check-circle"
	case ToneWarn:
		return "alert"
	case ToneBad:
		return "error"
	case ToneHold:
		return "pause"
	case ToneRun, ToneIdle:
	}
	return "info"
}

// ToastModel is a short message about what has just been done.
type ToastModel struct {
	Tone Tone
	Text string
	// Action is an optional link: "View operation".
	Action     string
	ActionHref string
}

// CheckModel is the head of the check panel; reasons and layout are its children.
type CheckModel struct {
	// State is one of the Check… values.
	State    CheckState
	Headline string
	// Note is a sentence beneath the headline.
	Note string
}

// CheckState is the answer of a check.
type CheckState string

// The answers of a check.
const (
	CheckFits       CheckState = "fits"
	CheckCannot     CheckState = "cannot"
	CheckUnsure     CheckState = "unsure"
	CheckIncomplete CheckState = "incomplete"
)

func (s CheckState) state() State {
	switch s {
	case CheckFits:
		return State{Word: "Fits", Icon: "check-circle", Tone: ToneOK}
	case CheckCannot:
		return State{Word: "Cannot fit", Icon: "error", Tone: ToneBad}
	case CheckUnsure:
		return State{Word: "Not sure yet", Icon: "alert", Tone: ToneWarn}
	}
	return State{Word: "Incomplete", Icon: "circle", Tone: ToneIdle}
}

// Reason is one rule that clashes, with its origin.
type Reason struct {
	Text       string
	Origin     string
	OriginHref string
}

// Suggestion is a button of the check panel that changes the form: it submits
// Name and Value, or with scripts sets that field and asks again.
type Suggestion struct {
	Label       string
	Name, Value string
	// Attrs make what is no plain field of the form change a part of the page only.
	Attrs templ.Attributes
}

// ChangeSign is what happens to an object in a preview.
type ChangeSign string

// The signs, by the words of the REST API.
const (
	SignCreate  ChangeSign = "create"
	SignChange  ChangeSign = "change"
	SignRestart ChangeSign = "restart"
	SignReplace ChangeSign = "replace"
	SignRemove  ChangeSign = "remove"
	SignKeep    ChangeSign = "keep"
)

var changeSigns = map[ChangeSign]struct {
	mark string
	tone Tone
}{
	SignCreate:  {"+", ToneOK},
	SignChange:  {"~", ToneRun},
	SignRestart: {"↻", ToneWarn},
	SignReplace: {"±", ToneWarn},
	SignRemove:  {"−", ToneBad},
	SignKeep:    {"=", ToneIdle},
}

// ChangeModel is one line of a preview.
type ChangeModel struct {
	Sign   ChangeSign
	Object string
	Name   string
	// Detail follows the name: "small · debian-12 · nginx".
	Detail   string
	Old, New string
	// Lines are what differs in a long value, line by line, folded below: "+ put in",
	// "− taken out".
	Lines   string
	Because string
}

// Def is a term with its value; the value is the component if there is one, else
// Text.
type Def struct {
	Term  string
	Text  string
	Mono  bool
	Value templ.Component
}

// fact marks a text of which a page has one.
func (d Def) fact() templ.Attributes {
	if d.Value != nil || d.Text == "" {
		return nil
	}
	return templ.Attributes{"data-fact": d.Term + " " + d.Text}
}

// JSONModel is the JSON pane of an object.
type JSONModel struct {
	ID   string
	Text string
	// Raw is the URL of the raw document.
	Raw   string
	Calls []JSONCall
}

// JSONCall is an equivalent call of the REST API: what it does, and a line for a
// shell with $LOOM_URL and $LOOM_TOKEN in place of values.
type JSONCall struct {
	Label string
	Curl  string
}
