package reports

import (
	"net/url"

	"loom/app/web/page"
	"loom/views/route"
)

// Documents enters what the API has for the pages of the area.
func (s *Server) Documents(get func(string, page.Document)) {
	get(route.AdminAudit(), page.Document{Path: "/v2/audit", List: true, Fresh: true, Query: page.AuditParams, Columns: page.AuditColumns})
	get(route.SystemAudit(), page.Document{Path: "/v2/audit", List: true, Fresh: true, Columns: page.AuditColumns, Query: func(view url.Values) url.Values {
		q := page.AuditParams(view)
		if q.Set("tenant", view.Get("tenant")); q.Get("tenant") == "" {
			q.Set("tenant", "*")
		}
		return q
	}})
}
