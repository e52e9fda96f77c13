package admin

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// adminOverview lists what of the catalog would not work, and says how the tenant is.
func (s *Server) adminOverview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	found, err := s.Catalog.Check(r.Context(), actor, catalog.CheckInput{})
	if err != nil {
		return err
	}
	m := adminview.OverviewModel{Starter: s.Starter != nil}
	for _, g := range loom.GroupFindings(found) {
		m.Groups = append(m.Groups, adminview.FindingGroup{FindingGroup: g, Rows: findingRows(g)})
	}
	if len(found) == 0 {
		bundle, err := s.Catalog.Export(r.Context(), actor)
		if err != nil {
			return err
		}
		m.Empty = len(bundle.Entries) == 0
	}
	if m.Now, m.More, err = s.adminState(r, actor); err != nil {
		return err
	}
	return s.Render(w, r, actor, http.StatusOK, page.AdminFrame("Overview", route.Admin()), adminview.OverviewPage(m))
}

// adminState is how the tenant is: its clusters, its queue, its quotas, and what was
// done of late.
func (s *Server) adminState(r *http.Request, actor loom.Actor) (now, past []templ.Component, err error) {
	quota, err := s.Accounts.Quota(r.Context(), actor)
	if err != nil {
		return nil, nil, err
	}
	audit, err := s.Accounts.Audit(r.Context(), actor, account.AuditInput{Page: loom.Page{Limit: page.PastRows}})
	if err != nil {
		return nil, nil, err
	}
	audit.Next, audit.Prev = "", ""
	queue, err := s.queueDef(r, actor)
	if err != nil {
		return nil, nil, err
	}
	staged, recalled, err := s.Catalog.ResourcesWaiting(r.Context(), actor)
	if err != nil {
		return nil, nil, err
	}
	defs := []ui.Def{queue, {Term: "Files", Value: adminview.Link(strconv.Itoa(staged+recalled)+" waiting for release", route.AdminResources())}}
	counts, err := s.Clusters.TenantCounts(r.Context(), actor)
	if err != nil {
		return nil, nil, err
	}
	for _, status := range loom.ClusterStatuses {
		if status == loom.ClusterTerminated {
			continue
		}
		defs = append(defs, ui.Def{Term: ui.ClusterState(status).Word, Value: adminview.Link(ui.Count(counts[status], "cluster", "clusters"), route.Query(route.Clusters(), "status", string(status)))})
	}
	now = []templ.Component{adminview.Card("now-title", "Clusters and queue", ui.Definitions(defs)), page.QuotaBars(quota)}
	past = []templ.Component{s.AuditGrid(ui.ViewerOf(r.Context()), "", page.AuditQuery{}, audit), adminview.Link("Audit log", route.AdminAudit())}
	return now, past, nil
}

// queueDef says what of the tenant waits for a worker.
func (s *Server) queueDef(r *http.Request, actor loom.Actor) (ui.Def, error) {
	counts, err := s.Processes.Queues(r.Context(), actor)
	if err != nil {
		return ui.Def{}, err
	}
	var own processes.QueueCount
	for _, c := range counts {
		if c.Tenant == actor.TenantName {
			own = c
		}
	}
	return ui.Def{Term: "Tasks", Value: adminview.Link(strconv.Itoa(own.Waiting)+" waiting, "+strconv.Itoa(own.Running)+" running", route.AdminQueue())}, nil
}

// adminClusters is the list of clusters: administrators see there those of all owners.
func (s *Server) adminClusters(w http.ResponseWriter, r *http.Request, _ loom.Actor) error {
	return httpx.SeeOther(w, r, route.Clusters())
}
