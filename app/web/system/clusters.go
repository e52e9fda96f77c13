package system

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// systemClusters lists the clusters of all tenants. Their pages belong to the tenant:
// who wants to see one acts as its administrator.
func (s *Server) systemClusters(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	get := func(name string) string { return strings.TrimSpace(r.URL.Query().Get(name)) }
	f := clusters.OfTenantsFilter{Tenant: get("tenant"), Owner: get("owner"), Words: get("q"), Status: loom.ClusterStatus(get("status"))}
	in := clusters.OfTenants{Page: s.PageOf(r), ClusterOfTenantFilter: f}
	in.Page.Sort = ""
	status, errs := http.StatusOK, ui.FormErrors{}
	list, err := s.Clusters.ClustersOfTenants(r.Context(), actor, in)
	if e := loom.AsError(err); err != nil {
		if e.Kind != loom.Invalid || len(e.Fields) == 0 {
			return err
		}
		errs, status = ui.NewFormErrors("", e.Fields), http.StatusUnprocessableEntity
	}
	statuses := []string{"", "All but terminated"}
	for _, st := range loom.ClusterStatuses {
		statuses = append(statuses, string(st), ui.ClusterState(st).Word)
	}
	text := func(name, label, value string) ui.FieldModel {
		return ui.FieldModel{Name: name, Label: label, Value: value, Optional: true, Width: "s", MaxLength: 255, Error: errs.For(name)}
	}
	filters := adminview.FiltersModel{Action: route.SystemClusters(), Target: "clusters-list", Fields: []ui.FieldModel{
		{Name: "q", Label: "Search", Kind: ui.FieldSearch, Value: f.Words, Optional: true, Width: "s", MaxLength: 200}, text("tenant", "Tenant", f.Tenant), text("owner", "Owner", f.Owner),
		{Name: "status", Label: "Status", Kind: ui.FieldSelect, Width: "s", Optional: true, Options: page.Options(string(f.Status), statuses...), Error: errs.For("status")}}}
	grid := adminview.TableModel{ID: "clusters", Caption: "Clusters of all tenants, the newest first", Now: s.Now(),
		Pages:   page.Turned("Pages of clusters", route.SystemClusters(), list.Next, list.Prev, "q", f.Words, "tenant", f.Tenant, "owner", f.Owner, "status", string(f.Status)),
		Columns: []ui.Column{{Label: "Cluster"}, {Label: "Status"}, {Label: "Tenant"}, {Label: "Owner"}, {Label: "Template"}, {Label: "Nodes", Numeric: true}, {Label: "Created"}, {Label: "Expiry"}, {Label: "Actions", LabelHidden: true}},
		Empty:   ui.EmptyModel{Icon: "cluster", Text: "No tenant has a cluster."}}
	if f != (clusters.OfTenantsFilter{}) {
		filters.Clear = route.SystemClusters()
		grid.Empty = ui.EmptyModel{Icon: "search", Text: "No cluster matches these filters.", Action: ui.ButtonModel{Label: "Clear filters", Href: route.SystemClusters()}}
	}
	if len(errs.Items) == 0 {
		grid.CSV, grid.JSON = s.ExportsOf(r)
	}
	for _, c := range list.Items {
		state := ui.ClusterState(c.Status)
		grid.Rows = append(grid.Rows, []adminview.Cell{{Text: c.Name, Sub: c.ID.String()}, {State: &state}, {Text: c.Tenant, Href: route.SystemTenant(c.Tenant), Mono: true}, {Text: string(c.Owner), Mono: true}, {Text: c.Template},
			{Text: strconv.Itoa(c.Nodes)}, {Time: c.Created}, {Time: c.Expires}, {Buttons: openAs(actor, c.Tenant, c.ID, c.Name)}})
	}
	m := adminview.PageModel{Title: "Clusters", Intro: "Clusters of all tenants. Your own tenant’s clusters open in the portal.",
		Parts: []templ.Component{adminview.Filters(filters), adminview.Table(grid)}}
	return s.Sheet(w, r, actor, status, page.SystemFrame("Clusters", route.SystemClusters()), m)
}

// openAs is the button that opens a cluster as the administrator of its tenant. One's own
// clusters are opened in the portal: no page of the installation leads there.
func openAs(actor loom.Actor, tenant string, id loom.ClusterID, name string) []ui.ButtonModel {
	if tenant == actor.TenantName {
		return nil
	}
	return []ui.ButtonModel{page.Opening("Open as administrator", "Open as administrator: "+name, route.Query(route.SystemActAs(tenant), fieldCluster, id.String()), ui.Secondary)}
}
