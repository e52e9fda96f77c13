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

// maxFindings bounds the list of the overview.
const maxFindings = 100

// adminOverview counts the catalog and lists what in it would not work.
func (s *Server) adminOverview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	bundle, err := s.Catalog.Export(r.Context(), actor)
	if err != nil {
		return err
	}
	found, err := s.Catalog.Check(r.Context(), actor, catalog.CheckInput{})
	if err != nil {
		return err
	}
	resources, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{})
	if err != nil {
		return err
	}
	m := adminview.OverviewModel{Empty: true}
	for _, kind := range []loom.EntityKind{loom.KindTemplate, loom.KindService, loom.KindProvider, loom.KindHardwareType, loom.KindImageType, loom.KindPartialTemplate} {
		n, bad, said := len(bundle.Entries[kind]), map[string]bool{}, map[string]int{}
		for _, f := range found {
			if f.Kind != kind {
				continue
			}
			bad[f.Name] = true
			if at, again := said[f.Name+"\x00"+f.Message]; again { // the same in another field
				m.Findings[at].Others++
				continue
			}
			said[f.Name+"\x00"+f.Message] = len(m.Findings)
			m.Findings = append(m.Findings, adminview.Finding{
				Kind: kind.Word(), Name: f.Name, Text: page.Sentence(f), Href: route.AdminEntry(kind, f.Name), FixHref: route.AdminEntryEdit(kind, f.Name),
			})
		}
		m.Empty = m.Empty && n == 0
		tile := ui.TileModel{Number: strconv.Itoa(n), Label: adminview.Plural(kind), Href: route.AdminKind(kind)}
		if len(bad) > 0 {
			tile.Note, tile.Tone = ui.Count(len(bad), "needs attention", "need attention"), ui.ToneWarn
		}
		m.Tiles = append(m.Tiles, tile)
	}
	m.Findings = m.Findings[:min(len(m.Findings), maxFindings)]
	staged, recalled := waiting(resources)
	tile := ui.TileModel{Number: strconv.Itoa(staged + recalled), Label: "Resources waiting for sync", Note: "of " + ui.Count(len(resources), "version", "versions"), Href: route.AdminResources()}
	if staged+recalled > 0 {
		tile.Tone = ui.ToneWarn
	}
	m.Tiles = append(m.Tiles, tile)
	m.Starter = s.Starter != nil
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
	defs := []ui.Def{queue}
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
