package web

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/fleet"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

// adminState is how the tenant is: its clusters, its queue, its quotas, and what was
// done of late.
func (s *Server) adminState(r *http.Request, actor loom.Actor) (now, past []templ.Component, err error) {
	quota, err := s.Accounts.Quota(r.Context(), actor)
	if err != nil {
		return nil, nil, err
	}
	audit, err := s.Accounts.Audit(r.Context(), actor, account.AuditInput{Page: loom.Page{Limit: pastRows}})
	if err != nil {
		return nil, nil, err
	}
	audit.Next, audit.Prev = "", ""
	queue, err := s.queueDef(r, actor)
	if err != nil {
		return nil, nil, err
	}
	defs := []ui.Def{queue}
	counts, err := s.Clusters.Counts(r.Context(), actor)
	if err != nil {
		return nil, nil, err
	}
	for _, status := range loom.ClusterStatuses {
		if status == loom.ClusterTerminated {
			continue
		}
		defs = append(defs, ui.Def{Term: ui.ClusterState(status).Word, Value: officeview.Link(ui.Count(counts[status], "cluster", "clusters"), route.Query(route.Clusters(), "status", string(status)))})
	}
	now = []templ.Component{officeview.Card("now-title", "Clusters and queue", ui.Definitions(defs)), quotaBars(quota)}
	past = []templ.Component{s.auditGrid(ui.ViewerOf(r.Context()), "", auditQuery{}, audit), officeview.Link("The whole audit", route.AdminAudit())}
	return now, past, nil
}

// queueDef says what of the tenant waits for a worker.
func (s *Server) queueDef(r *http.Request, actor loom.Actor) (ui.Def, error) {
	counts, err := s.Fleet.Queues(r.Context(), actor)
	if err != nil {
		return ui.Def{}, err
	}
	var own fleet.QueueCount
	for _, c := range counts {
		if c.Tenant == actor.TenantName {
			own = c
		}
	}
	return ui.Def{Term: "Tasks", Value: officeview.Link(strconv.Itoa(own.Waiting)+" waiting, "+strconv.Itoa(own.Running)+" at work", route.AdminQueue())}, nil
}

// adminStarter loads the starter catalog into the tenant.
func (s *Server) adminStarter(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if s.Starter == nil {
		return loom.NewError(loom.NotFound, "There is no starter catalog in this installation.")
	}
	if err := s.Starter(r.Context(), actor); err != nil {
		return err
	}
	return s.say(w, r, route.Admin(), httpx.Flash{Tone: "ok", Text: "Loaded the starter catalog."})
}
