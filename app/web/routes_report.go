package web

import (
	"loom/views/route"
)

// reportRoutes are the pages that say what was used and what happened, for users, tenants
// and the installation.
func (s *Server) reportRoutes() []Route {
	return []Route{
		Get(route.Usage(), SignedIn, s.usage),
		Get(route.AdminUsage(), Admin, s.adminUsage),
		Get(route.SystemUsage(), Superadmin, s.systemUsage),
		Get(route.Activity(), SignedIn, s.activity),
		Get(route.SystemActivity(), Superadmin, s.systemActivity),
		Get(route.AdminAudit(), Admin, s.adminAudit),
		Get(route.SystemAudit(), Superadmin, s.systemAudit),
	}
}
