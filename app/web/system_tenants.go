package web

import (
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
	fieldWorkersFrom = "workersFrom"
	fieldMaxClusters = "maxClusters"
	fieldMaxNodes    = "maxNodes"
	fieldParts       = "parts"
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
		if work.Dealt < t.Workers && work.Paused.At.IsZero() {
			share.Sub = strconv.Itoa(work.Dealt) + " dealt"
		}
		switch {
		case !work.Paused.At.IsZero():
			share.State = &pausedState
		case t.Workers == 0 && t.ID != loom.SuperTenant:
			share.State = &ui.State{Word: "No workers", Icon: "alert", Tone: ui.ToneWarn}
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
	name, description, workers, workersFrom, maxClusters, maxNodes string
	parts                                                          []string
	may                                                            loom.Permits
}

func draftOfTenant(t loom.Tenant) tenantDraft {
	limit := func(n int) string {
		if n >= loom.Unlimited {
			return ""
		}
		return strconv.Itoa(n)
	}
	return tenantDraft{name: t.Name, description: t.Description, workers: strconv.Itoa(t.Workers), maxClusters: limit(t.MaxClusters), maxNodes: limit(t.MaxNodes), may: t.Permits}
}

// readTenant reads the form; an empty quota is none, what is no number is an error
// of its field. had are the permits before.
func readTenant(f url.Values, had loom.Permits) (tenantDraft, account.TenantInput, []loom.FieldError) {
	d := tenantDraft{
		name: strings.TrimSpace(f.Get(fieldName)), description: strings.TrimSpace(f.Get(fieldDescription)), workers: strings.TrimSpace(f.Get(fieldWorkers)), workersFrom: f.Get(fieldWorkersFrom),
		maxClusters: strings.TrimSpace(f.Get(fieldMaxClusters)), maxNodes: strings.TrimSpace(f.Get(fieldMaxNodes)), parts: f[fieldParts],
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
	in := account.TenantInput{Name: d.name, Description: &d.description, Workers: number(fieldWorkers, d.workers, 0), WorkersFrom: d.workersFrom,
		MaxClusters: number(fieldMaxClusters, d.maxClusters, loom.Unlimited), MaxNodes: number(fieldMaxNodes, d.maxNodes, loom.Unlimited), Bootstrap: len(d.parts) > 0, Parts: d.parts}
	d.may = readPermits(f, had, &in)
	return d, in, errs
}

// tenantFields are the fields of a tenant; room says how many workers are left, from which
// tenant gives more, unless it is nil.
func tenantFields(d tenantDraft, isNew bool, room, from templ.Component, use loom.QuotaUse, errs ui.FormErrors) []templ.Component {
	name := ui.FieldModel{Name: fieldName, Label: "Name", Value: d.name, Mono: true, MaxLength: 255, Width: "s", Help: "It cannot be changed later."}
	quota := func(name, label, value string, used int) templ.Component {
		help := ""
		if !isNew {
			help = strconv.Itoa(used) + " in use."
		}
		return field(ui.FieldModel{Name: name, Label: label, Kind: ui.FieldNumber, Value: value, Min: "0", Optional: true, Help: help, Placeholder: "no limit"}, errs)
	}
	var parts []templ.Component
	if isNew {
		parts = append(parts, field(name, errs))
	}
	parts = append(parts,
		field(ui.FieldModel{Name: fieldDescription, Label: "Description", Value: d.description, Optional: true, Width: "l", MaxLength: loom.MaxDescription}, errs),
		field(ui.FieldModel{Name: fieldWorkers, Label: "Workers", Kind: ui.FieldNumber, Value: d.workers, Min: "0",
			Help: "How many tasks of the tenant run at once, from 0 up."}, errs), room)
	if from != nil {
		parts = append(parts, from)
	}
	return append(parts,
		officeview.Text(quotaHelp(isNew)), quota(fieldMaxClusters, "Clusters at most", d.maxClusters, use.Clusters), quota(fieldMaxNodes, "Nodes at most", d.maxNodes, use.Nodes))
}

// quotaHelp is said once, above the quotas of a tenant.
func quotaHelp(isNew bool) string {
	if isNew {
		return "Quotas: left empty, there is no limit."
	}
	return "Quotas: left empty, there is no limit; no quota can be below what is in use."
}

func (s *Server) tenantNewPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, d tenantDraft, errs ui.FormErrors) error {
	room, err := s.Accounts.WorkerRoom(r.Context(), actor)
	if err != nil {
		return err
	}
	if wants(r, workerRoomID) {
		return s.fragment(w, r, http.StatusOK, workerRoom(room, "", route.SystemTenantNew()))
	}
	parts, err := s.bootstrapParts(r, actor, d.parts, errs.For(fieldParts))
	if err != nil {
		return err
	}
	permits, err := s.permitFields(r, actor, d.may, errs)
	if err != nil {
		return err
	}
	fields := tenantFields(d, true, workerRoom(room, "", route.SystemTenantNew()), workersFrom(room, "", d.workersFrom, errs), loom.QuotaUse{}, errs)
	form := officeview.Form(officeview.FormModel{Action: route.SystemTenants(), Errors: errs, Button: "Create tenant", Busy: "Creating…", Cancel: route.SystemTenants(),
		Parts: append(append(fields, permits...), parts, officeview.Text("The tenant gets the user admin with a generated password, which is shown once and to be changed at the first sign-in."))})
	page := tenantFrame("New tenant", ui.Crumb{Label: "New"})
	page.Topics = []string{route.TopicSystem()}
	return s.sheet(w, r, actor, status, page, officeview.SheetModel{Parts: []templ.Component{form}})
}

// systemTenantCreate makes a tenant and shows the password of its administrator.
func (s *Server) systemTenantCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := accountForm(w, r)
	if err != nil {
		return err
	}
	d, in, bad := readTenant(f, loom.NewPermits())
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
	made := s.madePassword(r, "Tenant "+tenant.Name+" was created", tenant.Name, string(loom.AdminUser), password, route.SystemTenant(tenant.Name))
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
	room, err := s.Accounts.WorkerRoom(r.Context(), actor)
	if err != nil {
		return err
	}
	if wants(r, workerRoomID) {
		return s.fragment(w, r, http.StatusOK, workerRoom(room, t.Name, route.SystemTenant(t.Name)))
	}
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
	permits, err := s.permitFields(r, actor, d.may, errs)
	if err != nil {
		return err
	}
	use, work, queue := uses[t.ID], shares(shortage)[t.ID], queuesByName(counts)[t.Name]
	m := officeview.SheetModel{Title: t.Name, Calls: []ui.JSONCall{call("read", http.MethodGet, "/v2/tenants/"+t.Name, "")}}
	waits := fleet.Queue{Name: fleet.TenantQueue(t.ID), Tenant: t.Name, Paused: work.Paused}
	m.Actions = []ui.ButtonModel{opening(queueButton(waits).Label+" queue", "", queueButton(waits).Href, ui.Secondary)}
	if waits.IsPaused() {
		m.Banners = []ui.BannerModel{{Tone: ui.ToneHold, Text: "The queue of the tenant is paused " + s.pausedText(r, waits.Paused) + ": nothing new starts until it is resumed."}}
	}
	if t.ID != loom.SuperTenant {
		m.Actions = []ui.ButtonModel{m.Actions[0], opening("Act as administrator", "", route.SystemActAs(t.Name), ui.Secondary), {Label: "Delete", Kind: ui.Danger, Small: true, Href: route.SystemTenantDelete(t.Name)}}
	}
	if t.ID != loom.SuperTenant && t.Workers == 0 {
		m.Banners = append(m.Banners, ui.BannerModel{Tone: ui.ToneWarn, Text: "The tenant has no workers, so none of its tasks run.", Action: "Give it workers", ActionHref: "#edit-title"})
	}
	fields := tenantFields(d, false, workerRoom(room, t.Name, route.SystemTenant(t.Name)), workersFrom(room, t.Name, d.workersFrom, errs), use, errs)
	m.Parts = []templ.Component{
		ui.Definitions(append([]ui.Def{
			{Term: "Clusters", Text: usedOf(use.Clusters, use.MaxClusters)}, {Term: "Nodes", Text: usedOf(use.Nodes, use.MaxNodes)},
			{Term: "Workers", Text: strconv.Itoa(work.Dealt) + " of " + strconv.Itoa(t.Workers) + " dealt, " + strconv.Itoa(work.Busy) + " busy"}, {Term: "Tasks that wait", Text: strconv.Itoa(queue.Waiting)},
			{Term: "Created", Value: ui.Time(t.Created, s.now())},
		}, permitDefs(t.Permits)...)),
		quotaBars(use),
		officeview.Card("edit-title", "Change", officeview.Form(officeview.FormModel{Action: route.SystemTenant(t.Name), Errors: errs, Button: "Save", Busy: "Saving…", Parts: append(fields, permits...)})),
	}
	past, err := s.tenantPast(r, actor, t.Name)
	if err != nil {
		return err
	}
	m.Parts = append(m.Parts, past...)
	page := tenantFrame(t.Name, ui.Crumb{Label: t.Name})
	page.Topics = []string{route.TopicSystem()}
	return s.sheet(w, r, actor, status, page, m)
}

// systemTenantEdit leads to the form on the page of the tenant.
func (s *Server) systemTenantEdit(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	if err != nil {
		return err
	}
	return httpx.SeeOther(w, r, route.SystemTenant(t.Name)+"#edit-title")
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
	d, in, bad := readTenant(f, t.Permits)
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
