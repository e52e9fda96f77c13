package page

import (
	"net/http"

	"loom/app/loom"
	"loom/views/layout"
	"loom/views/sharedview"
)

// shortcuts are the shortcuts; static/js/keys.js and palette.js do them.
var shortcuts = []sharedview.KeyLine{
	{Keys: []string{"Ctrl", "K"}, What: "Search and commands (⌘ K on a Mac)"},
	{Keys: []string{"/"}, What: "Search this list"},
	{Keys: []string{"g", "c"}, What: "Go to the clusters"},
	{Keys: []string{"g", "t"}, What: "Go to the templates"},
	{Keys: []string{"g", "a"}, What: "Go to the activity"},
	{Keys: []string{"n"}, What: "New: a cluster, or what the page lists"},
	{Keys: []string{"j"}, What: "Next row"},
	{Keys: []string{"k"}, What: "Previous row"},
	{Keys: []string{"x"}, What: "Select the row, where rows can be selected"},
	{Keys: []string{"Enter"}, What: "Open the row"},
	{Keys: []string{"e"}, What: "Edit"},
	{Keys: []string{"o"}, What: "Open the cluster's page"},
	{Keys: []string{"."}, What: "Open the menu of the page"},
	{Keys: []string{"Esc"}, What: "Close a dialog or menu"},
	{Keys: []string{"?"}, What: "This list"},
}

// keys lists the shortcuts; whoever is not signed in may read them, too.
func (s *Shared) keys(w http.ResponseWriter, r *http.Request) error {
	off := s.Preferences(r).NoShortcuts
	if Wants(r, DialogID) {
		return s.Fragment(w, r, http.StatusOK, sharedview.KeysDialog(shortcuts, off))
	}
	page := layout.Model{Title: "Keyboard help", Area: layout.AreaAccount, Anonymous: true}
	actor, _, err := s.Sessions.Actor(r)
	if err == nil {
		page = AccountFrame("Keyboard help", "")
		page.Crumbs = nil
	} else if loom.AsError(err).Kind != loom.Unauthenticated {
		return err
	} else {
		page.Rail = []layout.RailItem{}
	}
	return s.Render(w, r, actor, http.StatusOK, page, sharedview.KeysPage(shortcuts, off))
}
