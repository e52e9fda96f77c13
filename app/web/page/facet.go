package page

import (
	"slices"
	"strconv"

	"loom/app/catalog"
	"loom/views/ui"
)

// FacetValue is a value of a facet with its word.
type FacetValue struct{ Value, Word string }

// Facet is a choice that narrows a list, with how many rows each value has; more says that
// there are more than were counted. It reports whether there is anything to choose.
func Facet(name, label, all, chosen string, values []FacetValue, found []catalog.FacetCount, more bool) (ui.FieldModel, bool) {
	f := ui.FieldModel{Name: name, Label: label, Kind: ui.FieldSelect, Optional: true, LabelHidden: true, Width: "s", Options: []ui.Option{{Label: all}}}
	there := chosen == ""
	for _, v := range values {
		at := slices.IndexFunc(found, func(c catalog.FacetCount) bool { return c.Value == v.Value })
		if at < 0 && v.Value != chosen {
			continue
		}
		n := 0
		if at >= 0 {
			n = found[at].N
		}
		text := strconv.Itoa(n)
		if more {
			text += "+"
		}
		there = there || v.Value == chosen
		f.Options = append(f.Options, ui.Option{Value: v.Value, Label: v.Word + " (" + text + ")", Selected: v.Value == chosen})
	}
	if !there { // an address may name anything
		f.Options = append(f.Options, ui.Option{Value: chosen, Label: chosen, Selected: true})
	}
	return f, len(f.Options) > 1
}

// FacetNames are values that are their own words.
func FacetNames(found []catalog.FacetCount) []FacetValue {
	var values []FacetValue
	for _, c := range found {
		values = append(values, FacetValue{c.Value, c.Value})
	}
	return values
}
