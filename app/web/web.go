// Package web is the pages: handlers that decode a request, call one use case
// and render a view. Pages are useful as plain HTML; htmx makes them live.
//
// It holds no SQL, no transaction and no rule about clusters: whatever needs
// deciding is a use case. Each area of the pages is a package below with a table of
// its routes; areas know package page, which has what they share, and not each other.
// This package puts them together.
package web

import (
	"net/http"
	"slices"

	"loom/app/httpx"
	"loom/app/web/account"
	"loom/app/web/admin"
	"loom/app/web/catalog"
	"loom/app/web/clusters"
	"loom/app/web/docs"
	"loom/app/web/page"
	"loom/app/web/reports"
	"loom/app/web/system"
	"loom/static"
)

// Deps are what the pages need; all must be set.
type Deps = page.Deps

// Route is a row of the table of routes.
type Route = page.Route

// New makes the handler of all pages, static files included. Cross-site
// protection and headers are around it already (httpx.Chain).
func New(d Deps) http.Handler {
	s := page.New(d)
	mux, files := http.NewServeMux(), static.Handler()
	mux.Handle("/static/", s.Answer(func(w http.ResponseWriter, r *http.Request) error {
		if err := claimFile(s, r); err != nil {
			return err
		}
		files.ServeHTTP(w, r)
		return nil
	}))
	for _, rt := range join(s) {
		mux.Handle(rt.Pattern(), s.Handler(rt))
	}
	return mux
}

// join enters what the API has for the pages of all areas, and returns their routes.
func join(s *page.Shared) []Route {
	clusters, catalog, account, admin, reports, system := clusters.New(s), catalog.New(s), account.New(s), admin.New(s), reports.New(s), system.New(s)
	for _, area := range []func(func(string, page.Document)){clusters.Documents, catalog.Documents, account.Documents, admin.Documents, reports.Documents, system.Documents} {
		area(s.AddDocument)
	}
	return slices.Concat(clusters.Routes(), catalog.Routes(), account.Routes(), admin.Routes(), reports.Routes(), system.Routes(), docs.New(s).Routes(), s.CommonRoutes())
}

// Routes are all of the pages, area by area.
func Routes() []Route { return join(page.New(Deps{})) }

// Patterns are those of all routes, like "GET /clusters/{cluster}".
func Patterns() []string {
	var patterns []string
	for _, rt := range Routes() {
		patterns = append(patterns, rt.Pattern())
	}
	return patterns
}

// DocumentPatterns are those of the pages that the REST API has something for.
func DocumentPatterns() map[string]bool {
	s, found := page.New(Deps{}), map[string]bool{}
	for _, rt := range join(s) {
		if s.HasDocument(rt.Pattern()) {
			found[rt.Pattern()] = true
		}
	}
	return found
}

// ErrorPage renders errors that happen before a page's handler is reached.
func ErrorPage(version string) httpx.ErrorRenderer { return page.ErrorPage(version) }

// claimFile counts a static file for the address, and where that has no place left for
// whoever is signed in: most files are read without asking who reads them.
func claimFile(s *page.Shared, r *http.Request) error {
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
