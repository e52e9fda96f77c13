package docs

import (
	"loom/app/web/page"
	"loom/views/route"
)

// Routes are the pages of the REST API's documentation.
func (s *Server) Routes() []page.Route {
	return []page.Route{
		page.Get(route.API(), page.OpenFile, page.Anybody(s.apiIndex)),
		page.Get(route.API()+"/{chapter}", page.OpenFile, page.Anybody(s.apiChapter)),
	}
}
