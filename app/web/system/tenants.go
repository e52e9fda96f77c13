package system

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/api/wire"
	"loom/app/catalog"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/web/form"
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
// a new one, which can have those that are free; url gives it again.
func workerRoom(room account.WorkerRoom, tenant, url string) templ.Component {
	attrs := ui.Live(url, "system")
	attrs["hx-trigger"], attrs["hx-select"] = "loom:live, every 10s", "#"+workerRoomID
	var parts []templ.Component
	if room.Capacity > 0 {
		parts = append(parts, adminview.Shares(sharesOf(room)))
	}
	switch {
	case room.Capacity == 0:
		parts = append(parts, adminview.Text("No provisioner runs, so only 0 is possible now."))
	case tenant != "":
		parts = append(parts, adminview.Text("Enter at most "+strconv.Itoa(room.Free(tenant))+" now."))
	}
	return adminview.Region(workerRoomID, attrs, parts...)
}

// held counts the workers of tenants.
func held(holders []account.Holder) int {
	n := 0
	for _, h := range holders {
		n += h.Workers
	}
	return n
}

// sharesOf draws the room: the holders by name, the last ones together, and what is free.
func sharesOf(room account.WorkerRoom) adminview.SharesModel {
	m := adminview.SharesModel{Label: "Held by", Used: held(room.Holders), Max: room.Capacity}
	named := room.Holders[:min(len(room.Holders), maxNamed)]
	for _, h := range named {
		m.Parts = append(m.Parts, h.Name+" "+strconv.Itoa(h.Workers))
	}
	if rest := room.Holders[len(named):]; len(rest) > 0 {
		m.Parts = append(m.Parts, ui.Count(len(rest), "other", "others")+" "+strconv.Itoa(held(rest)))
	}
	m.Parts = append(m.Parts, "free "+strconv.Itoa(max(m.Max-m.Used, 0)))
	return m
}

// workersFrom chooses the tenant that gives workers when too few are free; it is not shown
// when no other tenant has any.
func workersFrom(room account.WorkerRoom, tenant string) form.Part {
	choices := []ui.Option{{Label: "no tenant"}}
	for _, h := range room.Holders {
		if h.Name != tenant {
			choices = append(choices, ui.Option{Value: h.Name, Label: h.Name + " (has " + strconv.Itoa(h.Workers) + ", " + strconv.Itoa(h.Busy) + " busy)"})
		}
	}
	f := form.Field{Path: form.At("workersFrom"), Odd: "no such tenant", Face: ui.FieldModel{Label: "Take missing workers from", Kind: ui.FieldSelect, Optional: true, Options: choices,
		Help: "If fewer are free than you enter, this tenant gives the rest."}}
	if len(choices) == 1 {
		return form.Unshown{Part: f}
	}
	return f
}

// bootstrapParts lets one choose what of the superadmin tenant is copied: each part with
// what is in it.
func (s *Server) bootstrapParts(r *http.Request, actor loom.Actor) ([]form.Choice, error) {
	bundle, err := s.Catalog.Export(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	resources, err := s.Catalog.Resources(r.Context(), actor, catalog.ResourceFilter{})
	if err != nil {
		return nil, err
	}
	var choices []form.Choice
	for _, kind := range loom.TenantKinds {
		var names []string
		for _, entry := range bundle.Entries[kind] {
			names = append(names, entry.Meta().Name)
		}
		choices = append(choices, partChoice(string(kind), adminview.Plural(kind), names))
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
	part := partChoice(account.PartResources, "Files, all versions", files)
	if sealed > 0 {
		part.Facts = append(part.Facts, ui.Count(sealed, "of them is sealed, such as a key", "of them are sealed, such as keys")+": it goes along")
	}
	return append(choices, part), nil
}

func partChoice(value, label string, names []string) form.Choice {
	c := form.Choice{Value: value, Label: label + " (" + strconv.Itoa(len(names)) + ")"}
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
	e := editTenant(newTenant)
	e.Doc.Set(form.At("workers"), min(room.Free(""), maxPresetWorkers))
	e.Doc.Set(partsPath, account.BootstrapParts())
	return s.tenantNewPage(w, r, actor, http.StatusOK, e)
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

var (
	typesOff = form.At("providerTypesOff")
	// partsPath has what a new tenant gets of the superadmin's.
	partsPath = form.At("parts")
)

// permits are the boxes of what a tenant may do with providers.
type permits struct{ types []loom.PluginType }

// Read implements form.Part; a form without the boxes leaves permits alone.
func (p permits) Read(in *form.Input) {
	shown := strings.Fields(in.Values.Get(fieldShownTypes))
	if len(shown) == 0 {
		return
	}
	for _, name := range []string{fieldPrivateNetworks, fieldInstanceRoles} {
		in.Doc.Set(form.At(name), slices.Contains(in.Values[fieldMay], name))
	}
	had, off := in.Doc.Texts(typesOff), []string{}
	for _, name := range append(slices.Clone(shown), had...) {
		isOff := slices.Contains(had, name)
		if slices.Contains(shown, name) {
			isOff = !slices.Contains(in.Values[fieldTypes], name)
		}
		if isOff && !slices.Contains(off, name) {
			off = append(off, name)
		}
	}
	in.Doc.Set(typesOff, off)
}

// Show implements form.Part.
func (p permits) Show(out *form.Output) templ.Component {
	off := out.Doc.Texts(typesOff)
	choose := ui.ChoiceModel{Name: fieldTypes, ID: out.ID(fieldTypes), Legend: "Provider types",
		Help: "Machines are created with these only. Machines that exist keep working and can be deleted."}
	choose.Error = out.Claim(typesOff, choose.ID, choose.Legend)
	// Those that are off come first: the list scrolls.
	types := slices.Clone(p.types)
	slices.SortStableFunc(types, func(a, b loom.PluginType) int {
		rank := func(t loom.PluginType) int { return min(slices.Index(off, t.Name), 0) }
		return rank(b) - rank(a)
	})
	var shown []string
	for _, t := range types {
		shown = append(shown, t.Name)
		choose.Choices = append(choose.Choices, ui.Choice{Value: t.Name, Label: labelOf(t), Checked: !slices.Contains(off, t.Name)})
	}
	may := ui.ChoiceModel{Name: fieldMay, Legend: "Providers may use", Choices: []ui.Choice{
		{Value: fieldPrivateNetworks, Label: "Private networks", Checked: out.Doc.Text(form.At(fieldPrivateNetworks)) == "true",
			Description: "Loom connects to private addresses (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7) that the tenant’s providers and their machines have."},
		{Value: fieldInstanceRoles, Label: "Instance roles", Checked: out.Doc.Text(form.At(fieldInstanceRoles)) == "true",
			Description: "Providers sign in to AWS with the role of the host that a provisioner runs on."},
	}}
	if len(types) == 0 {
		return ui.Ticks(may)
	}
	return templ.Join(adminview.Hidden(fieldShownTypes, strings.Join(shown, " ")), ui.Ticks(choose), ui.Ticks(may))
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
		Columns: []ui.Column{{Label: "Tenant"}, {Label: "Workers", Numeric: true}, {Label: "Clusters", Numeric: true}, {Label: "Nodes", Numeric: true}, {Label: "Running", Numeric: true}, {Label: "Queued", Numeric: true}, {Label: "Last activity"}},
		Empty:   ui.EmptyModel{Icon: "search", Text: "No tenant matches.", Action: ui.ButtonModel{Label: "Clear filters", Href: route.SystemTenants()}}}
	for _, t := range list.Items {
		use, work := uses[t.ID], workers[t.ID]
		share := adminview.Cell{Text: strconv.Itoa(t.Workers)}
		if work.Assigned < t.Workers && work.Paused.At.IsZero() {
			share.Sub = strconv.Itoa(work.Assigned) + " assigned"
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
	m := adminview.PageModel{Title: "Tenants", Intro: "Organizations that share this installation, each with its own users, catalog, quotas and workers.", Actions: []ui.ButtonModel{add},
		Parts: []templ.Component{adminview.Filters(filters), adminview.Table(grid)}, Calls: []ui.JSONCall{page.Call("list", http.MethodGet, "/v2/tenants", "")}}
	page := page.SystemFrame("Tenants", route.SystemTenants())
	return s.Sheet(w, r, actor, http.StatusOK, page, m)
}

// newTenant is what the form of a new tenant begins with.
var newTenant = loom.Tenant{Permits: loom.NewPermits(), MaxClusters: loom.Unlimited, MaxNodes: loom.Unlimited}

// editTenant is the form of a tenant; without a quota there is no limit. What its fields
// need to be shown follows in showTenant.
func editTenant(t loom.Tenant) form.Edit {
	e := tenantForm(t.Name, tenantFacts{}).Over(wire.NewTenant(t))
	if t.MaxClusters >= loom.Unlimited {
		e.Doc.Delete(form.At("maxClusters"))
	}
	if t.MaxNodes >= loom.Unlimited {
		e.Doc.Delete(form.At("maxNodes"))
	}
	return e
}

// readTenant reads the posted form. The parts are no member of a tenant.
func readTenant(e *form.Edit, values url.Values) (account.TenantInput, error) {
	e.Fill(values)
	tenant := *e
	tenant.Doc = e.Doc.Clone()
	tenant.Doc.Delete(partsPath)
	in, err := form.DecodeDoc(tenant, wire.ReadTenantFields)
	none, endless := 0, loom.Unlimited
	if in.Workers == nil {
		in.Workers = &none
	}
	if in.MaxClusters == nil {
		in.MaxClusters = &endless
	}
	if in.MaxNodes == nil {
		in.MaxNodes = &endless
	}
	in.Parts = e.Doc.Texts(partsPath)
	in.Bootstrap = len(in.Parts) > 0
	return in, err
}

// tenantFacts are what the fields of a tenant need: who has workers, which types of
// providers there are, what is in use, and what a new tenant can get.
type tenantFacts struct {
	room  account.WorkerRoom
	types []loom.PluginType
	use   loom.QuotaUse
	parts []form.Choice
}

func showTenant(e form.Edit, name string, facts tenantFacts) form.Shown {
	e.Form = tenantForm(name, facts)
	return e.Shown()
}

// tenantForm has the fields of a tenant; a new one has no name yet.
func tenantForm(name string, facts tenantFacts) form.Form {
	quota := func(field, label string, used int) form.Part {
		face := ui.FieldModel{Label: label, Kind: ui.FieldNumber, Min: "0", Optional: true, Placeholder: "no limit"}
		if name != "" {
			face.Help = strconv.Itoa(used) + " in use."
		}
		return form.Field{Path: form.At(field), Face: face}
	}
	var parts []form.Part
	url, help := route.SystemTenantTab(name, tabQuotas), "Quotas: left empty, there is no limit; no quota can be below what is in use."
	if name == "" {
		parts = append(parts, form.Field{Path: form.At("name"), Face: ui.FieldModel{Label: "Name", Mono: true, MaxLength: 255, Width: "s", Help: "It cannot be changed later."}})
		url, help = route.SystemTenantNew(), "Quotas: left empty, there is no limit."
	}
	parts = append(parts,
		form.Field{Path: form.At("description"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Description", Optional: true, Width: "l", MaxLength: loom.MaxDescription}},
		form.Field{Path: form.At("workers"), Face: ui.FieldModel{Label: "Workers", Kind: ui.FieldNumber, Min: "0",
			Help: "How many tasks of the tenant run at once, from 0 up."}},
		form.Note{Component: workerRoom(facts.room, name, url)}, workersFrom(facts.room, name),
		form.Note{Component: adminview.Text(help)}, quota("maxClusters", "Clusters at most", facts.use.Clusters), quota("maxNodes", "Nodes at most", facts.use.Nodes), permits{facts.types})
	if name == "" {
		parts = append(parts, form.Picker{Path: partsPath, Legend: "Copy from the superadmin tenant", Choices: facts.parts,
			Help: "The newest version of each. What is chosen comes with its sealed fields and uploaded keys: the new tenant can use the same accounts. What names a part that is left out works only once the tenant has one of that name."},
			form.Note{Component: adminview.Text("The tenant gets the user admin with a generated password, which is shown once and to be changed at the first sign-in.")})
	}
	return form.Of(parts...)
}

func (s *Server) tenantNewPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, e form.Edit) error {
	room, err := s.Accounts.WorkerRoom(r.Context(), actor)
	if err != nil {
		return err
	}
	if page.Wants(r, workerRoomID) {
		return s.Fragment(w, r, http.StatusOK, workerRoom(room, "", route.SystemTenantNew()))
	}
	parts, err := s.bootstrapParts(r, actor)
	if err != nil {
		return err
	}
	types, err := s.Accounts.ProviderTypes(r.Context(), actor)
	if err != nil {
		return err
	}
	shown := showTenant(e, "", tenantFacts{room: room, types: types, parts: parts})
	sent := adminview.Form(adminview.FormModel{Action: route.SystemTenants(), Errors: shown.Errors, Button: "Create tenant", Busy: "Creating…", Cancel: route.SystemTenants(), Parts: shown.Parts()})
	page := tenantFrame("New tenant", ui.Crumb{Label: "New"})
	page.Topics = []string{route.TopicSystem()}
	return s.Sheet(w, r, actor, status, page, adminview.PageModel{Parts: []templ.Component{sent}})
}

// systemTenantCreate makes a tenant and shows the password of its administrator.
func (s *Server) systemTenantCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	values, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	e := editTenant(newTenant)
	in, err := readTenant(&e, values)
	var tenant loom.Tenant
	var password loom.Secret
	if err == nil {
		tenant, password, err = s.Accounts.CreateTenantWithSignIn(r.Context(), actor, in)
	}
	if fields, status, ok := page.Refused(err); ok {
		return s.tenantNewPage(w, r, actor, status, e.Refused("The tenant was not created.", fields))
	}
	if err != nil {
		return err
	}
	made := s.MadePassword(r, "Tenant "+tenant.Name+" was created", tenant.Name, string(loom.AdminUser), password, route.SystemTenant(tenant.Name))
	return s.Sheet(w, r, actor, http.StatusOK, tenantFrame(tenant.Name, ui.Crumb{Label: tenant.Name}), adminview.PageModel{Parts: []templ.Component{made}})
}

func pathTenant(r *http.Request) string { return route.Segment(r.PathValue("tenant")) }

func (s *Server) systemTenantSave(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	values, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	t, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	if err != nil {
		return err
	}
	e := editTenant(t)
	in, err := readTenant(&e, values)
	if err == nil {
		_, err = s.Accounts.UpdateTenant(r.Context(), actor, t.Name, in)
	}
	if fields, status, ok := page.Refused(err); ok {
		return s.quotasPage(w, r, actor, status, t, e.Refused("The tenant was not changed.", fields))
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.SystemTenant(t.Name), httpx.Flash{Tone: "ok", Text: "Saved the tenant " + t.Name + "."})
}
