package clusters

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/fleet"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

const (
	// homeItems bounds the clusters of the start page, and what it says of them.
	homeItems = 12
	// homeAttention is how much of what needs attention is shown.
	homeAttention = 5
	// homeFeed is how much of the activity is there.
	homeFeed = 8
	// homeRecent is how many active clusters are looked at for those that changed last.
	homeRecent = 50
)

var (
	liveStatuses      = []loom.ClusterStatus{loom.ClusterPending, loom.ClusterActive, loom.ClusterIncomplete, loom.ClusterInconsistent}
	attentionStatuses = []loom.ClusterStatus{loom.ClusterIncomplete, loom.ClusterInconsistent}
)

func (s *Server) home(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ctx := r.Context()
	sums, err := s.homeSums(ctx, actor)
	if err != nil {
		return err
	}
	m := clusterview.HomeModel{MayCreate: actor.MayAtAll(loom.Create) == nil, MayMake: actor.May(loom.Publish, actor.InTenant()) == nil, Templates: sums.templates, First: !sums.any, Quota: ui.QuotaModel{Label: "Nodes", Used: sums.nodes, Max: -1}}
	if sums.maxNodes < loom.Unlimited {
		m.Quota.Max = sums.maxNodes
	}
	running := false
	if !m.First {
		if m.Clusters, running, err = s.homeClusters(ctx, actor); err != nil {
			return err
		}
		feed, err := s.Accounts.Activity(ctx, actor, account.ActivityInput{Page: loom.Page{Limit: homeFeed}})
		if err != nil {
			return err
		}
		if len(feed.Items) > 0 {
			feed.Next, feed.Prev = "", ""
			m.Feed, m.FeedHref = s.ActivityFeed(ui.ViewerOf(ctx), actor, route.Activity(), false, page.ActivityQuery{}, feed), route.Activity()
		}
	}
	frame := layout.Model{Title: "Home", Area: layout.AreaClusters, Here: route.Home(), Topics: []string{route.TopicClusters(), clusterview.TopicTenant}}
	page.Reloading(r, &frame, running)
	return s.Render(w, r, actor, http.StatusOK, frame, clusterview.HomePage(m))
}

func (s *Server) homeClustersPart(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	m, _, err := s.homeClusters(r.Context(), actor)
	if err != nil {
		return err
	}
	return s.Fragment(w, r, http.StatusOK, clusterview.HomeClustersPart(m))
}

// homeClusters is what needs attention, then the clusters with an operation under way, then
// those that changed last; it reports whether one is under way.
func (s *Server) homeClusters(ctx context.Context, actor loom.Actor) (m clusterview.HomeClusters, running bool, err error) {
	busy, err := s.Clusters.Clusters(ctx, actor, clusters.ListInput{Page: loom.Page{Limit: homeItems}, Statuses: []loom.ClusterStatus{loom.ClusterPending}, Uncounted: true})
	if err != nil {
		return m, false, err
	}
	active, err := s.Clusters.Clusters(ctx, actor, clusters.ListInput{Page: loom.Page{Limit: homeRecent}, Statuses: []loom.ClusterStatus{loom.ClusterActive}, Uncounted: true, Brief: true})
	if err != nil {
		return m, false, err
	}
	slices.SortStableFunc(active.Items, func(a, b loom.ClusterSummary) int { return b.Progress.Ended.Compare(a.Progress.Ended) })
	shown := append(busy.Items, active.Items...)
	m.Rows = shown[:min(len(shown), homeItems)]
	if m.Attention, err = s.attentionItems(ctx, actor); err != nil {
		return m, false, err
	}
	if n := len(m.Attention); n > homeAttention {
		m.Attention, m.More = m.Attention[:homeAttention], n-homeAttention
	}
	return m, len(busy.Items) > 0, nil
}

// attentionItems are what is wrong with clusters, each with what to do about it: operations
// that failed or were refused, incidents, and leases that end soon.
func (s *Server) attentionItems(ctx context.Context, actor loom.Actor) ([]clusterview.AttentionItem, error) {
	list, err := s.Clusters.Clusters(ctx, actor, clusters.ListInput{Page: loom.Page{Limit: homeItems}, Statuses: attentionStatuses, Uncounted: true, Brief: true})
	if err != nil {
		return nil, err
	}
	latest, err := s.Clusters.LatestOperations(ctx, actor, list.Items, false)
	if err != nil {
		return nil, err
	}
	var items []clusterview.AttentionItem
	for _, c := range list.Items {
		if op, there := latest[c.ID]; there {
			items = append(items, s.failedItem(c, op))
		}
	}
	lasting := true
	incidents, err := s.Fleet.Incidents(ctx, actor, fleet.IncidentsInput{Page: loom.Page{Limit: homeItems}, Open: &lasting})
	if err != nil {
		return nil, err
	}
	for _, i := range incidents.Items {
		item := clusterview.AttentionItem{Tone: ui.ToneBad, Cluster: i.ClusterName, Href: route.ClusterTab(i.Cluster, "health"),
			Text: incidentText(i) + " on " + ui.NodeNumber(i.Hostname) + " ", At: i.Since}
		item.Ask = askOf(actor, i)
		if href := repairOf(i); href != "" && item.Ask.Label == "" {
			item.Actions = []ui.ButtonModel{{Label: "Repair", Small: true, Href: href}}
		}
		items = append(items, item)
	}
	ending, err := s.Clusters.Clusters(ctx, actor, clusters.ListInput{
		Page: loom.Page{Limit: homeItems, Sort: "expireTime"}, Statuses: liveStatuses, ExpiresBefore: s.Now().Add(loom.MostLeaseWarning), Uncounted: true, Brief: true})
	if err != nil {
		return nil, err
	}
	for _, c := range ending.Items {
		if !loom.LeaseSoon(c.Created, c.Expires, s.Now()) {
			continue
		}
		lease := route.ClusterLease(c.ID)
		item := clusterview.AttentionItem{Tone: ui.ToneWarn, Cluster: c.Name, Href: route.Cluster(c.ID), Text: "Lease ends ", At: c.Expires}
		if c.Expires.Before(s.Now()) {
			item.Text = "Lease ended "
		}
		item.Actions = []ui.ButtonModel{{Label: "Extend lease", Small: true, Href: lease, WhyNot: c.WhyNot(loom.ChangeLease), Attrs: ui.OpensDialog(lease)}}
		items = append(items, item)
	}
	return items, nil
}

// failedItem is a cluster whose operation did not succeed.
func (s *Server) failedItem(c loom.ClusterSummary, op loom.Operation) clusterview.AttentionItem {
	badge := ui.ClusterBadge(c.Status, op.Progress(), loom.ClusterHealth{}, s.Now())
	item := clusterview.AttentionItem{Tone: badge.Tone, Cluster: c.Name, Href: route.Cluster(c.ID), Text: cmp.Or(op.Message, badge.Word)}
	view := ui.ButtonModel{Label: "View", Small: true, Kind: ui.Quiet, Href: route.Operation(op.Ref), Attrs: templ.Attributes{"aria-label": "View what failed on " + c.Name}}
	item.Actions = []ui.ButtonModel{page.WayOn(&op, c), view}
	return item
}

// homeKey is whose home page it is: that of the administrators of a tenant, with no user,
// or that of somebody else.
type homeKey struct {
	tenant loom.TenantID
	user   loom.UserID
}

func homeOf(actor loom.Actor) homeKey {
	if actor.May(loom.See, actor.InTenant()) == nil {
		return homeKey{tenant: actor.Tenant}
	}
	return homeKey{actor.Tenant, actor.User}
}

// homeSums are what a home page tells of all that its reader may see.
type homeSums struct {
	// templates says whether one is offered, any whether there ever was a cluster.
	templates, any bool
	// nodes are those of the tenant, maxNodes how many it may have.
	nodes, maxNodes int
}

// homeSums gives them as of a moment ago. What is not there yet is looked for each time:
// whoever just made the first of it is not told that there is none.
func (s *Server) homeSums(ctx context.Context, actor loom.Actor) (homeSums, error) {
	read := func(ctx context.Context) (homeSums, error) { return s.readHomeSums(ctx, actor) }
	sums, err := s.sums.Get(ctx, homeOf(actor), s.Now, read)
	if err == nil && (!sums.templates || !sums.any) {
		return read(ctx)
	}
	return sums, err
}

func (s *Server) readHomeSums(ctx context.Context, actor loom.Actor) (homeSums, error) {
	var sums homeSums
	offered := false
	templates, err := s.Catalog.Entries(ctx, actor, loom.KindTemplate, catalog.ListInput{Page: loom.Page{Limit: 1}, Deprecated: &offered, Released: true})
	if err != nil {
		return sums, err
	}
	sums.templates = len(templates.Items) > 0
	found, err := s.Clusters.Clusters(ctx, actor, clusters.ListInput{Page: loom.Page{Limit: 1}, Uncounted: true, Brief: true})
	if err != nil {
		return sums, err
	}
	sums.any = len(found.Items) > 0
	sums.nodes, sums.maxNodes, err = s.Accounts.NodesInUse(ctx, actor)
	return sums, err
}
