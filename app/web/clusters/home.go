package clusters

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

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
	// homeItems bounds the cards of each panel of the start page.
	homeItems = 12
	// homeFeed is how much of the activity is there.
	homeFeed = 20
	// leaseSoon is when the end of a lease becomes a warning.
	leaseSoon = 48 * time.Hour
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
	m := clusterview.HomeModel{MayMake: actor.May(loom.Publish, actor.InTenant()) == nil, Templates: sums.templates}
	all := sums.live()
	if all == 0 {
		past, err := s.Clusters.Clusters(ctx, actor, clusters.ListInput{CountOnly: true})
		if err != nil {
			return err
		}
		all = past.Total
	}
	if m.First = all == 0; !m.First {
		if err := s.homeFigures(ctx, actor, &m, sums); err != nil {
			return err
		}
	}
	frame := layout.Model{Title: "Home", Area: layout.AreaClusters, Here: route.Home(), Topics: []string{route.TopicClusters(), clusterview.TopicTenant}}
	page.Reloading(r, &frame, len(m.Running.Items) > 0)
	return s.Render(w, r, actor, http.StatusOK, frame, clusterview.HomePage(m))
}

func (s *Server) homeRunning(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	m, err := s.runningItems(r.Context(), actor, false)
	if err != nil {
		return err
	}
	return s.Fragment(w, r, http.StatusOK, clusterview.RunningPanel(m))
}

func (s *Server) homeAttention(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	m, _, err := s.attentionItems(r.Context(), actor)
	if err != nil {
		return err
	}
	return s.Fragment(w, r, http.StatusOK, clusterview.AttentionPanel(m))
}

// homeFigures fills in what there is to tell of clusters.
func (s *Server) homeFigures(ctx context.Context, actor loom.Actor, m *clusterview.HomeModel, sums homeSums) error {
	pending, ending := sums.counts[loom.ClusterPending], 0
	var err error
	if m.Running, err = s.runningItems(ctx, actor, true); err != nil {
		return err
	}
	if m.Attention, ending, err = s.attentionItems(ctx, actor); err != nil {
		return err
	}
	attention := ending
	for _, status := range attentionStatuses {
		attention += sums.counts[status]
	}
	feed, err := s.Accounts.Activity(ctx, actor, account.ActivityInput{Page: loom.Page{Limit: homeFeed}})
	if err != nil {
		return err
	}
	if len(feed.Items) > 0 {
		feed.Next, feed.Prev = "", ""
		m.Feed, m.FeedHref = s.ActivityFeed(ui.ViewerOf(ctx), route.Activity(), false, page.ActivityQuery{}, feed), route.Activity()
	}
	m.Tiles = []ui.TileModel{
		{Number: countedText(sums.live()), Label: "live clusters", Href: route.Clusters()},
		{Number: countedText(pending), Label: "pending", Href: listURL(listQuery{Status: "pending"})},
		{Number: countedText(attention), Label: "need attention", Href: listURL(listQuery{Status: "attention"})},
		{Number: strconv.Itoa(sums.nodes), Label: "nodes of the tenant", Note: page.OfLimit(sums.maxNodes), Href: route.Clusters()},
	}
	if attention > 0 {
		m.Tiles[2].Tone = ui.ToneBad
	}
	if ending > 0 { // the list by statuses lacks them
		m.Tiles[2].Href = "#" + clusterview.AttentionID
	}
	if sums.maxNodes > 0 && sums.nodes >= sums.maxNodes {
		m.Tiles[3].Tone = ui.ToneWarn
	}
	return nil
}

// countedText writes what was counted, as far as it was.
func countedText(n int) string {
	if n > loom.CountLimit {
		return "10 000+"
	}
	return strconv.Itoa(n)
}

func (s *Server) runningItems(ctx context.Context, actor loom.Actor, whole bool) (clusterview.RunningModel, error) {
	var m clusterview.RunningModel
	clusters, err := s.runningList(ctx, actor)
	if err != nil {
		return m, err
	}
	latest, err := s.homeOperations(ctx, actor, clusters, whole)
	if err != nil {
		return m, err
	}
	for _, c := range clusters {
		op, there := latest[c.ID]
		if !there {
			continue
		}
		now := op.Tasks[loom.TaskRunning]
		m.Items = append(m.Items, clusterview.RunningItem{
			Cluster: c.Name, Href: route.Cluster(c.ID), Action: page.Capital(op.Action.Verb()), OperationHref: route.Operation(op.Ref),
			State: ui.OperationState(op.Status, op.Aborted), Progress: s.progress(op), Tasks: ui.Count(now, "task running", "tasks running"),
		})
	}
	return m, nil
}

// attentionItems are the clusters that need attention, and how many of them do although
// they are active: because of incidents, or because their lease ends.
func (s *Server) attentionItems(ctx context.Context, actor loom.Actor) (clusterview.AttentionModel, int, error) {
	m := clusterview.AttentionModel{Now: s.Now()}
	list, err := s.Clusters.Clusters(ctx, actor, clusters.ListInput{Page: loom.Page{Limit: homeItems}, Statuses: attentionStatuses, Uncounted: true, Brief: true})
	if err != nil {
		return m, 0, err
	}
	latest, err := s.Clusters.LatestOperations(ctx, actor, list.Items, false)
	if err != nil {
		return m, 0, err
	}
	for _, c := range list.Items {
		op, there := latest[c.ID]
		if !there {
			continue
		}
		ref := op.Ref
		cause := op.Message
		if cause == "" {
			cause = fmt.Sprintf("Operation %d (%s) did not succeed.", ref.Number, op.Action.Verb())
		}
		m.Items = append(m.Items, clusterview.AttentionItem{
			Cluster: c.Name, Href: route.Cluster(c.ID), State: ui.ClusterState(c.Status), Cause: cause,
			Actions: []ui.ButtonModel{{Label: "View failure", Small: true, Href: route.Operation(ref)}, deleteButton(c)},
		})
	}
	lasting := true
	incidents, err := s.Fleet.Incidents(ctx, actor, fleet.IncidentsInput{Page: loom.Page{Limit: homeItems}, Open: &lasting})
	if err != nil {
		return m, 0, err
	}
	troubled := map[loom.ClusterID]bool{}
	for _, i := range incidents.Items {
		troubled[i.Cluster] = true
		item := clusterview.AttentionItem{Cluster: i.ClusterName, Href: route.ClusterTab(i.Cluster, "health"), State: ui.State{Word: incidentText(i), Icon: "error", Tone: ui.ToneBad},
			Cause: "On " + page.ShortHost(i.Hostname) + ", since ", Ends: i.Since}
		item.Ask = askOf(i)
		if href := repairOf(i); href != "" && item.Ask.Label == "" {
			item.Actions = []ui.ButtonModel{{Label: "Repair…", Small: true, Href: href}}
		}
		m.Items = append(m.Items, item)
	}
	ending, err := s.Clusters.Clusters(ctx, actor, clusters.ListInput{
		Page: loom.Page{Limit: homeItems, Sort: "expireTime"}, Statuses: []loom.ClusterStatus{loom.ClusterActive}, ExpiresBefore: s.Now().Add(leaseSoon), Uncounted: true, Brief: true})
	if err != nil {
		return m, 0, err
	}
	total := len(troubled)
	for _, c := range ending.Items {
		if !s.leaseSoon(c.Expires) {
			continue
		}
		total++
		m.Items = append(m.Items, clusterview.AttentionItem{
			Cluster: c.Name, Href: route.Cluster(c.ID), State: ui.ClusterState(c.Status), Cause: "Its lease ends ", Ends: c.Expires,
			Actions: []ui.ButtonModel{{Label: "Extend lease", Icon: "clock", Small: true, Href: route.ClusterLease(c.ID), Attrs: ui.OpensDialog(route.ClusterLease(c.ID))}, deleteButton(c)},
		})
	}
	return m, total, nil
}

// deleteButton opens the question whether to delete a cluster.
func deleteButton(c loom.ClusterSummary) ui.ButtonModel {
	b := ui.ButtonModel{Label: "Delete", Icon: "trash", Kind: ui.Danger, Small: true, Href: route.ClusterDelete(c.ID), Attrs: ui.OpensDialog(route.ClusterDelete(c.ID))}
	b.WhyNot = c.WhyNot(loom.ChangeDelete)
	return b
}

func (s *Server) leaseSoon(expires time.Time) bool {
	return !expires.IsZero() && expires.Sub(s.Now()) < leaseSoon
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

// homeSums are what a home page tells of all that its reader may see; of a tenant with
// many clusters and nodes to count them is most of the work.
type homeSums struct {
	// templates says whether there is one that is offered.
	templates bool
	// counts are the live clusters by status.
	counts map[loom.ClusterStatus]int
	// nodes are those of the tenant, of at most so many that are allowed, 0 for no limit.
	nodes, maxNodes int
}

func (h homeSums) live() int {
	n := 0
	for _, of := range h.counts {
		n += of
	}
	return n
}

// homeSums gives them as of a moment ago. What is not there yet is looked for each time:
// whoever just made the first of it is not told that there is none.
func (s *Server) homeSums(ctx context.Context, actor loom.Actor) (homeSums, error) {
	read := func(ctx context.Context) (homeSums, error) { return s.readHomeSums(ctx, actor) }
	sums, err := s.sums.Get(ctx, homeOf(actor), s.Now, read)
	if err == nil && (!sums.templates || sums.live() == 0) {
		return read(ctx)
	}
	return sums, err
}

func (s *Server) readHomeSums(ctx context.Context, actor loom.Actor) (homeSums, error) {
	var sums homeSums
	offered := false
	templates, err := s.Catalog.Entries(ctx, actor, loom.KindTemplate, catalog.ListInput{Page: loom.Page{Limit: 1}, Deprecated: &offered})
	if err != nil {
		return sums, err
	}
	sums.templates = len(templates.Items) > 0
	if sums.counts, err = s.Clusters.CountByStatus(ctx, actor, liveStatuses); err != nil || sums.live() == 0 {
		return sums, err
	}
	sums.nodes, sums.maxNodes, err = s.Accounts.NodesInUse(ctx, actor)
	return sums, err
}

// homeOperations gives the newest operations of listed clusters with the counts of their
// tasks, in a part of the page as they are, in a whole page as of a moment ago.
func (s *Server) homeOperations(ctx context.Context, actor loom.Actor, clusters []loom.ClusterSummary, whole bool) (map[loom.ClusterID]loom.Operation, error) {
	read := func(ctx context.Context) (map[loom.ClusterID]loom.Operation, error) {
		return s.Clusters.LatestOperations(ctx, actor, clusters, true)
	}
	if !whole || len(clusters) == 0 {
		return read(ctx)
	}
	latest, err := s.running.Get(ctx, homeOf(actor), s.Now, read)
	if err == nil && slices.ContainsFunc(clusters, func(c loom.ClusterSummary) bool { return latest[c.ID].Ref.Number != c.LatestOperation }) {
		return s.running.Renew(ctx, homeOf(actor), s.Now, read) // one has just begun
	}
	return latest, err
}

// runningList are the newest clusters that an operation is at work on.
func (s *Server) runningList(ctx context.Context, actor loom.Actor) ([]loom.ClusterSummary, error) {
	list, err := s.Clusters.Clusters(ctx, actor, clusters.ListInput{Page: loom.Page{Limit: homeItems}, Statuses: []loom.ClusterStatus{loom.ClusterPending}, Uncounted: true, Brief: true})
	return list.Items, err
}
