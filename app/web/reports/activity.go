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
	return s.ActivityPage(w, r, actor, layout.Model{Title: "Activity", Area: layout.AreaClusters, Here: route.Activity()}, route.Activity(), false, q)
}

func (s *Server) systemActivity(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.ActivityPage(w, r, actor, page.SystemFrame("Activity", route.SystemActivity()), route.SystemActivity(), true, page.ReadActivity(r.URL.Query()))
}
