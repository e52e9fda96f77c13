// Package reports is the pages that say what was used and what happened.
package reports

import "loom/app/web/page"

// Server answers browsers.
type Server struct {
	*page.Shared
}

// New makes the handlers of the area.
func New(shared *page.Shared) *Server { return &Server{Shared: shared} }
