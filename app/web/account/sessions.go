package account

import (
	"net/http"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
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
	m := accountview.SessionsModel{Now: s.Now(), Sessions: sessions, Present: present.ID}
	m.CSV, m.JSON = s.ExportsOf(r)
	return s.Render(w, r, actor, http.StatusOK, page.AccountFrame("Sessions", route.AccountSessions()), accountview.SessionsPage(m))
}

// accountSessionsEnd ends one session, or all but the present one.
func (s *Server) accountSessionsEnd(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
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
	return s.Say(w, r, route.AccountSessions(), httpx.Flash{Tone: "ok", Text: said})
}
