package web

import (
	"net/http"
	"strings"

	"loom/app/httpx"
	"loom/app/loom"
)

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

// handler checks what a route asks for before it is handled.
func (s *Server) handler(rt Route) http.Handler {
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
