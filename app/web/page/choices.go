package page

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/solver"
	"loom/views/ui"
)

// FitsHeadline counts the nodes and services of a layout.
func FitsHeadline(l loom.Layout) string {
	services := map[string]bool{}
	for _, g := range l {
		for _, name := range g.Services {
			services[name] = true
		}
	}
	return ui.Count(l.Machines(), "node", "nodes") + ", " + ui.Count(len(services), "service", "services")
}

// TypeField chooses a hardware or image type. The template's usual one is named; else
// the solver takes the first that fits in the order of preferred, then of names.
func TypeField(name, label string, choices []clusters.Choice, chosen, usual string, preferred []string, errs ui.FormErrors) ui.FieldModel {
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
func firstThatFits(choices []clusters.Choice, preferred []string) string {
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

// PreferredTypes are the hardware and image types that a template prefers.
func PreferredTypes(t *loom.Template) (hardware, image []string) {
	if t.Preferences == nil {
		return nil, nil
	}
	return t.Preferences.HardwareTypes, t.Preferences.ImageTypes
}

// ServicePicker is the choice of services that a template offers.
func ServicePicker(facts *clusters.TemplateFacts, chosen []string, errs ui.FormErrors) ui.ChoiceModel {
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
		if !slices.ContainsFunc(facts.Services, func(c clusters.Choice) bool { return c.Name == name }) {
			m.Choices = append(m.Choices, ui.Choice{Value: name, Label: name, Description: "This service does not exist.", Checked: true})
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

// CountOrDash is a number in a table, "–" for none.
func CountOrDash(n int) string {
	if n == 0 {
		return "–"
	}
	return strconv.Itoa(n)
}

// NodesRange is "2–20 nodes".
func NodesRange(low, high int) string {
	switch {
	case high >= loom.Unlimited:
		return fmt.Sprintf("%d nodes or more", low)
	case low == high:
		return "exactly " + ui.Count(low, "node", "nodes")
	}
	return fmt.Sprintf("%d–%d nodes", low, high)
}

// SuggestionValue packs what a suggestion changes into one field of the form:
// scripts can set plain fields by themselves, everything else is "form" and
// comes back as a whole.
func SuggestionValue(su loom.Suggestion) (name, value string) {
	v := url.Values{}
	if su.Machines > 0 {
		v.Set("numMachines", strconv.Itoa(su.Machines))
	}
	if su.HardwareType != "" {
		v.Set("hardwaretype", su.HardwareType)
	}
	if su.ImageType != "" {
		v.Set("imagetype", su.ImageType)
	}
	if su.Provider != "" {
		v.Set("provider", su.Provider)
	}
	for _, name := range su.AddServices {
		v.Add("add", name)
	}
	for _, name := range su.RemoveServices {
		v.Add("remove", name)
	}
	if len(v) == 1 && v["add"] == nil && v["remove"] == nil {
		for name := range v {
			return name, v.Get(name)
		}
	}
	return "form", v.Encode()
}

// ApplySuggestion changes the fields and services of a form as a pressed suggestion says.
func ApplySuggestion(suggestion string, fields map[string]*string, services *[]string) error {
	name, value, _ := strings.Cut(suggestion, "=")
	v := url.Values{name: {value}}
	if name == "form" {
		var err error
		if v, err = url.ParseQuery(value); err != nil {
			return errors.Join(loom.NewError(loom.Invalid, "This suggestion could not be read."), err)
		}
	}
	for name, into := range fields {
		if v.Has(name) {
			*into = v.Get(name)
		}
	}
	for _, service := range v["add"] {
		if !slices.Contains(*services, service) {
			*services = append(*services, service)
		}
	}
	*services = slices.DeleteFunc(*services, func(name string) bool { return slices.Contains(v["remove"], name) })
	return nil
}

// FixedFields shows users what they could give, had the provider not fixed it.
func FixedFields(fixed []clusters.FixedField) []ui.FieldModel {
	var fields []ui.FieldModel
	for _, f := range fixed {
		fields = append(fields, ui.FieldModel{Name: "fixed." + f.Name, Label: f.Label, Help: f.Tip, Value: cmp.Or(f.Value, "not shown"), LockedWhy: "An administrator fixed it."})
	}
	return fields
}
