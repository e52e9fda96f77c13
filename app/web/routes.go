package web

import (
	"net/http"

	"loom/views/route"
)

// router is where routes are entered.
type router interface {
	Handle(pattern string, h http.Handler)
}

// patterns keeps what is entered.
type patterns []string

// Handle keeps the pattern.
func (p *patterns) Handle(pattern string, _ http.Handler) { *p = append(*p, pattern) }

// Patterns gives the patterns of all routes of the pages, like
// "GET /clusters/{cluster}", so that tests can walk them.
func Patterns() []string {
	var found patterns
	new(Server).routes(&found)
	return found
}

// routes is what all surfaces of the pages have in common; the rooms have their
// tables of contents in routes_cluster.go, routes_account.go, routes_admin.go,
// routes_office.go, routes_report.go and routes_shared.go.
func (s *Server) routes(mux router) {
	mux.Handle("GET /events", s.page(s.events))
	mux.Handle("POST "+route.CSPReports(), s.open(s.cspReport))
	mux.Handle("GET "+route.API(), s.reading(s.apiIndex))
	mux.Handle("GET "+route.API()+"/{chapter}", s.reading(s.apiChapter))
	mux.Handle("GET /favicon.ico", s.open(s.favicon))
	mux.Handle("/", s.open(s.noSuchPage))

	s.clusterRoutes(mux)
	s.accountRoutes(mux)
	s.adminRoutes(mux)
	s.officeRoutes(mux)
	s.reportRoutes(mux)
	s.sharedRoutes(mux)
}
