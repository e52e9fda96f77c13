package ui

import "github.com/a-h/templ"

// ButtonKind is the weight of a button.
type ButtonKind string

// The kinds. Primary is used once per view; Danger is filled only inside a
// confirmation (DangerFilled).
const (
	Secondary    ButtonKind = ""
	Primary      ButtonKind = "primary"
	Quiet        ButtonKind = "quiet"
	Danger       ButtonKind = "danger"
	DangerFilled ButtonKind = "danger-filled"
)

// ButtonModel is a button, or with Href a link that looks like one.
type ButtonModel struct {
	ID    string
	Label string
	Kind  ButtonKind
	Icon  string
	Href  string
	// Submit makes it the form's submit button; otherwise it does nothing without
	// Attrs.
	Submit bool
	// Name and Value are sent with the form.
	Name, Value string
	// FormAction sends the form elsewhere, for "Add row" and the like.
	FormAction string
	// Busy is the label while the request runs: "Deleting…".
	Busy string
	// WhyNot, when set, shows the button disabled with this reason. It stays
	// focusable so that the reason can be read.
	WhyNot string
	// IconOnly hides the label from sight; it becomes the tooltip.
	IconOnly bool
	// Small is for tables and toolbars.
	Small bool
	Attrs templ.Attributes
}

func (m ButtonModel) buttonType() string {
	if m.Submit && m.WhyNot == "" {
		return "submit"
	}
	return "button"
}

func (m ButtonModel) title() string {
	if m.WhyNot != "" {
		return m.WhyNot
	}
	if m.IconOnly {
		return m.Label
	}
	return ""
}

// MenuModel is a button that opens a list of links and buttons.
type MenuModel struct {
	// ID must be unique in the page.
	ID    string
	Label string
	Icon  string
	// IconOnly hides the label from sight.
	IconOnly bool
	Kind     ButtonKind
	Small    bool
	Items    []MenuItem
}

// whyNot is the reason that several entries share, which is said once, above them.
func (m MenuModel) whyNot() string {
	count, most := map[string]int{}, ""
	for _, item := range m.Items {
		if item.WhyNot == "" {
			continue
		}
		if count[item.WhyNot]++; count[item.WhyNot] > 1 && count[item.WhyNot] > count[most] {
			most = item.WhyNot
		}
	}
	return most
}

// MenuItem is one entry of a menu: a link with Href, a POST form with Post, or a
// disabled text with WhyNot.
type MenuItem struct {
	Label string
	Icon  string
	Href  string
	// Post is where a form of this one button is sent, or the one of the page with the id Form.
	Post   string
	Form   string
	Danger bool
	WhyNot string
	// Divider draws a line above.
	Divider bool
	Attrs   templ.Attributes
}
