package clusters

import (
	"context"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner/macro"
)

// maxNodeActions is how much of a node's history is shown.
const maxNodeActions = 200

// ClusterView is a cluster as its page and its API object show it.
type ClusterView struct {
	loom.Cluster
	// Nodes by number, with their history; secrets among their facts are masked. They
	// are those of the layout and those on their way out; of a cluster that was deleted
	// those that it had then. Gone are those that left it before.
	Nodes, Gone []loom.Node
	// Unmet are the services that do not serve, by node; only of
	// nodes that are ready or failed.
	Unmet map[loom.NodeID]Unmet
	// Links of the template, macros expanded; what cannot be expanded yet stays as written.
	// Those that name a service that is not on the cluster are left out.
	// OpenLinks are those of them that lead to services of which one runs.
	Links, OpenLinks []loom.Link
	// NodeLinks are the links of the services of each node, in the same way, and
	// ServiceLinks the same by service.
	NodeLinks    map[loom.NodeID][]loom.Link
	ServiceLinks map[loom.NodeID]map[string][]loom.Link
	// Latest is the newest operation, nil before the first.
	Latest *loom.Operation
	// Allowed says of each verb why it cannot begin now, "" when it can.
	Allowed map[loom.ChangeKind]string
	// NewerTemplate is the newest version of the template, 0 unless it is newer
	// than the cluster's copy.
	NewerTemplate int
	Lease         loom.LeaseLimits
	// LeaseNote is a sentence about the end of the lease, "" while there is none to say.
	LeaseNote string
	// Skipped are tasks that somebody left out and that no later operation ran, the
	// first 100.
	Skipped []loom.Task
	// Leftovers are machines that a delete left behind, for administrators.
	Leftovers []loom.Leftover
}

// maxShownSkipped is how many tasks that were left out a cluster shows.
const maxShownSkipped = 100

// Cluster reads a cluster with all its page shows. NotFound for clusters that
// the actor may not see.
func (u *Clusters) Cluster(ctx context.Context, actor loom.Actor, id loom.ClusterID) (ClusterView, error) {
	v, err := u.overview(ctx, actor, id, store.NodesByCluster)
	if err != nil {
		return v, err
	}
	for _, nodes := range [][]loom.Node{v.Nodes, v.Gone} {
		for i := range nodes {
			maskFacts(&nodes[i])
		}
	}
	history, err := store.NodeActions(ctx, u.db, actor.Tenant, id, "", maxNodeActions)
	for _, nodes := range [][]loom.Node{v.Nodes, v.Gone} {
		for i := range nodes {
			nodes[i].Actions = history[nodes[i].ID]
		}
	}
	return v, err
}

// Overview reads a cluster as Cluster does, without the history of its nodes and what
// tasks learned of them, which of a large one is most of the work. NotFound.
func (u *Clusters) Overview(ctx context.Context, actor loom.Actor, id loom.ClusterID) (ClusterView, error) {
	return u.overview(ctx, actor, id, store.NodesBriefly)
}

// readNodes reads the nodes of a cluster.
type readNodes func(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID) ([]loom.Node, error)

func (u *Clusters) overview(ctx context.Context, actor loom.Actor, id loom.ClusterID, read readNodes) (ClusterView, error) {
	var v ClusterView
	cluster, latest, err := u.load(ctx, actor, id)
	if err != nil {
		return v, err
	}
	v.Cluster, v.Latest = cluster, latest
	all, err := read(ctx, u.kept, actor.Tenant, id)
	if err != nil {
		return v, err
	}
	if err := u.divide(ctx, &v, all); err != nil {
		return v, err
	}
	v.expandLinks()
	if err := u.unmet(ctx, &v); err != nil {
		return v, err
	}
	if v.Allowed, err = u.allowed(ctx, cluster, latest); err != nil {
		return v, err
	}
	if v.Skipped, err = store.SkippedTasks(ctx, u.kept, actor.Tenant, id, maxShownSkipped); err != nil {
		return v, err
	}
	if err := u.remains(ctx, actor, &v); err != nil {
		return v, err
	}
	v.Lease = cluster.Template.Administration.Lease.Limits(cluster.Created, cluster.Expires)
	newest, err := store.CatalogVersionNumber(ctx, u.kept, actor.Tenant, loom.KindTemplate, cluster.Template.Name)
	if newest > cluster.Template.Version {
		v.NewerTemplate = newest
	}
	return v, err
}

// divide tells the nodes of a cluster from those that left it in an earlier operation.
func (u *Clusters) divide(ctx context.Context, v *ClusterView, all []loom.Node) error {
	gone := func(n loom.Node) bool { return n.Leaving && n.State == loom.NodeDeleted }
	switch {
	case v.Latest != nil && v.Latest.Action == loom.ClusterDelete:
		before, err := store.SnapshotBefore(ctx, u.db, v.Owner.Tenant, v.Latest.Ref)
		if err != nil {
			return err
		}
		if before != nil {
			had := map[loom.NodeID]bool{}
			for _, n := range before.Nodes {
				had[n.ID] = true
			}
			gone = func(n loom.Node) bool { return !had[n.ID] }
			break
		}
		gone = func(loom.Node) bool { return false }
	case v.Status == loom.ClusterTerminated:
		gone = func(loom.Node) bool { return false }
	}
	for _, n := range all {
		if gone(n) {
			v.Gone = append(v.Gone, n)
		} else {
			v.Nodes = append(v.Nodes, n)
		}
	}
	return nil
}

// load reads a cluster that the actor may see, and its latest operation.
func (u *Clusters) load(ctx context.Context, actor loom.Actor, id loom.ClusterID) (loom.Cluster, *loom.Operation, error) {
	cluster, err := store.ClusterByID(ctx, u.kept, actor.Tenant, id)
	if err := allowed(actor, loom.See, id, cluster.Owner, err); err != nil {
		return loom.Cluster{}, nil, err
	}
	latest, err := latestOperation(ctx, u.kept, cluster)
	if err != nil {
		return cluster, nil, err
	}
	return cluster, latest, u.wait(ctx, actor.Tenant, latest)
}

// allowed says of each verb why it cannot begin now. A refused operation changed nothing.
func (u *Clusters) allowed(ctx context.Context, c loom.Cluster, latest *loom.Operation) (map[loom.ChangeKind]string, error) {
	if latest != nil && latest.NeverBegan() {
		var err error
		if latest, err = lastBegun(ctx, u.kept, c); err != nil {
			return nil, err
		}
	}
	out := map[loom.ChangeKind]string{}
	for _, verb := range loom.ClusterChanges {
		out[verb] = c.WhyNot(verb, latest)
	}
	return out, nil
}

// Actions says of each verb why it cannot begin now, "" when it can.
func (u *Clusters) Actions(ctx context.Context, actor loom.Actor, id loom.ClusterID) (map[loom.ChangeKind]string, error) {
	cluster, latest, err := u.load(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	return u.allowed(ctx, cluster, latest)
}

// Latest reads a cluster that the actor may see and its newest operation, nil
// before the first. NotFound.
func (u *Clusters) Latest(ctx context.Context, actor loom.Actor, id loom.ClusterID) (loom.Cluster, *loom.Operation, error) {
	return u.load(ctx, actor, id)
}

// maskFacts hides credentials among the facts of a node; Reveal gives them. What services
// reported has plain names.
func maskFacts(n *loom.Node) {
	if masked, ok := loom.MaskSecrets(loom.ResultsFor("", n.Results)).(map[string]any); ok {
		n.Results = masked
	}
}

func (v *ClusterView) expandLinks() {
	v.NodeLinks, v.ServiceLinks = map[loom.NodeID][]loom.Link{}, map[loom.NodeID]map[string][]loom.Link{}
	linked := false // of most clusters no service has any
	for _, service := range v.Services {
		linked = linked || len(service.Links) > 0
	}
	if !linked && len(v.Template.Links) == 0 {
		return
	}
	told := slices.DeleteFunc(slices.Clone(v.Nodes), func(n loom.Node) bool { return n.Leaving })
	if len(told) == 0 {
		told = v.Nodes // all of it goes or is gone
	}
	facts := macro.NewFacts(string(v.Owner.User), properties(told))
	v.Links = expanded(facts, v.Template.Links, "")
	v.OpenLinks = expanded(facts, slices.DeleteFunc(slices.Clone(v.Template.Links), func(l loom.Link) bool { return !v.opens(l) }), "")
	for _, n := range v.Nodes {
		v.ServiceLinks[n.ID] = map[string][]loom.Link{}
		for _, name := range n.Services {
			if len(v.Services[name].Links) == 0 {
				continue
			}
			links := expanded(facts, v.Services[name].Links, n.ID)
			v.ServiceLinks[n.ID][name] = links
			v.NodeLinks[n.ID] = append(v.NodeLinks[n.ID], links...)
		}
	}
}

// Runs reports whether a service is on a node in the state in which it serves: started,
// or there, where it is not a thing to start.
func (v *ClusterView) Runs(n *loom.Node, service string) bool {
	return n.State == loom.NodeReady && runs(v.Services[service], n.ServiceStates[service])
}

// opens reports whether each service that a link of the template names runs on a node;
// one that names none opens once the cluster is there.
func (v *ClusterView) opens(l loom.Link) bool {
	named := false
	for _, m := range macro.Mentions(map[string]any{"url": l.URL}) {
		if m.Service == "" {
			continue
		}
		named = true
		if !slices.ContainsFunc(v.Nodes, func(n loom.Node) bool { return slices.Contains(n.Services, m.Service) && v.Runs(&n, m.Service) }) {
			return false
		}
	}
	return named || v.Status == loom.ClusterActive
}

// expanded fills the macros of links for a node, "" for none. A link to a service that
// is not on the cluster, such as one that was removed, leads nowhere and is left out.
func expanded(facts *macro.Facts, links []loom.Link, self loom.NodeID) []loom.Link {
	var out []loom.Link
	for _, l := range links {
		if !facts.Lacks(l.URL) {
			out = append(out, loom.Link{Label: l.Label, URL: facts.ExpandLink(l.URL, self)})
		}
	}
	return out
}

// ListInput asks for a page of clusters. The page sorts by createTime (default,
// newest first), name, expireTime or status.
type ListInput struct {
	loom.Page
	Statuses []loom.ClusterStatus
	Template string
	Provider string
	// Owner narrows the list for administrators; others see only their own anyway.
	Owner string
	// Labels must all be on the cluster; ExpiresBefore, unless zero, keeps those
	// whose lease ends before it.
	Labels        map[string]string
	ExpiresBefore time.Time
	// Q holds words that must all occur in name, description, id, a host name or
	// an address, and terms such as status:failed or -label:team=web (loom.ParseSearch).
	Q string
	// IDs, unless empty, are the only clusters listed.
	IDs []loom.ClusterID
	// Uncounted leaves out the total, which costs more the more clusters match.
	Uncounted bool
	// CountOnly leaves out the clusters and gives the total alone.
	CountOnly bool
	// Brief leaves out of each cluster how far its operation is.
	Brief bool
}

// List is a page of clusters; Next and Prev are cursors, Total counts all
// matches as far as loom.CountLimit and one more, and is 0 where it was left out.
type List struct {
	Items      []loom.ClusterSummary
	Next, Prev string
	Total      int
}

// Clusters lists the clusters that the actor may see. Invalid for a wrong sort,
// limit, status or cursor.
func (u *Clusters) Clusters(ctx context.Context, actor loom.Actor, in ListInput) (List, error) {
	if err := actor.May(loom.See, actor.Mine()); err != nil {
		return List{}, err
	}
	var errs []loom.FieldError
	for _, s := range in.Statuses {
		if !slices.Contains(loom.ClusterStatuses, s) {
			errs = append(errs, loom.FieldError{Field: "status", Message: "A status is pending, active, incomplete, inconsistent or terminated."})
		}
	}
	f := store.ClusterFilter{
		Owner: loom.UserID(in.Owner), Statuses: in.Statuses, Template: in.Template, Provider: in.Provider,
		Labels: in.Labels, ExpiresBefore: in.ExpiresBefore, IDs: in.IDs, Uncounted: in.Uncounted, CountOnly: in.CountOnly, Brief: in.Brief,
	}
	errs = append(errs, readSearch(in.Q, &f)...)
	if len(in.Labels) > 0 {
		errs = append(errs, checkLabels(in.Labels)...)
	}
	errs = append(errs, checkStorable("template", in.Template)...)
	errs = append(errs, checkStorable("provider", in.Provider)...)
	errs = append(errs, checkStorable("owner", in.Owner)...)
	if err := loom.InvalidFields(errs); err != nil {
		return List{}, err
	}
	f.Viewer = store.SeenBy(actor)
	page, err := store.ClustersByTenant(ctx, u.db, actor.Tenant, f, in.Page)
	if err != nil {
		return List{}, err
	}
	err = u.leaseSoon(ctx, actor.Tenant, page.Items)
	return List{Items: page.Items, Next: page.Next, Prev: page.Prev, Total: page.Total}, err
}

// NodeRecord reads one node of a cluster with its history, oldest first and at most 200
// entries, and what tasks learned of it, secrets masked. NotFound for a node that the actor
// may not see.
func (u *Clusters) NodeRecord(ctx context.Context, actor loom.Actor, id loom.ClusterID, node loom.NodeID) (loom.Node, error) {
	if err := u.see(ctx, actor, id); err != nil {
		return loom.Node{}, err
	}
	if errs := checkStorable("node", string(node)); node == "" || len(errs) > 0 {
		return loom.Node{}, loom.NewError(loom.NotFound, "Cluster %s has no such node.", id)
	}
	n, err := store.NodeByID(ctx, u.kept, actor.Tenant, id, node)
	if isNotFound(err) {
		return n, loom.NewError(loom.NotFound, "Cluster %s has no node “%s”.", id, node)
	}
	if err != nil {
		return n, err
	}
	maskFacts(&n)
	history, err := store.NodeActions(ctx, u.kept, actor.Tenant, id, node, maxNodeActions)
	n.Actions = history[node]
	return n, err
}
