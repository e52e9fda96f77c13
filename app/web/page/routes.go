package page

import (
	"errors"
	"net/http"
	"strings"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/route"
)

// system is a page for superadmins.
func (s *Shared) system(h httpx.ActorHandler) http.Handler {
	return s.page(func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		if !actor.IsSuperadmin() {
			return loom.NewError(loom.Forbidden, "This page needs the role of a superadmin; ask whoever runs Loom.")
		}
		return h(w, r, actor)
	})
}

// Role says who may ask for a route.
type Role int

// Those who may ask. A route without one is an error that a test finds.
const (
	// Open is for anybody. Requests count for their address, take turns with those of
	// others, and their bodies are small.
	Open Role = iota + 1
	// OpenFile is Open for what is as long as a file.
	OpenFile
	// SignedIn is for people who are signed in; others are sent to sign in and come back
	// afterwards.
	SignedIn
	// Changing is SignedIn also for those who have to change their password before they
	// get to any other page.
	Changing
	// Admin is for administrators of the tenant.
	Admin
	// Superadmin is for those who run the installation.
	Superadmin
)

// Route is a row of an area's table of routes.
type Route struct {
	Method, Path string
	Role         Role
	Handle       httpx.ActorHandler
	// Samples are addresses of the route for tests, with names in braces for what the
	// tests' world has; the path itself where none were named.
	Samples []string
	// Piece says that the answer is no page of its own: a part of one, a download, a
	// stream, or a question about what need not be there.
	Piece bool
}

// Pattern is that of http.ServeMux.
func (rt Route) Pattern() string { return strings.TrimSpace(rt.Method + " " + rt.Path) }

// Get is a page.
func Get(path string, role Role, h httpx.ActorHandler, samples ...string) Route {
	return newRoute(http.MethodGet, path, role, h, samples)
}

// Piece is what is read besides pages.
func Piece(path string, role Role, h httpx.ActorHandler, samples ...string) Route {
	rt := newRoute(http.MethodGet, path, role, h, samples)
	rt.Piece = true
	return rt
}

// Post is what forms are sent to.
func Post(path string, role Role, h httpx.ActorHandler, samples ...string) Route {
	return newRoute(http.MethodPost, path, role, h, samples)
}

func newRoute(method, path string, role Role, h httpx.ActorHandler, samples []string) Route {
	if len(samples) == 0 {
		samples = []string{strings.TrimSuffix(path, "{$}")}
	}
	return Route{Method: method, Path: path, Role: role, Handle: h, Samples: samples}
}

// Anybody is a handler that does not ask who sends the request.
func Anybody(h httpx.Handler) httpx.ActorHandler {
	return func(w http.ResponseWriter, r *http.Request, _ loom.Actor) error { return h(w, r) }
}

// Sample puts a value in place of a placeholder of the routes' samples.
func Sample(placeholder, value string, routes ...Route) []Route {
	for i, rt := range routes {
		for j, sample := range rt.Samples {
			routes[i].Samples[j] = strings.ReplaceAll(sample, placeholder, value)
		}
	}
	return routes
}

// Handler checks what a route asks for before it is handled.
func (s *Shared) Handler(rt Route) http.Handler {
	open := func(w http.ResponseWriter, r *http.Request) error { return rt.Handle(w, r, loom.Actor{}) }
	switch rt.Role {
	case Open:
		return s.open(open)
	case OpenFile:
		return s.reading(open)
	case SignedIn:
		return s.page(rt.Handle)
	case Changing:
		return s.changing(rt.Handle)
	case Admin:
		return s.admin(rt.Handle)
	case Superadmin:
		return s.system(rt.Handle)
	}
	panic("web: the route " + rt.Pattern() + " has no role")
}

// CommonRoutes are what all pages have in common.
func (s *Shared) CommonRoutes() []Route {
	return []Route{
		Piece("/events", SignedIn, s.events),
		Post(route.CSPReports(), Open, Anybody(s.cspReport)),
		Get(route.Keys(), Open, Anybody(s.keys)),
		Post(route.BannerHide(), SignedIn, s.bannerHide),
		Piece("/favicon.ico", Open, Anybody(s.favicon)),
		{Path: "/", Role: Open, Handle: Anybody(s.noSuchPage), Samples: []string{"/no-such-page"}, Piece: true},
	}
}

// open is a route that anybody may use. Its requests count for their address, take turns
// with those of others, and their bodies are small.
func (s *Shared) open(h httpx.Handler) http.Handler { return s.openTo(httpx.AddressCaller, h) }

// reading is open for what is as long as a file.
func (s *Shared) reading(h httpx.Handler) http.Handler { return s.openTo(httpx.FileCaller, h) }

func (s *Shared) openTo(caller func(r *http.Request) httpx.Caller, h httpx.Handler) http.Handler {
	inTurn := s.Answer(h)
	return s.Answer(func(w http.ResponseWriter, r *http.Request) error {
		if err := httpx.Claim(r, caller(r)); err != nil {
			return err
		}
		httpx.LimitOpenBody(w, r)
		return httpx.InTurn(w, r, s.Sessions.KnownBrowser(r), inTurn)
	})
}

// Answer makes a handler of one that may fail: its error becomes a page.
func (s *Shared) Answer(h httpx.Handler) http.Handler { return httpx.Wrap(s.Log, s.renderError, h) }

// page is a route for people who are signed in; others are sent to sign in and
// come back afterwards.
func (s *Shared) page(h httpx.ActorHandler) http.Handler {
	return s.pageOfKnown(func(r *http.Request) (loom.Actor, loom.Session, error) { return s.Sessions.Actor(r) }, h)
}

// changing is a page also for those who have to change their password before they get
// to any other.
func (s *Shared) changing(h httpx.ActorHandler) http.Handler {
	return s.pageOfKnown(func(r *http.Request) (loom.Actor, loom.Session, error) { return s.Sessions.ActorChanging(r) }, h)
}

func (s *Shared) pageOfKnown(who func(r *http.Request) (loom.Actor, loom.Session, error), h httpx.ActorHandler) http.Handler {
	return s.Answer(func(w http.ResponseWriter, r *http.Request) error {
		actor, session, err := who(r)
		if err != nil {
			return err
		}
		if err := httpx.Claim(r, httpx.SessionCaller(actor, session)); err != nil {
			return err
		}
		r = SeenBy(r, session.Preferences)
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
func (s *Shared) admin(h httpx.ActorHandler) http.Handler {
	return s.page(func(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
		if !actor.IsAdmin() {
			return loom.NewError(loom.Forbidden, "This page needs the role of a tenant administrator; ask one of your tenant.")
		}
		return h(w, r, actor)
	})
}
