package web

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/fleet"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/layout"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

// Names of the fields of the form of a tenant, as the REST API has them.
const (
	fieldDescription = "description"
	fieldWorkers     = "workers"
	fieldMaxClusters = "maxClusters"
	fieldMaxNodes    = "maxNodes"
	fieldBootstrap   = "bootstrap"
)

func tenantFrame(title string, crumbs ...ui.Crumb) layout.Model {
	m := systemFrame(title, route.SystemTenants(), append([]ui.Crumb{{Label: "Tenants", Href: route.SystemTenants()}}, crumbs...)...)
	m.Section = "Tenants"
	return m
}

// shares gives what tenants have of the workers, by id.
func shares(s fleet.Shortage) map[loom.TenantID]fleet.TenantWorkers {
	by := map[loom.TenantID]fleet.TenantWorkers{}
	for _, t := range s.Tenants {
		by[t.Tenant] = t
	}
	return by
}

func queuesByName(counts []fleet.QueueCount) map[string]fleet.QueueCount {
	by := map[string]fleet.QueueCount{}
	for _, c := range counts {
		by[c.Tenant] = c
	}
	return by
}

func (s *Server) systemTenants(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := r.URL.Query().Get("q")
	list, err := s.Accounts.ListTenants(r.Context(), actor, q, s.pageOf(r))
	if err != nil {
		return err
	}
	uses, err := s.Accounts.QuotaUses(r.Context(), actor, list.Items)
	if err != nil {
		return err
	}
	shortage, err := s.Fleet.Shortage(r.Context(), actor)
	if err != nil {
		return err
	}
	counts, err := s.Fleet.Queues(r.Context(), actor)
	if err != nil {
		return err
	}
	last, err := s.Accounts.LastActivity(r.Context(), actor, list.Items)
	if err != nil {
		return err
	}
	workers, queued := shares(shortage), queuesByName(counts)
	add := ui.ButtonModel{Label: "New tenant", Icon: "plus", Kind: ui.Primary, Href: route.SystemTenantNew()}
	grid := officeview.GridModel{ID: "tenants", Caption: "Tenants", Now: s.now(), Pages: turned("Pages of tenants", route.SystemTenants(), list.Next, list.Prev, "q", q),
		Columns: []ui.Column{{Label: "Tenant"}, {Label: "Workers", Numeric: true}, {Label: "Clusters", Numeric: true}, {Label: "Nodes", Numeric: true}, {Label: "Running", Numeric: true, Low: true}, {Label: "Queued", Numeric: true}, {Label: "Last activity", Low: true}},
		Empty:   ui.EmptyModel{Icon: "search", Text: "No tenant matches.", Action: ui.ButtonModel{Label: "Clear filters", Href: route.SystemTenants()}}}
	for _, t := range list.Items {
		use, work := uses[t.ID], workers[t.ID]
		share := officeview.Cell{Text: strconv.Itoa(t.Workers)}
		if work.Dealt < t.Workers {
			share.Sub = strconv.Itoa(work.Dealt) + " dealt"
		}
		grid.Rows = append(grid.Rows, []officeview.Cell{
			{Text: t.Name, Href: route.SystemTenant(t.Name), Mono: true, Sub: t.Description}, share,
			{Text: strconv.Itoa(use.Clusters), Sub: ofLimit(use.MaxClusters)}, {Text: strconv.Itoa(use.Nodes), Sub: ofLimit(use.MaxNodes)},
			{Text: strconv.Itoa(queued[t.Name].Running)}, {Text: strconv.Itoa(queued[t.Name].Waiting)}, {Time: last[t.ID], ShowTime: true},
		})
	}
	grid.CSV, grid.JSON = s.exportsOf(r)
	filters := officeview.FiltersModel{Action: route.SystemTenants(), Target: "tenants-list", Fields: []ui.FieldModel{
		{Name: "q", Label: "Search tenants", LabelHidden: true, Kind: ui.FieldSearch, Width: "full", Value: q, Placeholder: "Search name or description", Optional: true, MaxLength: 200}}}
	if q != "" {
		filters.Clear = route.SystemTenants()
	}
	m := officeview.SheetModel{Title: "Tenants", Intro: "Organisations that share this installation. Each has users, a catalog, quotas and workers of its own.", Actions: []ui.ButtonModel{add},
		Parts: []templ.Component{officeview.Filters(filters), officeview.Grid(grid)}, Calls: []ui.JSONCall{call("list", http.MethodGet, "/v2/tenants", "")}}
	page := systemFrame("Tenants", route.SystemTenants())
	return s.sheet(w, r, actor, http.StatusOK, page, m)
}

// tenantDraft is the form as it was typed.
type tenantDraft struct {
	name, description, workers, maxClusters, maxNodes string
	bootstrap                                         bool
}

func draftOfTenant(t loom.Tenant) tenantDraft {
	limit := func(n int) string {
		if n >= loom.Unlimited {
			return ""
		}
		return strconv.Itoa(n)
	}
	return tenantDraft{name: t.Name, description: t.Description, workers: strconv.Itoa(t.Workers), maxClusters: limit(t.MaxClusters), maxNodes: limit(t.MaxNodes)}
}

// readTenant reads the form; an empty quota is none, what is no number is an error
// of its field.
func readTenant(f url.Values) (tenantDraft, account.TenantInput, []loom.FieldError) {
	d := tenantDraft{
		name: strings.TrimSpace(f.Get(fieldName)), description: strings.TrimSpace(f.Get(fieldDescription)), workers: strings.TrimSpace(f.Get(fieldWorkers)),
		maxClusters: strings.TrimSpace(f.Get(fieldMaxClusters)), maxNodes: strings.TrimSpace(f.Get(fieldMaxNodes)), bootstrap: f.Get(fieldBootstrap) == "true",
	}
	var errs []loom.FieldError
	number := func(field, text string, absent int) *int {
		n, err := absent, error(nil)
		if text != "" {
			n, err = strconv.Atoi(text)
		}
		if err != nil {
			errs = append(errs, loom.FieldError{Field: field, Message: "“" + cutShort(text) + "” is no whole number from 0 up."})
		}
		return &n
	}
	in := account.TenantInput{Name: d.name, Description: &d.description, Workers: number(fieldWorkers, d.workers, 0),
		MaxClusters: number(fieldMaxClusters, d.maxClusters, loom.Unlimited), MaxNodes: number(fieldMaxNodes, d.maxNodes, loom.Unlimited), Bootstrap: d.bootstrap}
	return d, in, errs
}

// tenantFields are the fields of a tenant; free is how many workers there are left.
func tenantFields(d tenantDraft, isNew bool, free int, use loom.QuotaUse, errs ui.FormErrors) []templ.Component {
	name := ui.FieldModel{Name: fieldName, Label: "Name", Value: d.name, Mono: true, MaxLength: 255, Width: "s", Help: "It cannot be changed later."}
	quota := func(name, label, value string, used int) templ.Component {
		help := "Empty means no limit."
		if !isNew {
			help += " " + strconv.Itoa(used) + " in use; the quota cannot be below that."
		}
		return field(ui.FieldModel{Name: name, Label: label, Kind: ui.FieldNumber, Value: value, Min: "0", Optional: true, Help: help}, errs)
	}
	var parts []templ.Component
	if isNew {
		parts = append(parts, field(name, errs))
	}
	parts = append(parts,
		field(ui.FieldModel{Name: fieldDescription, Label: "Description", Value: d.description, Optional: true, Width: "l", MaxLength: loom.MaxDescription}, errs),
		field(ui.FieldModel{Name: fieldWorkers, Label: "Workers", Kind: ui.FieldNumber, Value: d.workers, Min: "0",
			Help: "How many tasks of the tenant run at once: from 0 to " + strconv.Itoa(free) + ", which the running provisioners have for it."}, errs),
		quota(fieldMaxClusters, "Clusters at most", d.maxClusters, use.Clusters), quota(fieldMaxNodes, "Nodes at most", d.maxNodes, use.Nodes))
	if isNew {
		parts = append(parts, field(ui.FieldModel{Name: fieldBootstrap, Label: "Copy the catalog and plugin resources of the superadmin tenant", Kind: ui.FieldCheckbox, Checked: d.bootstrap,
			Help: "Providers, types, services, templates and uploaded files go along, keys and sealed fields too: the new tenant can use the same accounts."}, errs))
	}
	return parts
}

// freeWorkers is how many workers the running provisioners have for a tenant.
func (s *Server) freeWorkers(r *http.Request, actor loom.Actor, tenant loom.TenantID) (int, error) {
	shortage, err := s.Fleet.Shortage(r.Context(), actor)
	if err != nil {
		return 0, err
	}
	free := shortage.Capacity
	for _, t := range shortage.Tenants {
		if t.Tenant != tenant {
			free -= t.Wanted
		}
	}
	return max(free, 0), nil
}

func (s *Server) systemTenantNew(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.tenantNewPage(w, r, actor, http.StatusOK, tenantDraft{workers: "0", bootstrap: true}, ui.FormErrors{})
}

func (s *Server) tenantNewPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, d tenantDraft, errs ui.FormErrors) error {
	free, err := s.freeWorkers(r, actor, "")
	if err != nil {
		return err
	}
	form := officeview.Form(officeview.FormModel{Action: route.SystemTenants(), Errors: errs, Button: "Create tenant", Busy: "Creating…", Cancel: route.SystemTenants(),
		Parts: append(tenantFields(d, true, free, loom.QuotaUse{}, errs), officeview.Text("The tenant gets the user admin with a password that is made up and shown once."))})
	return s.sheet(w, r, actor, status, tenantFrame("New tenant", ui.Crumb{Label: "New"}), officeview.SheetModel{Parts: []templ.Component{form}})
}

// systemTenantCreate makes a tenant and shows the password of its administrator.
func (s *Server) systemTenantCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := accountForm(w, r)
	if err != nil {
		return err
	}
	d, in, bad := readTenant(f)
	var tenant loom.Tenant
	var password loom.Secret
	if err = loom.InvalidFields(bad); err == nil {
		tenant, password, err = s.Accounts.CreateTenantWithSignIn(r.Context(), actor, in)
	}
	if errs, status, ok := accountErrors(err, "The tenant was not created."); err != nil && ok {
		return s.tenantNewPage(w, r, actor, status, d, errs)
	}
	if err != nil {
		return err
	}
	made := madePassword("Tenant "+tenant.Name+" was created", tenant.Name, string(loom.AdminUser), password, route.SystemTenant(tenant.Name))
	return s.sheet(w, r, actor, http.StatusOK, tenantFrame(tenant.Name, ui.Crumb{Label: tenant.Name}), officeview.SheetModel{Parts: []templ.Component{made}})
}

func pathTenant(r *http.Request) string { return route.Segment(r.PathValue("tenant")) }

func (s *Server) systemTenant(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	if err != nil {
		return err
	}
	return s.tenantPage(w, r, actor, http.StatusOK, t, draftOfTenant(t), ui.FormErrors{})
}

func (s *Server) tenantPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, t loom.Tenant, d tenantDraft, errs ui.FormErrors) error {
	uses, err := s.Accounts.QuotaUses(r.Context(), actor, []loom.Tenant{t})
	if err != nil {
		return err
	}
	shortage, err := s.Fleet.Shortage(r.Context(), actor)
	if err != nil {
		return err
	}
	counts, err := s.Fleet.Queues(r.Context(), actor)
	if err != nil {
		return err
	}
	free, err := s.freeWorkers(r, actor, t.ID)
	if err != nil {
		return err
	}
	use, work, queue := uses[t.ID], shares(shortage)[t.ID], queuesByName(counts)[t.Name]
	m := officeview.SheetModel{Title: t.Name, Calls: []ui.JSONCall{call("read", http.MethodGet, "/v2/tenants/"+t.Name, "")}}
	if t.ID != loom.SuperTenant {
		m.Actions = []ui.ButtonModel{opening("Act as administrator", "", route.SystemActAs(t.Name), ui.Secondary), opening("Delete", "", route.SystemTenantDelete(t.Name), ui.Danger)}
	}
	m.Parts = []templ.Component{
		ui.Definitions([]ui.Def{
			{Term: "Clusters", Text: usedOf(use.Clusters, use.MaxClusters)}, {Term: "Nodes", Text: usedOf(use.Nodes, use.MaxNodes)},
			{Term: "Workers", Text: strconv.Itoa(work.Dealt) + " of " + strconv.Itoa(t.Workers) + " dealt, " + strconv.Itoa(work.Busy) + " busy"}, {Term: "Tasks that wait", Text: strconv.Itoa(queue.Waiting)},
			{Term: "Created", Value: ui.Time(t.Created, s.now())},
		}),
		quotaBars(use),
		officeview.Card("edit-title", "Change", officeview.Form(officeview.FormModel{Action: route.SystemTenant(t.Name), Errors: errs, Button: "Save", Busy: "Saving…", Parts: tenantFields(d, false, free, use, errs)})),
	}
	past, err := s.tenantPast(r, actor, t.Name)
	if err != nil {
		return err
	}
	m.Parts = append(m.Parts, past...)
	return s.sheet(w, r, actor, status, tenantFrame(t.Name, ui.Crumb{Label: t.Name}), m)
}

func (s *Server) systemTenantSave(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := accountForm(w, r)
	if err != nil {
		return err
	}
	t, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	if err != nil {
		return err
	}
	d, in, bad := readTenant(f)
	in.Name = t.Name
	if err = loom.InvalidFields(bad); err == nil {
		_, err = s.Accounts.UpdateTenant(r.Context(), actor, t.Name, in)
	}
	if errs, status, ok := accountErrors(err, "The tenant was not changed."); err != nil && ok {
		return s.tenantPage(w, r, actor, status, t, d, errs)
	}
	if err != nil {
		return err
	}
	return s.say(w, r, route.SystemTenant(t.Name), httpx.Flash{Tone: "ok", Text: "Saved the tenant " + t.Name + "."})
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
	use := uses[t.ID]
	m := officeview.ConfirmModel{Action: route.SystemTenantDelete(t.Name), Errors: errs, Type: t.Name, Typed: typed, Button: "Delete tenant " + t.Name, Busy: "Deleting…", Cancel: route.SystemTenant(t.Name),
		Lines: []string{"Its users cannot sign in any more, sessions and tokens end at once, the name is free again. The audit stays.", "Machines at providers are not removed by this."}}
	switch {
	case t.ID == loom.SuperTenant:
		m.WhyNot = "The tenant " + t.Name + " is the installation itself and cannot be deleted."
	case use.Clusters > 0:
		m.WhyNot = "The tenant has " + ui.Count(use.Clusters, "cluster that is", "clusters that are") + " not terminated, with " + ui.Count(use.Nodes, "node", "nodes") + "; delete them first."
	case t.Workers > 0:
		m.WhyNot = "The tenant has " + ui.Count(t.Workers, "worker", "workers") + "; set workers to 0 first."
	}
	page := tenantFrame("Delete tenant "+t.Name, ui.Crumb{Label: t.Name, Href: route.SystemTenant(t.Name)}, ui.Crumb{Label: "Delete"})
	return s.confirmAnswer(w, r, actor, status, page, officeview.Confirm(m))
}

func (s *Server) systemTenantDelete(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := accountForm(w, r)
	if err != nil {
		return err
	}
	name := pathTenant(r)
	if _, err := s.Accounts.Tenant(r.Context(), actor, name); err != nil {
		return err
	}
	title := "The tenant was not deleted."
	if typed := f.Get(officeview.FieldConfirm); typed != name {
		return s.tenantDeletePage(w, r, actor, typed, badConfirm(title, name), http.StatusUnprocessableEntity)
	}
	err = s.Accounts.DeleteTenant(r.Context(), actor, name)
	if errors.Is(err, loom.Conflict) {
		errs, status, _ := accountErrors(err, title)
		return s.tenantDeletePage(w, r, actor, name, errs, status)
	}
	if err != nil {
		return err
	}
	return s.say(w, r, route.SystemTenants(), httpx.Flash{Tone: "ok", Text: "Deleted the tenant " + name + "."})
}
