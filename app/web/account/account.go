// Package account is the pages of sign-in and of one's own account.
package account

import "loom/app/web/page"

// Server answers browsers.
type Server struct {
	*page.Shared
}

// New makes the handlers of the area.
func New(shared *page.Shared) *Server { return &Server{Shared: shared} }
