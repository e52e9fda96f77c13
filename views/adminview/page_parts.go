package adminview

import (
	"github.com/a-h/templ"

	"loom/views/ui"
)

func confirmKind(m ConfirmModel) ui.ButtonKind {
	if m.Harmless {
		return ui.Primary
	}
	return ui.DangerFilled
}

// confirmAttrs mark the button that waits for the name to be typed.
func confirmAttrs(m ConfirmModel) templ.Attributes {
	if m.Type == "" {
		return nil
	}
	return templ.Attributes{"data-confirm": true}
}

// columns are those of the table, with that of the boxes before them.
func (m *TableModel) columns() []ui.Column {
	if m.Bulk == nil {
		return m.Columns
	}
	return append([]ui.Column{{Label: "Select", LabelHidden: true, Select: true}}, m.Columns...)
}

// empty reports whether a cell shows nothing.
func (c *Cell) empty() bool {
	return c.Text == "" && c.Sub == "" && c.State == nil && c.Part == nil && len(c.Buttons) == 0 && !c.ShowTime && c.Time.IsZero()
}

// Texts and names of cells up to these lengths in bytes stay on one line.
const (
	maxShortText = 12
	maxShortName = 24
)

// unbroken reports whether a cell is a short text such as "1 h 30 min" or a short name, which
// are hard to read in two lines.
func unbroken(c Cell) bool {
	return len(c.Text) <= maxShortText || c.Mono && len(c.Text) <= maxShortName
}

// attrs fetch the list, or the whole page, as soon as the form changes.
func (m FiltersModel) attrs() templ.Attributes {
	attrs := templ.Attributes{"hx-get": m.Action, "hx-trigger": "input delay:250ms, change, submit", "hx-target": "#" + m.Target, "hx-select": "#" + m.Target,
		"hx-swap": "morph:outerHTML", "hx-push-url": "true", "hx-sync": "this:replace"}
	if m.Whole {
		attrs["hx-trigger"], attrs["hx-target"] = "change, submit", "#main"
		delete(attrs, "hx-select")
	}
	if m.Label != "" {
		attrs["aria-label"] = m.Label
	}
	return attrs
}

// anyFilled reports whether a field holds something or is wrong, so that it must be seen.
func anyFilled(fields []ui.FieldModel) bool {
	for _, f := range fields {
		if f.Value != "" || f.Error != "" {
			return true
		}
	}
	return false
}
