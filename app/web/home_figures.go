package web

import (
	"context"
	"slices"
	"time"

	"loom/app/catalog"
	"loom/app/lifecycle"
	"loom/app/loom"
)

const (
	// recentFor is for how long what was read is good enough for a page that sums up a
	// tenant.
	recentFor = time.Second
	// recentMost is how much of a sort is kept.
	recentMost = 1000
)

// homeKey is whose home page it is: that of the administrators of a tenant, with no user,
// or that of somebody else.
type homeKey struct {
	tenant loom.TenantID
	user   loom.UserID
}

func homeOf(actor loom.Actor) homeKey {
	if actor.IsAdmin() {
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
	sums, err := s.sums.Get(ctx, homeOf(actor), s.now, read)
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
	if sums.counts, err = s.Clusters.Counted(ctx, actor, liveStatuses); err != nil || sums.live() == 0 {
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
	latest, err := s.running.Get(ctx, homeOf(actor), s.now, read)
	if err == nil && slices.ContainsFunc(clusters, func(c loom.ClusterSummary) bool { return latest[c.ID].Ref.Number != c.LatestOperation }) {
		return s.running.Renew(ctx, homeOf(actor), s.now, read) // one has just begun
	}
	return latest, err
}

// runningList are the newest clusters that an operation is at work on.
func (s *Server) runningList(ctx context.Context, actor loom.Actor) ([]loom.ClusterSummary, error) {
	list, err := s.Clusters.Clusters(ctx, actor, lifecycle.ListInput{Page: loom.Page{Limit: homeItems}, Statuses: []loom.ClusterStatus{loom.ClusterPending}, Uncounted: true, Brief: true})
	return list.Items, err
}
