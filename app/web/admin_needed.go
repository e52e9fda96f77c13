package web

import (
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
)

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
		m.Needed[at[label]].Message = capital(label) + " of " + loom.And(of[label])
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
		if path := plainPath(f.Field) + "."; slices.ContainsFunc(errs, func(e loom.FieldError) bool { return strings.HasPrefix(e.Field, path) }) {
			return true // told at its field
		}
		set = strings.TrimSuffix(set, ".")
		if lacks[set] == nil {
			lacks[set] = &lack{first: f}
			order = append(order, set)
		}
		if place, isAction := strings.CutSuffix(placeWords(f.Field), " action"); isAction {
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
