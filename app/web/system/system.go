// Package system is the pages on which superadmins run the installation.
package system

import "loom/app/web/page"

// Server answers browsers.
type Server struct {
	*page.Shared
}

// New makes the handlers of the area.
func New(shared *page.Shared) *Server { return &Server{Shared: shared} }
