package catalog

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/route"
	"loom/views/templateview"
	"loom/views/ui"
)

// lookup finds parts of templates among what was read with the draft.
func (w *templateDraft) lookup() loom.TemplateLookup {
	return loom.TemplateLookup{Template: findEntry[loom.Template](w, loom.KindTemplate), Partial: findEntry[loom.PartialTemplate](w, loom.KindPartialTemplate)}
}

func findEntry[T any](w *templateDraft, kind loom.EntityKind) func(name string) (T, error) {
	return func(name string) (T, error) {
		var none T
		for _, e := range w.found[kind] {
			if found, ok := any(e).(*T); ok && e.Meta().Name == name {
				return *found, nil
			}
		}
		return none, loom.NewError(loom.NotFound, "There is no %s “%s”.", kind.Word(), name)
	}
}

// lockedKeys are the config keys that the draft may not set.
func (w *templateDraft) lockedKeys() []templateview.LockedKey {
	inherited := *w.t
	inherited.Defaults.Config = nil // whether it sets one of them is not asked here
	found, err := loom.TemplateOrigins(inherited, w.lookup())
	if err != nil {
		return nil
	}
	var keys []templateview.LockedKey
	for _, o := range found {
		if o.Locked {
			keys = append(keys, templateview.LockedKey{Key: strings.TrimPrefix(o.Path, "defaults.config."), Value: o.Value, By: o.Name})
		}
	}
	return keys
}

// includesSections are what the template builds on, and what comes of it.
func (w *templateDraft) includesSections(s *Server, r *http.Request, actor loom.Actor) []form.Section {
	name := w.Doc.Text(form.At("name"))
	extends := form.At("extends", "name")
	build := form.Section{ID: "includes", Title: "Builds on", Help: "Parents come first, then partial templates in their order, then this template. What comes later wins; lists are added up.", Parts: []form.Part{
		form.Field{Path: extends, Face: ui.FieldModel{Label: "Extends", Kind: ui.FieldSelect, Optional: true, Width: "s", Help: "A template whose every part counts here unless it is said again.",
			Options: form.Options(w.Doc, extends, "no template", without(w.choices(loom.KindTemplate, nil), name))}},
		form.Rows{Path: form.At("includes"), Legend: "Includes", Noun: "Partial template", New: map[string]any{"name": ""}, Ordered: true, Empty: "No partial templates.", Row: func(at form.Path) []form.Part {
			f := form.Field{Path: at.To("name"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Partial template", LabelHidden: true, Kind: ui.FieldSelect, Width: "s"}}
			f.Face.Options = form.Options(w.Doc, at.To("name"), "", w.choices(loom.KindPartialTemplate, nil))
			return []form.Part{f}
		}},
	}}
	build.Parts = []form.Part{regionPart{ID: "builds-on", Parts: build.Parts}}
	sections := []form.Section{build, {ID: "resolved-section", Title: "What comes of it", Help: "The template as clusters are made from it.", Parts: []form.Part{resolvedPart{w}}}}
	if w.isExtended() && w.tab == "includes" {
		sections = append(sections, form.Section{ID: "effects", Title: "Templates that extend this one", Help: "How they change when this one is saved.", Parts: []form.Part{effectsPart{s, r, actor, *w}}})
	}
	return sections
}

// isExtended reports whether other templates build on the one of the draft.
func (w *templateDraft) isExtended() bool {
	return w.Name != "" && slices.ContainsFunc(w.found[loom.KindTemplate], func(e loom.Entry) bool {
		t, ok := e.(*loom.Template)
		return ok && t.Extends != nil && t.Extends.Name == w.Name
	})
}

// resolvedPart is the merged template, made anew when what it builds on changes.
type resolvedPart struct{ draft *templateDraft }

// Read implements form.Part: there is nothing to read.
func (p resolvedPart) Read(*form.Input) {}

// Show implements form.Part.
func (p resolvedPart) Show(out *form.Output) templ.Component {
	return templateview.Follows("resolved-part", out.StepURL, "builds-on", templateview.Resolved(p.draft.resolved()))
}

// resolved says where each value of the merged template comes from.
func (w *templateDraft) resolved() templateview.ResolvedModel {
	m := templateview.ResolvedModel{Alone: w.t.Extends == nil && len(w.t.Includes) == 0}
	found, err := loom.TemplateOrigins(*w.t, w.lookup())
	if err != nil {
		m.Problem = loom.AsError(err).Message
		if e := loom.AsError(err); len(e.Fields) > 0 {
			m.Problem = e.Fields[0].Message
		}
		return m
	}
	for _, o := range found {
		title, term := originWords(o.Path)
		i := slices.IndexFunc(m.Groups, func(g templateview.ResolvedGroup) bool { return g.Title == title })
		if i < 0 {
			i = len(m.Groups)
			m.Groups = append(m.Groups, templateview.ResolvedGroup{Title: title})
		}
		row := templateview.ResolvedRow{Term: term, Value: shortText(o.Value), From: o.Kind.Word() + " " + o.Name, Href: route.AdminEntry(o.Kind, o.Name), Over: loom.And(o.Over), Locked: o.Locked,
			Own: o.Kind == loom.KindTemplate && o.Name == w.t.Name}
		if row.Value == row.Term {
			row.Value = ""
		}
		if name, is := strings.CutPrefix(o.Path, "constraints.services."); is {
			row.Value = limitWords(name, o.Value)
		}
		m.Groups[i].Rows = append(m.Groups[i].Rows, row)
	}
	return m
}

// limitWords says the limits of a service, given as JSON, in a sentence.
func limitWords(name, value string) string {
	var c loom.ServiceConstraint
	if err := json.Unmarshal([]byte(value), &c); err != nil {
		return shortText(value)
	}
	return limitReading(name, c)
}

// originWords names a value: the group it is shown in, and what it is there.
func originWords(path string) (title, term string) {
	for _, g := range []struct{ prefix, title string }{
		{"defaults.services.", "Default services"}, {"defaults.config.", "Default config"}, {"compatibility.services.", "Compatible services"},
		{"compatibility.hardwaretypes.", "Compatible hardware types"}, {"compatibility.imagetypes.", "Compatible image types"},
		{"constraints.layout.mustcoexist.", "Same node"}, {"constraints.layout.cantcoexist.", "Never same node"}, {"constraints.services.", "Service limits"}, {"links.", "Links"},
	} {
		if rest, is := strings.CutPrefix(path, g.prefix); is {
			return g.title, rest
		}
	}
	words := map[string]string{"defaults.provider": "Provider", "defaults.hardwaretype": "Hardware type", "defaults.imagetype": "Image type", "defaults.dnsSuffix": "DNS suffix",
		"constraints.size": "Size", "administration.leaseduration": "Lease", "administration.onFailure": "On failure", "preferences": "Preferred types"}
	term = words[path]
	if term == "" {
		term = loom.Describe(loom.KindTemplate, strings.Split(path, ".")...).Label
	}
	return "Single values", term
}

func shortText(text string) string {
	if r := []rune(text); len(r) > page.LongestValue {
		return string(r[:page.LongestValue]) + "…"
	}
	return text
}

// trySection is a dry run of the draft as it stands.
func (w *templateDraft) trySection(s *Server, r *http.Request, actor loom.Actor) form.Section {
	return form.Section{ID: "try", Title: "Try it", Help: "A dry run of the form for a new cluster with this draft: nothing is stored and no machine is made.", Parts: []form.Part{tryPart{draft: w, server: s, request: r, actor: actor}}}
}

// tryPart tries the draft. Its fields are none of the document's.
type tryPart struct {
	draft   *templateDraft
	server  *Server
	request *http.Request
	actor   loom.Actor
}

// Read implements form.Part: a suggestion may change the draft.
func (p tryPart) Read(in *form.Input) {
	patchDoc(in.Doc, nil, appliedPatch(in.Values))
}

// appliedPatch is the change of the draft that a button brings, nil for none.
func appliedPatch(values url.Values) map[string]any {
	tree, _ := page.ParseTree([]byte(values.Get(templateview.FieldApply))).(map[string]any)
	return tree
}

// patchDoc lays a JSON merge patch (RFC 7396) over a document.
func patchDoc(doc *form.Doc, at form.Path, patch map[string]any) {
	for key, v := range patch {
		switch v := v.(type) {
		case nil:
			doc.Delete(at.To(key))
		case map[string]any:
			patchDoc(doc, at.To(key), v)
		default:
			doc.Set(at.To(key), v)
		}
	}
}

// Show implements form.Part. Other tabs, and checks, do not search.
func (p tryPart) Show(out *form.Output) templ.Component {
	if out.StepURL == "" || p.draft.tab != "try" {
		return nil
	}
	values := p.request.PostForm
	if values == nil {
		values = url.Values{}
	}
	f := readTryForm(values)
	if defaults, ok := appliedPatch(values)["defaults"].(map[string]any); ok && defaults["services"] != nil {
		f.Chosen = false // they are tried as the template has them now
		f.Doc.Delete(tryAt("services"))
	}
	fields, answer, err := p.server.try(p.request.Context(), p.actor, &f, tried{draft: p.draft.t, stepURL: out.StepURL})
	if err != nil {
		return templateview.Paragraph("It could not be tried: " + loom.AsError(err).Message)
	}
	return templateview.TryInForm(templateview.TryModel{Fields: fields, Answer: answer, Action: out.StepURL})
}
