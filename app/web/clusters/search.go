package clusters

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"loom/app/account"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
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
	var actions []sharedview.Found
	if id, ok := clusterAt(r.URL.Query().Get("at")); ok {
		var err error
		if actions, err = s.actionsOn(ctx, actor, id); err != nil {
			return m, err
		}
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
		recent, err := s.Clusters.Clusters(ctx, actor, clusters.ListInput{Page: loom.Page{Limit: foundFew, Sort: "-createTime"}, Statuses: liveStatuses, Uncounted: true, Brief: true})
		if err != nil {
			return m, err
		}
		add("Clusters", s.foundClusters(recent.Items))
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
	commands, err := s.commands(ctx, actor, m.Q)
	if err != nil {
		return m, err
	}
	add("Actions", commands)
	add("Clusters", s.foundClusters(found.Clusters))
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

func (s *Server) foundClusters(items []loom.ClusterSummary) []sharedview.Found {
	var found []sharedview.Found
	for _, c := range items {
		state := ui.ClusterBadge(c.Status, c.Progress, c.Health, s.Now()).Of("cluster", c.ID.String())
		found = append(found, sharedview.Found{Label: c.Name, Note: c.ID.String() + " · " + c.Template.Name, Icon: "cluster", Href: route.Cluster(c.ID), State: &state})
	}
	return found
}

func foundNodes(nodes []clusters.FoundNode) []sharedview.Found {
	var found []sharedview.Found
	for _, n := range nodes {
		note := n.Hostname
		if n.Address != "" {
			note = n.Address + " · " + note
		}
		found = append(found, sharedview.Found{Label: "Node " + ui.NodeNumber(n.Hostname) + " of " + n.Name, Note: note, Icon: "server", Href: route.Node(n.Cluster, n.ID)})
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

// commandClusters is how many clusters a command such as “scale web” may be about.
const commandClusters = 3

// commands are the actions that a verb and an object name, such as “scale web” and “ssh web 1001”.
func (s *Server) commands(ctx context.Context, actor loom.Actor, q string) ([]sharedview.Found, error) {
	verb, object, _ := strings.Cut(strings.ToLower(strings.TrimSpace(q)), " ")
	words := strings.Fields(object)
	node := 0
	if len(words) > 1 {
		if n, err := strconv.Atoi(words[len(words)-1]); err == nil {
			node, words = n, words[:len(words)-1]
		}
	}
	if len(words) == 0 {
		return nil, nil
	}
	named, err := s.Clusters.Find(ctx, actor, strings.Join(words, " "), commandClusters)
	if errors.Is(err, loom.Invalid) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []sharedview.Found
	for _, c := range named.Clusters {
		if c.Status == loom.ClusterTerminated {
			continue
		}
		if verb == "ssh" {
			v, err := s.Clusters.Cluster(ctx, actor, c.ID)
			if err != nil {
				return nil, err
			}
			for _, n := range placedNodes(v) {
				if node == 0 || node == n.Number {
					found = append(found, sharedview.Found{Label: "SSH to node " + strconv.Itoa(n.Number), Note: v.Name, Icon: "terminal", Href: route.Node(v.ID, n.ID)})
				}
			}
			continue
		}
		actions, err := s.actionsOn(ctx, actor, c.ID)
		if err != nil {
			return nil, err
		}
		for _, a := range actions {
			if strings.HasPrefix(strings.ToLower(a.Label), verb) {
				found = append(found, a)
			}
		}
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

// clusterAt is the cluster of the page at a path.
func clusterAt(path string) (loom.ClusterID, bool) {
	u, err := url.Parse(path)
	if err != nil {
		return 0, false
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 2 || parts[0] != "clusters" {
		return 0, false
	}
	return loom.ParseClusterID(parts[1])
}

// actionsOn are the actions allowed now on a cluster and its latest operation, and its nodes to
// sign in to; none on what the actor may not see.
func (s *Server) actionsOn(ctx context.Context, actor loom.Actor, id loom.ClusterID) ([]sharedview.Found, error) {
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
	for _, i := range clusterActions(actor, v) {
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

// pagesFor are the pages that somebody may open by name: those of the rails, and a few more.
func pagesFor(actor loom.Actor) []sharedview.Found {
	var pages []sharedview.Found
	if actor.MayAtAll(loom.Create) == nil {
		pages = append(pages, sharedview.Found{Label: "New cluster", Note: "create", Icon: "plus", Href: route.ClusterNew()})
	}
	areas := []struct {
		area layout.Area
		note string
		may  bool
	}{
		{layout.AreaClusters, "", true}, {layout.AreaAccount, "account", true},
		{layout.AreaAdmin, "admin", true}, {layout.AreaSystem, "system", actor.May(loom.Install, loom.Installation) == nil},
	}
	for _, a := range areas {
		if !a.may {
			continue
		}
		for _, item := range page.RailFor(actor, a.area, "") {
			if item.Href != "" {
				pages = append(pages, sharedview.Found{Label: item.Label, Note: a.note, Icon: item.Icon, Href: item.Href})
			}
		}
		if a.area == layout.AreaAdmin && actor.May(loom.Publish, actor.InTenant()) == nil {
			for _, kind := range loom.TenantKinds {
				pages = append(pages, sharedview.Found{Label: "New " + kind.Word(), Note: "admin, create", Icon: "plus", Href: route.AdminNew(kind)})
			}
		}
	}
	return append(pages, sharedview.Found{Label: "API documentation", Note: "REST", Icon: "terminal", Href: route.API()}, sharedview.Found{Label: "Keyboard help", Note: "shortcuts", Icon: "info", Href: route.Keys()})
}
