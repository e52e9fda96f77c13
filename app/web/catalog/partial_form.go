package catalog

import (
	"net/http"

	"github.com/a-h/templ"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/route"
	"loom/views/templateview"
	"loom/views/ui"
)

// partialForm is the form of a partial template: every part may be left out.
func partialForm(s *Server, r *http.Request, actor loom.Actor, d formDraft) (form.Form, error) {
	w, err := s.templateDraft(r, actor, d)
	if err != nil {
		return form.Form{}, err
	}
	config := w.configSection()
	config.Help = "Each key here takes the place of the same key of parts that come before."
	config.Parts = append(config.Parts, form.Field{Path: form.At("immutable"), Face: ui.FieldModel{Label: "Immutable", Kind: ui.FieldCheckbox,
		Help: "Locks these keys: no part that comes later, and no template that includes this one, may set them again."}})
	f := form.Form{Sections: []form.Section{
		aboutSection(d, "A part that several templates include. All of it is optional; templates add up its lists, and its values win over those of what they extend."),
		w.defaultsSection(), w.machinesSection(), config, w.compatibilitySection(),
		templateLinks("Added to those of the templates that include this."),
	}}
	if ignored := w.ignoredParts(); ignored != "" {
		f.Sections = append(f.Sections, form.Section{ID: "ignored", Title: "Without effect", Parts: []form.Part{form.Note{Component: templateview.Paragraph(
			"This partial template says something about " + ignored + ". Templates do not take that from a partial template; it is kept, and can be taken out with “Edit as JSON”.")}}})
	}
	f.Sections = append(f.Sections, form.Section{ID: "effects", Title: "What saving changes", Help: "Clusters that exist keep the copy they were made from.", Parts: []form.Part{effectsPart{s, r, actor, w}}})
	return f, nil
}

// ignoredParts names what a partial template says in vain.
func (w *templateDraft) ignoredParts() string {
	var parts []string
	c, a := w.t.Constraints, w.t.Administration
	if len(c.Layout.MustCoexist)+len(c.Layout.CantCoexist)+len(c.Services) > 0 {
		parts = append(parts, "constraints")
	}
	if low, high := c.Size.Bounds(); low != 1 || high != loom.Unlimited {
		parts = append(parts, "size")
	}
	if a.Lease != (loom.LeaseRule{}) || a.OnFailure != "" {
		parts = append(parts, "lease or failures")
	}
	if a.Health != (loom.HealthRule{}) || a.Repair != (loom.RepairPolicy{}) {
		parts = append(parts, "health")
	}
	return loom.And(parts)
}

// effectsPart is how the templates that build on the draft would change.
type effectsPart struct {
	server  *Server
	request *http.Request
	actor   loom.Actor
	draft   templateDraft
}

// Read implements form.Part: there is nothing to read.
func (p effectsPart) Read(*form.Input) {}

// Show implements form.Part.
func (p effectsPart) Show(out *form.Output) templ.Component {
	if out.StepURL == "" {
		return nil // a check shows no part of the form
	}
	var entry loom.Entry
	if read, err := readDraft(p.draft.Kind, out.Doc.String()); err == nil {
		entry = read
	}
	m := templateview.EffectsModel{StepURL: out.StepURL}
	switch {
	case entry == nil && p.draft.Name == "":
		m.Note = "Nothing yet: no template can include it before it is stored."
	case entry == nil:
		m.Note = "This appears once the form has no errors."
	default:
		found, err := p.server.Catalog.Effects(p.request.Context(), p.actor, p.draft.Kind, entry)
		if err != nil {
			m.Note = "It could not be worked out: " + loom.AsError(err).Message
		}
		m.Rows = effectRows(found)
		if err == nil && len(found) == 0 {
			m.Note = "Nothing else: no template builds on it."
		}
	}
	return templateview.Effects(m)
}

func effectRows(found []catalog.Effect) []templateview.EffectRow {
	var rows []templateview.EffectRow
	for _, e := range found {
		row := templateview.EffectRow{Name: e.Template, Href: route.AdminEntry(loom.KindTemplate, e.Template), Changes: page.ChangesOf(e.Changes)}
		switch {
		case e.Problem != "" && e.Before != "":
			row.Note = "It cannot be used, now or then: " + e.Problem
		case e.Problem != "":
			row.Problem = "It would no longer work: " + e.Problem
		case e.Before != "":
			row.Note = "It could be used again. Now: " + e.Before
		case len(row.Changes) == 0:
			row.Note = "Unchanged."
		}
		rows = append(rows, row)
	}
	return rows
}
