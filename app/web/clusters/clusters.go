// Package clusters is the pages of clusters: lists, forms, previews, operations and tasks.
package clusters

import (
	"loom/app/loom"
	"loom/app/web/page"
)

// Server answers browsers.
type Server struct {
	*page.Shared
	typical estimates
	plans   plans
	names   nodeNames
	// sums and running are what home pages showed a moment ago.
	sums    page.Recent[homeKey, homeSums]
	running page.Recent[homeKey, map[loom.ClusterID]loom.Operation]
}

// New makes the handlers of the area.
func New(shared *page.Shared) *Server { return &Server{Shared: shared} }
