package ui

import (
	"cmp"
	"fmt"
	"strings"
)

// Sizes of a picture of services, in pixels.
const (
	TieBoxWidth  = 176
	TieBoxHeight = 52
	// tieNameInset is how much lower and smaller the box of a mere name is.
	tieNameInset = 8
)

// TieKind is how two boxes of a picture of services are tied; it chooses the dash
// and the ends of the line.
type TieKind string

// The kinds.
const (
	TieRequires  TieKind = "requires"
	TieUses      TieKind = "uses"
	TieProvides  TieKind = "provides"
	TieFollows   TieKind = "follows"
	TieConflicts TieKind = "conflicts"
)

// tieKinds is the order of the legend, with what each means.
var tieKinds = []struct {
	kind TieKind
	text string
}{
	{TieRequires, "requires: must be in the cluster, and comes first"},
	{TieUses, "uses: comes first if present"},
	{TieProvides, "provides: others find it under this name too"},
	{TieFollows, "follows: is configured again when the other's nodes change"},
	{TieConflicts, "conflicts: never in one cluster"},
}

// TieSort is what a box of a picture of services stands for.
type TieSort string

// The sorts.
const (
	TieService TieSort = "service"
	TieName    TieSort = "name"
	TieMissing TieSort = "missing"
)

// TiesModel is a picture of services with the table that says the same.
type TiesModel struct {
	// ID must be unique in the page; ids inside start with it.
	ID string
	// Title and Description are for those who do not see the picture.
	Title, Description string
	Width, Height      int
	Boxes              []TieBox
	Lines              []TieLine
	// Circles are sentences about services that depend on each other in a circle.
	Circles []string
	Rows    []TieRow
	// Rest says how many rows are left out.
	Rest string
	// Hops are links to more or less of the surroundings, none where all is shown.
	Hops []Tab
	// Nothing is said in place of the picture when there are no boxes; rows may be there.
	Nothing string
}

// TieBox is a service or a name. Boxes come in tab order.
type TieBox struct {
	// ID is unique in the picture, without spaces.
	ID   string
	X, Y int
	Sort TieSort
	// Title is the name, Line what is said beneath it.
	Title, Line string
	// Href is empty for what leads nowhere.
	Href string
	// Label is the name that is read out and shown when pointing.
	Label string
	// Middle is the service that the picture is about.
	Middle bool
	// Icon is that of the service, "box" if empty.
	Icon string
}

// TieLine is a line between two boxes.
type TieLine struct {
	From, To string
	Kind     TieKind
	// Path is SVG path data; Backwards says that it begins at To.
	Path      string
	Backwards bool
	// Text stands on the line around X, Y where there is room; Label is the whole
	// tie as a sentence.
	Text, Label string
	X, Y        int
	// Circle marks a line of a circle.
	Circle bool
}

// TieRow is a service with what it says of others.
type TieRow struct {
	Name, Href string
	Middle     bool
	// Requires, Uses, Provides, Follows and Conflicts are what the columns list.
	Requires, Uses, Provides, Follows, Conflicts []TieRef
}

// TieRef names a service or a name in a row.
type TieRef struct {
	Name, Href string
	// Note is behind the name: "install, run".
	Note string
	// Missing says that it is not there.
	Missing bool
}

func (b TieBox) class() string {
	parts := []string{"dag-node", "tie-box", "is-" + string(b.Sort)}
	if b.Middle {
		parts = append(parts, "is-middle")
	}
	return strings.Join(parts, " ")
}

func (b TieBox) transform() string { return fmt.Sprintf("translate(%d %d)", b.X, b.Y) }

func (b TieBox) icon() string {
	if b.Sort == TieMissing {
		return "alert"
	}
	return cmp.Or(b.Icon, "box")
}

// tieTitleLimit is how many characters of a name fit beside the icon, at 13 px
// semibold; tieRestLimit is how many fit in a line of their own.
const (
	tieTitleLimit = 16
	tieRestLimit  = 18
	tieLineLimit  = 27
)

// title gives the name in one or two lines: a long one is broken behind a separator
// and then takes the place of what is said beneath it.
func (b TieBox) title() (first, rest string) {
	runes := []rune(b.Title)
	if len(runes) <= tieTitleLimit {
		return b.Title, ""
	}
	at := tieTitleLimit
	for i := tieTitleLimit; i > tieTitleLimit/3; i-- {
		if strings.ContainsRune("-_. ", runes[i-1]) {
			at = i
			break
		}
	}
	return string(runes[:at]), MiddleEllipsis(string(runes[at:]), tieRestLimit)
}

func (b TieBox) first() string { first, _ := b.title(); return first }
func (b TieBox) rest() string  { _, rest := b.title(); return rest }

func (l TieLine) class() string {
	parts := []string{"dag-edge", "tie", "is-" + string(l.Kind)}
	if l.Circle {
		parts = append(parts, "is-circle")
	}
	return strings.Join(parts, " ")
}

// markers gives the ends of a line as it is drawn: from its start to its end.
func (l TieLine) markers(id string) (start, end string) {
	start, end = "none", "url(#"+id+"-"+string(l.Kind)+")"
	if l.Kind == TieConflicts {
		start = end
	}
	if l.Backwards {
		start, end = end, start
	}
	return start, end
}

func (l TieLine) start(id string) string { s, _ := l.markers(id); return s }
func (l TieLine) end(id string) string   { _, e := l.markers(id); return e }

// legend gives the kinds that the picture has, in order.
func (m TiesModel) legend() (kinds []TieKind, texts []string) {
	for _, k := range tieKinds {
		for _, l := range m.Lines {
			if l.Kind == k.kind {
				kinds, texts = append(kinds, k.kind), append(texts, k.text)
				break
			}
		}
	}
	return kinds, texts
}

func (m TiesModel) legendKinds() []TieKind   { kinds, _ := m.legend(); return kinds }
func (m TiesModel) legendText(i int) string  { _, texts := m.legend(); return texts[i] }
func (m TiesModel) rowID(name string) string { return FieldID("", m.ID+"-"+name) }
func (m TiesModel) any(of func(TieRow) bool) bool {
	for _, r := range m.Rows {
		if of(r) {
			return true
		}
	}
	return false
}

// RowID is the id of a service's row in the table of a picture.
func (m TiesModel) RowID(name string) string { return m.rowID(name) }

// columns are those of the table that hold something, besides the service.
func (m TiesModel) columns() []tieColumn {
	var kept []tieColumn
	for _, c := range tieColumns {
		if m.any(func(r TieRow) bool { return len(c.of(r)) > 0 }) {
			kept = append(kept, c)
		}
	}
	return kept
}

type tieColumn struct {
	label string
	of    func(TieRow) []TieRef
}

var tieColumns = []tieColumn{
	{"Requires", func(r TieRow) []TieRef { return r.Requires }},
	{"Uses", func(r TieRow) []TieRef { return r.Uses }},
	{"Provides", func(r TieRow) []TieRef { return r.Provides }},
	{"Reconfigure after", func(r TieRow) []TieRef { return r.Follows }},
	{"Conflicts with", func(r TieRow) []TieRef { return r.Conflicts }},
}

// table is the frame of the table below the picture.
func (m TiesModel) table() TableModel {
	t := TableModel{ID: m.ID + "-table", Caption: m.Title, CaptionHidden: true, Compact: true, Columns: []Column{{Label: "Service"}}}
	for _, c := range m.columns() {
		t.Columns = append(t.Columns, Column{Label: c.label})
	}
	return t
}
