package web

import (
	"net/http"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
)

// addCheck puts the answer of a check into the page of a draft, so that it does not
// have to wait for the next keystroke, and stays when another tab is opened. A new entry
// of which nothing was written has nothing to check, and a request for a part of the
// page shows none of it.
func (s *Server) addCheck(r *http.Request, actor loom.Actor, d draft, m *adminview.EditorModel) error {
	whole := r.Header.Get("HX-Request") == "" || r.Header.Get("HX-Boosted") != ""
	if d.kind != loom.KindTemplate && d.kind != loom.KindPartialTemplate || !whole || d.name == "" && !d.changed {
		return nil
	}
	check, tabs, err := s.checkDraft(r, actor, d)
	if err != nil {
		return err
	}
	m.Check, m.Tabs = check, tabs
	return nil
}

// markTabs lets mistakes on other tabs of the form lead there, with the draft.
func markTabs(d draft, shown form.Shown, found []adminview.Problem) {
	for i, away := range shown.Away {
		if away.Tab != "" {
			found[i].TabURL = tabURL(d.kind, d.name, away.Tab) + "#" + away.FieldID
		}
	}
}
