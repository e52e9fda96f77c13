package web

import (
	"net/http"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
	"loom/views/route"
)

// formTab is a part of a form that is too long for one page.
type formTab struct{ key, label string }

// templateTabs are the parts of the form of a template, in the order in which one
// fills them in.
var templateTabs = []formTab{
	{"general", "General"}, {"compatibility", "Compatibility"}, {"defaults", "Defaults"}, {"constraints", "Constraints"}, {"includes", "Includes"}, {"try", "Try it"},
}

// tabsOf are the parts of the form of a kind; nil where it is one page.
func tabsOf(kind loom.EntityKind) []formTab {
	if kind == loom.KindTemplate {
		return templateTabs
	}
	return nil
}

// askedTab is the part that a request is about: by its address, or where it saves, by
// what the form was showing. NotFound for one that is not there.
func askedTab(r *http.Request, tabs []formTab) (string, error) {
	key := r.PathValue("tab")
	if key == "" {
		key = r.URL.Query().Get(adminview.FieldTab)
	}
	if key == "" {
		key = r.PostForm.Get(adminview.FieldTab)
	}
	if key == "" {
		return tabs[0].key, nil
	}
	if !slices.ContainsFunc(tabs, func(t formTab) bool { return t.key == key }) {
		return "", loom.NewError(loom.NotFound, "The form has no part “%.40s”.", key)
	}
	return key, nil
}

// tabURL is where a part of the form of an entry is; name is "" for a new one.
func tabURL(kind loom.EntityKind, name, tab string) string {
	if name == "" {
		return route.Query(route.AdminNew(kind), adminview.FieldTab, tab)
	}
	return route.AdminEntryEdit(kind, name) + "/" + tab
}

// addTabs puts the parts of a form into the model, each with its errors.
func addTabs(made form.Form, d draft, shown form.Shown, m *adminview.EditorModel) {
	if made.Tab == "" {
		return
	}
	m.Tab = made.Tab
	for _, t := range tabsOf(d.kind) {
		m.Tabs = append(m.Tabs, adminview.EditorTab{Key: t.key, Label: t.label, URL: tabURL(d.kind, d.name, t.key), Current: t.key == made.Tab, Errors: shown.TabErrors[t.key]})
	}
}

// stayOnTab keeps the part that was shown when it has values that cannot be taken to
// another: they would be lost there.
func stayOnTab(r *http.Request, d *draft) bool {
	from := r.PostForm.Get(adminview.FieldTab)
	if from == "" || len(d.read.Errors) == 0 || r.PathValue("tab") == from || r.URL.Query().Get(adminview.FieldTab) == from {
		return false
	}
	r.SetPathValue("tab", from)
	d.title = "Correct this before you go to another part of the form."
	return true
}

// markTouched tells a draft that was changed from one that was only looked at, part
// by part.
func markTouched(r *http.Request, d *draft) {
	if !r.PostForm.Has(adminview.FieldTab) {
		return
	}
	base := strings.ReplaceAll(r.PostForm.Get(form.FieldBase), "\r\n", "\n")
	d.changed = r.PostForm.Has(adminview.FieldTouched) || len(d.read.Errors) > 0 || d.body != base
}
