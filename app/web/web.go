// Package web is the pages: handlers that decode a request, call one use case
// and render a view. Pages are useful as plain HTML; htmx makes them live.
//
// It holds no SQL, no transaction and no rule about clusters: whatever needs
// deciding is a use case. routes.go is the table of contents; a handler stands in
// the file named after its resource and verb.
package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/cache"
	"loom/app/catalog"
	"loom/app/execution"
	"loom/app/fleet"
	"loom/app/hook"
	"loom/app/httpx"
	"loom/app/lifecycle"
	"loom/app/live"
	"loom/app/loom"
	"loom/static"
	"loom/views/layout"
	"loom/views/ui"
)

// Deps are what the pages need; all must be set.
type Deps struct {
	Accounts *account.Accounts
	Catalog  *catalog.Catalog
	Clusters *lifecycle.Clusters
	Fleet    *fleet.Fleet
	Hooks    *hook.Hooks
	// Operations pauses, resumes, aborts and leaves out tasks.
	Operations *execution.Operations
	Hub        *live.Hub
	Sessions   *httpx.Sessions
	Log        *slog.Logger
	Version    string
	// APIDocument is the OpenAPI document that /docs/api shows.
	APIDocument []byte
	// API answers the documents that pages offer as JSON, with the session of whoever
	// asks; nil offers none.
	API http.Handler
	// PublicURL is the address at which browsers reach Loom, without a slash at
	// its end; examples of calls use it.
	PublicURL string
	// ProxyUnknown says that Loom is behind a proxy whose network is not named, so that
	// every request seems to come from there.
	ProxyUnknown bool
	// Starter loads the starter catalog into the actor's tenant; nil where there is
	// none.
	Starter func(ctx context.Context, actor loom.Actor) error
	// Shortage says, for banners, that a tenant has fewer workers than it wants
	// because capacity is short; empty when there is none.
	Shortage func(ctx context.Context, actor loom.Actor) (string, error)
	// Condition says, for banners, what hinders work in the whole installation; nil never
	// says anything.
	Condition func(ctx context.Context) (fleet.Condition, error)
}

// Server answers browsers.
type Server struct {
	Deps
	now func() time.Time
	// typical is how long tasks usually take, by tenant and type of provider: a running
	// page asks every second.
	typical cache.Cache[[2]string, lifecycle.Typical]
	turns   turns
	plans   plans
	names   nodeNames
	// sums and running are what home pages told a moment ago, sums over a whole tenant.
	// They are for whole pages only: parts are fetched upon signals, and read what the
	// signal was about.
	sums    cache.Cache[homeKey, homeSums]
	running cache.Cache[homeKey, map[loom.ClusterID]loom.Operation]
	// begun is when this process began to serve pages, state what they know of the
	// installation.
	begun time.Time
	state condition
	// reports counts those about the content policy.
	reports reports
	api     apiPages
}

// New makes the handler of all pages, static files included. Cross-site
// protection and headers are around it already (httpx.Chain).
func New(d Deps) http.Handler {
	s := &Server{Deps: d, now: time.Now, begun: time.Now()}
	s.typical.Age, s.typical.Most = estimatesKept, estimatesMost
	s.plans.Age, s.plans.Most, s.plans.Weight = planFor, keptTasks, func(k planKey) int { return k.tasks }
	s.names.Age, s.names.Most = planFor, namesKept
	s.sums.Age, s.sums.Most = recentFor, recentMost
	s.running.Age, s.running.Most = recentFor, recentMost
	mux, files := http.NewServeMux(), static.Handler()
	mux.Handle("/static/", s.answer(func(w http.ResponseWriter, r *http.Request) error {
		if err := s.claimFile(r); err != nil {
			return err
		}
		files.ServeHTTP(w, r)
		return nil
	}))
	s.routes(mux)
	return mux
}

// claimFile counts a static file for the address, and where that has no place left for
// whoever is signed in: most files are read without asking who reads them.
func (s *Server) claimFile(r *http.Request) error {
	full := httpx.Claim(r, httpx.FileCaller(r))
	if full == nil || !s.Sessions.HasCookie(r) {
		return full
	}
	actor, session, err := s.Sessions.Actor(r)
	if err != nil {
		return full
	}
	return httpx.Claim(r, httpx.SessionCaller(actor, session))
}

// ErrorPage renders errors that happen before a page's handler is reached.
func ErrorPage(version string) httpx.ErrorRenderer {
	s := &Server{Deps: Deps{Version: version}}
	return s.renderError
}

// open is a route that anybody may use. Its requests count for their address, take turns
// with those of others, and their bodies are small.
func (s *Server) open(h httpx.Handler) http.Handler { return s.openTo(httpx.AddressCaller, h) }

// reading is open for what is as long as a file.
func (s *Server) reading(h httpx.Handler) http.Handler { return s.openTo(httpx.FileCaller, h) }

func (s *Server) openTo(caller func(r *http.Request) httpx.Caller, h httpx.Handler) http.Handler {
	inTurn := s.answer(h)
	return s.answer(func(w http.ResponseWriter, r *http.Request) error {
		if err := httpx.Claim(r, caller(r)); err != nil {
			return err
		}
		httpx.LimitOpenBody(w, r)
		return httpx.InTurn(w, r, s.Sessions.KnownBrowser(r), inTurn)
	})
}

func (s *Server) answer(h httpx.Handler) http.Handler { return httpx.Wrap(s.Log, s.renderError, h) }

// page is a route for people who are signed in; others are sent to sign in and
// come back afterwards.
func (s *Server) page(h httpx.ActorHandler) http.Handler {
	return s.pageOfKnown(func(r *http.Request) (loom.Actor, loom.Session, error) { return s.Sessions.Actor(r) }, h)
}

// changing is a page also for those who have to change their password before they get
// to any other.
func (s *Server) changing(h httpx.ActorHandler) http.Handler {
	return s.pageOfKnown(func(r *http.Request) (loom.Actor, loom.Session, error) { return s.Sessions.ActorChanging(r) }, h)
}

func (s *Server) pageOfKnown(who func(r *http.Request) (loom.Actor, loom.Session, error), h httpx.ActorHandler) http.Handler {
	return s.answer(func(w http.ResponseWriter, r *http.Request) error {
		actor, session, err := who(r)
		if err != nil {
			return err
		}
		if err := httpx.Claim(r, httpx.SessionCaller(actor, session)); err != nil {
			return err
		}
		r = seenBy(r, session.Preferences)
		if answered, err := s.document(w, r, actor); answered || err != nil {
			return err
		}
		again := func() (loom.Actor, error) {
			now, _, err := s.Accounts.ActorBySession(r.Context(), s.Sessions.Cookie(r), httpx.Address(r))
			return now, err
		}
		err = httpx.Known(w, r, actor, again, h)
		if r.Method != http.MethodGet && errors.Is(err, loom.Forbidden) {
			// That it cannot be kept changes no answer.
			if failed := s.Accounts.RecordRefused(r.Context(), actor, "update", "page", r.URL.Path, loom.AsError(err).Message); failed != nil {
				s.Log.Error("a refusal could not be recorded", "request_id", httpx.RequestID(r), "error", failed.Error())
			}
		}
		return err
	})
}

// admin is a page for administrators of the tenant.
func (s *Server) admin(h httpx.ActorHandler) http.Handler {
	return s.page(func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		if !actor.IsAdmin() {
			return loom.NewError(loom.Forbidden, "This page needs the role of a tenant administrator; ask one of your tenant.")
		}
		return h(w, r, actor)
	})
}

// render answers with a page in its frame, or for htmx with its main part. What
// is common to all pages is filled in here: who is signed in, theme, messages.
func (s *Server) render(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, m layout.Model, content templ.Component) error {
	page, err := s.framed(w, r, actor, m, content)
	if err != nil {
		return err
	}
	return httpx.Render(w, r, status, page)
}

// framed gives the page that render answers with.
func (s *Server) framed(w http.ResponseWriter, r *http.Request, actor loom.Actor, m layout.Model, content templ.Component) (templ.Component, error) {
	if err := s.frame(w, r, actor, &m); err != nil {
		return nil, err
	}
	if httpx.IsFragment(r) {
		return layout.Fragment(m, content), nil
	}
	return layout.Wrap(m, content), nil
}

// fragment answers with a part of a page.
func (s *Server) fragment(w http.ResponseWriter, r *http.Request, status int, content templ.Component) error {
	return httpx.Render(w, r, status, content)
}

// frame fills in what every page shows.
func (s *Server) frame(w http.ResponseWriter, r *http.Request, actor loom.Actor, m *layout.Model) error {
	s.prefer(r, m)
	m.Path = r.URL.RequestURI()
	m.Document = s.paneOf(r)
	m.User, m.Tenant, m.RoleWord = string(actor.User), actor.TenantName, string(actor.Role)
	m.ShowCatalog, m.ShowAdmin, m.ShowSystem = true, actor.IsAdmin(), actor.IsSuperadmin()
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
	if s.Shortage != nil && actor.IsAdmin() {
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

// say keeps a message for the next page and goes there.
func (s *Server) say(w http.ResponseWriter, r *http.Request, url string, flash httpx.Flash) error {
	if err := s.Sessions.AddFlash(w, r, flash); err != nil {
		return err
	}
	return httpx.SeeOther(w, r, url)
}

func theme(r *http.Request) layout.Theme {
	c, err := r.Cookie(layout.ThemeCookie)
	if err != nil {
		return layout.ThemeSystem
	}
	return layout.ParseTheme(c.Value)
}
