package form

import (
	"reflect"

	"loom/app/loom"
	"loom/views/ui"
)

// Described returns the control of a field that its description says enough of: a checkbox, a
// choice of few values, a list of names, JSON, or a line of text.
func Described(d loom.Description) Part {
	steps := make([]any, len(d.Path))
	for i, name := range d.Path {
		steps[i] = name
	}
	at := At(steps...)
	face := ui.FieldModel{Label: d.Label, Help: d.Help, Optional: true}
	kind := d.Type.Kind()
	if kind == reflect.Pointer {
		kind = d.Type.Elem().Kind()
	}
	switch {
	case len(d.Enum) > 0:
		face.Kind, face.Options = ui.FieldSelect, []ui.Option{{Value: "", Label: "not set"}}
		for _, value := range d.Enum {
			face.Options = append(face.Options, ui.Option{Value: value, Label: value})
		}
		return Field{Path: at, Odd: "unknown", Face: face}
	case kind == reflect.Bool:
		face.Kind, face.Optional = ui.FieldCheckbox, false
	case kind == reflect.Int || kind == reflect.Int64 || kind == reflect.Float64:
		face.Kind = ui.FieldNumber
	case kind == reflect.Slice && d.Type.Elem().Kind() == reflect.String:
		return Picker{Path: at, Legend: d.Label, Help: d.Help, Free: d.Label, FreeHelp: "Separate several by commas."}
	case kind == reflect.Map || kind == reflect.Slice:
		return JSON{Path: at, Label: d.Label, Help: d.Help, Object: kind == reflect.Map, Rows: 4}
	}
	return Field{Path: at, Face: face}
}
