package form

// Away is where the control of an error is that is on another tab than the one shown;
// zero for one that is in the page.
type Away struct{ Tab, FieldID string }

// away counts an error for its tab. One that is on another tab than the one shown
// has no control in the page, so the summary names its tab instead of leading there.
func (f Form) away(shown *Shown, section, i int) {
	item, tab := &shown.Errors.Items[i], f.Sections[section].Tab
	shown.TabErrors[tab]++
	if tab != f.Tab {
		shown.Away[i] = Away{Tab: tab, FieldID: item.FieldID}
		item.FieldID = ""
		item.Label = f.Sections[section].Title + ", " + lowerFirst(item.Label)
	}
}
