package web

import (
	"loom/views/route"
)

// docsRoutes are the pages of the REST API's documentation.
func (s *Server) docsRoutes() []Route {
	return []Route{
		Get(route.API(), OpenFile, Anybody(s.apiIndex)),
		Get(route.API()+"/{chapter}", OpenFile, Anybody(s.apiChapter)),
	}
}
