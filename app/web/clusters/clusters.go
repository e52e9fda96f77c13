// Package clusters is the pages of clusters: lists, forms, previews, operations and tasks.
package clusters

import (
	"time"

	"loom/app/cache"
	"loom/app/clusters"
	"loom/app/web/page"
)

// Server answers browsers.
type Server struct {
	*page.Shared
	// typical is how long tasks usually take, by tenant and type of provider: a running
	// page asks every second.
	typical cache.Cache[[2]string, clusters.Typical]
	plans   plans
	names   nodeNames
	// sums are what home pages showed a moment ago.
	sums cache.Cache[homeKey, homeSums]
}

const (
	// recentFor is for how long what was read is good enough for a page that sums up a
	// tenant.
	recentFor = time.Second
	// recentMost is how much of a sort is kept.
	recentMost = 1000
)

// New makes the handlers of the area.
func New(shared *page.Shared) *Server {
	s := &Server{Shared: shared}
	s.typical.Age, s.typical.Most = estimatesKept, estimatesMost
	s.plans.Age, s.plans.Most, s.plans.Weight = planFor, keptTasks, func(k planKey) int { return k.tasks }
	s.names.Age, s.names.Most = planFor, namesKept
	s.sums.Age, s.sums.Most = recentFor, recentMost
	return s
}
