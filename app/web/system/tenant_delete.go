package system

import (
	"errors"
	"net/http"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// systemTenantNodes lists the machines that a tenant has: what Loom leaves alone when the
// tenant is deleted.
func (s *Server) systemTenantNodes(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	if err != nil {
		return err
	}
	asked := s.PageOf(r)
	asked.Sort = ""
	list, err := s.Processes.LiveNodesOf(r.Context(), actor, t.ID, asked)
	if err != nil {
		return err
	}
	grid := s.tenantNodeGrid(t, list, false)
	grid.Pages = page.Turned("Pages of nodes", route.SystemTenantNodes(t.Name), list.Next, list.Prev)
	m := adminview.PageModel{Title: "Nodes of " + t.Name, Intro: "Nodes that have a machine, are getting or losing one, and nodes with untracked machines. The provider keeps each machine until it is deleted there.",
		Parts: []templ.Component{adminview.Table(grid)}, Calls: []ui.JSONCall{page.Call("list", http.MethodGet, "/v2/tenants/"+t.Name+"/nodes", "")}}
	return s.Sheet(w, r, actor, http.StatusOK, tenantFrame("Nodes of "+t.Name, ui.Crumb{Label: t.Name, Href: route.SystemTenant(t.Name)}, ui.Crumb{Label: "Nodes"}), m)
}

func (s *Server) tenantNodeGrid(t loom.Tenant, list processes.NodesOfTenant, title bool) adminview.TableModel {
	m := adminview.TableModel{ID: "nodes", Caption: "Live nodes of " + t.Name, ShowCaption: title, Now: s.Now(),
		Columns: []ui.Column{{Label: "Machine"}, {Label: "Provider"}, {Label: "State"}, {Label: "Cluster"}, {Label: "Owner"}, {Label: "Cluster made"}},
		Empty:   ui.EmptyModel{Icon: "check-circle", Text: "The tenant has no live node."}}
	for _, n := range list.Items {
		state := ui.NodeState(n.State)
		machine := adminview.Cell{Text: n.Machine, Mono: true, Sub: n.Hostname}
		if n.Machine == "" {
			machine = adminview.Cell{Text: "not known yet", Sub: n.Hostname}
		}
		m.Rows = append(m.Rows, []adminview.Cell{machine, {Text: n.Provider}, {State: &state}, {Text: n.ClusterName, Sub: n.Cluster.String()}, {Text: string(n.Owner), Mono: true}, {Time: n.Created}})
	}
	if len(m.Rows) > 0 {
		m.CSV, m.JSON = s.ExportsAt(route.SystemTenantNodes(t.Name), nil)
	}
	return m
}

func (s *Server) systemTenantDeleteAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.tenantDeletePage(w, r, actor, "", ui.FormErrors{}, http.StatusOK)
}

func (s *Server) tenantDeletePage(w http.ResponseWriter, r *http.Request, actor loom.Actor, typed string, errs ui.FormErrors, status int) error {
	t, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	if err != nil {
		return err
	}
	uses, err := s.Accounts.QuotaUses(r.Context(), actor, []loom.Tenant{t})
	if err != nil {
		return err
	}
	live, err := s.Processes.LiveNodesOf(r.Context(), actor, t.ID, loom.Page{Limit: page.OfficeRows})
	if err != nil {
		return err
	}
	use := uses[t.ID]
	m := adminview.ConfirmModel{Action: route.SystemTenantDelete(t.Name), Errors: errs, Type: t.Name, Typed: typed, Button: "Delete tenant " + t.Name, Busy: "Deleting…", Cancel: route.SystemTenant(t.Name),
		Lines: []string{"Its users can no longer sign in. Sessions and tokens end at once. The name is free again. The audit log stays.",
			"Machines at providers keep running and costing until someone deletes them there. Download the list below first."}}
	if len(live.Items) == 0 {
		m.Lines[1] = "Machines at providers are not removed by this. Loom knows of none that the tenant has."
	}
	switch {
	case t.ID == loom.SuperTenant:
		m.WhyNot = "The tenant " + t.Name + " is the installation itself and cannot be deleted."
	case use.Clusters > 0:
		m.WhyNot = "The tenant has " + ui.Count(use.Clusters, "cluster that is", "clusters that are") + " not terminated, with " + ui.Count(use.Nodes, "node", "nodes") + "; delete them first."
	case t.Workers > 0:
		m.WhyNot = "The tenant has " + ui.Count(t.Workers, "worker", "workers") + "; set workers to 0 first."
	}
	grid := s.tenantNodeGrid(t, live, true)
	if live.Next != "" {
		grid.Pages = ui.PaginationModel{Label: "More nodes", Next: route.SystemTenantNodes(t.Name), Text: "The first " + ui.Count(len(live.Items), "node", "nodes")}
	}
	page := tenantFrame("Delete tenant "+t.Name, ui.Crumb{Label: t.Name, Href: route.SystemTenant(t.Name)}, ui.Crumb{Label: "Delete"})
	return s.Sheet(w, r, actor, status, page, adminview.PageModel{Parts: []templ.Component{adminview.Bare("c-card", adminview.Confirm(m)), adminview.Table(grid)}})
}

func (s *Server) systemTenantDelete(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	name := pathTenant(r)
	t, err := s.Accounts.Tenant(r.Context(), actor, name)
	if err != nil {
		return err
	}
	title := "The tenant was not deleted."
	if typed := f.Get(adminview.FieldConfirm); typed != name {
		return s.tenantDeletePage(w, r, actor, typed, page.BadConfirm(title, name), http.StatusUnprocessableEntity)
	}
	if t.Workers > 0 && t.ID != loom.SuperTenant { // also while none of them is assigned, as while its queue is paused
		return s.tenantDeletePage(w, r, actor, name, ui.FormErrors{}, http.StatusConflict)
	}
	err = s.Accounts.DeleteTenant(r.Context(), actor, name)
	if errors.Is(err, loom.Conflict) {
		errs, status, _ := page.FormErrors(err, title)
		return s.tenantDeletePage(w, r, actor, name, errs, status)
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.SystemTenants(), httpx.Flash{Tone: "ok", Text: "Deleted the tenant " + name + "."})
}
