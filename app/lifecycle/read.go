package lifecycle

import (
	"context"
	"slices"
	"strings"
	"time"

	"loom/app/loom"
	"loom/app/store"
	"loom/planner/macro"
)

// maxNodeActions is how much of a node's history is shown (entities.md 20).
const maxNodeActions = 200

// ClusterView is a cluster as its page and its API object show it.
type ClusterView struct {
	loom.Cluster
	// Nodes by number, with their history; secrets among their facts are masked.
	Nodes []loom.Node
	// Links of the template, macros expanded; what cannot be expanded stays as written.
	Links []loom.Link
	// NodeLinks are the links of the services of each node.
	NodeLinks map[loom.NodeID][]loom.Link
	// Latest is the newest operation, nil before the first.
	Latest *loom.Operation
	// Allowed says of each verb why it cannot begin now, "" when it can.
	Allowed map[loom.ClusterVerb]string
	// NewerTemplate is the newest version of the template, 0 unless it is newer
	// than the cluster's copy.
	NewerTemplate int
	Lease         loom.LeaseLimits
}

// Cluster reads a cluster with all its page shows. NotFound for clusters that
// the actor may not see.
func (u *Clusters) Cluster(ctx context.Context, actor loom.Actor, id loom.ClusterID) (ClusterView, error) {
	var v ClusterView
	cluster, latest, err := u.load(ctx, actor, id)
	if err != nil {
		return v, err
	}
	v.Cluster, v.Latest = cluster, latest
	if v.Nodes, err = store.NodesByCluster(ctx, u.db, actor.Tenant, id); err != nil {
		return v, err
	}
	history, err := store.NodeActions(ctx, u.db, actor.Tenant, id, "", maxNodeActions)
	if err != nil {
		return v, err
	}
	for i := range v.Nodes {
		v.Nodes[i].Actions = history[v.Nodes[i].ID]
		maskFacts(&v.Nodes[i])
	}
	v.expandLinks()
	v.Allowed = allowed(cluster, latest)
	v.Lease = cluster.Template.Administration.Lease.Limits(cluster.Created, cluster.Expires)
	newest, err := store.CatalogVersionNumber(ctx, u.db, actor.Tenant, loom.KindTemplate, cluster.Template.Name)
	if newest > cluster.Template.Version {
		v.NewerTemplate = newest
	}
	return v, err
}

// load reads a cluster that the actor may see, and its latest operation.
func (u *Clusters) load(ctx context.Context, actor loom.Actor, id loom.ClusterID) (loom.Cluster, *loom.Operation, error) {
	if err := actor.Require(loom.ScopeRead); err != nil {
		return loom.Cluster{}, nil, err
	}
	cluster, err := store.ClusterByID(ctx, u.db, actor.Tenant, id)
	if err := visible(actor, id, cluster.Owner, err); err != nil {
		return loom.Cluster{}, nil, err
	}
	latest, err := latestOperation(ctx, u.db, cluster)
	return cluster, latest, err
}

func allowed(c loom.Cluster, latest *loom.Operation) map[loom.ClusterVerb]string {
	out := map[loom.ClusterVerb]string{}
	for _, verb := range loom.ClusterVerbs {
		if out[verb] = verb.Unbuilt(); out[verb] == "" {
			out[verb] = c.WhyNot(verb, latest)
		}
	}
	return out
}

// Actions says of each verb why it cannot begin now, "" when it can.
func (u *Clusters) Actions(ctx context.Context, actor loom.Actor, id loom.ClusterID) (map[loom.ClusterVerb]string, error) {
	cluster, latest, err := u.load(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	return allowed(cluster, latest), nil
}

// Latest reads a cluster that the actor may see and its newest operation, nil
// before the first. NotFound.
func (u *Clusters) Latest(ctx context.Context, actor loom.Actor, id loom.ClusterID) (loom.Cluster, *loom.Operation, error) {
	return u.load(ctx, actor, id)
}

// maskFacts hides credentials among the facts of a node; Reveal gives them.
func maskFacts(n *loom.Node) {
	if masked, ok := loom.MaskSecrets(n.Results).(map[string]any); ok {
		n.Results = masked
	}
}

func (v *ClusterView) expandLinks() {
	facts := macro.NewFacts(string(v.Owner.User), properties(v.Nodes))
	for _, l := range v.Template.Links {
		v.Links = append(v.Links, loom.Link{Label: l.Label, URL: facts.ExpandLink(l.URL, "")})
	}
	v.NodeLinks = map[loom.NodeID][]loom.Link{}
	for _, n := range v.Nodes {
		for _, name := range n.Services {
			for _, l := range v.Services[name].Links {
				v.NodeLinks[n.ID] = append(v.NodeLinks[n.ID], loom.Link{Label: l.Label, URL: facts.ExpandLink(l.URL, n.ID)})
			}
		}
	}
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
	// an address.
	Q string
	// Uncounted leaves out the total, which costs more the more clusters match.
	Uncounted bool
}

// List is a page of clusters; Next and Prev are cursors, Total counts all
// matches and is 0 where it was left out.
type List struct {
	Items      []loom.ClusterSummary
	Next, Prev string
	Total      int
}

// maxWords keeps a search from becoming a statement of any length.
const maxWords = 10

// Clusters lists the clusters that the actor may see. Invalid for a wrong sort,
// limit, status or cursor.
func (u *Clusters) Clusters(ctx context.Context, actor loom.Actor, in ListInput) (List, error) {
	if err := actor.Require(loom.ScopeRead); err != nil {
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
		Labels: in.Labels, ExpiresBefore: in.ExpiresBefore, Words: strings.Fields(in.Q), Uncounted: in.Uncounted,
	}
	if len(f.Words) > maxWords {
		errs = append(errs, loom.FieldError{Field: "q", Message: "Search for at most 10 words."})
	}
	errs = append(errs, checkStorable("q", in.Q)...)
	if len(in.Labels) > 0 {
		errs = append(errs, checkLabels(in.Labels)...)
	}
	errs = append(errs, checkStorable("template", in.Template)...)
	errs = append(errs, checkStorable("provider", in.Provider)...)
	errs = append(errs, checkStorable("owner", in.Owner)...)
	if err := loom.InvalidFields(errs); err != nil {
		return List{}, err
	}
	if !actor.IsAdmin() {
		if f.Owner != "" && f.Owner != actor.User {
			return List{Items: []loom.ClusterSummary{}}, nil
		}
		f.Owner = actor.User
	}
	page, err := store.ClustersByTenant(ctx, u.db, actor.Tenant, f, in.Page)
	return List{Items: page.Items, Next: page.Next, Prev: page.Prev, Total: page.Total}, err
}

// Node reads one node of a cluster with its history and the links of its
// services. NotFound for a node that the actor may not see.
func (u *Clusters) Node(ctx context.Context, actor loom.Actor, id loom.ClusterID, node loom.NodeID) (loom.Node, []loom.Link, error) {
	v, err := u.Cluster(ctx, actor, id)
	if err != nil {
		return loom.Node{}, nil, err
	}
	for _, n := range v.Nodes {
		if n.ID == node {
			return n, v.NodeLinks[n.ID], nil
		}
	}
	return loom.Node{}, nil, loom.NewError(loom.NotFound, "Cluster %s has no node “%s”.", id, node)
}

// NodeActions reads the history of one node, oldest first, at most 200 entries.
func (u *Clusters) NodeActions(ctx context.Context, actor loom.Actor, id loom.ClusterID, node loom.NodeID) ([]loom.NodeAction, error) {
	if err := u.see(ctx, actor, id); err != nil {
		return nil, err
	}
	if errs := checkStorable("node", string(node)); node == "" || len(errs) > 0 {
		return nil, loom.NewError(loom.NotFound, "Cluster %s has no such node.", id)
	}
	if _, err := store.NodeByID(ctx, u.db, actor.Tenant, id, node); err != nil {
		if isNotFound(err) {
			return nil, loom.NewError(loom.NotFound, "Cluster %s has no node “%s”.", id, node)
		}
		return nil, err
	}
	history, err := store.NodeActions(ctx, u.db, actor.Tenant, id, node, maxNodeActions)
	return history[node], err
}
