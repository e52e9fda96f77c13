package catalog

import (
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// aboutSection is what every kind of entry begins with: name, label, description,
// icon and whether it is offered for choosing.
func aboutSection(d formDraft, help string) form.Section {
	described := func(name string, face ui.FieldModel) form.Part {
		words := describedFace(d.Kind, name)
		face.Label, face.Help = words.Label, words.Help
		return form.Field{Path: form.At(name), Face: face}
	}
	var parts []form.Part
	if d.Name == "" { // it cannot be changed later, and the heading says it
		face := nameField(d.Kind)
		face.Autofocus = d.Doc.Text(form.At("name")) == ""
		parts = append(parts, form.Field{Path: form.At("name"), Empty: form.EmptyText, Face: face})
	}
	parts = append(parts,
		form.Row{Parts: []form.Part{described("label", ui.FieldModel{Optional: true, Width: "s"}), described("description", ui.FieldModel{Kind: ui.FieldTextarea, Rows: 1, Optional: true})}},
	)
	for _, field := range loom.Described(loom.NewEntry(d.Kind)) {
		if !field.OwnForm {
			parts = append(parts, form.Described(field))
		}
	}
	return form.Section{ID: "about", Title: "About", Help: help, Parts: append(parts,
		form.Fold{Title: "Labels, appearance, status", Parts: []form.Part{
			form.Labels{Path: form.At("labels"), Face: describedFace(d.Kind, "labels")},
			described("icon", ui.FieldModel{Mono: true, Optional: true, Width: "l"}),
			described("deprecated", ui.FieldModel{Kind: ui.FieldCheckbox}),
		}},
	)}
}

// describedFace is a field with the words of its description.
func describedFace(kind loom.EntityKind, name string) ui.FieldModel {
	words := loom.Describe(kind, name)
	return ui.FieldModel{Label: words.Label, Help: words.Help}
}

// nameField is the field for the name of a new entry; whether it can be had is asked
// as soon as it was typed.
func nameField(kind loom.EntityKind) ui.FieldModel {
	return ui.FieldModel{Name: adminview.FieldName, Label: "Name", Mono: true, MaxLength: loom.MaxNameLength, Autocomplete: "off", Help: "Letters a to z, digits, “_”, “-” and “.”; it cannot be changed later.",
		Attrs: templ.Attributes{"hx-post": route.AdminValidate(kind) + "/name", "hx-trigger": "change", "hx-target": "closest .c-field", "hx-swap": "outerHTML", "hx-sync": "this:replace"}}
}

// choicesOf makes choices of entries.
func choicesOf(entries []loom.Entry) []form.Choice {
	choices := make([]form.Choice, len(entries))
	for i, e := range entries {
		meta := e.Meta()
		choices[i] = form.Choice{Value: meta.Name, Label: meta.Name, Description: meta.Description, Deprecated: meta.Deprecated}
		if meta.Label != "" && meta.Label != meta.Name {
			choices[i].Label = meta.Label
			choices[i].Facts = []string{meta.Name}
		}
	}
	return choices
}

// without leaves out the choice of a name.
func without(choices []form.Choice, name string) []form.Choice {
	return slices.DeleteFunc(slices.Clone(choices), func(c form.Choice) bool { return c.Value == name })
}

// durationField is a field for a time span in milliseconds; zero says what 0 means.
func durationField(p form.Path, words loom.Description, zero string) form.Duration {
	return form.Duration{Path: p, Label: words.Label, Help: words.Help, Zero: zero, Parse: page.ParseLease, Say: loom.Duration, Write: func(millis int64) string {
		if text := page.WriteLease(millis); text != "" {
			return text
		}
		return strconv.FormatInt(millis, 10) // below a second
	}}
}
