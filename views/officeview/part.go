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
