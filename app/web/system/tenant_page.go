package system

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// Tabs of the page of a tenant, as in their addresses.
const (
	tabClusters = "clusters"
	tabUsers    = "users"
	tabQuotas   = "edit"
	tabActivity = "activity"
)

// tenantTabs are the links to the parts of a tenant; here is the one that is shown.
func tenantTabs(name, here string) []ui.Tab {
	tabs := []ui.Tab{{Label: "Overview", Href: route.SystemTenant(name), Current: here == ""}}
	for _, t := range []struct{ tab, label string }{{tabClusters, "Clusters"}, {tabUsers, "Users"}, {tabQuotas, "Quotas"}, {tabActivity, "Activity"}} {
		tabs = append(tabs, ui.Tab{Label: t.label, Href: route.SystemTenantTab(name, t.tab), Current: here == t.tab})
	}
	return tabs
}

// tenantSheet answers with a tab of a tenant, below what can be done to it.
func (s *Server) tenantSheet(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, t loom.Tenant, tab string, m adminview.PageModel) error {
	m.Title, m.TabsLabel, m.Tabs = t.Name, "Tenant "+t.Name, tenantTabs(t.Name, tab)
	if t.ID != loom.SuperTenant {
		m.Actions = append(m.Actions, page.Opening("Act as administrator", "", route.SystemActAs(t.Name), ui.Secondary))
		remove := page.Deleting(route.SystemTenantDelete(t.Name))
		remove.Attrs = nil // it lists nodes, which no dialog has room for
		m.Menu = append(m.Menu, remove)
		if t.Workers == 0 {
			m.Banners = append(m.Banners, ui.BannerModel{Tone: ui.ToneWarn, Text: "The tenant has no workers, so none of its tasks run.", Action: "Give it workers", ActionHref: route.SystemTenantTab(t.Name, tabQuotas)})
		}
	}
	frame := tenantFrame(t.Name, ui.Crumb{Label: t.Name})
	frame.Topics = []string{route.TopicSystem()}
	return s.Sheet(w, r, actor, status, frame, m)
}

// systemTenant is the overview of a tenant: what it has, and whether it works.
func (s *Server) systemTenant(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	if err != nil {
		return err
	}
	uses, err := s.Accounts.QuotaUses(r.Context(), actor, []loom.Tenant{t})
	if err != nil {
		return err
	}
	shortage, err := s.Processes.Shortage(r.Context(), actor)
	if err != nil {
		return err
	}
	counts, err := s.Processes.Queues(r.Context(), actor)
	if err != nil {
		return err
	}
	use, work, queue := uses[t.ID], shares(shortage)[t.ID], queuesByName(counts)[t.Name]
	m := adminview.PageModel{Intro: t.Description, Calls: []ui.JSONCall{page.Call("read", http.MethodGet, "/v2/tenants/"+t.Name, "")}}
	waits := processes.Queue{Name: processes.TenantQueue(t.ID), Tenant: t.Name, Paused: work.Paused}
	pause := page.Asking("Pause queue", "pause", queueButton(waits).Href)
	if waits.IsPaused() {
		pause.Label, pause.Icon = "Resume queue", "play"
		m.Banners = []ui.BannerModel{{Tone: ui.ToneHold, Text: "The queue of the tenant is paused " + s.pausedText(r, waits.Paused) + ". Running tasks continue; new ones wait."}}
	}
	m.Menu = []ui.MenuItem{pause}
	m.Parts = []templ.Component{
		ui.Definitions(append([]ui.Def{
			{Term: "Workers", Text: strconv.Itoa(work.Assigned) + " of " + strconv.Itoa(t.Workers) + " assigned, " + strconv.Itoa(work.Busy) + " busy"}, {Term: "Tasks that wait", Text: strconv.Itoa(queue.Waiting)},
			{Term: "Created", Value: ui.Time(t.Created, s.Now())},
		}, permitDefs(t.Permits)...)),
		page.QuotaBars(use),
	}
	return s.tenantSheet(w, r, actor, http.StatusOK, t, "", m)
}

// systemTenantClusters lists the clusters of a tenant. To open one is to act as its administrator.
func (s *Server) systemTenantClusters(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	if err != nil {
		return err
	}
	in := clusters.OfTenants{Page: s.PageOf(r), ClusterOfTenantFilter: clusters.OfTenantsFilter{Tenant: t.Name}}
	in.Page.Sort = ""
	list, err := s.Clusters.ClustersOfTenants(r.Context(), actor, in)
	if err != nil {
		return err
	}
	grid := adminview.TableModel{ID: "clusters", Caption: "Clusters of " + t.Name + ", the newest first", Now: s.Now(),
		Pages:   page.Turned("Pages of clusters", route.SystemTenantTab(t.Name, tabClusters), list.Next, list.Prev),
		Columns: []ui.Column{{Label: "Cluster"}, {Label: "Status"}, {Label: "Owner"}, {Label: "Template"}, {Label: "Nodes", Numeric: true}, {Label: "Created"}, {Label: "Expiry"}, {Label: "Actions", LabelHidden: true}},
		Empty:   ui.EmptyModel{Icon: "cluster", Text: "The tenant has no clusters."}}
	for _, c := range list.Items {
		state := ui.ClusterState(c.Status)
		grid.Rows = append(grid.Rows, []adminview.Cell{{Text: c.Name, Sub: c.ID.String()}, {State: &state}, {Text: string(c.Owner), Mono: true}, {Text: c.Template},
			{Text: strconv.Itoa(c.Nodes)}, {Time: c.Created}, {Time: c.Expires}, {Buttons: openAs(actor, t.Name, c.ID, c.Name)}})
	}
	return s.tenantSheet(w, r, actor, http.StatusOK, t, tabClusters, adminview.PageModel{Parts: []templ.Component{adminview.Table(grid)}})
}

// systemTenantUsers lists who may sign in to a tenant.
func (s *Server) systemTenantUsers(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	if err != nil {
		return err
	}
	users, err := s.Accounts.UsersOfTenant(r.Context(), actor, t.Name, s.PageOf(r))
	if err != nil {
		return err
	}
	grid := adminview.TableModel{ID: "users", Caption: "Users of " + t.Name, Now: s.Now(), Pages: page.Turned("Pages of users", route.SystemTenantTab(t.Name, tabUsers), users.Next, users.Prev),
		Columns: []ui.Column{{Label: "User"}, {Label: "Name"}, {Label: "Role"}, {Label: "Clusters", Numeric: true}, {Label: "Last seen"}, {Label: "Created"}},
		Empty:   ui.EmptyModel{Icon: "user", Text: "There are no users yet."}}
	for _, u := range users.Items {
		id := adminview.Cell{Text: string(u.ID), Mono: true}
		if u.Disabled {
			id.State = &ui.State{Word: "Disabled", Icon: "ban", Tone: ui.ToneIdle}
		}
		grid.Rows = append(grid.Rows, []adminview.Cell{id, {Text: u.DisplayName, Sub: u.Email}, {Text: page.Capital(string(u.Role))}, {Text: page.CountOrDash(u.Clusters)}, {Time: u.LastSeen, ShowTime: true}, {Time: u.Created}})
	}
	return s.tenantSheet(w, r, actor, http.StatusOK, t, tabUsers, adminview.PageModel{Parts: []templ.Component{adminview.Table(grid)}})
}

// systemTenantEdit is the form of what a tenant may use.
func (s *Server) systemTenantEdit(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	if err != nil {
		return err
	}
	return s.quotasPage(w, r, actor, http.StatusOK, t, editTenant(t))
}

func (s *Server) quotasPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, t loom.Tenant, e form.Edit) error {
	room, err := s.Accounts.WorkerRoom(r.Context(), actor)
	if err != nil {
		return err
	}
	if page.Wants(r, workerRoomID) {
		return s.Fragment(w, r, http.StatusOK, workerRoom(room, t.Name, route.SystemTenantTab(t.Name, tabQuotas)))
	}
	uses, err := s.Accounts.QuotaUses(r.Context(), actor, []loom.Tenant{t})
	if err != nil {
		return err
	}
	types, err := s.Accounts.ProviderTypes(r.Context(), actor)
	if err != nil {
		return err
	}
	shown := showTenant(e, t.Name, tenantFacts{room: room, types: types, use: uses[t.ID]})
	sent := adminview.Form(adminview.FormModel{Action: route.SystemTenant(t.Name), Errors: shown.Errors, Button: "Save", Busy: "Saving…", Parts: shown.Parts()})
	return s.tenantSheet(w, r, actor, status, t, tabQuotas, adminview.PageModel{Parts: []templ.Component{sent}})
}

// systemTenantActivity has the newest operations of a tenant and the newest entries of its audit log.
func (s *Server) systemTenantActivity(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	if err != nil {
		return err
	}
	happened, err := s.Accounts.Activity(r.Context(), actor, account.ActivityInput{All: true, Tenant: t.Name, About: "clusters", Page: loom.Page{Limit: page.PastRows}})
	if err != nil {
		return err
	}
	audit, err := s.Accounts.Audit(r.Context(), actor, account.AuditInput{Tenant: t.Name, Page: loom.Page{Limit: page.PastRows}})
	if err != nil {
		return err
	}
	happened.Next, happened.Prev, audit.Next, audit.Prev = "", "", "", ""
	all := func(base string) templ.Component {
		return adminview.Link("View all", route.Query(base, "tenant", t.Name))
	}
	see := ui.ViewerOf(r.Context())
	return s.tenantSheet(w, r, actor, http.StatusOK, t, tabActivity, adminview.PageModel{Parts: []templ.Component{
		adminview.Card("happened-title", "Operations", s.ActivityFeed(see, actor, "", true, page.ActivityQuery{Tenant: t.Name}, happened), all(route.SystemActivity())),
		s.AuditGrid(see, "", page.AuditQuery{}, audit), all(route.SystemAudit()),
	}})
}
