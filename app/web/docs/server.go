// Package docs is the pages of the REST API's documentation.
package docs

import "loom/app/web/page"

// Server answers browsers.
type Server struct {
	*page.Shared
	api apiPages
}

// New makes the handlers of the area.
func New(shared *page.Shared) *Server { return &Server{Shared: shared} }
