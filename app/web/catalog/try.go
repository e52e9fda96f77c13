package catalog

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/formview"
	"loom/views/route"
	"loom/views/templateview"
	"loom/views/ui"
)

// tryForm is what a dry run asks for, every value as text.
type tryForm struct {
	form.Edit
	// Chosen says that services were shown, so that none means none.
	Chosen bool
}

var tryParts = form.Of(
	form.Field{Path: tryAt("machines")}, form.Field{Path: tryAt("provider")}, form.Field{Path: tryAt("hardwaretype")}, form.Field{Path: tryAt("imagetype")},
	form.Field{Path: tryAt("from")}, form.Field{Path: tryAt("to")}, form.Picker{Path: tryAt("services")},
)

// tryAt is the path of a field.
func tryAt(name string) form.Path { return form.At("try", strings.TrimPrefix(name, tryPrefix)) }

func readTryForm(v url.Values) tryForm {
	f := tryForm{Edit: tryParts.Over(struct{}{}), Chosen: v.Get(templateview.FieldTryChosen) != ""}
	f.Fill(v)
	if suggestion := v.Get("suggest"); suggestion != "" {
		f.apply(suggestion)
	}
	return f
}

func (f *tryForm) of(name string) string { return f.Doc.Text(tryAt(name)) }

func (f *tryForm) services() []string { return f.Doc.Texts(tryAt("services")) }

// apply changes the form as a pressed suggestion says; one that cannot be read
// changes nothing.
func (f *tryForm) apply(suggestion string) {
	name, value, _ := strings.Cut(suggestion, "=")
	name = strings.TrimPrefix(name, tryPrefix)
	if name == "machines" {
		name = "numMachines"
	}
	fields, services := map[string]*string{}, f.services()
	for _, field := range []string{"numMachines", "hardwaretype", "imagetype", "provider"} {
		fields[field] = new(f.of(tryName(field)))
	}
	if page.ApplySuggestion(name+"="+value, fields, &services) != nil {
		return
	}
	for field, text := range fields {
		f.Doc.Set(tryAt(tryName(field)), *text)
	}
	f.Doc.Set(tryAt("services"), services)
}

// tryPrefix is what names of the fields of a dry run begin with.
const tryPrefix = "try."

// input is the question that the form asks, with what cannot be read.
func (f *tryForm) input() (clusters.DryRunInput, ui.FormErrors) {
	in := clusters.DryRunInput{Provider: f.of("provider"), HardwareType: f.of("hardwaretype"), ImageType: f.of("imagetype"), Services: f.services()}
	var errs []loom.FieldError
	for _, n := range []struct {
		name string
		to   *int
	}{{templateview.FieldTryMachines, &in.Machines}, {templateview.FieldTryFrom, &in.From}, {templateview.FieldTryTo, &in.To}} {
		text := f.of(n.name)
		if text == "" {
			continue
		}
		value, err := strconv.Atoi(text)
		if err != nil || value < 1 || value > clusters.DefaultMaxMachines {
			errs = append(errs, loom.FieldError{Field: n.name, Message: fmt.Sprintf("Enter a whole number from 1 to %d.", clusters.DefaultMaxMachines)})
			continue
		}
		*n.to = value
	}
	if in.From > 0 && in.To > 0 && in.From > in.To {
		errs = append(errs, loom.FieldError{Field: templateview.FieldTryTo, Message: "The last size is below the first."})
		in.To = 0
	}
	if f.Chosen && len(f.services()) == 0 {
		errs = append(errs, loom.FieldError{Field: templateview.FieldTryServices, Message: "Choose at least one service. Until then, the template's services apply."})
	}
	return in, ui.NewFormErrors("", errs)
}

// adminTry tries a stored template.
func (s *Server) adminTry(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	name := entryName(r)
	entry, _, err := s.Catalog.Entry(r.Context(), actor, loom.KindTemplate, name, 0)
	if err != nil {
		return err
	}
	f := readTryForm(r.URL.Query())
	link := func(machines int) string { return f.link(name, machines) }
	fields, answer, err := s.try(r.Context(), actor, &f, tried{name: name, link: link})
	if err != nil {
		return err
	}
	m := templateview.TryModel{
		Head: entryHead(loom.KindTemplate, entry, tabTry), Action: route.AdminTry(name), Edit: route.AdminEntryEdit(loom.KindTemplate, name),
		Fields: fields, Answer: answer,
	}
	if r.Header.Get("HX-Target") == templateview.TryID {
		return s.Fragment(w, r, http.StatusOK, templateview.TryForm(m))
	}
	return s.Render(w, r, actor, http.StatusOK, entryFrame(loom.KindTemplate, name, tabTry), templateview.TryPage(m))
}

// link is the dry run of another size, all else as it is.
func (f *tryForm) link(name string, machines int) string {
	v := url.Values{templateview.FieldTryMachines: {strconv.Itoa(machines)}}
	for _, name := range []string{"provider", "hardwaretype", "imagetype", "from", "to"} {
		if value := f.of(name); value != "" {
			v.Set(tryPrefix+name, value)
		}
	}
	if services := f.services(); f.Chosen && len(services) > 0 {
		v[templateview.FieldTryServices], v[templateview.FieldTryChosen] = services, []string{"1"}
	}
	return route.AdminTry(name) + "?" + v.Encode()
}

// tried is the template that a dry run is about: a stored one by its name, or a draft.
type tried struct {
	name  string
	draft *loom.Template
	// link leads to the dry run of another size; nil where there are only buttons.
	link func(machines int) string
	// stepURL is set where the form around is that of the draft: there suggestions, and
	// changes of the template, are buttons that change it and save nothing.
	stepURL string
}

// try asks and words the answer. The form is filled in where it says nothing.
func (s *Server) try(ctx context.Context, actor loom.Actor, f *tryForm, what tried) (templateview.TryFields, templateview.TryAnswer, error) {
	in, errs := f.input()
	in.Template, in.Unsaved = what.name, what.draft
	t, err := s.Clusters.DryRunTemplate(ctx, actor, in)
	if err != nil {
		return templateview.TryFields{}, templateview.TryAnswer{}, err
	}
	deprecated := false
	providers, err := s.Catalog.Entries(ctx, actor, loom.KindProvider, catalog.ListInput{Page: loom.Page{Limit: loom.MaxPageLimit}, Deprecated: &deprecated})
	if err != nil {
		return templateview.TryFields{}, templateview.TryAnswer{}, err
	}
	var names []string
	for _, p := range providers.Items {
		names = append(names, p.Entry.Meta().Name)
	}
	if f.of("machines") == "" && t.Chosen.Machines > 0 {
		f.Doc.Set(tryAt("machines"), t.Chosen.Machines)
	}
	return tryFields(f, t, names, errs), tryAnswer(t, what), nil
}

// tryFields are the fields of the form.
func tryFields(f *tryForm, t clusters.DryRun, providers []string, errs ui.FormErrors) templateview.TryFields {
	number := func(name, label, help string) ui.FieldModel {
		return ui.FieldModel{Name: name, Label: label, Kind: ui.FieldNumber, Value: f.of(name), Min: "1", Help: help, Error: errs.For(name), Optional: true}
	}
	provider, hardware, image := f.of("provider"), f.of("hardwaretype"), f.of("imagetype")
	m := templateview.TryFields{
		Machines: number(templateview.FieldTryMachines, "Nodes", "Empty takes the smallest that works."),
		From:     number(templateview.FieldTryFrom, "Sizes from", ""), To: number(templateview.FieldTryTo, "to", ""),
		Provider: ui.FieldModel{Name: templateview.FieldTryProvider, Label: "Provider", Kind: ui.FieldSelect, Optional: true, Error: errs.For(templateview.FieldTryProvider)},
		Hardware: page.TypeField(templateview.FieldTryHardware, "Hardware type", nil, hardware, "", nil, errs),
		Image:    page.TypeField(templateview.FieldTryImage, "Image type", nil, image, "", nil, errs),
		Open:     len(errs.Items) > 0,
	}
	usual := ""
	if t.Facts != nil {
		d := t.Facts.Template.Defaults
		usual = d.Provider
		low, high := t.Facts.MinMachines, t.Facts.MaxMachines
		m.Machines.Help = "The template allows " + page.NodesRange(low, high) + ". " + m.Machines.Help
		preferredHardware, preferredImages := page.PreferredTypes(&t.Facts.Template)
		m.Hardware = page.TypeField(templateview.FieldTryHardware, "Hardware type", t.Facts.HardwareTypes, hardware, d.HardwareType, preferredHardware, errs)
		m.Image = page.TypeField(templateview.FieldTryImage, "Image type", t.Facts.ImageTypes, image, d.ImageType, preferredImages, errs)
		if !f.Chosen || len(f.services()) == 0 {
			f.Doc.Set(tryAt("services"), d.Services)
		}
		m.Services = page.ServicePicker(t.Facts, f.services(), errs)
		m.Services.Name, m.Services.Error = templateview.FieldTryServices, errs.For(templateview.FieldTryServices)
		m.Differs = f.differs(t.Facts.Template.Defaults)
	}
	m.Provider.Options = []ui.Option{{Label: "the template's (" + cmp.Or(usual, "none") + ")"}}
	for _, name := range providers {
		m.Provider.Options = append(m.Provider.Options, ui.Option{Value: name, Label: name, Selected: name == provider})
	}
	return m
}

// differs says what was chosen against the template.
func (f *tryForm) differs(d loom.Defaults) string {
	provider, services := f.of("provider"), f.services()
	var parts []string
	for _, p := range []struct {
		word string
		is   bool
	}{
		{"provider", provider != "" && provider != d.Provider}, {"hardware type", f.of("hardwaretype") != ""}, {"image type", f.of("imagetype") != ""},
		{"services", f.Chosen && !slices.Equal(slices.Sorted(slices.Values(services)), slices.Sorted(slices.Values(d.Services)))},
		{"sizes", f.of("from")+f.of("to") != ""},
	} {
		if p.is {
			parts = append(parts, p.word)
		}
	}
	if len(parts) == 0 {
		return "template default"
	}
	return "changed: " + strings.Join(parts, ", ")
}

// tryAnswer words what came of a dry run.
func tryAnswer(t clusters.DryRun, what tried) templateview.TryAnswer {
	var a templateview.TryAnswer
	if len(t.Fields) > 0 {
		a.Panel.Head = ui.CheckModel{State: ui.CheckIncomplete, Headline: "It cannot be tried yet"}
		for _, f := range t.Fields {
			a.Panel.Reasons = append(a.Panel.Reasons, ui.Reason{Text: f.Message})
		}
		return a
	}
	if len(t.Missing) > 0 {
		a.Panel.Head = ui.CheckModel{State: ui.CheckIncomplete, Headline: "Something that it needs is missing"}
		a.Lost, a.Apply = lostModels(t.Missing, what.name, ""), withoutLost(t.Missing, what)
		return a
	}
	a.Panel = tryPanel(t)
	a.Notes = tryNotes(t, what)
	if u := t.Chosen.Unsat; u != nil {
		for _, su := range u.Suggestions {
			suggest(&a, su, what)
		}
	}
	sizes := trySizes(t, what)
	a.Sizes = &sizes
	return a
}

// suggest offers a change that would help: of what is asked, or in the form of the
// template of that.
func suggest(a *templateview.TryAnswer, su loom.Suggestion, what tried) {
	name, value := page.SuggestionValue(su)
	if name != "form" {
		name = tryName(name)
	}
	step := func(name, value string) { a.Apply = append(a.Apply, tryStep(what, su.Label, name, value)) }
	switch {
	case len(su.Catalog) > 0 || len(su.Template) > 0 && what.stepURL == "":
		a.Panel.Elsewhere = append(a.Panel.Elsewhere, su.Label)
	case len(su.Template) > 0:
		step(templateview.FieldApply, page.CompactJSON(su.Template))
	case what.stepURL != "":
		step("suggest", name+"="+value)
	default:
		a.Panel.Suggestions = append(a.Panel.Suggestions, ui.Suggestion{Label: su.Label, Name: name, Value: value})
	}
}

// tryStep is a button that changes the draft in the form around, and saves nothing.
func tryStep(what tried, label, name, value string) ui.ButtonModel {
	b := ui.ButtonModel{Label: label, Small: true, Submit: true, Name: name, Value: value, FormAction: what.stepURL + "#" + templateview.TryID, Attrs: templ.Attributes{"formnovalidate": true}}
	for k, v := range formview.Step(what.stepURL, templateview.TryID) {
		b.Attrs[k] = v
	}
	return b
}

// tryName is the field of a dry run for one of the form for a new cluster.
func tryName(field string) string {
	if field == "numMachines" {
		return templateview.FieldTryMachines
	}
	return tryPrefix + field
}

// tryPanel is the answer about the asked size.
func tryPanel(t clusters.DryRun) (m clusterview.CheckPanel) {
	switch t.Chosen.State {
	case clusters.SizeWorks:
		m.Head = ui.CheckModel{State: ui.CheckFits, Headline: page.FitsHeadline(t.Chosen.Layout)}
		m.Layout = ui.NewLayoutPicture("trial-layout", t.Chosen.Layout)
		m.Layout.Folded = true
		if t.Tasks > 0 {
			m.Facts = []ui.Def{{Term: "Plan", Text: ui.Count(t.Tasks, "task", "tasks") + " in " + ui.Count(t.Stages, "stage", "stages")}}
		}
	case clusters.SizeImpossible:
		m.Head = ui.CheckModel{State: ui.CheckCannot, Headline: strings.TrimSuffix(t.Chosen.Unsat.Headline, ".")}
		for _, r := range t.Chosen.Unsat.Reasons {
			m.Reasons = append(m.Reasons, ui.Reason{Text: r.Message})
		}
	default:
		m.Head = ui.CheckModel{State: ui.CheckUnsure, Headline: "The search for " + ui.Count(t.Chosen.Machines, "node", "nodes") + " took too long", Note: "A preview searches longer, up to 30 s."}
	}
	return m
}

// tryNotes are the warnings of a dry run. What could be chosen is added with a press: to the
// template that is being written, or to what is asked where the template allows it.
func tryNotes(t clusters.DryRun, what tried) []templateview.TryNote {
	var notes []templateview.TryNote
	for _, text := range t.Warnings {
		n := templateview.TryNote{Text: text}
		switch service := t.Unchosen[text]; {
		case service == "":
		case what.draft != nil && what.stepURL != "" && len(what.draft.Defaults.Services) > 0:
			n.Add = tryStep(what, "Add", templateview.FieldApply, page.CompactJSON(withService(what.draft, service)))
		case slices.ContainsFunc(t.Facts.Services, func(c clusters.Choice) bool { return c.Name == service && c.WhyNot == "" }):
			n.Add = ui.ButtonModel{Label: "Add", Small: true, Submit: true, Name: "suggest", Value: "add=" + service, Attrs: templ.Attributes{}}
		}
		if n.Add.Label != "" {
			n.Add.Attrs["aria-label"] = "Add " + t.Unchosen[text]
		}
		notes = append(notes, n)
	}
	return notes
}

// withService is the change of a template that adds a service to its defaults, and allows it.
func withService(t *loom.Template, service string) map[string]any {
	patch := map[string]any{"defaults": map[string]any{"services": append(slices.Clone(t.Defaults.Services), service)}}
	if allowed := t.Compatibility.Services; len(allowed) > 0 && !slices.Contains(allowed, service) {
		patch["compatibility"] = map[string]any{"services": append(slices.Clone(allowed), service)}
	}
	return patch
}

// trySizes is the chart of all sizes.
func trySizes(t clusters.DryRun, what tried) templateview.SizesModel {
	m := templateview.SizesModel{Summary: trySummary(t)}
	for _, size := range t.Sizes {
		row := templateview.SizeRow{
			Machines: size.Machines, State: templateview.SizeState(size.State), Why: whyNot(size.Why()),
			Asked: size.Machines == t.Chosen.Machines,
		}
		if what.link != nil {
			row.Href = what.link(size.Machines)
		}
		for _, g := range size.Layout {
			row.Layout = append(row.Layout, templateview.SizeNodes{Count: g.Count, Services: strings.Join(g.Services, ", ")})
		}
		m.Rows = append(m.Rows, row)
	}
	if t.More && len(t.Sizes) > 0 {
		m.Note = fmt.Sprintf("The template allows larger clusters; %d sizes are tried at a time. Enter a larger number of nodes to try those up to it.", len(t.Sizes))
	}
	return m
}

// sizeAhead begins the reasons of a size, which stands beside them already.
var sizeAhead = regexp.MustCompile(`^No layout for (\d+ nodes?|any number of nodes): `)

// whyNot is a reason without the number of machines, so that the same reason of
// several sizes reads the same.
func whyNot(reason string) string {
	short := sizeAhead.ReplaceAllString(reason, "")
	if short == "" {
		return ""
	}
	return strings.ToUpper(short[:1]) + short[1:]
}

// trySummary is the answer about all sizes in a sentence.
func trySummary(t clusters.DryRun) string {
	low, high := t.Facts.MinMachines, t.Facts.MaxMachines
	switch {
	case t.Unsure:
		return "Which sizes work was not found out in time; those below were tried one by one."
	case t.Works == nil:
		return "No number of nodes that the template allows has a layout with these services."
	case t.Works.Min == low && t.Works.Max == high:
		return "Every size that the template allows works: " + page.NodesRange(low, high) + "."
	}
	return fmt.Sprintf("The template allows %s, but only %s with these services: users would be refused the others.", page.NodesRange(low, high), worksRange(*t.Works))
}

func worksRange(r loom.SizeRange) string {
	if r.Min == r.Max {
		return strconv.Itoa(r.Min) + " works"
	}
	return fmt.Sprintf("%d–%d work", r.Min, r.Max)
}
