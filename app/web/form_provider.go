package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loom/app/catalog"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
	"loom/views/route"
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
		Path: form.At("provisioner"), Now: s.now(), Override: mayOverride,
	}}
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
}

func (p providerEditor) form() form.Form {
	f := form.Form{
		Files: true,
		Sections: []form.Section{
			aboutSection(p.draft, "A place where machines are made. Templates and clusters name it."),
			{ID: "type", Title: "Type", Help: "The plugin that makes the machines.", Parts: []form.Part{p.typePart()}},
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
	name := doc.Text(form.At("providertype"))
	if i := slices.IndexFunc(p.types, func(t loom.PluginType) bool { return t.Name == name }); i >= 0 {
		return &p.types[i]
	}
	return nil
}

func (p providerEditor) typePart() form.Part {
	at := form.At("providertype")
	if p.draft.Name != "" {
		why := "It cannot be changed; make another provider instead."
		if p.typeOf(p.draft.Doc) == nil {
			why = "No plugin of this type is registered. " + why
		}
		return form.Fixed{Path: at, Label: "Provider type", Mono: true, Why: why}
	}
	var choices []form.Choice
	for _, t := range p.types {
		c := form.Choice{Value: t.Name, Label: t.Name, Description: t.Description, Deprecated: t.Deprecated}
		if t.Label != "" {
			c.Label = t.Label
		}
		if !strings.EqualFold(c.Label, t.Name) {
			c.Facts = []string{t.Name}
		}
		choices = append(choices, c)
	}
	words := loom.Describe(loom.KindProvider, "providertype")
	return form.Cards{Path: at, Legend: words.Label, Help: words.Help, Choices: choices, Refresh: settingsID}
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
	declared := form.Declared(fields.Group)
	t := p.typeOf(p.draft.Doc)
	section := form.Section{ID: settingsID, Title: "Settings", Parts: []form.Part{fields}}
	others := form.Pairs{Path: fields.Path, Legend: "Other settings", Noun: "Setting", KeyLabel: "Name", ValueLabel: "Value", Not: declared, Hidden: loom.LooksSecret}
	switch {
	case t == nil && p.draft.Doc.Text(form.At("providertype")) == "":
		section.Help = "Choose a type first: it says which settings there are."
		return section
	case t == nil:
		section.Help = "The type is not registered, so it is not known which settings there are."
		section.Parts = []form.Part{others}
	case len(declared) == 0:
		section.Help = "The type " + t.Name + " has no settings."
	}
	var odd []string
	for name := range fields.Sealed {
		if !slices.Contains(declared, name) {
			odd = append(odd, name)
		}
	}
	if t != nil && slices.ContainsFunc(p.draft.Doc.Keys(fields.Path), func(key string) bool { return !slices.Contains(declared, key) }) {
		others.Help = "The type " + t.Name + " does not know these; they are kept, without effect."
		section.Parts = append(section.Parts, others)
	}
	if t != nil && t.Name == openStack {
		section.Parts = append(section.Parts, form.Fold{Title: "Fill in from a clouds.yaml", Parts: []form.Part{cloudsPart{fields.Path}}})
	}
	if len(odd) > 0 {
		slices.Sort(odd)
		section.Parts = append(section.Parts, form.Note{Component: adminview.AlsoSealed(odd)})
	}
	if slices.ContainsFunc(declared, func(name string) bool { return fields.Group.Fields[name].ResourceType != "" }) {
		section.Parts = append(section.Parts, form.Note{Component: adminview.UploadLink(route.AdminResources())})
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
			fact = "version " + strconv.Itoa(r.Version) + ", with the next sync"
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
