package catalog

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/ui"
)

// definition is an entry in a form that can be read: facts, and parts with tables.
func definition(entry loom.Entry) ([]ui.Def, []adminview.Section) {
	facts := describedFacts(entry)
	switch e := entry.(type) {
	case *loom.Provider:
		return facts, nil // as its type has it; see provider_page.go
	case *loom.HardwareType:
		return facts, []adminview.Section{providerMap(e.ProviderMap, "flavor", "Flavor")}
	case *loom.ImageType:
		return facts, []adminview.Section{providerMap(e.ProviderMap, "image", "Image")}
	case *loom.Service:
		return serviceFacts(e), serviceSections(e)
	case *loom.Template:
		facts = append(facts, templateFacts(*e)...)
		if e.Extends != nil {
			facts = append(facts, ui.Def{Term: "Extends", Text: e.Extends.Name, Mono: true})
		}
		if len(e.Includes) > 0 {
			var names []string
			for _, part := range e.Includes {
				names = append(names, part.Name)
			}
			facts = append(facts, ui.Def{Term: "Includes", Text: strings.Join(names, ", "), Mono: true})
		}
		return append(facts, ui.Def{Term: "On failure", Text: onFailure(e.Administration.OnFailure)}), templateSections(*e)
	case *loom.PartialTemplate:
		t := asTemplate(e)
		facts = append(facts, templateFacts(*t)...)
		return append(facts, ui.Def{Term: "Config", Text: immutable(e.Immutable)}), templateSections(*t)
	}
	return nil, nil
}

// serviceFacts are what a service has to do with others.
func serviceFacts(s *loom.Service) []ui.Def {
	facts := describedFacts(s)
	if len(facts) == 0 {
		facts = append(facts, ui.Def{Term: "Dependencies", Text: "none"})
	}
	return facts
}

// describedFacts are the fields of an entry that have a label and no code of their own here,
// where they have a value.
func describedFacts(entry loom.Entry) []ui.Def {
	var facts []ui.Def
	for _, d := range loom.Described(entry) {
		if text := describedText(d.Value); text != "" && !d.OwnPage {
			facts = append(facts, ui.Def{Term: d.Label, Text: text, Mono: true})
		}
	}
	return facts
}

// describedText is a value for people, "" for none.
func describedText(v reflect.Value) string {
	if v.IsZero() {
		return ""
	}
	switch value := v.Interface().(type) {
	case bool:
		return "yes"
	case []string:
		return strings.Join(value, ", ")
	case string:
		return value
	}
	return page.CompactJSON(v.Interface())
}

func onFailure(what string) string {
	if what == loom.OnFailureUndo {
		return "undo changes"
	}
	return "keep for inspection"
}

func immutable(yes bool) string {
	if yes {
		return "protected against later parts"
	}
	return "may be changed by later parts"
}

func providerMap(providers map[string]map[string]string, key, label string) adminview.Section {
	s := adminview.Section{ID: "map", Title: "On each provider", Keys: true, Note: "No provider can use it yet.",
		Columns: []ui.Column{{Label: "Provider"}, {Label: label}, {Label: "Further terms"}}}
	for _, provider := range slices.Sorted(maps.Keys(providers)) {
		var further []string
		for _, name := range slices.Sorted(maps.Keys(providers[provider])) {
			if name != key {
				further = append(further, name+" = "+providers[provider][name])
			}
		}
		s.Rows = append(s.Rows, []string{provider, providers[provider][key], strings.Join(further, ", ")})
	}
	return s
}

func serviceSections(s *loom.Service) []adminview.Section {
	actions := adminview.Section{ID: "actions", Title: "Actions", Keys: true, Note: "It has no actions: nothing is done on its nodes.",
		Columns: []ui.Column{{Label: "Action"}, {Label: "Automator"}, {Label: "Runs"}}}
	for _, name := range actionOrder {
		action, ok := s.Provisioner.Actions[name]
		if !ok {
			continue
		}
		actions.Rows = append(actions.Rows, []string{string(name), action.Type, runs(action)})
	}
	sections := []adminview.Section{actions}
	if len(s.Parameters) > 0 {
		sections = append(sections, parameterSection(s.Parameters))
	}
	if len(s.Links) > 0 {
		sections = append(sections, linkSection(s.Links, "Links of each node with it"))
	}
	if len(s.DefaultConfig) > 0 {
		sections = append(sections, adminview.Section{ID: "config", Title: "Default config", Code: page.PrettyJSON(s.DefaultConfig)})
	}
	return sections
}

// runs is what an action runs: the command of a script, then its other fields by name.
func runs(action loom.ServiceAction) string {
	var command, fields []string
	for _, field := range slices.Sorted(maps.Keys(action.Fields)) {
		switch value := action.Fields[field]; {
		case action.Type == page.ShellType && field == scriptField:
			command = slices.Insert(command, 0, value)
		case action.Type == page.ShellType && field == "args":
			command = append(command, value)
		default:
			fields = append(fields, field+" = "+value)
		}
	}
	if len(command) > 0 {
		fields = slices.Insert(fields, 0, strings.Join(command, " "))
	}
	return strings.Join(fields, ", ")
}

// parameterSection lists parameters, with what their values must be.
func parameterSection(parameters []loom.Parameter) adminview.Section {
	section := adminview.Section{ID: "parameters", Title: "Parameters", Keys: true, Columns: []ui.Column{{Label: "Key"}, {Label: "Label"}, {Label: "Value"}, {Label: "Default"}, {Label: "Rules"}, {Label: "Help"}}}
	for i := range parameters {
		p := &parameters[i]
		var rules []string
		for _, rule := range []struct {
			word string
			is   bool
		}{{"required", p.Required}, {"secret", p.Secret}, {"restart", p.Restart}} {
			if rule.is {
				rules = append(rules, rule.word)
			}
		}
		section.Rows = append(section.Rows, []string{p.Key, p.Label, p.Wants(), loom.FieldText(p.Default), strings.Join(rules, ", "), p.Help})
	}
	return section
}

func templateSections(t loom.Template) []adminview.Section {
	services := adminview.Section{ID: "services", Title: "Services of a new cluster", Items: t.Defaults.Services}
	if len(t.Defaults.Services) == 0 {
		services.Note = "None."
	}
	sections := []adminview.Section{services, {ID: "rules", Title: "Rules", Items: templateRules(t)}}
	if len(t.Links) > 0 {
		sections = append(sections, linkSection(t.Links, "Links of a cluster"))
	}
	if len(t.Defaults.Config) > 0 {
		sections = append(sections, adminview.Section{ID: "config", Title: "Default config", Code: page.PrettyJSON(t.Defaults.Config)})
	}
	return sections
}

func linkSection(links []loom.Link, title string) adminview.Section {
	s := adminview.Section{ID: "links", Title: title, Columns: []ui.Column{{Label: "Label"}, {Label: "URL"}}}
	for _, l := range links {
		s.Rows = append(s.Rows, []string{l.Label, l.URL})
	}
	return s
}
