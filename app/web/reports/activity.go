package reports

import (
	"net/http"

	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/layout"
	"loom/views/route"
)

func (s *Server) activity(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := page.ReadActivity(r.URL.Query())
	q.Tenant = ""
	page := layout.Model{Title: "Activity", Area: layout.AreaClusters, Here: route.Activity()}
	intro := "Operations, leases and credentials of your clusters, and what changed in the catalog."
	if actor.May(loom.See, actor.InTenant()) == nil {
		intro = "Operations, leases, credentials and catalog changes of the whole tenant."
	}
	return s.ActivityPage(w, r, actor, page, route.Activity(), intro, false, q)
}

func (s *Server) systemActivity(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.ActivityPage(w, r, actor, page.SystemFrame("Activity", route.SystemActivity()), route.SystemActivity(),
		"Operations, leases, credentials and catalog changes of all tenants.", true, page.ReadActivity(r.URL.Query()))
}
