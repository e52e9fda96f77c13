package page

import (
	"errors"
	"net/http"
	"strings"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/route"
)

// Access says who may ask for a route: those who may do what a verb of loom is about, to
// look at it where the method is GET; or one of the following. A route without one is an error that a test finds.
type Access = loom.Verb

const (
	// Open is for anybody. Requests count for their address, take turns with those of
	// others, and their bodies are small.
	Open Access = "open"
	// OpenFile is Open for what is as long as a file.
	OpenFile Access = "open file"
	// Changing is loom.Self also for those who have to change their password before they
	// get to any other page.
	Changing Access = "changing"
)

// Route is a row of an area's table of routes.
type Route struct {
	Method, Path string
	Access       Access
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
func Get(path string, access Access, h httpx.ActorHandler, samples ...string) Route {
	return newRoute(http.MethodGet, path, access, h, samples)
}

// Piece is what is read besides pages.
func Piece(path string, access Access, h httpx.ActorHandler, samples ...string) Route {
	rt := newRoute(http.MethodGet, path, access, h, samples)
	rt.Piece = true
	return rt
}

// Post is what forms are sent to.
func Post(path string, access Access, h httpx.ActorHandler, samples ...string) Route {
	return newRoute(http.MethodPost, path, access, h, samples)
}

func newRoute(method, path string, access Access, h httpx.ActorHandler, samples []string) Route {
	if len(samples) == 0 {
		samples = []string{strings.TrimSuffix(path, "{$}")}
	}
	return Route{Method: method, Path: path, Access: access, Handle: h, Samples: samples}
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
	switch rt.Access {
	case "":
		panic("web: the route " + rt.Pattern() + " says not who may ask for it")
	case Open:
		return s.openTo(httpx.AddressCaller, open)
	case OpenFile:
		return s.openTo(httpx.FileCaller, open)
	case Changing:
		return s.page(s.Sessions.ActorChanging, loom.Self, rt.Handle)
	}
	verb := rt.Access
	if rt.Method == http.MethodGet {
		verb = verb.Reading()
	}
	return s.page(s.Sessions.Actor, verb, rt.Handle)
}

// CommonRoutes are what all pages have in common.
func (s *Shared) CommonRoutes() []Route {
	return []Route{
		Piece("/events", loom.See, s.events),
		Post(route.CSPReports(), Open, Anybody(s.cspReport)),
		Get(route.Keys(), Open, Anybody(s.keys)),
		Post(route.BannerHide(), loom.Self, s.bannerHide),
		Piece("/favicon.ico", Open, Anybody(s.favicon)),
		{Path: "/", Access: Open, Handle: Anybody(s.noSuchPage), Samples: []string{"/no-such-page"}, Piece: true},
	}
}

// openTo is a route that anybody may use. Its requests count for the caller, take turns
// with those of others, and their bodies are small.
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

// page is a route for people who are signed in and may do what a verb is about; others are
// sent to sign in and come back afterwards.
func (s *Shared) page(who func(r *http.Request) (loom.Actor, loom.Session, error), verb loom.Verb, h httpx.ActorHandler) http.Handler {
	return s.Answer(func(w http.ResponseWriter, r *http.Request) error {
		actor, session, err := who(r)
		if err != nil {
			return err
		}
		if err := httpx.Claim(r, httpx.SessionCaller(actor, session)); err != nil {
			return err
		}
		r = SeenBy(r, actor, session.Preferences)
		handle := h
		if refused := ask(actor, verb); refused != nil {
			handle = func(http.ResponseWriter, *http.Request, loom.Actor) error { return refused }
		} else if answered, err := s.document(w, r, actor); answered || err != nil {
			return err
		}
		again := func() (loom.Actor, error) {
			now, _, err := s.Accounts.ActorBySession(r.Context(), s.Sessions.Cookie(r), httpx.Address(r))
			return now, err
		}
		err = httpx.Known(w, r, actor, again, handle)
		if r.Method != http.MethodGet && errors.Is(err, loom.Forbidden) {
			// That it cannot be kept changes no answer.
			if failed := s.Accounts.RecordRefused(r.Context(), actor, "update", "page", r.URL.Path, loom.AsError(err).Message); failed != nil {
				s.Log.Error("a refusal could not be recorded", "request_id", httpx.RequestID(r), "error", failed.Error())
			}
		}
		return err
	})
}

// ask asks for the verb of a page.
func ask(actor loom.Actor, verb loom.Verb) error {
	err := actor.MayAtAll(verb)
	if err == nil {
		return nil
	}
	e := *loom.AsError(err)
	e.Message = strings.Replace(e.Message, "This needs", "This page needs", 1)
	return &e
}
