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
	return form.Section{ID: "actions", Title: "Actions", Parts: []form.Part{
		actionRows{e}, form.Fold{Title: "Copy an action", Parts: []form.Part{copyAction{e}}},
	}}
}

// actionRows are a script for all actions, and a row for each of them.
type actionRows struct{ e *serviceEditor }

// commonScript is the control with the script of all actions.
const commonScript = "actions.script"

// common is the script that all actions of the shell automator run, "" where they run several or
// none.
func common(doc *form.Doc) string {
	script := ""
	for _, key := range doc.Keys(actionsPath) {
		at := actionsPath.To(key)
		if doc.Text(at.To("type")) != page.ShellType {
			continue
		}
		own := doc.Text(at.To("fields", scriptField))
		if own == "" || script != "" && own != script {
			return ""
		}
		script = own
	}
	return script
}

func (a actionRows) rows() form.Keyed {
	var choices []form.Choice
	for _, c := range actionOrder {
		choices = append(choices, form.Choice{Value: string(c)})
	}
	return form.Keyed{Path: actionsPath, Noun: "Action", ChooseLabel: "Action to add", Row: a.e.action, Choices: choices, Inline: true,
		New:   map[string]any{"type": a.e.usualType(), "fields": map[string]any{}},
		Empty: "It has no actions yet: nothing would be done on its nodes. Most services have install, configure, start and stop.",
		Title: func(key string) string { return actionMeans[loom.TaskAction(key)] },
		Order: func(a, b string) int { return actionPlace(a) - actionPlace(b) }}
}

// actionPlace is where an action comes in actionOrder; unknown ones are last.
func actionPlace(key string) int {
	if at := slices.Index(actionOrder, loom.TaskAction(key)); at >= 0 {
		return at
	}
	return len(actionOrder)
}

// Read implements form.Part. A script that was chosen for all becomes that of each action of
// the shell automator, and of one that is added, whose argument is its name then.
func (a actionRows) Read(in *form.Input) {
	before, keys := common(in.Doc), in.Doc.Keys(actionsPath)
	a.rows().Read(in)
	chosen, posted := in.Get(commonScript)
	if !posted || chosen == "" {
		return
	}
	for _, key := range in.Doc.Keys(actionsPath) {
		at := actionsPath.To(key)
		fresh := !slices.Contains(keys, key)
		if in.Doc.Text(at.To("type")) != page.ShellType || chosen == before && !fresh {
			continue
		}
		in.Doc.Set(at.To("fields", scriptField), chosen)
		if fresh {
			in.Doc.Set(at.To("fields", "args"), key)
		}
	}
}

// Show implements form.Part.
func (a actionRows) Show(out *form.Output) templ.Component {
	a.e.common = common(out.Doc)
	rows := templ.Join(adminview.Suggestions(scriptsID, a.e.scripts()), a.rows().Show(out))
	if _, registered := a.e.types[page.ShellType]; !registered {
		return rows
	}
	m := ui.FieldModel{Name: commonScript, ID: out.ID(commonScript), Label: "One script for all", Kind: ui.FieldSelect, Optional: true, Width: "m", Value: a.e.common,
		Options: []ui.Option{{Value: "", Label: "each action has its own"}}}
	edit, known := "", false
	for _, o := range a.e.scripts() {
		o.Selected, o.Label = o.Value == a.e.common, o.Value
		if known = known || o.Selected; o.Selected {
			edit = adminview.File(loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: page.ShellType, Type: page.ScriptsType, Name: o.Value}, 0)
		}
		m.Options = append(m.Options, o)
	}
	if a.e.common != "" && !known {
		m.Options = append(m.Options, ui.Option{Value: a.e.common, Label: a.e.common, Selected: true})
	}
	redraw := out.Step(ui.ButtonModel{Label: "Use for all", Small: true}, "refresh", actionsPath, actionsID)
	m.Attrs = templ.Attributes{"hx-trigger": "change", "hx-vals": `{"do":"refresh:"}`}
	for name, value := range formview.Step(out.StepURL, actionsID) {
		m.Attrs[name] = value
	}
	return formview.Stack([]templ.Component{adminview.CommonScript(m, edit, redraw), rows})
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
	if doc.Text(a.at.To("type")) == page.ShellType { // two short fields in a line need no more
		f.Face.Help, f.Face.LabelHidden, f.Face.Placeholder = "", true, cmp.Or(f.Face.Placeholder, f.Face.Label)
	}
	if !a.isScript(doc, name) {
		return p.Suggesting(doc, f, schema.ResourceType)
	}
	// All actions suggest the same scripts, from one list.
	f = p.Suggesting(doc, f, page.ScriptsType)
	f.Suggest, f.Face.Help, f.Face.Attrs = nil, "", templ.Attributes{"list": scriptsID}
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

// fields are the controls of the row, and those of its fold: the automator, the script that all
// actions share, and what may be left alone.
func (a actionFields) fields(doc *form.Doc) (row, more []form.Part) {
	p, known := a.plugin(doc)
	more = []form.Part{a.automator()}
	if len(p.Group.Required) > 1 {
		row = append(row, form.Note{Component: formview.Sets("One of these sets of fields must be complete:", setLines(p.Group))})
	}
	wide := texts(p.Group)
	for _, name := range wide {
		switch text := a.text(doc, p, name); {
		case a.isScript(doc, name) && a.e.common != "" && doc.Text(text.Path) == a.e.common:
			text.Face.LabelHidden = false
			more = append(more, text)
		case a.isScript(doc, name):
			row = slices.Insert(row, 0, form.Part(text))
		default:
			row = append(row, text)
		}
		if name == runListField && doc.Text(a.at.To("type")) == chefType {
			row = append(row, form.Note{Component: adminview.LostBeneath(a.e.lostFiles(doc, a.at, name), "")})
		}
	}
	main, extra := p, p
	main.Group = subgroup(p.Group, func(name string) bool { return !isExtra(p.Group, name) && !slices.Contains(wide, name) })
	extra.Group = subgroup(p.Group, func(name string) bool { return isExtra(p.Group, name) })
	if len(main.Group.Fields) > 0 {
		row = append(row, main)
	}
	if len(extra.Group.Fields) > 0 {
		more = append(more, extra)
	}
	others := slices.DeleteFunc(doc.Keys(p.Path), func(key string) bool { return slices.Contains(a.declared(doc), key) })
	if !known || len(others) > 0 {
		pairs := form.Pairs{Path: p.Path, Legend: "Further fields", Noun: "Field", KeyLabel: "Field", ValueLabel: "Value", Not: a.declared(doc),
			Help: "The automator does not declare these; they are kept, and without effect unless it knows them."}
		if !known {
			pairs.Legend, pairs.Help = "Fields", "The automator is not registered, so its fields are not known here."
		}
		row = append(row, pairs)
	}
	return row, more
}

// moreText is what the fold of an action says before it is opened: an automator that most do not
// have, and what else is set.
func (a actionFields) moreText(doc *form.Doc) string {
	p, _ := a.plugin(doc)
	var set []string
	if name := doc.Text(a.at.To("type")); name != page.ShellType {
		set = append(set, name)
	}
	for _, name := range p.Group.Names() {
		value := doc.Text(p.Path.To(name))
		if isExtra(p.Group, name) && value != "" && value != cmp.Or(loom.FieldText(p.Group.Fields[name].Default), "false") {
			set = append(set, cmp.Or(p.Group.Fields[name].Label, name))
		}
	}
	if len(set) == 0 {
		return ""
	}
	return ": " + strings.Join(set, ", ")
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
	row, more := a.fields(in.Doc)
	in.Parts(row)
	in.Parts(more[1:])
}

// Show implements form.Part.
func (a actionFields) Show(out *form.Output) templ.Component {
	row, more := a.fields(out.Doc)
	shown := out.Parts(row)
	_, known := a.plugin(out.Doc)
	fold := form.Fold{Title: "More", Key: a.at.String(), Says: a.moreText, Open: !known, Parts: more}.Show(out)
	lost := a.e.lostFiles(out.Doc, a.at, scriptField)
	return templ.Join(append(shown, fold, adminview.LostBeneath(lost, ""))...)
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
