package account

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/sharedview"
	"loom/views/ui"
)

// themeAge keeps the choice of a theme for a year, in seconds.
const themeAge = 365 * 24 * 3600

// themeCookie keeps the theme, so that the first paint is right.
func themeCookie(w http.ResponseWriter, r *http.Request, chosen string) {
	http.SetCookie(w, &http.Cookie{
		Name: layout.ThemeCookie, Value: string(layout.ParseTheme(chosen)),
		Path: "/", MaxAge: themeAge, SameSite: http.SameSiteLaxMode, HttpOnly: true, Secure: r.TLS != nil,
	})
}

// preferencesShow is the page with everything that can be chosen.
func (s *Server) preferencesShow(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p := s.Preferences(r)
	p.Theme = string(page.Theme(r))
	return s.preferencesPage(w, r, actor, http.StatusOK, p, ui.FormErrors{})
}

func (s *Server) preferencesPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, p loom.ViewPreferences, errs ui.FormErrors) error {
	m := sharedview.PreferencesModel{
		Zone: p.Zone, ZoneNow: ui.ViewerOf(r.Context()).Moment(s.Now()), Zones: commonZones,
		Absolute: p.Absolute, Shortcuts: !p.NoShortcuts, Reader: p.AnnounceLogs, Errors: errs,
	}
	choice := func(value, label, description string, on bool) ui.Choice {
		return ui.Choice{Value: value, Label: label, Description: description, Checked: on}
	}
	m.Theme = []ui.Choice{
		choice("system", "System", "Follows your device.", p.Theme == "" || p.Theme == "system"),
		choice("light", "Light", "", p.Theme == "light"), choice("dark", "Dark", "", p.Theme == "dark"),
	}
	m.Density = []ui.Choice{
		choice("comfortable", "Comfortable", "Rows are 40 px high.", !p.Compact),
		choice("compact", "Compact", "Rows are 32 px high.", p.Compact),
	}
	m.Live = []ui.Choice{
		choice("stream", "Stream", "Changes appear at once.", !p.Poll),
		choice("poll", "Ask every 5 seconds", "For networks that do not let streams through.", p.Poll),
	}
	for _, n := range loom.RowChoices {
		m.Rows = append(m.Rows, ui.Option{Value: strconv.Itoa(n), Label: strconv.Itoa(n), Selected: n == p.PageRows()})
	}
	return s.Render(w, r, actor, status, page.AccountFrame("Preferences", route.AccountPreferences()), sharedview.PreferencesPage(m))
}

// preferencesSave stores what was chosen: the theme alone from the menu, where also
// people may choose who are not signed in, or all that is on the page.
func (s *Server) preferencesSave(w http.ResponseWriter, r *http.Request) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	actor, session, err := s.Sessions.Actor(r)
	signedIn := err == nil
	if !signedIn && loom.AsError(err).Kind != loom.Unauthenticated {
		return err
	}
	p := session.Preferences
	p.Theme = string(layout.ParseTheme(f.Get("theme")))
	whole := f.Has("zone")
	if whole {
		if !signedIn {
			return err
		}
		r = page.SeenBy(r, actor, p)
		p = readPreferences(f, p)
	}
	if signedIn {
		err := s.Accounts.SetPreferences(r.Context(), actor, p)
		if e := loom.AsError(err); err != nil && e.Kind == loom.Invalid {
			return s.preferencesPage(w, r, actor, http.StatusUnprocessableEntity, p, ui.NewFormErrors("The preferences were not saved.", e.Fields))
		}
		if err != nil && !errors.Is(err, loom.NotFound) { // who acts for another has none there
			return err
		}
	}
	themeCookie(w, r, p.Theme)
	switch {
	case whole:
		return s.Say(w, r, route.AccountPreferences(), httpx.Flash{Tone: "ok", Text: "Saved your preferences."})
	case f.Get("next") == "":
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return httpx.SeeOther(w, r, route.Local(f.Get("next"), route.Home()))
}

func readPreferences(f url.Values, p loom.ViewPreferences) loom.ViewPreferences {
	p.Compact, p.Poll = f.Get("density") == "compact", f.Get("live") == "poll"
	p.Absolute, p.NoShortcuts, p.AnnounceLogs = f.Get("absolute") != "", f.Get("shortcuts") == "", f.Get("reader") != ""
	p.Zone = strings.TrimSpace(f.Get("zone"))
	p.Rows = 0
	if n, err := strconv.Atoi(f.Get("rows")); err == nil {
		p.Rows = n
	}
	return p
}

// commonZones are offered while one types; any other that exists is taken as well.
var commonZones = []string{
	"UTC", "Africa/Cairo", "Africa/Johannesburg", "Africa/Lagos", "Africa/Nairobi", "America/Anchorage", "America/Argentina/Buenos_Aires", "America/Bogota",
	"America/Chicago", "America/Denver", "America/Halifax", "America/Lima", "America/Los_Angeles", "America/Mexico_City", "America/New_York", "America/Phoenix",
	"America/Santiago", "America/Sao_Paulo", "America/St_Johns", "America/Toronto", "Asia/Bangkok", "Asia/Dhaka", "Asia/Dubai", "Asia/Hong_Kong", "Asia/Jakarta",
	"Asia/Jerusalem", "Asia/Karachi", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Manila", "Asia/Riyadh", "Asia/Seoul", "Asia/Shanghai", "Asia/Singapore", "Asia/Taipei",
	"Asia/Tashkent", "Asia/Tehran", "Asia/Tokyo", "Atlantic/Azores", "Atlantic/Reykjavik", "Australia/Adelaide", "Australia/Brisbane", "Australia/Perth", "Australia/Sydney",
	"Europe/Amsterdam", "Europe/Athens", "Europe/Berlin", "Europe/Brussels", "Europe/Bucharest", "Europe/Budapest", "Europe/Copenhagen", "Europe/Dublin", "Europe/Helsinki",
	"Europe/Istanbul", "Europe/Kyiv", "Europe/Lisbon", "Europe/London", "Europe/Madrid", "Europe/Moscow", "Europe/Oslo", "Europe/Paris", "Europe/Prague", "Europe/Rome",
	"Europe/Sofia", "Europe/Stockholm", "Europe/Vienna", "Europe/Warsaw", "Europe/Zurich", "Pacific/Auckland", "Pacific/Honolulu",
}
