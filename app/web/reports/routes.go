package reports

import (
	"loom/app/web/page"
	"loom/views/route"
)

// Routes are the pages that say what was used and what happened, for users, tenants
// and the installation.
func (s *Server) Routes() []page.Route {
	return []page.Route{
		page.Get(route.Usage(), page.SignedIn, s.usage),
		page.Get(route.AdminUsage(), page.Admin, s.adminUsage),
		page.Get(route.SystemUsage(), page.Superadmin, s.systemUsage),
		page.Get(route.Activity(), page.SignedIn, s.activity),
		page.Get(route.SystemActivity(), page.Superadmin, s.systemActivity),
		page.Get(route.AdminAudit(), page.Admin, s.adminAudit),
		page.Get(route.SystemAudit(), page.Superadmin, s.systemAudit),
	}
}
