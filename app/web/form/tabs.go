package form

import "loom/views/ui"

// away counts an error for its tab. One that is on another tab than the one shown
// has no control in the page, so the summary names its tab instead of leading there.
func (f Form) away(shown *Shown, section int, item *ui.FormError) {
	tab := f.Sections[section].Tab
	shown.TabErrors[tab]++
	if tab != f.Tab {
		item.FieldID = ""
		item.Label = f.Sections[section].Title + ", " + lowerFirst(item.Label)
	}
}
