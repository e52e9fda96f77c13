package officeview

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

func cellClass(c ui.Column) string {
	class := ""
	if c.Numeric {
		class = "u-num"
	}
	if c.Low {
		class += " u-wide"
	}
	return class
}

// Up to so many bytes texts and names of cells are kept on one line.
const (
	shortText = 12
	shortName = 24
)

// unbroken tells short figures such as "1 h 30 m" and short names, which are hard to read
// in two lines, from sentences.
func unbroken(c Cell) bool {
	return len(c.Text) <= shortText || c.Mono && len(c.Text) <= shortName
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
