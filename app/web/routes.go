package web

import (
	"net/http"

	"loom/views/route"
)

// routes is what all surfaces of the pages have in common; the rooms have their
// tables of contents in routes_cluster.go, routes_account.go, routes_admin.go and
// routes_office.go.
func (s *Server) routes(mux *http.ServeMux) {
	mux.Handle("GET /events", s.page(s.events))
	mux.Handle("POST "+route.AccountPreferences(), s.open(s.preferencesSave))
	mux.Handle("POST "+route.CSPReports(), s.open(s.cspReport))
	mux.Handle("GET "+route.Gallery(), s.admin(s.gallery))
	mux.Handle("GET "+route.API(), s.open(s.apiIndex))
	mux.Handle("GET "+route.API()+"/{chapter}", s.open(s.apiChapter))
	mux.Handle("GET /favicon.ico", s.open(s.favicon))
	mux.Handle("/", s.open(s.noSuchPage))

	s.clusterRoutes(mux)
	s.accountRoutes(mux)
	s.adminRoutes(mux)
	s.officeRoutes(mux)
}
