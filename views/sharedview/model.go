// Package sharedview holds what belongs to all pages rather than to one: the pane with
// a page's JSON, search and palette, the list of shortcuts, preferences, sign-in in a
// dialog.
//
// It must not know use cases: models are flat and ready to print.
package sharedview

import (
	"loom/app/loom"
	"strconv"

	"loom/views/ui"
)

// PaneModel is what the REST API gives for a page, with the calls that do the same.
type PaneModel struct {
	// Text is the document, written for people; Problem says why there is none.
	Text, Problem string
	// Cut says that the end is left out, Part that only the first rows of a list are
	// shown.
	Cut, Part bool
	// Raw is the document as the API gives it, Back the page.
	Raw, Back string
	// Server is where Loom is reached, Tokens the page that makes tokens.
	Server, Tokens string
	Calls          []ui.JSONCall
}

func (m PaneModel) note() string {
	switch {
	case m.Part:
		return "These are the first 25 rows; the call and the download give more."
	case m.Cut:
		return "The end is left out here; the download has all of it."
	}
	return ""
}

// SearchModel is the page of a search, or what the palette shows while one types.
type SearchModel struct {
	Q      string
	Groups []FoundGroup
	// Error says what is wrong with the search.
	Error string
}

// Count is how many things were found.
func (m SearchModel) Count() int {
	n := 0
	for _, g := range m.Groups {
		n += len(g.Items)
	}
	return n
}

func (m SearchModel) countText() string {
	if m.Error != "" {
		return m.Error
	}
	return ui.Count(m.Count(), "result", "results")
}

// FoundGroup is things of one sort.
type FoundGroup struct {
	Title string
	Items []Found
}

// Found is a place to go, or something that can be done.
type Found struct {
	Label, Note, Icon string
	Href              string
	// Post, when set, is done by a form of one button; Href is then where it leads
	// without.
	Post  string
	State *ui.State
}

func optionID(group, item int) string {
	return "palette-" + strconv.Itoa(group) + "-" + strconv.Itoa(item)
}

func paneCallID(i int) string { return "pane-call-" + strconv.Itoa(i) }

func groupID(group int) string { return "palette-" + strconv.Itoa(group) }

// KeyLine is a shortcut with what it does.
type KeyLine struct {
	Keys []string
	What string
}

// PreferencesModel is the page of preferences.
type PreferencesModel struct {
	Theme, Density, Live        []ui.Choice
	Rows                        []ui.Option
	Zone, ZoneNow               string
	Zones                       []string
	Absolute, Shortcuts, Reader bool
	Errors                      ui.FormErrors
}

// SignInModel is the sign-in form of a dialog.
type SignInModel struct {
	User, Tenant string
	TenantHidden bool
	Errors       ui.FormErrors
	// Providers are the identity providers to sign in with.
	Providers []loom.IdentityProvider
}
