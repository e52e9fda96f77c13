package catalog

import (
	"net/http"
	"slices"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/templateview"
	"loom/views/ui"
)

// addCheck puts the answer of a check into the page of a draft, so that it does not
// have to wait for the next keystroke, and stays when another tab is opened. A new entry
// of which nothing was written has nothing to check, and a request for a part of the
// page shows none of it.
func (s *Server) addCheck(r *http.Request, actor loom.Actor, d draft, m *adminview.EditorModel) error {
	whole := r.Header.Get("HX-Request") == "" || r.Header.Get("HX-Boosted") != ""
	if !slices.Contains([]loom.EntityKind{loom.KindTemplate, loom.KindPartialTemplate, loom.KindService}, d.kind) || !whole || d.name == "" && !d.changed {
		return nil
	}
	check, tabs, err := s.checkDraft(r, actor, d)
	if err != nil {
		return err
	}
	m.Check, m.Tabs = check, tabs
	return nil
}

// markTabs lets mistakes on other tabs of the form lead there, with the draft.
func markTabs(d draft, shown form.Shown, found []adminview.Problem) {
	for i, away := range shown.Away {
		if away.Tab != "" {
			found[i].TabURL = tabURL(d.kind, d.name, away.Tab) + "#" + away.FieldID
		}
	}
}

// lostModels words missing services for administrators, with links to where each can be
// made, and to what names it. An entry that is edited in the same page, template or
// service, needs no link: pass "" for it.
func lostModels(lost []clusters.MissingService, template, except string) []adminview.LostService {
	var list []adminview.LostService
	for _, l := range lost {
		m := adminview.LostService{Links: []adminview.LostLink{{Label: "Make the service " + l.Name, Href: route.Query(route.AdminNew(loom.KindService), adminview.FieldName, l.Name)}}}
		switch {
		case l.By != "":
			m.Text = "The service " + l.By + " requires " + l.Name + ", which does not exist, and no service provides it."
			if l.By != except {
				m.Links = append(m.Links, adminview.LostLink{Label: "Edit the service " + l.By, Href: route.AdminEntryEdit(loom.KindService, l.By)})
			}
		case template == "":
			m.Text = "The template uses the service " + l.Name + ", which does not exist."
		default:
			m.Text = "The template " + l.Template + " uses the service " + l.Name + ", which does not exist."
			m.Links = append(m.Links, adminview.LostLink{Label: "Edit the template " + template, Href: tabURL(loom.KindTemplate, template, "defaults")})
		}
		list = append(list, m)
	}
	return list
}

// withoutLost are buttons that take missing services out of a draft, as far as it names
// them itself.
func withoutLost(lost []clusters.MissingService, what tried) []ui.ButtonModel {
	if what.draft == nil || what.stepURL == "" {
		return nil
	}
	var buttons []ui.ButtonModel
	for _, l := range lost {
		patch := map[string]any{}
		for part, names := range map[string][]string{"defaults": what.draft.Defaults.Services, "compatibility": what.draft.Compatibility.Services} {
			if slices.Contains(names, l.Name) {
				patch[part] = map[string]any{"services": slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == l.Name })}
			}
		}
		if l.By == "" && len(patch) > 0 {
			buttons = append(buttons, tryStep(what, "Take "+l.Name+" out of the template", templateview.FieldApply, page.CompactJSON(patch)))
		}
	}
	return buttons
}

// namedSkeleton is a new entry of the name that the address gives; "" where it gives
// none, or none that an entry can have.
func namedSkeleton(r *http.Request, kind loom.EntityKind) string {
	name := r.URL.Query().Get(adminview.FieldName)
	if name == "" || len(loom.CheckName(adminview.FieldName, name)) > 0 {
		return ""
	}
	doc, err := form.Parse(loom.Skeleton(kind))
	if err != nil {
		return ""
	}
	doc.Set(form.At("name"), name)
	return doc.String()
}

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
