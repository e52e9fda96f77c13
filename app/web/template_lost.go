package web

import (
	"net/http"
	"slices"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/templateview"
	"loom/views/ui"
)

// lostModels words missing services for administrators, with links to where each can be
// made, and to what names it. An entry that is edited in the same page, template or
// service, needs no link: pass "" for it.
func lostModels(lost []lifecycle.LostService, template, except string) []adminview.LostService {
	var list []adminview.LostService
	for _, l := range lost {
		m := adminview.LostService{Links: []adminview.LostLink{{Label: "Make the service " + l.Name, Href: route.Query(route.AdminNew(loom.KindService), adminview.FieldName, l.Name)}}}
		switch {
		case l.By != "":
			m.Text = "The service " + l.By + " requires " + l.Name + ", which does not exist (any more), and no service provides it."
			if l.By != except {
				m.Links = append(m.Links, adminview.LostLink{Label: "Edit the service " + l.By, Href: route.AdminEntryEdit(loom.KindService, l.By)})
			}
		case template == "":
			m.Text = "The template names the service " + l.Name + ", which does not exist (any more)."
		default:
			m.Text = "The template " + l.Template + " names the service " + l.Name + ", which does not exist (any more)."
			m.Links = append(m.Links, adminview.LostLink{Label: "Edit the template " + template, Href: tabURL(loom.KindTemplate, template, "defaults")})
		}
		list = append(list, m)
	}
	return list
}

// withoutLost are buttons that take missing services out of a draft, as far as it names
// them itself.
func withoutLost(lost []lifecycle.LostService, what tried) []ui.ButtonModel {
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
			buttons = append(buttons, tryStep(what, "Take "+l.Name+" out of the template", templateview.FieldApply, compact(patch)))
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
