package web

import (
	"io"
	"net/http"
	"strings"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// themeAge keeps the choice of a theme for a year, in seconds.
const themeAge = 365 * 24 * 3600

// preferencesSave stores the theme in a cookie, so that the first paint is right;
// people who are not signed in may choose too.
func (s *Server) preferencesSave(w http.ResponseWriter, r *http.Request) error {
	httpx.LimitBody(w, r)
	if err := r.ParseForm(); err != nil {
		return loom.NewError(loom.Invalid, "The form could not be read.")
	}
	http.SetCookie(w, &http.Cookie{
		Name: layout.ThemeCookie, Value: string(layout.ParseTheme(r.PostForm.Get("theme"))),
		Path: "/", MaxAge: themeAge, SameSite: http.SameSiteLaxMode, HttpOnly: true, Secure: r.TLS != nil,
	})
	if r.PostForm.Get("next") == "" {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return httpx.SeeOther(w, r, route.Local(r.PostForm.Get("next"), route.Home()))
}

// cspReport logs what the content policy kept out; the browser tests demand none.
func (s *Server) cspReport(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<10))
	if err != nil {
		return err
	}
	s.Log.Warn("content policy report", "request_id", httpx.RequestID(r), "report", strings.ToValidUTF8(string(body), "?"))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// gallery shows every component in every state.
func (s *Server) gallery(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.render(w, r, actor, http.StatusOK, layout.Model{Title: "Components", Area: layout.AreaSystem}, ui.Gallery())
}
