package adminview

import (
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/views/route"
	"loom/views/ui"
)

// FindingGroup is findings with one cause, and where each of them is.
type FindingGroup struct {
	loom.FindingGroup
	Rows []FindingRow
	// When says, of what an import brings, what has to be chosen for it to come. Nothing can
	// be fixed before.
	When string
}

// FindingRow is an entry or a value of a group: what and where it is, and what leads on. What
// is not there yet has no Href.
type FindingRow struct {
	Name, Href, Text string
	Links            []LostLink
}

// title says in a few words what is wrong.
func (g FindingGroup) title() string {
	f, values := g.First(), loom.And(g.Values)
	switch {
	case f.Missing != "":
		return capital(kinds(f.Missing, len(g.Values))) + " " + values + " " + doNot(len(g.Values)) + " exist"
	case f.File.Name != "" && len(g.Values) == 1:
		return capital(loom.FileWord(f.File.Type)) + " " + f.File.Name + " is missing"
	case f.File.Name != "":
		return ui.Count(len(g.Values), "", loom.FileWord(f.File.Type)+"s are missing")
	case f.Unknown:
		return capital(ui.Count(len(g.Values), "unknown field", "unknown fields")) + ", without effect: " + values
	case g.OneMessage():
		return strings.TrimSuffix(f.Message, ".")
	}
	return findingTitles[g.Code]
}

// findingTitles are for findings whose messages differ.
var findingTitles = map[loom.FindingCode]string{
	loom.FindingDangling: "Names what does not exist", loom.FindingCycle: "Depends on itself", loom.FindingUnsolvable: "No layout fits the defaults",
	loom.FindingMacro: "A macro cannot be filled in", loom.FindingParameter: "A setting has a wrong value", loom.FindingNoMapping: "No provider can use it",
	loom.FindingIncomplete: "Settings are missing or wrong", loom.FindingImmutable: "Sets what a partial template locks", loom.FindingPointless: "Has no effect",
	loom.FindingInsecure: "Certificates are not checked", loom.FindingUnchecked: "Nothing checks whether services work", loom.FindingMore: "Not all findings are listed",
}

// where counts the entries by kind; one alone is named.
func (g FindingGroup) where() string {
	if g.Code == loom.FindingUnchecked {
		return ""
	}
	if g.Entries == 1 {
		return g.First().Kind.Word() + " " + g.First().Name
	}
	counts := g.Counts()
	var words []string
	for _, kind := range loom.TenantKinds {
		if n := counts[kind]; n > 0 {
			words = append(words, strconv.Itoa(n)+" "+kinds(kind, n))
		}
	}
	return strings.Join(words, ", ")
}

func kinds(kind loom.EntityKind, n int) string {
	if n == 1 {
		return kind.Word()
	}
	return kind.Word() + "s"
}

func doNot(n int) string {
	if n == 1 {
		return "does not"
	}
	return "do not"
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// buttons are what fixes the group, or leads to where it can be fixed.
func (g FindingGroup) buttons() []ui.ButtonModel {
	f := g.First()
	var list []ui.ButtonModel
	add := func(label, href string) {
		list = append(list, ui.ButtonModel{Label: label, Small: true, Href: href, Attrs: map[string]any{"aria-label": strings.TrimSuffix(label, "…") + ": " + g.title()}})
	}
	one := len(g.Values) == 1
	if f.Missing != "" && !f.Missing.Global() && one {
		add("Create", NewNamed(f.Missing, f.Value))
	}
	for _, fix := range f.Fixes() {
		switch {
		case fix == loom.FixRemove:
			label := "Remove references"
			if f.Unknown {
				label = "Remove fields"
			}
			add(label, Fix(g.FindingGroup, fix))
		case one:
			add("Use another…", Fix(g.FindingGroup, fix))
		}
	}
	switch {
	case f.File.Name != "" && one:
		add("Write or upload", FileNew(f.File))
	case f.File.Name != "":
		add("Upload files", route.AdminResources()+"#upload")
	case len(list) > 0:
	case g.Entries == 1 && g.Code != loom.FindingUnchecked:
		add("Edit", route.AdminEntryEdit(f.Kind, f.Name))
	default:
		add("View "+kinds(f.Kind, 2), route.Query(route.AdminKind(f.Kind), FieldFindings, string(g.Code)))
	}
	return list
}

// FoundState is how grave a finding is, "" for none.
func FoundState(severity loom.FindingSeverity) ui.State {
	switch severity {
	case loom.FindingError:
		return ui.State{Word: "Error", Icon: "error", Tone: ui.ToneBad}
	case loom.FindingWarning:
		return ui.State{Word: "Warning", Icon: "alert", Tone: ui.ToneWarn}
	}
	return ui.State{Word: "Good", Icon: "check", Tone: ui.ToneOK}
}

// key names an entry with the version that was shown, for forms about several.
func (r EntryRow) key() string { return strconv.Itoa(r.Info.Version) + "." + r.Entry.Name }

// NewNamed is the form for a new entry with its name filled in.
func NewNamed(kind loom.EntityKind, name string) string {
	return route.Query(route.AdminNew(kind), FieldName, name)
}

// Fix is the page that shows what a fix of a group changes.
func Fix(g loom.FindingGroup, fix loom.FindingFix) string {
	pairs := []string{FieldCode, string(g.Code), FieldKind, string(g.First().Missing), FieldFix, string(fix)}
	for _, value := range g.Values {
		pairs = append(pairs, FieldValue, value)
	}
	return route.Query(route.AdminFix(), pairs...)
}

// ReplaceModel asks which provider several entries, each kind/name, shall name instead of which.
type ReplaceModel struct {
	Entries []string
	Fields  []ui.FieldModel
	Back    string
}

// FixModel shows what a fix changes, and applies it. Choose are the entries to use instead, nil
// where nothing is to be chosen; Hidden says which fix it is, Chosen what was shown.
type FixModel struct {
	Errors         ui.FormErrors
	Hidden, Chosen []string
	Choose         *ui.FieldModel
	// Changes are those of all entries, More how many are not shown.
	Changes []ui.ChangeModel
	More    int
	Button  string
}
