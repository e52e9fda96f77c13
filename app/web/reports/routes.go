package reports

import (
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/route"
)

// Routes are the pages that say what was used and what happened, for users, tenants
// and the installation.
func (s *Server) Routes() []page.Route {
	return []page.Route{
		page.Get(route.Usage(), loom.Read, s.usage),
		page.Get(route.AdminUsage(), loom.Administer, s.adminUsage),
		page.Get(route.SystemUsage(), loom.Install, s.systemUsage),
		page.Get(route.Activity(), loom.Read, s.activity),
		page.Get(route.SystemActivity(), loom.Install, s.systemActivity),
		page.Get(route.AdminAudit(), loom.Administer, s.adminAudit),
		page.Get(route.SystemAudit(), loom.Install, s.systemAudit),
	}
}
