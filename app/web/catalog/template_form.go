package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/templateview"
	"loom/views/ui"
)

// templateDraft is what the form of a template is made of: the draft, as a document
// and as far as it can be read as a template, and the catalog around it.
type templateDraft struct {
	formDraft
	tab string
	// t is empty where the document cannot be read.
	t        *loom.Template
	found    map[loom.EntityKind][]loom.Entry
	services map[string]loom.Service
}

// templateDraft reads the draft and what its form offers, in one query.
func (s *Server) templateDraft(r *http.Request, actor loom.Actor, d formDraft) (templateDraft, error) {
	w := templateDraft{formDraft: d, t: &loom.Template{}, services: map[string]loom.Service{}}
	var err error
	w.found, err = s.Catalog.Newest(r.Context(), actor, loom.KindService, loom.KindHardwareType, loom.KindImageType, loom.KindProvider, loom.KindTemplate, loom.KindPartialTemplate)
	if err != nil {
		return w, err
	}
	for _, e := range w.found[loom.KindService] {
		if service, ok := e.(*loom.Service); ok {
			w.services[service.Name] = *service
		}
	}
	w.read(d.Doc)
	return w, nil
}

// read takes the draft as it is now. What is wrong with it is said elsewhere.
func (w *templateDraft) read(doc *form.Doc) {
	entry, _ := readDraft(w.Kind, doc.String())
	switch e := entry.(type) {
	case *loom.Template:
		w.t = e
	case *loom.PartialTemplate:
		w.t = asTemplate(e)
	default:
		w.t = &loom.Template{}
	}
}

// asTemplate is a partial template as a template, for rules that they share.
func asTemplate(p *loom.PartialTemplate) *loom.Template {
	return &loom.Template{Base: p.Base, Defaults: p.Defaults, Compatibility: p.Compatibility, Constraints: p.Constraints, Administration: p.Administration, Links: p.Links}
}

// choices are the entries of a kind as choices; with only, those, and of others what
// is chosen already.
func (w *templateDraft) choices(kind loom.EntityKind, only []string, chosen ...string) []form.Choice {
	all := choicesOf(w.found[kind])
	if len(only) == 0 {
		return all
	}
	var out []form.Choice
	fits, kept := nameSet(only), nameSet(chosen)
	for _, c := range all {
		if !fits[c.Value] {
			if !kept[c.Value] {
				continue
			}
			c.Facts = append(c.Facts, "not compatible")
		}
		out = append(out, c)
	}
	return out
}

// templateForm is the form of a cluster template, on several tabs.
func templateForm(s *Server, r *http.Request, actor loom.Actor, d formDraft) (form.Form, error) {
	tab, err := askedTab(r, templateTabs)
	if err != nil {
		return form.Form{}, err
	}
	w, err := s.templateDraft(r, actor, d)
	if err != nil {
		return form.Form{}, err
	}
	w.tab = tab
	f := form.Form{Tab: tab, Settle: settleTemplate}
	add := func(tab string, sections ...form.Section) {
		for _, section := range sections {
			section.Tab = tab
			f.Sections = append(f.Sections, section)
		}
	}
	add("general", aboutSection(d, "What users make clusters from. They see the label and the description when they choose."), w.leaseSection(), templateLinks("Shown on the page of each cluster. URLs may hold macros such as %host.service.nginx[0]%."), w.advancedSection())
	add("compatibility", w.compatibilitySection())
	add("defaults", w.defaultsSection(), w.machinesSection(), w.configSection())
	add("constraints", w.sizeSection(), w.coexistSection(), w.limitsSection())
	add("includes", w.includesSections(s, r, actor)...)
	add("try", w.trySection(s, r, actor))
	return f, nil
}

// settleTemplate takes out what an emptied choice leaves behind: a template that
// extends nothing has no “extends”.
func settleTemplate(before, after *form.Doc) {
	at := form.At("extends")
	if before.Text(at.To("name")) != "" && after.Has(at) && after.Text(at.To("name")) == "" && len(after.Keys(at)) == 0 {
		after.Delete(at)
	}
}

func (w *templateDraft) leaseSection() form.Section {
	field := func(name string) form.Part {
		words := loom.Describe(w.Kind, "administration", "leaseduration", name)
		return durationField(form.At("administration", "leaseduration", name), words, "no limit")
	}
	return form.Section{ID: "lease", Title: "Lease and failure", Help: "How long clusters live. Write 7d, 12h or 1d 6h 30m; empty or 0 is no limit.", Parts: []form.Part{
		form.Row{Parts: []form.Part{field("initial"), field("max"), field("step")}}, w.failureCards(),
	}}
}

// advancedSection folds what most templates leave alone.
func (w *templateDraft) advancedSection() form.Section {
	return form.Section{ID: "advanced", Title: "Advanced", Parts: []form.Part{form.Folds{w.healthFold(), w.preferredFold()}}}
}

func (w *templateDraft) healthFold() form.Fold {
	at := form.At("administration", "health", "interval")
	words := loom.Describe(w.Kind, "administration", "health", "interval")
	parts := []form.Part{form.Field{Path: at, Face: ui.FieldModel{Label: words.Label, Help: words.Help, Kind: ui.FieldNumber, Min: "0", Optional: true, Width: "s"}}}
	for _, part := range w.t.Administration.Repair.Parts() {
		words := loom.Describe(w.Kind, "administration", "repair", part.Name)
		parts = append(parts, form.Field{Path: form.At("administration", "repair", part.Name), Face: ui.FieldModel{Label: words.Label, Help: words.Help, Kind: ui.FieldSelect, Optional: true, Width: "m", Options: []ui.Option{
			{Value: "", Label: "Ask the owner"}, {Value: string(loom.RepairTell), Label: "Show it only"}, {Value: string(loom.RepairDo), Label: "Repair it automatically"},
		}}})
	}
	return form.Fold{Title: "Health and repair", Parts: parts}
}

func (w *templateDraft) failureCards() form.Part {
	return form.Cards{Path: form.At("administration", "onFailure"), Legend: "When making a cluster fails", Fallback: loom.OnFailureKeep, Choices: []form.Choice{
		{Value: loom.OnFailureKeep, Label: "Keep for inspection", Description: "You can inspect, repair and retry it."},
		{Value: loom.OnFailureUndo, Label: "Undo changes", Description: "Loom deletes the new machines."},
	}}
}

func (w *templateDraft) preferredFold() form.Fold {
	list := func(kind loom.EntityKind, key, noun string) form.Part {
		return form.Rows{Path: form.At("preferences", key), Legend: noun + "s, preferred first", Noun: noun, New: "", Ordered: true, Empty: "No preference.", Row: func(at form.Path) []form.Part {
			f := form.Field{Path: at, Empty: form.EmptyText, Face: ui.FieldModel{Label: noun, LabelHidden: true, Kind: ui.FieldSelect}}
			f.Face.Options = form.Options(w.Doc, at, "", w.choices(kind, nil))
			return []form.Part{f}
		}}
	}
	return form.Fold{Title: "Preferred types",
		Parts: []form.Part{form.Note{Component: templateview.Paragraph("Where several types fit, the first of these is taken; the others follow by name. Without this, the first name of the alphabet wins.")}, list(loom.KindHardwareType, "hardwaretypes", "Hardware type"), list(loom.KindImageType, "imagetypes", "Image type")}}
}

// templateLinks is the list of links that templates and services publish.
func templateLinks(help string) form.Section {
	return form.Section{ID: "links", Title: "Links", Help: help, Parts: []form.Part{form.Rows{Path: form.At("links"), Noun: "Link", Empty: "No links.", Inline: true, New: map[string]any{"label": "", "url": ""}, Row: func(at form.Path) []form.Part {
		return []form.Part{
			form.Field{Path: at.To("label"), Face: ui.FieldModel{Label: "Label", Optional: true, Width: "s"}},
			form.Field{Path: at.To("url"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "URL", Mono: true, Width: "l", Autocomplete: "off"}},
		}
	}}}}
}

func (w *templateDraft) compatibilitySection() form.Section {
	pick := func(kind loom.EntityKind, key, legend, filter string) form.Part {
		return form.Picker{Path: form.At("compatibility", key), Legend: legend, Filter: filter, Choices: w.choices(kind, nil)}
	}
	const region = "compatible"
	return form.Section{ID: "compatibility", Title: "What clusters may have", Help: "What a user may choose. Where nothing is ticked, everything is allowed.", Parts: []form.Part{
		regionPart{ID: region, Parts: []form.Part{
			pick(loom.KindService, "services", "Services", "Filter services"),
			advicePart{ID: "compatible-advice", Region: region, Services: form.At("compatibility", "services"), draft: w, Mismatch: true},
			form.Row{Parts: []form.Part{
				pick(loom.KindHardwareType, "hardwaretypes", "Hardware types", "Filter hardware types"),
				pick(loom.KindImageType, "imagetypes", "Image types", "Filter image types"),
			}},
		}},
	}}
}

func (w *templateDraft) defaultsSection() form.Section {
	const region = "default-services"
	return form.Section{ID: "defaults", Title: "Services of a new cluster", Help: "What a cluster has when its maker chooses nothing else.", Parts: []form.Part{
		regionPart{ID: region, Parts: []form.Part{
			form.Picker{Path: form.At("defaults", "services"), Legend: "Services", Filter: "Filter services", Choices: w.choices(loom.KindService, w.t.Compatibility.Services, w.t.Defaults.Services...)},
			advicePart{ID: "defaults-advice", Region: region, Services: form.At("defaults", "services"), draft: w},
		}},
	}}
}

func (w *templateDraft) machinesSection() form.Section {
	choose := func(kind loom.EntityKind, key, label, none, help string, only []string) form.Part {
		at := form.At("defaults", key)
		return form.Field{Path: at, Face: ui.FieldModel{Label: label, Kind: ui.FieldSelect, Optional: true, Width: "s", Help: help, Options: form.Options(w.Doc, at, none, w.choices(kind, only, w.Doc.Text(at)))}}
	}
	const byPreference = "Where none is chosen, types are tried in the order of Preferred types, then of the alphabet."
	return form.Section{ID: "machines", Title: "Machines of a new cluster", Help: byPreference, Parts: []form.Part{
		form.Row{Parts: []form.Part{
			choose(loom.KindProvider, "provider", "Provider", "none: each cluster names one", "", nil),
			choose(loom.KindHardwareType, "hardwaretype", "Hardware type", "the first that fits", "", w.t.Compatibility.HardwareTypes),
			choose(loom.KindImageType, "imagetype", "Image type", "the first that fits", "", w.t.Compatibility.ImageTypes),
		}},
		form.Field{Path: form.At("defaults", "dnsSuffix"), Face: ui.FieldModel{Label: "DNS suffix", Mono: true, Optional: true, Placeholder: "lab.example", Autocomplete: "off", Help: "What host names end with; “local” without."}},
	}}
}

func (w *templateDraft) configSection() form.Section {
	section := form.Section{ID: "config", Title: "Config of a new cluster", Parts: []form.Part{
		form.JSON{Path: form.At("defaults", "config"), Label: "Config", Object: true, Rows: 6, Help: "A JSON object. Texts may hold macros such as %host.service.nginx%."},
	}}
	if locked := w.lockedKeys(); len(locked) > 0 {
		section.Parts = append([]form.Part{form.Note{Component: templateview.Locked(locked)}}, section.Parts...)
	}
	return section
}

func (w *templateDraft) sizeSection() form.Section {
	at := form.At("constraints", "size")
	return form.Section{ID: "size", Title: "Size", Help: "How many nodes a cluster may have.", Parts: []form.Part{form.Row{Parts: []form.Part{
		boundPart{Path: at.To("min"), Label: "Minimum", Placeholder: "1"},
		boundPart{Path: at.To("max"), Label: "Maximum", Placeholder: "no limit"},
	}}}}
}

func (w *templateDraft) coexistSection() form.Section {
	return form.Section{ID: "coexist", Title: "Placement", Help: "Other services share nodes freely. Choose groups here, or change cells of the table.", Parts: []form.Part{coexistPart{draft: w}}}
}

// limitsSection is the table of limits of single services.
func (w *templateDraft) limitsSection() form.Section {
	var choices []form.Choice
	for _, name := range w.ruleServices(w.t) {
		choices = append(choices, form.Choice{Value: name, Label: name})
	}
	pick := func(at form.Path, kind loom.EntityKind, key, legend string, only, chosen []string) form.Part {
		return form.Picker{Path: at.To(key), Legend: legend, Filter: "Filter", Choices: w.choices(kind, only, chosen...)}
	}
	return form.Section{ID: "limits", Title: "Service limits", Help: "Number and kind of nodes per service. Minimum 0 makes the service optional.", Parts: []form.Part{form.Keyed{
		Path: form.At("constraints", "services"), Noun: "Service", Inline: true, ChooseLabel: "Service to limit", New: map[string]any{"quantities": map[string]any{}}, Choices: choices,
		Empty: "No service is limited: each is on one node or more.",
		Title: func(name string) string { return limitReading(name, w.t.Constraints.Services[name]) },
		Row: func(at form.Path, name string) []form.Part {
			c := w.t.Constraints.Services[name]
			return []form.Part{
				boundPart{Path: at.To("quantities", "min"), Label: "Minimum", Placeholder: "1"},
				boundPart{Path: at.To("quantities", "max"), Label: "Maximum", Placeholder: "no limit"},
				form.Fold{Title: "Only on certain nodes", Key: at.String(), Says: func(doc *form.Doc) string {
					return chosenWords(doc.Texts(at.To("hardwaretypes")), doc.Texts(at.To("imagetypes")))
				}, Parts: []form.Part{
					pick(at, loom.KindHardwareType, "hardwaretypes", "Hardware types; none ticked allows any", w.t.Compatibility.HardwareTypes, c.HardwareTypes),
					pick(at, loom.KindImageType, "imagetypes", "Image types; none ticked allows any", w.t.Compatibility.ImageTypes, c.ImageTypes),
				}},
			}
		},
	}}}
}

// regionPart is parts that are exchanged together.
type regionPart struct {
	ID    string
	Parts []form.Part
}

// Read implements form.Part.
func (p regionPart) Read(in *form.Input) { in.Parts(p.Parts) }

// Show implements form.Part.
func (p regionPart) Show(out *form.Output) templ.Component {
	return templateview.Region(p.ID, out.Parts(p.Parts))
}

// boundPart is a number that bounds something; loom.Unlimited is shown as nothing.
type boundPart struct {
	Path                     form.Path
	Label, Help, Placeholder string
}

func (p boundPart) shown(doc *form.Doc) string {
	text := doc.Text(p.Path)
	if text == strconv.Itoa(loom.Unlimited) {
		return ""
	}
	return text
}

// Read implements form.Part.
func (p boundPart) Read(in *form.Input) {
	given, posted := in.Get(p.Path.String())
	if given = strings.TrimSpace(given); !posted || given == p.shown(in.Doc) {
		return
	}
	if given == "" {
		in.Doc.Delete(p.Path)
		return
	}
	if n, err := strconv.Atoi(given); err == nil {
		in.Doc.Set(p.Path, json.Number(strconv.Itoa(n)))
		return
	}
	in.Doc.Set(p.Path, given) // whoever reads the template says what is wrong with it
}

// Show implements form.Part.
func (p boundPart) Show(out *form.Output) templ.Component {
	m := ui.FieldModel{Name: p.Path.String(), Label: p.Label, Help: p.Help, Placeholder: p.Placeholder, Value: p.shown(out.Doc), Optional: true, Width: "xs", Autocomplete: "off",
		Attrs: templ.Attributes{"inputmode": "numeric"}}
	m.ID = out.ID(m.Name)
	m.Error = out.Claim(p.Path, m.ID, p.Label)
	return ui.Field(m)
}

// advicePart says what follows from a choice of services: what they require, what
// they conflict with, and with Mismatch which defaults are not among them.
type advicePart struct {
	// ID is that of the advice, Region that of what holds the choice.
	ID, Region string
	Services   form.Path
	Mismatch   bool
	draft      *templateDraft
}

// Read implements form.Part.
func (p advicePart) Read(in *form.Input) {
	chosen := in.Doc.Texts(p.Services)
	if in.Does("require", p.Services) && len(chosen) > 0 {
		add, _ := loom.RequiredServices(chosen, p.draft.services)
		for _, name := range add {
			in.Doc.Append(p.Services, name)
		}
	}
	if !p.Mismatch {
		return
	}
	for _, m := range mismatches(in.Doc) {
		if !in.Does("drop", m.path) {
			continue
		}
		if m.key != "services" {
			in.Doc.Delete(m.path)
			continue
		}
		gone := nameSet(m.names)
		left := slices.DeleteFunc(in.Doc.Texts(m.path), func(name string) bool { return gone[name] })
		in.Doc.Set(m.path, append([]string{}, left...))
	}
}

// mismatch is what defaults name although it is not compatible.
type mismatch struct {
	key, word string
	path      form.Path
	names     []string
}

func mismatches(doc *form.Doc) []mismatch {
	var found []mismatch
	for _, m := range []struct{ key, list, word string }{
		{"services", "services", "default service"}, {"hardwaretype", "hardwaretypes", "default hardware type"}, {"imagetype", "imagetypes", "default image type"},
	} {
		allowed := doc.Texts(form.At("compatibility", m.list))
		at := form.At("defaults", m.key)
		names := doc.Texts(at)
		if name := doc.Text(at); name != "" {
			names = []string{name}
		}
		has := nameSet(allowed)
		names = slices.DeleteFunc(names, func(name string) bool { return has[name] })
		if len(allowed) > 0 && len(names) > 0 {
			found = append(found, mismatch{m.key, m.word, at, names})
		}
	}
	return found
}

func nameSet(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// Show implements form.Part.
func (p advicePart) Show(out *form.Output) templ.Component {
	var list []templateview.AdviceModel
	chosen := out.Doc.Texts(p.Services)
	if len(chosen) > 0 {
		list = p.requirements(out, chosen)
	}
	list = append(list, p.conflicts(chosen)...)
	if p.Mismatch {
		for _, m := range mismatches(out.Doc) {
			them := "it"
			if len(m.names) > 1 {
				them, m.word = "them", m.word+"s"
			}
			list = append(list, templateview.AdviceModel{
				Text:   fmt.Sprintf("%s: %s of new clusters, but no longer compatible.", loom.And(m.names), m.word),
				Button: out.Step(ui.ButtonModel{Label: "Take " + them + " out of the defaults", Small: true, ID: out.ID("drop-" + m.key)}, "drop", m.path, p.Region),
			})
		}
	}
	return templateview.Follows(p.ID, out.StepURL, p.Region, templateview.Advice(list))
}

func (p advicePart) requirements(out *form.Output, chosen []string) []templateview.AdviceModel {
	var list []templateview.AdviceModel
	add, open := loom.RequiredServices(chosen, p.draft.services)
	if len(add) > 0 {
		list = append(list, templateview.AdviceModel{
			Text:   fmt.Sprintf("These services require %s, which %s not ticked.", loom.And(add), map[bool]string{true: "is", false: "are"}[len(add) == 1]),
			Button: out.Step(ui.ButtonModel{Label: "Add required " + map[bool]string{true: "service", false: "services"}[len(add) == 1], Icon: "plus", Small: true}, "require", p.Services, p.Region),
		})
	}
	for _, o := range open {
		text := fmt.Sprintf("%s: “%s” is required, and no service is or provides it.", loom.And(o.By), o.Name)
		if len(o.Offers) > 0 {
			text = fmt.Sprintf("%s: “%s” is required; tick %s.", loom.And(o.By), o.Name, loom.Or(o.Offers))
		}
		list = append(list, templateview.AdviceModel{Text: text})
	}
	return list
}

// conflicts tell of services that exclude each other.
func (p advicePart) conflicts(chosen []string) []templateview.AdviceModel {
	var list []templateview.AdviceModel
	for _, foes := range loom.Foes(chosen, p.draft.services) {
		pair := loom.NewPair(foes.A, foes.B)
		text := pair.A + " and " + pair.B + " conflict, so no cluster can have both."
		if p.Mismatch {
			text += " That is fine here: users choose one of them."
		}
		list = append(list, templateview.AdviceModel{Text: text})
	}
	return list
}

// ruleServices are the services that rules of a template can be about.
func (w *templateDraft) ruleServices(t *loom.Template) []string { return matrixServices(t) }

// limitReading says the limits of a service in a sentence.
func limitReading(name string, c loom.ServiceConstraint) string {
	q := loom.Quantities{}
	if c.Quantities != nil {
		q = *c.Quantities
	}
	text := strings.TrimPrefix(quantityRule(name, q), name+" is ")
	if len(c.HardwareTypes) > 0 {
		text = strings.TrimSuffix(text, ".") + ", with " + loom.Or(c.HardwareTypes) + "."
	}
	if len(c.ImageTypes) > 0 {
		text = strings.TrimSuffix(text, ".") + ", with " + loom.Or(c.ImageTypes) + "."
	}
	return text
}

// chosenWords names what is chosen behind a fold.
func chosenWords(lists ...[]string) string {
	names := slices.Concat(lists...)
	if len(names) == 0 {
		return ""
	}
	return ": " + loom.And(names)
}

// keyed is a part of a list by its place, with a title that people know.
func groupTitle(set []string, i int) string {
	return cmp.Or(strings.Join(set, ", "), "Group "+strconv.Itoa(i+1))
}
