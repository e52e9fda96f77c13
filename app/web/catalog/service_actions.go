package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/formview"
	"loom/views/route"
	"loom/views/ui"
)

// actionOrder is the order in which people think of the actions of a service.
var actionOrder = []loom.TaskAction{
	loom.ActionInstall, loom.ActionConfigure, loom.ActionInitialize, loom.ActionStart, loom.ActionDrain, loom.ActionStop, loom.ActionRemove,
}

// actionMeans says when an action of a service runs.
var actionMeans = map[loom.TaskAction]string{
	loom.ActionInstall:    "Once on each node that gets the service.",
	loom.ActionConfigure:  "After install, and again when the config changes.",
	loom.ActionInitialize: "Once, after configure and before the first start.",
	loom.ActionStart:      "To start the service.",
	loom.ActionDrain:      "On a node that leaves the cluster, before stop.",
	loom.ActionStop:       "To stop it, and before it is removed.",
	loom.ActionRemove:     "When the service is removed from a node that stays.",
}

// actionsPath is where the actions of a service are.
var actionsPath = form.At("provisioner", "actions")

// scriptsID is the id of the list of scripts that fields suggest.
const scriptsID = "scripts"

// actions is what the service does on machines. Each action is there at most once.
func (e *serviceEditor) actions() form.Section {
	var choices []form.Choice
	for _, a := range actionOrder {
		choices = append(choices, form.Choice{Value: string(a)})
	}
	return form.Section{ID: "actions", Title: "Actions", Help: "What is done on a node, and by which automator. An action that is not there is left out of plans.", Parts: []form.Part{
		form.Note{Component: adminview.Suggestions(scriptsID, e.scripts(), route.AdminResources())},
		form.Keyed{Path: actionsPath, Noun: "Action", ChooseLabel: "Action to add", Row: e.action, Choices: choices,
			New:   map[string]any{"type": e.usualType(), "fields": map[string]any{}},
			Empty: "It has no actions yet: nothing would be done on its nodes. Most services have install, configure, start and stop.",
			Title: func(key string) string { return actionMeans[loom.TaskAction(key)] }},
		copyAction{e},
	}}
}

// usualType is the automator of a new action: that of most services of the catalog.
func (e *serviceEditor) usualType() string {
	count := map[string]int{}
	for _, s := range e.services {
		for _, a := range s.Provisioner.Actions {
			count[a.Type]++
		}
	}
	best := ""
	for _, name := range e.typeNames {
		if best == "" || count[name] > count[best] || count[name] == count[best] && name == page.ShellType {
			best = name
		}
	}
	return best
}

// action is the row of one action: its automator, and the fields that this declares.
func (e *serviceEditor) action(at form.Path, _ string) []form.Part {
	return []form.Part{actionFields{e, at}}
}

// actionFields are the controls of an action: its automator, the fields that this
// declares, and those that the document has besides.
type actionFields struct {
	e  *serviceEditor
	at form.Path
}

// automator is the choice of the type; the fields follow it.
func (a actionFields) automator() form.Field {
	var options []ui.Option
	for _, name := range a.e.typeNames {
		label := name
		if t := a.e.types[name]; t.Label != "" && !strings.EqualFold(t.Label, name) {
			label = t.Label + " (" + name + ")"
		}
		options = append(options, ui.Option{Value: name, Label: label})
	}
	return form.Field{Path: a.at.To("type"), Empty: form.EmptyText, Odd: "not registered", Refresh: actionsID,
		Face: ui.FieldModel{Label: "Automator", Kind: ui.FieldSelect, Width: "m", Options: options, Help: "What carries it out."}}
}

// plugin gives the fields for the type that the document names.
func (a actionFields) plugin(doc *form.Doc) (form.PluginFields, bool) {
	t, known := a.e.types[doc.Text(a.at.To("type"))]
	p := form.PluginFields{Path: a.at.To("fields"), Group: t.Parameters["admin"], AsText: true, Resources: func(resourceType string) []form.Choice {
		return a.e.resourceChoices(t.Name, resourceType)
	}}
	return p, known
}

// text is the field for a declared text: these are commands, lists and the like, so
// they are wide. The script of the shell automator may name a resource, a path or a
// command: what is there is suggested, not demanded.
func (a actionFields) text(doc *form.Doc, p form.PluginFields, name string) form.Field {
	schema := p.Group.Fields[name]
	f := form.Field{Path: p.Path.To(name), Face: ui.FieldModel{Label: cmp.Or(schema.Label, name), Help: schema.Tip, Mono: true, Width: "full", Autocomplete: "off",
		Placeholder: loom.FieldText(schema.Default), Optional: len(p.Group.Required) != 1 || !slices.Contains(p.Group.Required[0], name)}}
	if !a.isScript(doc, name) {
		return p.Suggesting(doc, f, schema.ResourceType)
	}
	// All actions suggest the same scripts, from one list.
	f = p.Suggesting(doc, f, page.ScriptsType)
	f.Suggest, f.Face.Attrs = nil, templ.Attributes{"list": scriptsID}
	return f
}

// scriptField is the field of the shell automator that is shown beside the automator.
const scriptField = "script"

// texts are the names of the fields that text shows.
func texts(group loom.FieldGroup) []string {
	return slices.DeleteFunc(group.Names(), func(name string) bool {
		return group.Fields[name].Type != "text" || group.Fields[name].IsSensitive()
	})
}

// isScript reports whether a field names a script; it stands beside the automator.
func (a actionFields) isScript(doc *form.Doc, name string) bool {
	return name == scriptField && doc.Text(a.at.To("type")) == page.ShellType
}

// fields are the controls besides the automator and what stands beside it.
func (a actionFields) fields(doc *form.Doc) []form.Part {
	p, known := a.plugin(doc)
	var parts []form.Part
	if len(p.Group.Required) > 1 {
		parts = append(parts, form.Note{Component: formview.Sets("One of these sets of fields must be complete:", setLines(p.Group))})
	}
	wide := texts(p.Group)
	for _, name := range wide {
		if !a.isScript(doc, name) {
			parts = append(parts, a.text(doc, p, name))
		}
		if name == runListField && doc.Text(a.at.To("type")) == chefType {
			parts = append(parts, form.Note{Component: adminview.LostBeneath(a.e.lostFiles(doc, a.at, name), "")})
		}
	}
	main, more := p, p
	main.Group = subgroup(p.Group, func(name string) bool { return !isExtra(p.Group, name) && !slices.Contains(wide, name) })
	more.Group = subgroup(p.Group, func(name string) bool { return isExtra(p.Group, name) })
	if len(main.Group.Fields) > 0 {
		parts = append(parts, main)
	}
	if len(more.Group.Fields) > 0 {
		set := slices.ContainsFunc(doc.Keys(p.Path), func(key string) bool { return isExtra(p.Group, key) && doc.Text(p.Path.To(key)) != "" })
		parts = append(parts, form.Fold{Title: "More settings", Open: set, Parts: []form.Part{more}})
	}
	others := slices.DeleteFunc(doc.Keys(p.Path), func(key string) bool { return slices.Contains(a.declared(doc), key) })
	if !known || len(others) > 0 {
		pairs := form.Pairs{Path: p.Path, Legend: "Further fields", Noun: "Field", KeyLabel: "Field", ValueLabel: "Value", Not: a.declared(doc),
			Help: "The automator does not declare these; they are kept, and without effect unless it knows them."}
		if !known {
			pairs.Legend, pairs.Help = "Fields", "The automator is not registered, so its fields are not known here."
		}
		parts = append(parts, pairs)
	}
	return parts
}

// setLines writes the sets of fields of which one must be complete.
func setLines(group loom.FieldGroup) []string {
	var lines []string
	for _, set := range group.Required {
		var labels []string
		for _, name := range set {
			labels = append(labels, cmp.Or(group.Fields[name].Label, name))
		}
		lines = append(lines, strings.Join(labels, ", "))
	}
	return lines
}

// isExtra reports whether a field is a number or a switch that may be left alone.
func isExtra(group loom.FieldGroup, name string) bool {
	schema := group.Fields[name]
	required := slices.ContainsFunc(group.Required, func(set []string) bool { return slices.Contains(set, name) })
	return !required && (schema.Type == "number" || schema.Type == "checkbox")
}

// subgroup keeps some fields of a group.
func subgroup(group loom.FieldGroup, keep func(name string) bool) loom.FieldGroup {
	kept := loom.FieldGroup{Fields: maps.Clone(group.Fields)}
	maps.DeleteFunc(kept.Fields, func(name string, _ loom.FieldSchema) bool { return !keep(name) })
	if len(group.Required) == 1 {
		kept.Required = [][]string{slices.DeleteFunc(slices.Clone(group.Required[0]), func(name string) bool { return !keep(name) })}
	}
	return kept
}

// declared are the names of the fields that have controls of their own.
func (a actionFields) declared(doc *form.Doc) []string {
	p, _ := a.plugin(doc)
	return p.Group.Names()
}

// Read implements form.Part. The automator comes first: fields that it does not
// declare were shown for another one and are not read.
func (a actionFields) Read(in *form.Input) {
	a.automator().Read(in)
	in.Parts(a.head(in.Doc))
	in.Parts(a.fields(in.Doc))
}

// head is what stands beside the automator.
func (a actionFields) head(doc *form.Doc) []form.Part {
	p, _ := a.plugin(doc)
	for _, name := range texts(p.Group) {
		if a.isScript(doc, name) {
			return []form.Part{a.text(doc, p, name)}
		}
	}
	return nil
}

// Show implements form.Part.
func (a actionFields) Show(out *form.Output) templ.Component {
	head := out.Parts(append([]form.Part{a.automator()}, a.head(out.Doc)...))
	lost := a.e.lostFiles(out.Doc, a.at, scriptField)
	return formview.Stack(append([]templ.Component{adminview.ActionHead(head), adminview.LostBeneath(lost, "")}, out.Parts(a.fields(out.Doc))...))
}

// resourceChoices are the resources of a type that are live or will be, with which
// version is active.
func (e *serviceEditor) resourceChoices(plugin, resourceType string) []form.Choice {
	facts := map[string][]string{}
	for _, r := range e.resources {
		if r.Plugin != plugin || r.Type != resourceType || !r.Live && !r.Slated {
			continue
		}
		word := "active"
		switch r.Status() {
		case loom.ResourceStaged:
			word = "after the next release"
		case loom.ResourceRecalled:
			word = "in use until the next release"
		}
		facts[r.Name] = append(facts[r.Name], "version "+strconv.Itoa(r.Version)+", "+word)
	}
	var choices []form.Choice
	for _, name := range page.SortedKeys(facts) {
		choices = append(choices, form.Choice{Value: name, Label: name, Facts: facts[name]})
	}
	return choices
}

// scripts are the scripts of the shell automator, to be suggested.
func (e *serviceEditor) scripts() []ui.Option {
	var options []ui.Option
	for _, c := range e.resourceChoices(page.ShellType, page.ScriptsType) {
		options = append(options, ui.Option{Value: c.Value, Label: strings.Join(c.Facts, ", ")})
	}
	return options
}

// settle gives an action whose type was changed the fields of the new type: those
// that the old one alone declared go, defaults come. What has no member left goes.
func (e *serviceEditor) settle(before, after *form.Doc) {
	for _, key := range after.Keys(actionsPath) {
		a := actionFields{e, actionsPath.To(key)}
		if before.Has(a.at) && before.Text(a.at.To("type")) == after.Text(a.at.To("type")) {
			continue
		}
		now, known := a.plugin(after)
		if !known {
			continue
		}
		if before.Has(a.at) {
			for _, old := range a.declared(before) {
				if !slices.Contains(a.declared(after), old) {
					after.Delete(now.Path.To(old))
				}
			}
		}
		now.Preset(after)
	}
	// A check without a URL has none by HTTP, and so on.
	for _, at := range []form.Path{form.At("check", "http"), form.At("check", "tcp"), form.At("check"), form.At("logs")} {
		if after.Has(at) && len(after.Keys(at)) == 0 {
			after.Delete(at)
		}
	}
}

// check refuses actions that lack what their automator needs.
func (e *serviceEditor) check(doc *form.Doc) []loom.FieldError {
	var errs []loom.FieldError
	for _, key := range doc.Keys(actionsPath) {
		if p, known := (actionFields{e, actionsPath.To(key)}).plugin(doc); known {
			errs = append(errs, p.Missing(doc)...)
		}
	}
	return errs
}
