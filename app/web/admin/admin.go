// Package admin is the pages on which administrators run their tenant: users, hooks, settings, plugin
// resources, import and export.
package admin

import "loom/app/web/page"

// Server answers browsers.
type Server struct {
	*page.Shared
}

// New makes the handlers of the area.
func New(shared *page.Shared) *Server { return &Server{Shared: shared} }
