package page

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// AccountFrame is the frame of the account pages.
func AccountFrame(title, here string) layout.Model {
	m := layout.Model{Title: title, Section: "Account", Area: layout.AreaAccount, Here: here}
	if here != route.Account() {
		m.Crumbs = []ui.Crumb{{Label: "Account", Href: route.Account()}, {Label: title}}
	}
	return m
}

// AdminFrame is the frame of the admin pages.
func AdminFrame(title, here string, crumbs ...ui.Crumb) layout.Model {
	return layout.Model{Title: title, Section: "Admin", Area: layout.AreaAdmin, Here: here, Crumbs: crumbs}
}

// DialogID is the frame's one dialog, for which forms answer without the frame.
const DialogID = "dialog"

// Wants reports whether htmx asks for the part of a page with that id.
func Wants(r *http.Request, id string) bool { return r.Header.Get("HX-Target") == id }

// refreshSeconds is how often a running page reloads where scripts do not run.
const refreshSeconds = 15

// Reloading makes a page reload by itself without scripts, unless told not to.
func Reloading(r *http.Request, m *layout.Model, live bool) {
	if !live || r.URL.Query().Get("refresh") == "off" {
		return
	}
	m.Refresh = refreshSeconds
	m.StopRefresh = route.Query(r.URL.Path, "refresh", "off")
}

// topicsMost bounds the topics of a page's stream.
const topicsMost = 10

// followOwn lets a page that has a stream hear what concerns its reader as well. A page
// without one gets none for this: browsers open few connections to a server at once.
func followOwn(m *layout.Model) {
	if n := len(m.Topics); n > 0 && n < topicsMost && !slices.Contains(m.Topics, loom.TopicOwn) {
		m.Topics = append(slices.Clip(m.Topics), loom.TopicOwn)
	}
}

// SystemFrame is the frame of the system pages.
func SystemFrame(title, here string, crumbs ...ui.Crumb) layout.Model {
	m := layout.Model{Title: title, Section: "System", Area: layout.AreaSystem, Here: here}
	if len(crumbs) > 0 {
		m.Crumbs = append([]ui.Crumb{{Label: "System", Href: route.System()}}, crumbs...)
	}
	return m
}

// actingBanner says on every page that one acts as another, and ends it.
func (s *Shared) actingBanner(r *http.Request, actor loom.Actor, m *layout.Model) {
	if actor.By == (loom.Account{}) {
		return
	}
	_, session, err := s.Sessions.Actor(r)
	if err != nil || session.ActingUntil.IsZero() {
		return
	}
	m.Banners = append([]ui.BannerModel{{Tone: ui.ToneHold, Post: true, Action: "Stop", ActionHref: route.ActEnd(),
		Text: "You act in tenant " + actor.TenantName + " as its administrator, until " + ui.ViewerOf(r.Context()).Full(session.ActingUntil) + ". You are " + string(actor.By.User) + " (superadmin)."}}, m.Banners...)
}

// Preferences are those of whoever is signed in; the zero value for others.
func (s *Shared) Preferences(r *http.Request) loom.ViewPreferences {
	if s.Sessions == nil || !s.Sessions.HasCookie(r) {
		return loom.ViewPreferences{}
	}
	_, session, err := s.Sessions.Actor(r) // read once per request
	if err != nil {
		return loom.ViewPreferences{}
	}
	return session.Preferences
}

// SeenBy gives the request a context in which times are shown as the viewer wants.
func SeenBy(r *http.Request, actor loom.Actor, p loom.ViewPreferences) *http.Request {
	zone := zoneOf(r, p)
	ctx := loom.WithZone(r.Context(), zone)
	return r.WithContext(ui.WithViewer(ctx, ui.Viewer{Actor: actor, Zone: zone, Absolute: p.Absolute, AnnounceLogs: p.AnnounceLogs}))
}

// zoneOf is the time zone that the viewer prefers, else that of the browser, else UTC.
func zoneOf(r *http.Request, p loom.ViewPreferences) *time.Location {
	if c, err := r.Cookie(layout.ZoneCookie); err == nil && p.Zone == "" {
		p.Zone = c.Value
	}
	return p.Location()
}

// PageRows is how many rows a page of a list has: as its address says, else as the
// viewer prefers.
func (s *Shared) PageRows(r *http.Request) int {
	if n, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && (loom.ViewPreferences{Rows: n}).PageRows() == n {
		return n
	}
	return s.Preferences(r).PageRows()
}

// PageOf reads length and cursors of a list's address.
func (s *Shared) PageOf(r *http.Request) loom.Page {
	q := r.URL.Query()
	return loom.Page{Limit: s.PageRows(r), After: q.Get("after"), Before: q.Get("before"), Sort: q.Get("sort")}
}

// prefer puts what the viewer prefers into the frame.
func (s *Shared) prefer(r *http.Request, m *layout.Model) {
	p := s.Preferences(r)
	m.Theme = Theme(r)
	m.Compact, m.NoShortcuts = p.Compact, p.NoShortcuts
	m.Polling = m.Polling || p.Poll
	if s.Sessions == nil {
		return
	}
	if _, session, err := s.Sessions.Actor(r); err == nil {
		m.SessionLeft = session.Expires.Sub(s.Now())
	}
}

// Render answers with a page in its frame, or for htmx with its main part. What
// is common to all pages is filled in here: who is signed in, theme, messages.
func (s *Shared) Render(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m layout.Model, content templ.Component) error {
	r = s.placed(r)
	page, err := s.Framed(w, r, actor, m, content)
	if err != nil {
		return err
	}
	return httpx.Render(w, r, status, page)
}

// Framed gives the page that render answers with.
func (s *Shared) Framed(w http.ResponseWriter, r *http.Request, actor loom.Actor, m layout.Model, content templ.Component) (templ.Component, error) {
	if err := s.frame(w, r, actor, &m); err != nil {
		return nil, err
	}
	if httpx.IsFragment(r) {
		return layout.Fragment(m, content), nil
	}
	return layout.Wrap(m, content), nil
}

// Fragment answers with a part of a page.
func (s *Shared) Fragment(w http.ResponseWriter, r *http.Request, status int, content templ.Component) error {
	return httpx.Render(w, s.placed(r), status, content)
}

// frame fills in what every page shows.
func (s *Shared) frame(w http.ResponseWriter, r *http.Request, actor loom.Actor, m *layout.Model) error {
	s.prefer(r, m)
	m.Path = r.URL.RequestURI()
	m.Document = s.paneOf(r)
	m.User, m.Tenant, m.RoleWord = string(actor.User), actor.TenantName, actor.RoleWords()
	m.ShowSystem = actor.May(loom.Install, loom.Installation) == nil
	for _, item := range RailFor(actor, layout.AreaAdmin, "") {
		if m.AdminHref = item.Href; m.AdminHref != "" {
			break
		}
	}
	if m.Rail == nil {
		m.Rail = RailFor(actor, m.Area, m.Here)
	}
	m.Version = s.Version
	followOwn(m)
	if httpx.IsFragment(r) {
		return nil // messages and banners stand around the main part: the next whole page shows them
	}
	flashes, err := s.Sessions.TakeFlashes(w, r)
	if err != nil {
		return err
	}
	for _, f := range flashes {
		m.Flashes = append(m.Flashes, toast(f))
	}
	if s.Shortage != nil && actor.May(loom.Administer, actor.InTenant()) == nil {
		text, err := s.Shortage(r.Context(), actor)
		if err != nil {
			return err
		}
		if text != "" {
			m.Banners = append(m.Banners, ui.BannerModel{Tone: ui.ToneWarn, Text: text})
		}
	}
	s.conditionBanners(r, actor, m)
	s.notices(r, actor, m)
	s.actingBanner(r, actor, m)
	return nil
}

// RailFor are the entries of an area whose pages the actor may open, and their headings.
func RailFor(actor loom.Actor, area layout.Area, here string) []layout.RailItem {
	rail := []layout.RailItem{}
	var heading *layout.RailItem
	for _, item := range layout.Rail(area, here) {
		switch {
		case item.Heading != "":
			heading = &item
			continue
		case item.Needs != "" && actor.MayAtAll(item.Needs.Reading()) != nil:
			continue
		case heading != nil:
			rail, heading = append(rail, *heading), nil
		}
		rail = append(rail, item)
	}
	return rail
}

// Say keeps a message for the next page and goes there.
func (s *Shared) Say(w http.ResponseWriter, r *http.Request, url string, flash httpx.Flash) error {
	if err := s.Sessions.AddFlash(w, r, flash); err != nil {
		return err
	}
	return httpx.SeeOther(w, r, url)
}

// Theme returns the theme that the browser asks for.
func Theme(r *http.Request) layout.Theme {
	c, err := r.Cookie(layout.ThemeCookie)
	if err != nil {
		return layout.ThemeSystem
	}
	return layout.ParseTheme(c.Value)
}
