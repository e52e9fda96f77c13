package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/lifecycle"
	"loom/app/loom"
	"loom/solver"
	"loom/views/clusterview"
	"loom/views/route"
	"loom/views/ui"
)

// formModel makes the page of the form.
func (s *Server) formModel(actor loom.Actor, st *settled, errs ui.FormErrors, check clusterview.CheckPanel) clusterview.FormModel {
	m := clusterview.FormModel{Errors: errs, None: len(st.templates) == 0, MayMake: actor.IsAdmin(), Check: check, Restored: st.restored, Now: s.now()}
	m.Template = ui.ChoiceModel{Name: "clusterTemplate", Legend: "Template", Filter: "Filter templates", Error: errs.For("clusterTemplate"), Attrs: formAgain()}
	for _, t := range st.templates {
		m.Template.Choices = append(m.Template.Choices, templateCard(t, st.form.Template))
	}
	m.Rest = restModel(st, errs)
	return m
}

// formAgain makes a control fetch what depends on it.
func formAgain() templ.Attributes {
	return templ.Attributes{
		"hx-post": clusterview.FormURL(), "hx-trigger": "change", "hx-include": "closest form",
		"hx-target": "#" + clusterview.FormRestID, "hx-swap": "outerHTML", "hx-sync": "closest form:replace",
	}
}

func templateCard(t loom.Template, chosen string) ui.Choice {
	c := ui.Choice{Value: t.Name, Label: t.Label, Description: t.Description, Checked: t.Name == chosen}
	if c.Label == "" {
		c.Label = t.Name
	}
	if t.Extends == nil && len(t.Includes) == 0 {
		c.Facts = []string{nodesRange(t.Constraints.Size.Bounds()), strings.Join(t.Defaults.Services, ", ")}
	}
	return c
}

func restModel(st *settled, errs ui.FormErrors) clusterview.FormRest {
	f, facts := st.form, st.facts
	m := clusterview.FormRest{
		For: f.For, ForProvider: f.ForProvider, Suggested: f.Suggested, Note: st.note,
		Name: ui.FieldModel{Name: "name", Label: "Name", Value: f.Name, Error: errs.For("name"), MaxLength: loom.MaxNameLength,
			Help: "Letters a to z, digits, “_”, “-” and “.”; it cannot be changed later.", Autocomplete: "off"},
		Machines: ui.FieldModel{Name: "numMachines", Label: "Number of nodes", Kind: ui.FieldNumber, Value: f.Machines,
			Min: "1", Error: errs.For("numMachines")},
		Description: ui.FieldModel{Name: "description", Label: "Description", Kind: ui.FieldTextarea, Rows: 2, Optional: true,
			Value: f.Description, Error: errs.For("description"), MaxLength: loom.MaxDescription},
	}
	if facts == nil {
		m.For = ""
		return m
	}
	low, high := facts.MinMachines, facts.MaxMachines
	m.Machines.Help = capital(nodesRange(low, high)) + ", says the template."
	m.Machines.Min = strconv.Itoa(low)
	if high < loom.Unlimited {
		m.Machines.Max = strconv.Itoa(high)
	}
	m.Differs = differs(st)
	m.Open = openAdvanced(errs)
	m.Provider = providerField(st, errs)
	m.ProviderFields = providerFields(facts.ProviderFields, facts.Required, f.Fields, errs)
	resourcePickers(m.ProviderFields, facts)
	m.ProviderFields = append(m.ProviderFields, fixedFields(facts.FixedFields)...)
	m.Labels = ui.FieldModel{Name: "labels", Label: "Labels", Kind: ui.FieldTextarea, Rows: 2, Mono: true, Optional: true, Value: f.Labels, Error: errs.For("labels"),
		Help: "One key=value on a line, to find the cluster by."}
	m.Open = m.Open || f.Do == resetConfig || f.Advanced
	preferredHardware, preferredImages := preferredTypes(&facts.Template)
	m.Hardware = typeField("hardwaretype", "Hardware type", facts.HardwareTypes, f.Hardware, facts.Template.Defaults.HardwareType, preferredHardware, errs)
	m.Image = typeField("imagetype", "Image type", facts.ImageTypes, f.Image, facts.Template.Defaults.ImageType, preferredImages, errs)
	m.Services = servicePicker(facts, f.Services, errs)
	m.Lease = ui.FieldModel{Name: "initialLeaseDuration", Label: "Lease", Value: f.Lease, Optional: true, Width: "s", Help: leaseHelp(facts.Template.Administration.Lease),
		Error: errs.For("initialLeaseDuration"), Placeholder: "7d"}
	m.DNSSuffix = ui.FieldModel{Name: "dnsSuffix", Label: "DNS suffix", Value: f.DNSSuffix, Optional: true, Mono: true, Help: "What host names end with.",
		Error: errs.For("dnsSuffix"), Placeholder: facts.Template.Defaults.DNSSuffix}
	m.OnFailure = failureField("If the operation fails", f.OnFailure, facts.Template.Administration.OnFailure, errs)
	m.Config = configField(f.Config, errs)
	return m
}

// usualPolicy words what a template says of failures.
func usualPolicy(onFailure string) string {
	if onFailure == loom.OnFailureUndo {
		return "take it back"
	}
	return "keep it"
}

// openAdvanced says whether an error is in the advanced part.
func openAdvanced(errs ui.FormErrors) bool {
	return slices.ContainsFunc(errs.Items, func(e ui.FormError) bool {
		return e.Field != "" && !slices.Contains([]string{"name", "numMachines", "description", "clusterTemplate"}, e.Field)
	})
}

// differs says what was changed against the template, for the line that hides it.
func differs(st *settled) string {
	f, facts := st.form, st.facts
	d := facts.Template.Defaults
	var parts []string
	add := func(word string, changed bool) {
		if changed {
			parts = append(parts, word)
		}
	}
	services, usual := slices.Sorted(slices.Values(f.Services)), slices.Sorted(slices.Values(d.Services))
	add("provider", f.Provider != d.Provider)
	add("hardware type", f.Hardware != "")
	add("image type", f.Image != "")
	add("services", f.ServicesShown && !slices.Equal(services, usual))
	add("lease", f.Lease != "")
	add("DNS suffix", f.DNSSuffix != "")
	add("failure", f.OnFailure != "")
	add("labels", f.Labels != "")
	add("config", !sameJSON(f.Config, facts.Config))
	if len(parts) == 0 {
		return "as the template says"
	}
	return "changed: " + strings.Join(parts, ", ")
}

func providerField(st *settled, errs ui.FormErrors) ui.FieldModel {
	m := ui.FieldModel{Name: "provider", Label: "Provider", Kind: ui.FieldSelect, Error: errs.For("provider"), Attrs: formAgain(), Help: "Where the machines are made."}
	for _, p := range st.providers {
		o := ui.Option{Value: p.Name, Label: p.Name, Selected: p.Name == st.form.Provider}
		if p.Label != "" && p.Label != p.Name {
			o.Label = p.Label + " (" + p.Name + ")"
		}
		if p.Name == st.facts.Template.Defaults.Provider {
			o.Label += ", the template's"
		}
		m.Options = append(m.Options, o)
	}
	return m
}

// providerFields makes the controls for fields that a provider's plugin declares.
func providerFields(schemas map[string]loom.FieldSchema, required [][]string, given map[string]string, errs ui.FormErrors) []ui.FieldModel {
	var fields []ui.FieldModel
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		schema := schemas[name]
		f := ui.FieldModel{Name: fieldPrefix + name, Label: schema.Label, Help: schema.Tip, Value: given[name], Error: errs.For(fieldPrefix + name), Optional: true}
		if f.Label == "" {
			f.Label = name
		}
		if _, typed := given[name]; !typed && schema.Default != nil {
			f.Value = fmt.Sprint(schema.Default)
		}
		// With several sets any one will do, so none of their fields is a must.
		f.Optional = len(required) != 1 || !slices.Contains(required[0], name)
		shape(&f, schema)
		fields = append(fields, f)
	}
	return fields
}

// shape gives a field the control of its type.
func shape(f *ui.FieldModel, schema loom.FieldSchema) {
	switch {
	case schema.IsSensitive():
		f.Kind, f.Autocomplete = ui.FieldPassword, "off"
	case schema.Type == "select":
		f.Kind = ui.FieldSelect
		if f.Optional {
			f.Options = append(f.Options, ui.Option{Value: "", Label: "not given"})
		}
		for _, o := range schema.Options {
			f.Options = append(f.Options, ui.Option{Value: o, Label: o, Selected: o == f.Value})
		}
	case schema.Type == "textarea":
		f.Kind = ui.FieldTextarea
	case schema.Type == "number":
		f.Kind = ui.FieldNumber
	case schema.Type == "checkbox":
		f.Kind, f.Checked = ui.FieldCheckbox, f.Value == "true" || f.Value == "on"
	}
}

// resetConfig is the button that puts the template's config back.
const resetConfig = "reset-config"

// saveDraft is the button that keeps the form for later.
const saveDraft = "draft"

// resourcePickers makes fields that name a plugin resource a choice of those there are; a
// text that may name one suggests them. One that is named and not there stays, so that the
// check can speak of it.
func resourcePickers(fields []ui.FieldModel, facts *lifecycle.TemplateFacts) {
	for i := range fields {
		f := &fields[i]
		schema := facts.ProviderFields[strings.TrimPrefix(f.Name, fieldPrefix)]
		names, offered := facts.Resources[schema.ResourceType]
		if !offered || schema.IsSensitive() {
			continue
		}
		if schema.Type == "text" {
			for _, name := range names {
				f.Suggest = append(f.Suggest, ui.Option{Value: name})
			}
			continue
		}
		if schema.Type != "resource" {
			continue
		}
		if len(names) == 0 && f.Value == "" {
			f.Help = strings.TrimSpace(f.Help + " No resource of the type " + schema.ResourceType + " is in use yet; an administrator uploads and activates them.")
		}
		f.Kind = ui.FieldSelect
		f.Options = []ui.Option{{Label: "not given"}}
		for _, name := range names {
			f.Options = append(f.Options, ui.Option{Value: name, Label: name, Selected: name == f.Value})
		}
		if f.Value != "" && !slices.Contains(names, f.Value) {
			f.Options = append(f.Options, ui.Option{Value: f.Value, Label: f.Value + " (not in use)", Selected: true})
		}
	}
}

// configDifference is how the config of the form differs from the template's, nothing
// while it is no JSON.
func configDifference(st *settled) clusterview.ConfigDiff {
	if st.facts == nil {
		return clusterview.ConfigDiff{}
	}
	given, problem := parseConfig(st.form.Config)
	if problem != "" {
		return clusterview.ConfigDiff{}
	}
	return newConfigDiffs("config", configLines).of(st.facts.Config, given)
}

// maxLink is how long a link to a filled in form may be; browsers and proxies take
// that much.
const maxLink = 6000

// formLink leads to the form as it stands, without what is secret; empty when it would
// be too long.
func formLink(f createForm) string {
	v := url.Values{"for": {f.Template}, "forProvider": {f.ForProvider}, "clusterTemplate": {f.Template}, "services": f.Services}
	for name, value := range map[string]string{
		"name": f.Name, "numMachines": f.Machines, "description": f.Description, "provider": f.Provider, "hardwaretype": f.Hardware, "imagetype": f.Image,
		"initialLeaseDuration": f.Lease, "dnsSuffix": f.DNSSuffix, "onFailure": f.OnFailure, "labels": f.Labels, "config": linkConfig(f.Config),
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if f.ServicesShown {
		v.Set("servicesShown", "1")
	}
	link := route.ClusterNew() + "?" + v.Encode()
	if len(link) > maxLink {
		return ""
	}
	return link
}

// linkConfig is a config for an address: compact, what looks secret left out.
func linkConfig(text string) string {
	given, problem := parseConfig(text)
	if problem != "" {
		return ""
	}
	data, err := json.Marshal(masked(given))
	if err != nil {
		return ""
	}
	return string(data)
}

// typeField chooses a hardware or image type. The template's usual one is named; else
// the solver takes the first that fits in the order of preferred, then of names.
func typeField(name, label string, choices []lifecycle.Choice, chosen, usual string, preferred []string, errs ui.FormErrors) ui.FieldModel {
	m := ui.FieldModel{Name: name, Label: label, Kind: ui.FieldSelect, Optional: true, Error: errs.For(name), Width: "s"}
	first := firstThatFits(choices, preferred)
	if usual != "" {
		first = "the template's (" + usual + ")"
	}
	m.Options = append(m.Options, ui.Option{Value: "", Label: first})
	for _, c := range choices {
		o := ui.Option{Value: c.Name, Label: c.Name, Selected: c.Name == chosen, WhyNot: strings.TrimSuffix(c.WhyNot, ".")}
		m.Options = append(m.Options, o)
	}
	return m
}

// firstThatFits names the one that the solver tries first.
func firstThatFits(choices []lifecycle.Choice, preferred []string) string {
	var names []string
	for _, c := range choices {
		if c.WhyNot == "" {
			names = append(names, c.Name)
		}
	}
	names = solver.ByPreference(names, preferred)
	switch len(names) {
	case 0:
		return "the first that fits"
	case 1:
		return "first fit: " + names[0]
	}
	return "first fit: " + names[0] + ", …"
}

// preferredTypes are the hardware and image types that a template prefers.
func preferredTypes(t *loom.Template) (hardware, image []string) {
	if t.Preferences == nil {
		return nil, nil
	}
	return t.Preferences.HardwareTypes, t.Preferences.ImageTypes
}

func servicePicker(facts *lifecycle.TemplateFacts, chosen []string, errs ui.FormErrors) ui.ChoiceModel {
	m := ui.ChoiceModel{Name: "services", Legend: "Services", Filter: "Filter services", Error: errs.For("services")}
	for _, c := range facts.Services {
		ticked := slices.Contains(chosen, c.Name)
		if c.WhyNot != "" && !ticked {
			continue
		}
		choice := ui.Choice{Value: c.Name, Label: c.Name, Description: c.Description, Checked: ticked}
		if slices.Contains(facts.Template.Defaults.Services, c.Name) {
			choice.Facts = []string{"default"}
		}
		choice.Facts = append(choice.Facts, dependencyFacts(facts.Dependencies[c.Name])...)
		m.Choices = append(m.Choices, choice)
	}
	// What is not there any more stays chosen until somebody takes it out: left out
	// without a word, the form would ask for something else than was meant.
	for _, name := range chosen {
		if !slices.ContainsFunc(facts.Services, func(c lifecycle.Choice) bool { return c.Name == name }) {
			m.Choices = append(m.Choices, ui.Choice{Value: name, Label: name, Description: "This service does not exist (any more).", Checked: true})
		}
	}
	return m
}

// dependencyFacts say what a service needs and what it does not go with: "requires
// nginx".
func dependencyFacts(d loom.Dependencies) []string {
	var out []string
	say := func(word string, lists ...[]string) {
		names := slices.Sorted(slices.Values(slices.Concat(lists...)))
		if names = slices.Compact(names); len(names) > 0 {
			out = append(out, word+" "+strings.Join(names, ", "))
		}
	}
	say("requires", d.Install.Requires, d.Runtime.Requires)
	say("uses", d.Install.Uses, d.Runtime.Uses)
	say("provides", d.Provides)
	say("conflicts with", d.Conflicts)
	return out
}

func leaseHelp(rule loom.LeaseRule) string {
	if rule.Initial == 0 && rule.Max == 0 {
		return "Such as 7d or 12h. Empty or 0 means no limit."
	}
	longest := rule.Initial
	if longest == 0 {
		longest = rule.Max
	}
	return "Such as 7d or 12h, at most " + loom.Duration(longest) + ". Empty takes the template's: " + loom.Duration(rule.Initial) + "."
}

func configField(text string, errs ui.FormErrors) ui.FieldModel {
	m := ui.FieldModel{Name: "config", Label: "Config", Kind: ui.FieldJSON, Value: text, Rows: 10, Optional: true, Error: errs.For("config"),
		Help: "A JSON object; what stands here is what is used. Texts may hold macros such as %host.service.nginx%. At most 256 KiB."}
	if m.Error != "" {
		// The sentence begins with the place when the text is no JSON.
		if n, err := fmt.Sscanf(m.Error, "Line %d, column %d", &m.ErrorLine, &m.ErrorColumn); n < 2 || err != nil {
			m.ErrorLine, m.ErrorColumn = 0, 0
		}
	}
	return m
}
