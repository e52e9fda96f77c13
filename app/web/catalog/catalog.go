// Package catalog is the pages of the catalog: what users read of it, and the editors of administrators.
package catalog

import "loom/app/web/page"

// Server answers browsers.
type Server struct {
	*page.Shared
}

// New makes the handlers of the area.
func New(shared *page.Shared) *Server { return &Server{Shared: shared} }
