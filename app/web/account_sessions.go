package web

import (
	"net/http"
	"strings"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/accountview"
	"loom/views/route"
)

func (s *Server) accountSessions(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	sessions, err := s.Accounts.Sessions(r.Context(), actor)
	if err != nil {
		return err
	}
	_, present, err := s.Sessions.Actor(r)
	if err != nil {
		return err
	}
	m := accountview.SessionsModel{Now: s.now()}
	for _, one := range sessions {
		m.Sessions = append(m.Sessions, accountview.SessionRow{
			ID: one.ID, Browser: browser(one.Agent), Agent: one.Agent, Address: one.Address,
			Created: one.Created, LastUsed: one.LastUsed, Expires: one.Expires, Present: one.ID == present.ID,
		})
		m.Others = m.Others || one.ID != present.ID
	}
	m.CSV, m.JSON = s.exportsOf(r)
	return s.render(w, r, actor, http.StatusOK, accountFrame("Sessions", route.AccountSessions()), accountview.SessionsPage(m))
}

// accountSessionsEnd ends one session, or all but the present one.
func (s *Server) accountSessionsEnd(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := accountForm(w, r)
	if err != nil {
		return err
	}
	said := "Signed out that browser."
	if f.Get(accountview.FieldOthers) == "true" {
		said = "Signed out everywhere else."
		err = s.Accounts.EndOtherSessions(r.Context(), actor, s.Sessions.Cookie(r))
	} else {
		err = s.Accounts.EndSession(r.Context(), actor, f.Get(accountview.FieldSession))
	}
	if err != nil {
		return err
	}
	return s.say(w, r, route.AccountSessions(), httpx.Flash{Tone: "ok", Text: said})
}

// browser gives the usual name of a browser and its system; the full description
// is beside it. The order matters: most browsers also claim to be others.
func browser(agent string) string {
	find := func(names [][2]string) string {
		for _, n := range names {
			if strings.Contains(agent, n[0]) {
				return n[1]
			}
		}
		return ""
	}
	name := find([][2]string{{"Firefox/", "Firefox"}, {"Edg", "Edge"}, {"OPR/", "Opera"}, {"Chrom", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}})
	system := find([][2]string{{"Android", "Android"}, {"iPhone", "iOS"}, {"iPad", "iOS"}, {"Windows", "Windows"}, {"Mac OS", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}})
	switch {
	case name == "" && agent == "":
		return "Unknown browser"
	case name == "":
		name, _, _ = strings.Cut(agent, " ")
	}
	if system == "" {
		return name
	}
	return name + " on " + system
}
