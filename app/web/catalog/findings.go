package catalog

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
)

// addLacks says what of a stored entry would not work, each once with the places where
// it is, and with what helps.
func (s *Server) addLacks(r *http.Request, actor loom.Actor, entry loom.Entry, m *adminview.EntryModel) error {
	found, err := s.Catalog.CheckEntry(r.Context(), actor, m.Kind, entry)
	if err != nil {
		return err
	}
	service, _ := entry.(*loom.Service)
	for _, f := range merged(found) {
		lack := adminview.LostService{Text: f.text()}
		switch ref := f.File; {
		case service != nil && missesFile(service, f.Finding):
			lack.Text = "The " + loom.FileWord(ref.Type) + " " + ref.Name + " is neither active nor staged; " + loom.And(actionsAt(f.places)) + " " + nameIt(len(f.places)) + "."
			lack.Links = append(lack.Links, adminview.LostLink{Label: "Write or upload it", Href: adminview.FileNew(ref)})
		case f.Kind != m.Kind || f.Name != m.Name:
			lack.Links = append(lack.Links, adminview.LostLink{Label: "Edit the " + f.Kind.Word() + " " + f.Name, Href: route.AdminEntryEdit(f.Kind, f.Name)})
		}
		m.Lacks = append(m.Lacks, lack)
	}
	return nil
}

// actionsAt are the actions of places such as "start action".
func actionsAt(places []string) []string {
	names := make([]string, len(places))
	for i, place := range places {
		names[i], _, _ = strings.Cut(place, " ")
	}
	return names
}

func nameIt(n int) string {
	if n == 1 {
		return "names it"
	}
	return "name it"
}

// told is a finding with all places of its entry that have the same.
type told struct {
	loom.Finding
	places []string
}

func (t told) text() string {
	return page.Placed(t.Message, t.places)
}

// merged puts findings that say the same of an entry into one.
func merged(found []loom.Finding) []told {
	var all []told
	for _, f := range found {
		at := slices.IndexFunc(all, func(t told) bool { return t.Kind == f.Kind && t.Name == f.Name && t.Message == f.Message })
		if at < 0 {
			all, at = append(all, told{Finding: f}), len(all)
		}
		if place := page.PlaceWords(f.Field); place != "" {
			all[at].places = append(all[at].places, place)
		}
	}
	return all
}

// actionFieldsPath is what paths into the actions of a service begin with.
const actionFieldsPath = "provisioner.actions."

// tellForm tells what is wrong with the values of a form: mistakes where somebody has been,
// and elsewhere what is still needed, each field once. The form that it gives has the
// mistakes only.
func (d draft) tellForm(doc *form.Doc, errs []loom.FieldError, m *adminview.CheckModel) form.Shown {
	shown := d.form.Show(doc, "", "", errs, d.read)
	for _, f := range shown.Folds {
		m.Folds = append(m.Folds, adminview.FoldTitle(f))
	}
	found := formProblems(shown)
	markTabs(d, shown, found)
	var mistakes []loom.FieldError
	at, of := map[string]int{}, map[string][]string{} // what several actions lack is one line
	for i, item := range shown.Errors.Items {
		if d.reached(item.FieldID) {
			m.Problems, mistakes = append(m.Problems, found[i]), append(mistakes, errs[i])
			continue
		}
		m.Blocked = true
		p := adminview.Problem{Message: found[i].Path, FieldID: found[i].FieldID, TabURL: found[i].TabURL}
		action, _, isAction := strings.Cut(strings.TrimPrefix(errs[i].Field, actionFieldsPath), ".")
		_, label, labelled := strings.Cut(p.Message, ", ")
		if !strings.HasPrefix(errs[i].Field, actionFieldsPath) || !isAction || !labelled {
			need(m, p)
			continue
		}
		if of[label] = append(of[label], action); len(of[label]) == 1 {
			at[label] = len(m.Needed)
			m.Needed = append(m.Needed, p)
		}
		m.Needed[at[label]].Message = page.Capital(label) + " of " + loom.And(of[label])
	}
	if len(mistakes) < len(errs) {
		shown = d.form.Show(doc, "", "", mistakes, d.read)
	}
	return shown
}

// need adds what is still needed, once.
func need(m *adminview.CheckModel, p adminview.Problem) {
	if !slices.ContainsFunc(m.Needed, func(n adminview.Problem) bool { return n.Message == p.Message }) {
		m.Needed = append(m.Needed, p)
	}
}

// tellLacking takes settings that are merely not given yet out of what is found of a form:
// they are needed still, each once with all the actions that lack it, unless errs are about
// them already.
func (d draft) tellLacking(found []loom.Finding, errs []loom.FieldError, m *adminview.CheckModel) []loom.Finding {
	type lack struct {
		first  loom.Finding
		places []string
	}
	lacks := map[string]*lack{}
	var order []string
	rest := slices.DeleteFunc(slices.Clone(found), func(f loom.Finding) bool {
		_, set, is := strings.Cut(f.Message, ": set ")
		if !is || f.Code != loom.FindingIncomplete || f.Value != "" || f.Kind != d.kind {
			return false
		}
		if path := page.PlainPath(f.Field) + "."; slices.ContainsFunc(errs, func(e loom.FieldError) bool { return strings.HasPrefix(e.Field, path) }) {
			return true // told at its field
		}
		set = strings.TrimSuffix(set, ".")
		if lacks[set] == nil {
			lacks[set] = &lack{first: f}
			order = append(order, set)
		}
		if place, isAction := strings.CutSuffix(page.PlaceWords(f.Field), " action"); isAction {
			lacks[set].places = append(lacks[set].places, place)
		}
		return true
	})
	for _, set := range order {
		p := draftWarnings(d, []loom.Finding{lacks[set].first})[0]
		p.Path, p.Message = "", set
		if places := lacks[set].places; len(places) > 0 {
			p.Message += " of " + loom.And(places)
		}
		need(m, p)
	}
	return rest
}

// problems turns an error into problems of a draft, each with its place: that of
// the value, or of what it is missing in.
func problems(body string, e *loom.Error) []adminview.Problem {
	if len(e.Fields) == 0 {
		line, column := syntaxPosition(e.Message)
		return []adminview.Problem{{Message: e.Message, Line: line, Column: column}}
	}
	paths := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		paths[i] = f.Field
	}
	var found []adminview.Problem
	for i, offset := range loom.JSONPlaces([]byte(body), paths) {
		p := adminview.Problem{Path: e.Fields[i].Field, Message: e.Fields[i].Message}
		p.Line, p.Column = loom.TextPosition([]byte(body), offset)
		found = append(found, p)
	}
	return found
}

var syntaxPlace = regexp.MustCompile(`line (\d+), column (\d+)`)

// syntaxPosition finds the place that a syntax error names; 0 for none.
func syntaxPosition(message string) (line, column int) {
	match := syntaxPlace.FindStringSubmatch(message)
	if match == nil {
		return 0, 0
	}
	line, _ = strconv.Atoi(match[1])   // digits only
	column, _ = strconv.Atoi(match[2]) // digits only
	return line, column
}

// draftWarnings says what would not work of a draft in the words of its form, each with
// the way to its field; of a draft that is JSON, by the paths of that.
func draftWarnings(d draft, found []loom.Finding) []adminview.Problem {
	warnings := make([]adminview.Problem, len(found))
	fields := make([]loom.FieldError, len(found))
	for i, f := range found {
		fields[i] = loom.FieldError{Field: page.PlainPath(f.Field), Message: f.Message}
		warnings[i] = adminview.Problem{Path: fields[i].Field, Message: f.Message}
	}
	if d.form == nil {
		return warnings
	}
	doc, err := form.Parse(d.body)
	if err != nil {
		return warnings
	}
	shown := d.form.Show(doc, "", "", fields, d.read)
	for i, item := range shown.Errors.Items {
		warnings[i] = adminview.Problem{Path: item.Label, Message: item.Message, FieldID: item.FieldID}
		if strings.Contains(item.Label, ".\u200b") || item.Label == item.Field { // a control of its own it does not have
			warnings[i].Path = page.Capital(page.PlaceWords(found[i].Field))
		}
	}
	markTabs(d, shown, warnings)
	return warnings
}
