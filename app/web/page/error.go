package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/static"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

var remedies = map[loom.Kind]string{
	loom.Invalid:         "Go back and correct your input.",
	loom.Unsolvable:      "Change the size, the services or the types.",
	loom.Unauthenticated: "Sign in; you will come back here.",
	loom.Forbidden:       "Ask an administrator of your tenant if you need this.",
	loom.NotFound:        "It may have been removed, or the address may be wrong.",
	loom.Conflict:        "Load the page again to see how things stand now.",
	loom.Exhausted:       "Delete what is not needed, or ask an administrator for a larger quota.",
	loom.Throttled:       "Wait a moment, then try again.",
	loom.Unavailable:     "Try again in a moment. If the problem persists, send an administrator the request id.",
	loom.Internal:        "Nothing was changed. Tell an administrator the request id.",
}

// remedyOf says what to try, and where it is known after how long.
func remedyOf(e *loom.Error) string {
	if wait := e.RetryAfter; wait > 0 && !strings.Contains(e.Message, "try again in") {
		return "Try again in " + ui.Duration((wait + time.Second - 1).Truncate(time.Second)) + "."
	}
	return remedies[e.Kind]
}

// renderError answers a failed request: a sign-in page for the unknown, the form for a
// new password for those who have to choose one, a toast for htmx, an error page for all
// else.
func (s *Shared) renderError(w http.ResponseWriter, r *http.Request, e *loom.Error) {
	switch {
	case httpx.MustChangePassword(e):
		s.leadToPassword(w, r)
	case httpx.IsFragment(r):
		s.errorToast(w, r, e)
	case e.Kind == loom.Unauthenticated && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		http.Redirect(w, r, route.Login(r.URL.RequestURI()), http.StatusSeeOther)
	default:
		s.errorPage(w, r, e)
	}
}

// maxToast is how much of a message goes into the header that becomes a toast, in characters.
const maxToast = 1000

// errorToast leaves the page as it is and says what happened.
func (s *Shared) errorToast(w http.ResponseWriter, r *http.Request, e *loom.Error) {
	if e.Kind == loom.Unauthenticated {
		// The page asks for the password in a dialog: what stands in its forms is kept.
		w.Header().Set("HX-Trigger", "loom:signin")
		w.Header().Set("HX-Reswap", "none")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	said := map[string]string{"text": fmt.Sprintf("%.*s", maxToast, e.Message), "tone": "bad"}
	switch e.Kind {
	case loom.Internal, loom.Unavailable:
		said["text"] += " " + remedyOf(e)
		said["request"] = httpx.RequestID(r) // to be copied
	case loom.Throttled, loom.Forbidden:
		said["text"] += " " + remedyOf(e)
	}
	text, err := json.Marshal(map[string]any{"loom:toast": said})
	if err == nil {
		w.Header().Set("HX-Trigger", string(text))
	}
	w.Header().Set("HX-Reswap", "none")
	w.WriteHeader(httpx.PageStatus(e.Kind))
}

func (s *Shared) errorPage(w http.ResponseWriter, r *http.Request, e *loom.Error) {
	m := layout.ErrorModel{
		Headline: httpx.Title(e.Kind), Message: e.Message, Remedy: remedyOf(e),
		Back: "View clusters", BackHref: route.Clusters(), RequestID: httpx.RequestID(r),
	}
	if e.Kind == loom.Unauthenticated {
		m.Back, m.BackHref = "Sign in", route.Login("")
	}
	if s.errorInFrame(w, r, e, m) {
		return
	}
	bare := layout.BareModel{Title: m.Headline, Theme: Theme(r), Version: s.Version, Wide: true}
	s.sendError(w, r, e, layout.WrapBare(bare, layout.ErrorPage(m)))
}

// errorInFrame shows an error with the navigation around it, to those who are signed
// in. It reports false where that cannot be had: nothing was written then.
func (s *Shared) errorInFrame(w http.ResponseWriter, r *http.Request, e *loom.Error, m layout.ErrorModel) bool {
	if s.Sessions == nil || e.Kind == loom.Unauthenticated || e.Kind == loom.Unavailable || !s.Sessions.HasCookie(r) {
		return false
	}
	actor, _, err := s.Sessions.Actor(r)
	if err != nil {
		return false
	}
	page := layout.Model{Title: m.Headline, Area: layout.AreaClusters}
	switch {
	case strings.HasPrefix(r.URL.Path, route.System()) && actor.May(loom.Install, loom.Installation) == nil:
		page = SystemFrame(m.Headline, "")
	case strings.HasPrefix(r.URL.Path, route.Admin()) && actor.May(loom.Administer, actor.InTenant()) == nil:
		page = AdminFrame(m.Headline, "")
	case strings.HasPrefix(r.URL.Path, route.Account()):
		page = AccountFrame(m.Headline, "")
	}
	page.Section = ""
	if err := s.frame(w, r, actor, &page); err != nil {
		return false
	}
	page.Path = errorReturn(r)
	s.sendError(w, r, e, layout.Wrap(page, layout.ErrorPage(m)))
	return true
}

// sendError answers with an error page, also where the request's own context has ended, as it
// does when a body came too slowly.
func (s *Shared) sendError(w http.ResponseWriter, r *http.Request, e *loom.Error, page templ.Component) {
	err := httpx.Render(w, r.WithContext(context.WithoutCancel(r.Context())), httpx.PageStatus(e.Kind), page)
	if err != nil && s.Log != nil && r.Context().Err() == nil {
		s.Log.Error("cannot render an error page", "request_id", httpx.RequestID(r), "error", err.Error())
	}
}

// errorReturn is where the theme form of an error page leads back to: an address
// that can only be posted to has no page.
func errorReturn(r *http.Request) string {
	if r.Method == http.MethodGet {
		return r.URL.RequestURI()
	}
	return route.Home()
}

func (s *Shared) noSuchPage(_ http.ResponseWriter, r *http.Request) error {
	return loom.NewError(loom.NotFound, "There is no page %.100s.", r.URL.Path)
}

func (s *Shared) favicon(w http.ResponseWriter, r *http.Request) error {
	http.Redirect(w, r, static.URL("favicon.svg"), http.StatusFound)
	return nil
}

func toast(f httpx.Flash) ui.ToastModel {
	tone := ui.ToneOK
	switch f.Tone {
	case "warn":
		tone = ui.ToneWarn
	case "bad":
		tone = ui.ToneBad
	}
	return ui.ToastModel{Tone: tone, Text: f.Text, Action: f.Link, ActionHref: f.URL}
}
