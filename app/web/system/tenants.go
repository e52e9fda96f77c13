package system

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

// workerRoomID is the part of the form of a tenant that says how many workers there are.
const workerRoomID = "worker-room"

// maxNamed is how many names of a part are listed before the rest is counted.
const maxNamed = 12

// maxPresetWorkers is how many workers the form of a new tenant presets at most.
const maxPresetWorkers = 10

// workerRoom shows who holds the workers, and how many a tenant can have now by name, "" for
// a new one; url gives it again.
func workerRoom(room account.WorkerRoom, tenant, url string) templ.Component {
	free := room.Free(tenant)
	text := "At most " + strconv.Itoa(free) + " at this moment: the running provisioners have " + ui.Count(room.Capacity, "worker", "workers") +
		", and other tenants are promised " + strconv.Itoa(held(room.Holders, tenant)) + "."
	if room.Capacity == 0 {
		text = "No provisioner runs, so only 0 is possible at this moment."
	}
	attrs := ui.Live(url, "system")
	attrs["hx-trigger"], attrs["hx-select"] = "loom:live, every 10s", "#"+workerRoomID
	parts := []templ.Component{adminview.Text(text)}
	if room.Capacity > 0 {
		parts = append([]templ.Component{adminview.Shares(sharesOf(room))}, parts...)
	}
	return adminview.Region(workerRoomID, attrs, parts...)
}

// held counts the workers of all tenants but one.
func held(holders []account.Holder, but string) int {
	n := 0
	for _, h := range holders {
		if h.Name != but {
			n += h.Workers
		}
	}
	return n
}

// sharesOf draws the room: the holders by name, the last ones together, and what is free.
func sharesOf(room account.WorkerRoom) adminview.SharesModel {
	m := adminview.SharesModel{Label: "Held by", Used: held(room.Holders, ""), Max: room.Capacity}
	named := room.Holders[:min(len(room.Holders), maxNamed)]
	for _, h := range named {
		m.Parts = append(m.Parts, h.Name+" "+strconv.Itoa(h.Workers))
	}
	if rest := room.Holders[len(named):]; len(rest) > 0 {
		m.Parts = append(m.Parts, ui.Count(len(rest), "other", "others")+" "+strconv.Itoa(held(rest, "")))
	}
	m.Parts = append(m.Parts, "free "+strconv.Itoa(max(m.Max-m.Used, 0)))
	return m
}

// workersFrom chooses the tenant that gives workers when too few are free; nil when no
// other tenant has any.
func workersFrom(room account.WorkerRoom, tenant, chosen string, errs ui.FormErrors) templ.Component {
	choices := []ui.Option{{Label: "no tenant", Selected: chosen == ""}}
	for _, h := range room.Holders {
		if h.Name != tenant {
			choices = append(choices, ui.Option{Value: h.Name, Label: h.Name + " (has " + strconv.Itoa(h.Workers) + ", " + strconv.Itoa(h.Busy) + " busy)", Selected: chosen == h.Name})
		}
	}
	if len(choices) == 1 && errs.For(fieldWorkersFrom) == "" {
		return nil
	}
	return page.Field(ui.FieldModel{Name: fieldWorkersFrom, Label: "Take missing workers from", Kind: ui.FieldSelect, Optional: true, Options: choices,
		Help: "If fewer are free than you enter, this tenant gives the rest."}, errs)
}

// bootstrapParts lets one choose what of the superadmin tenant is copied: each part with
// what is in it.
func (s *Server) bootstrapParts(r *http.Request, actor loom.Actor, chosen []string, problem string) (templ.Component, error) {
	bundle, err := s.Catalog.Export(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	resources, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{})
	if err != nil {
		return nil, err
	}
	m := ui.ChoiceModel{Name: fieldParts, Legend: "Copy from the superadmin tenant", Optional: true, Error: problem,
		Help: "The newest version of each. What is chosen comes with its sealed fields and uploaded keys: the new tenant can use the same accounts. What names a part that is left out works only once the tenant has one of that name."}
	for _, kind := range loom.TenantKinds {
		var names []string
		for _, entry := range bundle.Entries[kind] {
			names = append(names, entry.Meta().Name)
		}
		m.Choices = append(m.Choices, partChoice(string(kind), adminview.Plural(kind), names, chosen))
	}
	var files []string
	sealed := 0
	for _, one := range resources {
		if name := one.Type + "/" + one.Name; !slices.Contains(files, name) {
			files = append(files, name)
			if one.Sealed {
				sealed++
			}
		}
	}
	part := partChoice(account.PartResources, "Plugin resources, all versions", files, chosen)
	if sealed > 0 {
		part.Facts = append(part.Facts, ui.Count(sealed, "of them is sealed, such as a key", "of them are sealed, such as keys")+": it goes along")
	}
	m.Choices = append(m.Choices, part)
	return ui.Picker(m), nil
}

func partChoice(value, label string, names, chosen []string) ui.Choice {
	c := ui.Choice{Value: value, Label: label + " (" + strconv.Itoa(len(names)) + ")", Checked: slices.Contains(chosen, value)}
	switch slices.Sort(names); {
	case len(names) == 0:
		c.Description = "There are none."
	case len(names) > maxNamed:
		c.Description = strings.Join(names[:maxNamed], ", ") + " and " + strconv.Itoa(len(names)-maxNamed) + " more"
	default:
		c.Description = strings.Join(names, ", ")
	}
	return c
}

// systemTenantNew is the form of a new tenant, with all parts chosen and the workers that
// are free, up to ten.
func (s *Server) systemTenantNew(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	room, err := s.Accounts.WorkerRoom(r.Context(), actor)
	if err != nil {
		return err
	}
	preset := strconv.Itoa(min(room.Free(""), maxPresetWorkers))
	return s.tenantNewPage(w, r, actor, http.StatusOK, tenantDraft{workers: preset, parts: account.BootstrapParts(), may: loom.NewPermits()}, ui.FormErrors{})
}

// tenantPast are the newest operations of a tenant and the newest entries of its
// audit.
func (s *Server) tenantPast(r *http.Request, actor loom.Actor, name string) ([]templ.Component, error) {
	happened, err := s.Accounts.Activity(r.Context(), actor, account.ActivityInput{All: true, Tenant: name, About: "clusters", Page: loom.Page{Limit: page.PastRows}})
	if err != nil {
		return nil, err
	}
	audit, err := s.Accounts.Audit(r.Context(), actor, account.AuditInput{Tenant: name, Page: loom.Page{Limit: page.PastRows}})
	if err != nil {
		return nil, err
	}
	happened.Next, happened.Prev, audit.Next, audit.Prev = "", "", "", ""
	all := func(base string) templ.Component {
		return adminview.Link("All of it", route.Query(base, "tenant", name))
	}
	return []templ.Component{
		adminview.Card("happened-title", "Operations", s.ActivityFeed(ui.ViewerOf(r.Context()), "", true, page.ActivityQuery{Tenant: name}, happened), all(route.SystemActivity())),
		s.AuditGrid(ui.ViewerOf(r.Context()), "", page.AuditQuery{}, audit), all(route.SystemAudit()),
	}, nil
}

// Fields of the form of a tenant that say what it may do with providers.
const (
	fieldTypes = "types"
	fieldMay   = "may"
	// fieldShownTypes holds the types that the form offered: what is not ticked of them is
	// off, others stay as they are.
	fieldShownTypes      = "shownTypes"
	fieldPrivateNetworks = "privateNetworks"
	fieldInstanceRoles   = "instanceRoles"
)

// readPermits reads what the form says of permits; a form without them leaves them alone.
func readPermits(f url.Values, had loom.Permits, in *account.TenantInput) loom.Permits {
	shown := strings.Fields(f.Get(fieldShownTypes))
	if len(shown) == 0 {
		return had
	}
	p := loom.Permits{PrivateNetworks: slices.Contains(f[fieldMay], fieldPrivateNetworks), InstanceRoles: slices.Contains(f[fieldMay], fieldInstanceRoles)}
	for _, name := range append(slices.Clone(shown), had.TypesOff...) {
		off := slices.Contains(had.TypesOff, name)
		if slices.Contains(shown, name) {
			off = !slices.Contains(f[fieldTypes], name)
		}
		if off && !slices.Contains(p.TypesOff, name) {
			p.TypesOff = append(p.TypesOff, name)
		}
	}
	in.PrivateNetworks, in.InstanceRoles, in.TypesOff = &p.PrivateNetworks, &p.InstanceRoles, &p.TypesOff
	return p
}

// permitFields are the boxes of what a tenant may do with providers.
func (s *Server) permitFields(r *http.Request, actor loom.Actor, p loom.Permits, errs ui.FormErrors) ([]templ.Component, error) {
	types, err := s.Accounts.ProviderTypes(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	choose := ui.ChoiceModel{Name: fieldTypes, Legend: "Provider types", Error: errs.For("providerTypesOff"),
		Help: "Machines are created with these only. Machines that exist keep working and can be deleted."}
	// Those that are off come first: the list scrolls.
	slices.SortStableFunc(types, func(a, b loom.PluginType) int {
		off := func(t loom.PluginType) int { return min(slices.Index(p.TypesOff, t.Name), 0) }
		return off(b) - off(a)
	})
	var shown []string
	for _, t := range types {
		shown = append(shown, t.Name)
		choose.Choices = append(choose.Choices, ui.Choice{Value: t.Name, Label: labelOf(t), Checked: !slices.Contains(p.TypesOff, t.Name)})
	}
	may := ui.ChoiceModel{Name: fieldMay, Legend: "Providers may use", Choices: []ui.Choice{
		{Value: fieldPrivateNetworks, Label: "Private networks", Checked: p.PrivateNetworks,
			Description: "Loom connects to private addresses (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7) that the tenant’s providers and their machines have."},
		{Value: fieldInstanceRoles, Label: "Instance roles", Checked: p.InstanceRoles,
			Description: "Providers sign in to AWS with the role of the host that a provisioner runs on."},
	}}
	if len(types) == 0 {
		return []templ.Component{ui.Ticks(may)}, nil
	}
	return []templ.Component{adminview.Hidden(fieldShownTypes, strings.Join(shown, " ")), ui.Ticks(choose), ui.Ticks(may)}, nil
}

func labelOf(t loom.PluginType) string {
	if t.Label == "" || t.Label == t.Name {
		return t.Name
	}
	return t.Label + " (" + t.Name + ")"
}

// permitDefs say what a tenant may do with providers.
func permitDefs(p loom.Permits) []ui.Def {
	word := func(on bool) string {
		if on {
			return "allowed"
		}
		return "not allowed"
	}
	off := "–"
	if len(p.TypesOff) > 0 {
		off = strings.Join(p.TypesOff, ", ")
	}
	return []ui.Def{{Term: "Provider types off", Text: off}, {Term: "Private networks", Text: word(p.PrivateNetworks)}, {Term: "Instance roles", Text: word(p.InstanceRoles)}}
}

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
	m := page.SystemFrame(title, route.SystemTenants(), append([]ui.Crumb{{Label: "Tenants", Href: route.SystemTenants()}}, crumbs...)...)
	m.Section = "Tenants"
	return m
}

// shares gives what tenants have of the workers, by id.
func shares(s processes.Shortage) map[loom.TenantID]processes.TenantWorkers {
	by := map[loom.TenantID]processes.TenantWorkers{}
	for _, t := range s.Tenants {
		by[t.Tenant] = t
	}
	return by
}

func queuesByName(counts []processes.QueueCount) map[string]processes.QueueCount {
	by := map[string]processes.QueueCount{}
	for _, c := range counts {
		by[c.Tenant] = c
	}
	return by
}

func (s *Server) systemTenants(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := r.URL.Query().Get("q")
	list, err := s.Accounts.ListTenants(r.Context(), actor, q, s.PageOf(r))
	if err != nil {
		return err
	}
	uses, err := s.Accounts.QuotaUses(r.Context(), actor, list.Items)
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
	last, err := s.Accounts.LastActivity(r.Context(), actor, list.Items)
	if err != nil {
		return err
	}
	workers, queued := shares(shortage), queuesByName(counts)
	add := ui.ButtonModel{Label: "New tenant", Icon: "plus", Kind: ui.Primary, Href: route.SystemTenantNew()}
	grid := adminview.TableModel{ID: "tenants", Caption: "Tenants", Now: s.Now(), Pages: page.Turned("Pages of tenants", route.SystemTenants(), list.Next, list.Prev, "q", q),
		Columns: []ui.Column{{Label: "Tenant"}, {Label: "Workers", Numeric: true}, {Label: "Clusters", Numeric: true}, {Label: "Nodes", Numeric: true}, {Label: "Running", Numeric: true, Low: true}, {Label: "Queued", Numeric: true}, {Label: "Last activity", Low: true}},
		Empty:   ui.EmptyModel{Icon: "search", Text: "No tenant matches.", Action: ui.ButtonModel{Label: "Clear filters", Href: route.SystemTenants()}}}
	for _, t := range list.Items {
		use, work := uses[t.ID], workers[t.ID]
		share := adminview.Cell{Text: strconv.Itoa(t.Workers)}
		if work.Dealt < t.Workers && work.Paused.At.IsZero() {
			share.Sub = strconv.Itoa(work.Dealt) + " dealt"
		}
		switch {
		case !work.Paused.At.IsZero():
			share.State = &pausedState
		case t.Workers == 0 && t.ID != loom.SuperTenant:
			share.State = &ui.State{Word: "No workers", Icon: "alert", Tone: ui.ToneWarn}
		}
		grid.Rows = append(grid.Rows, []adminview.Cell{
			{Text: t.Name, Href: route.SystemTenant(t.Name), Mono: true, Sub: t.Description}, share,
			{Text: strconv.Itoa(use.Clusters), Sub: page.OfLimit(use.MaxClusters)}, {Text: strconv.Itoa(use.Nodes), Sub: page.OfLimit(use.MaxNodes)},
			{Text: strconv.Itoa(queued[t.Name].Running)}, {Text: strconv.Itoa(queued[t.Name].Waiting)}, {Time: last[t.ID], ShowTime: true},
		})
	}
	grid.CSV, grid.JSON = s.ExportsOf(r)
	filters := adminview.FiltersModel{Action: route.SystemTenants(), Target: "tenants-list", Fields: []ui.FieldModel{
		{Name: "q", Label: "Search tenants", LabelHidden: true, Kind: ui.FieldSearch, Width: "full", Value: q, Placeholder: "Search name or description", Optional: true, MaxLength: 200}}}
	if q != "" {
		filters.Clear = route.SystemTenants()
	}
	m := adminview.PageModel{Title: "Tenants", Intro: "Organisations that share this installation. Each has users, a catalog, quotas and workers of its own.", Actions: []ui.ButtonModel{add},
		Parts: []templ.Component{adminview.Filters(filters), adminview.Table(grid)}, Calls: []ui.JSONCall{page.Call("list", http.MethodGet, "/v2/tenants", "")}}
	page := page.SystemFrame("Tenants", route.SystemTenants())
	return s.Sheet(w, r, actor, http.StatusOK, page, m)
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
		name: strings.TrimSpace(f.Get(page.FieldName)), description: strings.TrimSpace(f.Get(fieldDescription)), workers: strings.TrimSpace(f.Get(fieldWorkers)), workersFrom: f.Get(fieldWorkersFrom),
		maxClusters: strings.TrimSpace(f.Get(fieldMaxClusters)), maxNodes: strings.TrimSpace(f.Get(fieldMaxNodes)), parts: f[fieldParts],
	}
	var errs []loom.FieldError
	number := func(field, text string, absent int) *int {
		n, err := absent, error(nil)
		if text != "" {
			n, err = strconv.Atoi(text)
		}
		if err != nil {
			errs = append(errs, loom.FieldError{Field: field, Message: "“" + page.CutShort(text) + "” is no whole number from 0 up."})
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
	name := ui.FieldModel{Name: page.FieldName, Label: "Name", Value: d.name, Mono: true, MaxLength: 255, Width: "s", Help: "It cannot be changed later."}
	quota := func(name, label, value string, used int) templ.Component {
		help := ""
		if !isNew {
			help = strconv.Itoa(used) + " in use."
		}
		return page.Field(ui.FieldModel{Name: name, Label: label, Kind: ui.FieldNumber, Value: value, Min: "0", Optional: true, Help: help, Placeholder: "no limit"}, errs)
	}
	var parts []templ.Component
	if isNew {
		parts = append(parts, page.Field(name, errs))
	}
	parts = append(parts,
		page.Field(ui.FieldModel{Name: fieldDescription, Label: "Description", Value: d.description, Optional: true, Width: "l", MaxLength: loom.MaxDescription}, errs),
		page.Field(ui.FieldModel{Name: fieldWorkers, Label: "Workers", Kind: ui.FieldNumber, Value: d.workers, Min: "0",
			Help: "How many tasks of the tenant run at once, from 0 up."}, errs), room)
	if from != nil {
		parts = append(parts, from)
	}
	return append(parts,
		adminview.Text(quotaHelp(isNew)), quota(fieldMaxClusters, "Clusters at most", d.maxClusters, use.Clusters), quota(fieldMaxNodes, "Nodes at most", d.maxNodes, use.Nodes))
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
	if page.Wants(r, workerRoomID) {
		return s.Fragment(w, r, http.StatusOK, workerRoom(room, "", route.SystemTenantNew()))
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
	form := adminview.Form(adminview.FormModel{Action: route.SystemTenants(), Errors: errs, Button: "Create tenant", Busy: "Creating…", Cancel: route.SystemTenants(),
		Parts: append(append(fields, permits...), parts, adminview.Text("The tenant gets the user admin with a generated password, which is shown once and to be changed at the first sign-in."))})
	page := tenantFrame("New tenant", ui.Crumb{Label: "New"})
	page.Topics = []string{route.TopicSystem()}
	return s.Sheet(w, r, actor, status, page, adminview.PageModel{Parts: []templ.Component{form}})
}

// systemTenantCreate makes a tenant and shows the password of its administrator.
func (s *Server) systemTenantCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	d, in, bad := readTenant(f, loom.NewPermits())
	var tenant loom.Tenant
	var password loom.Secret
	if err = loom.InvalidFields(bad); err == nil {
		tenant, password, err = s.Accounts.CreateTenantWithSignIn(r.Context(), actor, in)
	}
	if errs, status, ok := page.FormErrors(err, "The tenant was not created."); err != nil && ok {
		return s.tenantNewPage(w, r, actor, status, d, errs)
	}
	if err != nil {
		return err
	}
	made := s.MadePassword(r, "Tenant "+tenant.Name+" was created", tenant.Name, string(loom.AdminUser), password, route.SystemTenant(tenant.Name))
	return s.Sheet(w, r, actor, http.StatusOK, tenantFrame(tenant.Name, ui.Crumb{Label: tenant.Name}), adminview.PageModel{Parts: []templ.Component{made}})
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
	if page.Wants(r, workerRoomID) {
		return s.Fragment(w, r, http.StatusOK, workerRoom(room, t.Name, route.SystemTenant(t.Name)))
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
	permits, err := s.permitFields(r, actor, d.may, errs)
	if err != nil {
		return err
	}
	use, work, queue := uses[t.ID], shares(shortage)[t.ID], queuesByName(counts)[t.Name]
	m := adminview.PageModel{Title: t.Name, Calls: []ui.JSONCall{page.Call("read", http.MethodGet, "/v2/tenants/"+t.Name, "")}}
	waits := processes.Queue{Name: processes.TenantQueue(t.ID), Tenant: t.Name, Paused: work.Paused}
	m.Actions = []ui.ButtonModel{page.Opening(queueButton(waits).Label+" queue", "", queueButton(waits).Href, ui.Secondary)}
	if waits.IsPaused() {
		m.Banners = []ui.BannerModel{{Tone: ui.ToneHold, Text: "The queue of the tenant is paused " + s.pausedText(r, waits.Paused) + ": nothing new starts until it is resumed."}}
	}
	if t.ID != loom.SuperTenant {
		m.Actions = []ui.ButtonModel{m.Actions[0], page.Opening("Act as administrator", "", route.SystemActAs(t.Name), ui.Secondary), {Label: "Delete", Kind: ui.Danger, Small: true, Href: route.SystemTenantDelete(t.Name)}}
	}
	if t.ID != loom.SuperTenant && t.Workers == 0 {
		m.Banners = append(m.Banners, ui.BannerModel{Tone: ui.ToneWarn, Text: "The tenant has no workers, so none of its tasks run.", Action: "Give it workers", ActionHref: "#edit-title"})
	}
	fields := tenantFields(d, false, workerRoom(room, t.Name, route.SystemTenant(t.Name)), workersFrom(room, t.Name, d.workersFrom, errs), use, errs)
	m.Parts = []templ.Component{
		ui.Definitions(append([]ui.Def{
			{Term: "Clusters", Text: page.UsedOf(use.Clusters, use.MaxClusters)}, {Term: "Nodes", Text: page.UsedOf(use.Nodes, use.MaxNodes)},
			{Term: "Workers", Text: strconv.Itoa(work.Dealt) + " of " + strconv.Itoa(t.Workers) + " dealt, " + strconv.Itoa(work.Busy) + " busy"}, {Term: "Tasks that wait", Text: strconv.Itoa(queue.Waiting)},
			{Term: "Created", Value: ui.Time(t.Created, s.Now())},
		}, permitDefs(t.Permits)...)),
		page.QuotaBars(use),
		adminview.Card("edit-title", "Change", adminview.Form(adminview.FormModel{Action: route.SystemTenant(t.Name), Errors: errs, Button: "Save", Busy: "Saving…", Parts: append(fields, permits...)})),
	}
	past, err := s.tenantPast(r, actor, t.Name)
	if err != nil {
		return err
	}
	m.Parts = append(m.Parts, past...)
	page := tenantFrame(t.Name, ui.Crumb{Label: t.Name})
	page.Topics = []string{route.TopicSystem()}
	return s.Sheet(w, r, actor, status, page, m)
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
	f, err := page.ReadForm(w, r)
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
	if errs, status, ok := page.FormErrors(err, "The tenant was not changed."); err != nil && ok {
		return s.tenantPage(w, r, actor, status, t, d, errs)
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.SystemTenant(t.Name), httpx.Flash{Tone: "ok", Text: "Saved the tenant " + t.Name + "."})
}
