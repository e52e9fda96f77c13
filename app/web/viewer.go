package web

import (
	"net/http"
	"strconv"

	"loom/app/loom"
	"loom/views/layout"
	"loom/views/ui"
)

// preferences are those of whoever is signed in; the zero value for others.
func (s *Server) preferences(r *http.Request) loom.ViewPreferences {
	if s.Sessions == nil || !s.Sessions.HasCookie(r) {
		return loom.ViewPreferences{}
	}
	_, session, err := s.Sessions.Actor(r) // read once per request
	if err != nil {
		return loom.ViewPreferences{}
	}
	return session.Preferences
}

// seenBy gives the request a context in which times are shown as the viewer wants.
func seenBy(r *http.Request, p loom.ViewPreferences) *http.Request {
	ctx := loom.WithZone(r.Context(), p.Location())
	return r.WithContext(ui.WithViewer(ctx, ui.Viewer{Zone: p.Location(), Absolute: p.Absolute, AnnounceLogs: p.AnnounceLogs}))
}

// pageRows is how many rows a page of a list has: as its address says, else as the
// viewer prefers.
func (s *Server) pageRows(r *http.Request) int {
	if n, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && (loom.ViewPreferences{Rows: n}).PageRows() == n {
		return n
	}
	return s.preferences(r).PageRows()
}

// pageOf reads length and cursors of a list's address.
func (s *Server) pageOf(r *http.Request) loom.Page {
	q := r.URL.Query()
	return loom.Page{Limit: s.pageRows(r), After: q.Get("after"), Before: q.Get("before"), Sort: q.Get("sort")}
}

// prefer puts what the viewer prefers into the frame.
func (s *Server) prefer(r *http.Request, m *layout.Model) {
	p := s.preferences(r)
	m.Theme = theme(r)
	m.Compact, m.NoShortcuts = p.Compact, p.NoShortcuts
	m.Polling = m.Polling || p.Poll
	if s.Sessions == nil {
		return
	}
	if _, session, err := s.Sessions.Actor(r); err == nil {
		m.SessionLeft = session.Expires.Sub(s.now())
	}
}
