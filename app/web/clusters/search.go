package clusters

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"loom/app/account"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/sharedview"
	"loom/views/ui"
)

// foundMany and foundFew bound what is shown of a sort, on the page and in the palette.
const foundMany, foundFew = 25, 6

// search is the page of what is found by a name, id, host name or address.
func (s *Server) search(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	m, err := s.find(r, actor, foundMany)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if m.Error != "" {
		status = http.StatusUnprocessableEntity
	}
	return s.Render(w, r, actor, status, layout.Model{Title: "Search", Area: layout.AreaClusters}, sharedview.SearchPage(m))
}

// palette is the same while one types.
func (s *Server) palette(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	m, err := s.find(r, actor, foundFew)
	if err != nil {
		return err
	}
	return s.Fragment(w, r, http.StatusOK, sharedview.PaletteList(m))
}

// find looks for pages, actions on the object of the page one is at, and objects. It
// makes a bounded number of queries, each for a bounded number of rows.
func (s *Server) find(r *http.Request, actor loom.Actor, most int) (sharedview.SearchModel, error) {
	ctx := r.Context()
	m := sharedview.SearchModel{Q: page.SearchOf(r.URL.Query())}
	actions, err := s.actionsAt(ctx, actor, r.URL.Query().Get("at"))
	if err != nil {
		return m, err
	}
	add := func(title string, items []sharedview.Found) {
		if len(items) > 0 {
			m.Groups = append(m.Groups, sharedview.FoundGroup{Title: title, Items: items[:min(len(items), most)]})
		}
	}
	if m.Q == "" {
		if len(actions) > 0 {
			m.Groups = append(m.Groups, sharedview.FoundGroup{Title: "Actions here", Items: actions})
		}
		m.Groups = append(m.Groups, sharedview.FoundGroup{Title: "Pages", Items: pagesFor(actor)})
		return m, nil
	}
	add("Actions here", matching(actions, m.Q))
	found, err := s.Clusters.Find(ctx, actor, m.Q, most)
	var entries []sharedview.Found
	if err == nil { // one of many words in quotes passes there, not here
		entries, err = s.foundEntries(ctx, actor, m.Q, most)
	}
	if errors.Is(err, loom.Invalid) {
		m.Error = loom.AsError(err).Message
		add("Pages", matching(pagesFor(actor), m.Q))
		return m, nil
	}
	if err != nil {
		return m, err
	}
	add("Clusters", foundClusters(found.Clusters))
	add("Nodes", foundNodes(found.Nodes))
	add("Catalog", entries)
	users, err := s.foundUsers(ctx, actor, m.Q, most)
	if err != nil {
		return m, err
	}
	add("Users", users)
	add("Pages", matching(pagesFor(actor), m.Q))
	return m, nil
}

func foundClusters(items []loom.ClusterSummary) []sharedview.Found {
	var found []sharedview.Found
	for _, c := range items {
		state := ui.ClusterState(c.Status)
		found = append(found, sharedview.Found{Label: c.Name, Note: c.ID.String() + " · " + c.Template.Name, Icon: "cluster", Href: route.Cluster(c.ID), State: &state})
	}
	return found
}

func foundNodes(nodes []clusters.FoundNode) []sharedview.Found {
	var found []sharedview.Found
	for _, n := range nodes {
		note := "of " + n.Name
		if n.Address != "" {
			note = n.Address + " · " + note
		}
		found = append(found, sharedview.Found{Label: n.Hostname, Note: note, Icon: "server", Href: route.Node(n.Cluster, n.ID)})
	}
	return found
}

// foundEntries looks through the catalog: templates for everybody, the other kinds for
// administrators.
func (s *Server) foundEntries(ctx context.Context, actor loom.Actor, q string, most int) ([]sharedview.Found, error) {
	entries, err := s.Catalog.Find(ctx, actor, q, most)
	var found []sharedview.Found
	for _, e := range entries {
		href := route.CatalogTemplate(e.Name)
		if actor.May(loom.Publish, actor.InTenant()) == nil {
			href = route.AdminEntry(e.Kind, e.Name)
		}
		found = append(found, sharedview.Found{Label: e.Name, Note: e.Kind.Word(), Icon: "template", Href: href})
	}
	return found, err
}

func (s *Server) foundUsers(ctx context.Context, actor loom.Actor, q string, most int) ([]sharedview.Found, error) {
	if actor.May(loom.Administer, actor.InTenant()) != nil {
		return nil, nil
	}
	users, err := s.Accounts.ListUsers(ctx, actor, account.UserListInput{Page: loom.Page{Limit: most}, Q: q})
	if err != nil {
		return nil, err
	}
	var found []sharedview.Found
	for _, u := range users.Items {
		found = append(found, sharedview.Found{Label: string(u.ID), Note: strings.TrimSpace(u.DisplayName + " " + string(u.Role)), Icon: "user", Href: route.AdminUser(u.ID)})
	}
	return found, nil
}

// matching keeps what has all words of a search in its label or note.
func matching(items []sharedview.Found, q string) []sharedview.Found {
	words := strings.Fields(strings.ToLower(q))
	var found []sharedview.Found
	for _, item := range items {
		text, all := strings.ToLower(item.Label+" "+item.Note), true
		for _, word := range words {
			all = all && strings.Contains(text, word)
		}
		if all {
			found = append(found, item)
		}
	}
	return found
}

// actionsAt are the actions allowed now on the cluster or operation of the page at that
// path; none elsewhere, and none on what the actor may not see.
func (s *Server) actionsAt(ctx context.Context, actor loom.Actor, at string) ([]sharedview.Found, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, nil
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 2 || parts[0] != "clusters" {
		return nil, nil
	}
	id, ok := loom.ParseClusterID(parts[1])
	if !ok {
		return nil, nil
	}
	v, err := s.Clusters.Cluster(ctx, actor, id)
	if errors.Is(err, loom.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []sharedview.Found
	if v.Latest != nil {
		for _, b := range operationActions(v, *v.Latest) {
			if b.WhyNot == "" {
				found = append(found, sharedview.Found{Label: b.Label, Note: "operation " + v.Latest.Ref.String(), Icon: b.Icon, Href: b.Href, Post: b.FormAction})
			}
		}
	}
	items := clusterActions(actor, v)
	if v.Allowed[loom.ChangeDelete] == "" && v.Status != loom.ClusterTerminated {
		items = append(items, ui.MenuItem{Label: "Delete", Icon: "trash", Href: route.ClusterDelete(v.ID)})
	}
	for _, i := range items {
		if i.WhyNot == "" {
			found = append(found, sharedview.Found{Label: i.Label, Note: v.Name, Icon: i.Icon, Href: i.Href, Post: i.Post})
		}
	}
	for i := range found {
		if found[i].Href == "" {
			found[i].Href = route.Cluster(v.ID)
		}
		if found[i].Icon == "" {
			found[i].Icon = "arrow-right"
		}
	}
	return found, nil
}

// pagesFor are the pages that somebody may open by name.
func pagesFor(actor loom.Actor) []sharedview.Found {
	page := func(label, note, icon, href string) sharedview.Found {
		return sharedview.Found{Label: label, Note: note, Icon: icon, Href: href}
	}
	pages := []sharedview.Found{
		page("Home", "", "activity", route.Home()), page("Clusters", "", "cluster", route.Clusters()), page("New cluster", "create", "plus", route.ClusterNew()),
		page("Catalog", "templates", "template", route.Catalog()), page("Activity", "what happened", "list", route.Activity()), page("Usage", "hours of nodes", "clock", route.Usage()),
		page("Account", "SSH keys, password", "user", route.Account()), page("Preferences", "theme, time zone, rows, shortcuts", "settings", route.AccountPreferences()),
		page("API tokens", "account", "key", route.AccountTokens()), page("Sessions", "account, sign out", "monitor", route.AccountSessions()),
		page("Your activity", "account", "activity", route.AccountActivity()), page("API documentation", "REST", "file", route.API()), page("Keyboard help", "shortcuts", "info", route.Keys()),
	}
	if actor.May(loom.Administer, actor.InTenant()) == nil {
		for _, kind := range loom.TenantKinds {
			pages = append(pages, page(adminview.Plural(kind), "admin", "template", route.AdminKind(kind)), page("New "+kind.Word(), "admin, create", "plus", route.AdminNew(kind)))
		}
		pages = append(pages, page("Plugin resources", "admin", "file", route.AdminResources()), page("Import and export", "admin", "download", route.AdminTransfer()),
			page("Users", "admin", "user", route.AdminUsers()), page("Hooks", "admin", "external", route.AdminHooks()), page("Audit", "admin, who did what", "shield", route.AdminAudit()),
			page("Usage of the tenant", "admin", "clock", route.AdminUsage()), page("Queue of the tenant", "admin", "clock", route.AdminQueue()), page("Settings of the tenant", "admin, leases, quotas", "settings", route.AdminSettings()))
	}
	if actor.May(loom.Install, loom.Installation) == nil {
		pages = append(pages, page("System", "overview", "activity", route.System()), page("Tenants", "system", "layers", route.SystemTenants()), page("Workers", "system, processes", "server", route.SystemWorkers()),
			page("Queues", "system", "clock", route.SystemQueues()), page("River jobs", "system", "file", route.SystemJobs()), page("Orphans and leftovers", "system, machines", "disk", route.SystemOrphans()),
			page("Plugin types", "system", "box", route.SystemPlugins()), page("Audit of all tenants", "system", "shield", route.SystemAudit()))
	}
	return pages
}
