package catalog

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
	"loom/views/ui"
)

// providerOffers are the providers of a tenant with what they said that they have.
type providerOffers struct {
	providers []loom.Entry
	probes    map[string]loom.Probe
	// kind is what the form is about, verified what providers said of it of late, and
	// failed why they could not be asked just now.
	kind     loom.OfferKind
	verified map[string]map[string]loom.Probe
	failed   map[string]loom.Probe
	now      time.Time
}

// offersFor is offers with what providers said of single sizes or images.
func (s *Server) offersFor(r *http.Request, actor loom.Actor, kind loom.OfferKind, d formDraft) (providerOffers, error) {
	o, err := s.offers(r, actor)
	if err != nil {
		return o, err
	}
	o.kind, o.failed, o.now = kind, d.Told, s.Now()
	o.verified, err = s.Processes.Verified(r.Context(), actor, kind)
	return o, err
}

func (s *Server) offers(r *http.Request, actor loom.Actor) (providerOffers, error) {
	found, err := s.Catalog.Newest(r.Context(), actor, loom.KindProvider)
	if err != nil {
		return providerOffers{}, err
	}
	probes, err := s.Processes.Offers(r.Context(), actor)
	return providerOffers{providers: found[loom.KindProvider], probes: probes}, err
}

// flavors lets a field suggest the sizes of a provider.
func (o providerOffers) flavors(f form.Field, provider string) form.Field {
	for _, flavor := range o.probes[provider].Flavors {
		if len(f.Suggest) == maxOffers {
			break
		}
		var facts []string
		if flavor.Name != flavor.ID {
			facts = append(facts, flavor.Name)
		}
		if flavor.VCPU > 0 {
			facts = append(facts, ui.Count(flavor.VCPU, "processor", "processors"))
		}
		if flavor.RAM > 0 {
			facts = append(facts, strconv.Itoa(flavor.RAM)+" MB")
		}
		f.Suggest = append(f.Suggest, ui.Option{Value: flavor.ID, Label: strings.Join(facts, ", ")})
	}
	return o.told(f)
}

// images lets a field suggest the images of a provider.
func (o providerOffers) images(f form.Field, provider string) form.Field {
	for _, image := range o.probes[provider].Images {
		if len(f.Suggest) == maxOffers {
			break
		}
		f.Suggest = append(f.Suggest, ui.Option{Value: image.ID, Label: image.Name})
	}
	return o.told(f)
}

// told says of a field that it suggests something.
func (o providerOffers) told(f form.Field) form.Field {
	if n := len(f.Suggest); n > 0 {
		f.Face.Help += " Suggests what the provider offered when it was last tested."
	}
	return f
}

// mapSection is the part of hardware and image types that says what each provider
// calls them.
func (o providerOffers) mapSection(thing string, row func(at form.Path, provider string) []form.Part) form.Section {
	byName := map[string]*loom.Provider{}
	for _, e := range o.providers {
		if p, ok := e.(*loom.Provider); ok {
			byName[p.Name] = p
		}
	}
	title := func(name string) string {
		p := byName[name]
		switch {
		case p == nil:
			return "There is no provider of this name; the row is kept, without effect."
		case p.Label != "" && p.Label != p.Name:
			return p.Label + ", type " + p.Type
		}
		return "type " + p.Type
	}
	unmapped := func(free []form.Choice) templ.Component {
		names := make([]string, len(free))
		for i, c := range free {
			names[i] = c.Value
		}
		return adminview.Unmapped(names, thing)
	}
	return form.Section{ID: "map", Title: "On each provider", Parts: []form.Part{form.Keyed{
		Path: form.At("providermap"), Noun: "Provider", ChooseLabel: "Provider to add", New: map[string]any{}, Row: row, Choices: choicesOf(o.providers),
		Empty: "No provider can make " + thing + " yet: add one.", Title: title, After: unmapped,
	}}}
}

// Names of the query with which the form of a hardware or image type takes over what a
// provider offers.
const (
	fieldProvider = "provider"
	fieldFlavor   = "flavor"
	fieldImage    = "image"
)

// settingsID is the section of a provider that depends on its type.
const settingsID = "settings"

// providerForm is the form of a provider: its type, which stays once it is stored,
// and the settings that the type declares.
func providerForm(s *Server, r *http.Request, actor loom.Actor, d formDraft) (form.Form, error) {
	types, err := s.Catalog.PluginTypes(r.Context(), actor, loom.KindProviderType)
	if err != nil {
		return form.Form{}, err
	}
	p := providerEditor{types: types, draft: d, settings: form.PluginFields{
		Path: form.At("provisioner"), Now: s.Now(), Override: mayOverride, Methods: map[string]string{},
	}}
	for name := range r.PostForm {
		if title, is := strings.CutPrefix(name, form.MethodName("")); is {
			p.settings.Methods[title] = r.PostForm.Get(name)
		}
	}
	p.choosing = r.PostForm.Get(form.FieldDo) == doChangeType+":"+typePath.String()
	if d.Name != "" {
		sealed, err := s.Catalog.SealedFields(r.Context(), actor, d.Name)
		if err != nil {
			return form.Form{}, err
		}
		p.settings.Sealed = make(map[string]form.Sealed, len(sealed))
		for field, stamp := range sealed {
			p.settings.Sealed[field] = form.Sealed{By: string(stamp.By), Time: stamp.Time}
		}
	}
	if p.settings.Choices, err = s.choices(r, actor, d.Name); err != nil {
		return form.Form{}, err
	}
	resources, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{})
	if err != nil {
		return form.Form{}, err
	}
	p.resources = resources
	return p.form(), nil
}

// providerEditor is what the form of a provider is made of.
type providerEditor struct {
	types     []loom.PluginType
	resources []loom.Resource
	draft     formDraft
	settings  form.PluginFields
	// choosing shows the types although one is chosen.
	choosing bool
}

func (p providerEditor) form() form.Form {
	f := form.Form{
		Files: true,
		Sections: []form.Section{
			p.about(),
			p.settingsSection(),
		},
		Check: func(doc *form.Doc) []loom.FieldError { return p.fields(doc).Missing(doc) },
	}
	if p.draft.Name == "" {
		f.Settle = p.settle
	}
	return f
}

// typeOf gives the type that a document names, nil for one that is not there.
func (p providerEditor) typeOf(doc *form.Doc) *loom.PluginType {
	name := doc.Text(typePath)
	if i := slices.IndexFunc(p.types, func(t loom.PluginType) bool { return t.Name == name }); i >= 0 {
		return &p.types[i]
	}
	return nil
}

// about is the name, and folded what else says something about the provider.
func (p providerEditor) about() form.Section {
	section := aboutSection(p.draft, "")
	last := len(section.Parts) - 1
	more := section.Parts[1:last:last]
	if fold, is := section.Parts[last].(form.Fold); is {
		more = append(more, fold.Parts...)
	}
	section.Parts = []form.Part{section.Parts[0], form.Fold{Title: "Label, description, appearance", Parts: more}}
	return section
}

// fields are the fields of the type that a document names.
func (p providerEditor) fields(doc *form.Doc) form.PluginFields {
	fields := p.settings
	t := p.typeOf(doc)
	if t == nil {
		return fields
	}
	fields.Group = t.Parameters["admin"]
	fields.Upload = uploads(*t, p.draft)
	fields.Resources = func(resourceType string) []form.Choice {
		return resourceChoices(p.resources, loom.KindProviderType, t.Name, resourceType)
	}
	return fields
}

// settle changes the settings when another type was chosen: what only the old type
// knows goes, and the new type's defaults come.
func (p providerEditor) settle(before, after *form.Doc) {
	old, now := p.typeOf(before), p.typeOf(after)
	if old == now || now == nil {
		return
	}
	at := form.At("provisioner")
	for _, name := range after.Keys(at) {
		_, known := now.Parameters["admin"].Fields[name]
		if old != nil && !known {
			if _, was := old.Parameters["admin"].Fields[name]; was {
				after.Delete(at.To(name))
			}
		}
	}
	for _, name := range after.Texts(fixedPath) {
		if !now.Parameters["admin"].Fields[name].Override {
			setFixed(after, name, false)
		}
	}
	p.fields(after).Preset(after)
}

func (p providerEditor) settingsSection() form.Section {
	fields := p.fields(p.draft.Doc)
	declared := fields.Group.Names()
	t := p.typeOf(p.draft.Doc)
	section := form.Section{ID: settingsID, Title: "Provider type"}
	others := form.Pairs{Path: fields.Path, Legend: "Other settings", Noun: "Setting", KeyLabel: "Name", ValueLabel: "Value", Not: declared, Hidden: loom.LooksSecret}
	switch {
	case p.draft.Name == "":
		section.Parts = append(section.Parts, typePart{p.types, p.choosing || t == nil})
	case t == nil:
		section.Parts = append(section.Parts, form.Fixed{Path: typePath, Label: "Type", Mono: true, Why: "No plugin of this type is registered. It cannot be changed; make another provider instead."})
	}
	if t == nil || p.choosing {
		if t == nil && p.draft.Doc.Text(typePath) != "" {
			section.Help = "The type is not registered, so it is not known which settings there are."
			section.Parts = append(section.Parts, others)
		}
		return section
	}
	section.Title = cmp.Or(t.Label, t.Name)
	if len(declared) == 0 {
		section.Help = "The type " + t.Name + " has no settings."
	}
	section.Parts = append(section.Parts, fields)
	var odd []string
	for name := range fields.Sealed {
		if !slices.Contains(declared, name) {
			odd = append(odd, name)
		}
	}
	if slices.ContainsFunc(p.draft.Doc.Keys(fields.Path), func(key string) bool { return !slices.Contains(declared, key) }) {
		others.Help = "The type " + t.Name + " does not know these; they are kept, without effect."
		section.Parts = append(section.Parts, others)
	}
	if t.Name == openStack {
		section.Parts = append(section.Parts, form.Fold{Title: "Fill in from a clouds.yaml", Parts: []form.Part{cloudsPart{fields.Path}}})
	}
	if len(odd) > 0 {
		slices.Sort(odd)
		section.Parts = append(section.Parts, form.Note{Component: adminview.AlsoSealed(odd)})
	}
	return section
}

// resourceChoices are the resources of a type that are live, or will be with the
// next sync, each once with its version.
func resourceChoices(resources []loom.Resource, kind loom.EntityKind, plugin, resourceType string) []form.Choice {
	var choices []form.Choice
	for _, r := range resources {
		if r.Kind != string(kind) || r.Plugin != plugin || r.Type != resourceType || !r.Live && !r.Slated {
			continue
		}
		fact := "version " + strconv.Itoa(r.Version) + ", active"
		if !r.Live {
			fact = "version " + strconv.Itoa(r.Version) + ", with the next release"
		}
		i := slices.IndexFunc(choices, func(c form.Choice) bool { return c.Value == r.Name })
		switch {
		case i < 0:
			choices = append(choices, form.Choice{Value: r.Name, Facts: []string{fact}})
		case r.Live:
			choices[i].Facts = []string{fact}
		}
	}
	slices.SortFunc(choices, func(a, b form.Choice) int { return strings.Compare(a.Value, b.Value) })
	return choices
}
