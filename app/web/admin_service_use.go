package web

import (
	"errors"
	"net/http"
	"slices"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// fieldService names, in the address of the form of a template, a service to put in.
const fieldService = "service"

// adminServiceUse asks which template is to use a service, and leads to the form of that
// with the service put in. Nothing is stored before that is saved.
func (s *Server) adminServiceUse(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	service := entryName(r)
	if _, _, err := s.Catalog.Entry(r.Context(), actor, loom.KindService, service, 0); err != nil {
		return err
	}
	if q := r.URL.Query(); q.Has(fieldUseIn) {
		to := route.AdminNew(loom.KindTemplate)
		if name := q.Get(fieldUseIn); name != "" {
			to = tabURL(loom.KindTemplate, name, "defaults")
		}
		return httpx.SeeOther(w, r, route.Query(to, fieldService, service))
	}
	found, err := s.Catalog.Newest(r.Context(), actor, loom.KindTemplate)
	if err != nil {
		return err
	}
	m := adminview.UseModel{Action: adminview.ServiceUse(service), Button: "Put " + service + " in", Back: route.AdminEntry(loom.KindService, service)}
	m.Types = ui.ChoiceModel{Name: fieldUseIn, Legend: "Template", Filter: "Filter templates",
		Choices: []ui.Choice{{Value: "", Label: "A new template", Description: "with " + service + " in it", Checked: true}}}
	for i, c := range choicesOf(found[loom.KindTemplate]) {
		t, _ := found[loom.KindTemplate][i].(*loom.Template)
		choice := ui.Choice{Value: c.Value, Label: c.Label, Facts: c.Facts, Description: templateHas(t, service)}
		if c.Deprecated {
			choice.Facts = append(choice.Facts, "deprecated")
		}
		m.Types.Choices = append(m.Types.Choices, choice)
	}
	page := entryFrame(loom.KindService, service, "Use")
	page.Title = "Use " + service + " in a template"
	return s.accountConfirm(w, r, actor, page, adminview.UseForm(m))
}

// templateHas tells what a template itself says of a service now.
func templateHas(t *loom.Template, service string) string {
	switch {
	case t == nil:
		return ""
	case slices.Contains(t.Defaults.Services, service):
		return "new clusters have it already"
	case slices.Contains(t.Compatibility.Services, service):
		return "allows it already"
	}
	return "does not name it yet"
}

// useService puts the service that the address names into a template, for the form of a
// new one or of one that is there: new clusters have it.
func (s *Server) useService(r *http.Request, actor loom.Actor, d *draft) error {
	name := r.URL.Query().Get(fieldService)
	if name == "" {
		return nil
	}
	if _, _, err := s.Catalog.Entry(r.Context(), actor, loom.KindService, name, 0); errors.Is(err, loom.NotFound) {
		return nil // it is gone; the form is of use without
	} else if err != nil {
		return err
	}
	doc, err := form.Parse(d.body)
	if err != nil {
		return nil // the editor says what is wrong with the draft
	}
	added := false
	for _, part := range []string{"compatibility", "defaults"} {
		at := form.At(part, "services")
		if names := doc.Texts(at); !slices.Contains(names, name) {
			doc.Set(at, texted(append(names, name)))
			added = true
		}
	}
	switch {
	case !added:
		d.note = "The template has the service " + name + " already."
		return nil
	case d.name != "":
		d.note = "New clusters have the service " + name + " now; save to keep that."
	}
	d.body, d.changed, d.asJSON = doc.String(), true, false
	return nil
}

// texted is a list of a document.
func texted(names []string) []any {
	list := make([]any, len(names))
	for i, name := range names {
		list[i] = name
	}
	return list
}
