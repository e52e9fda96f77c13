package web

import (
	"net/http"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/loom"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

// pastRows is how much of what happened stands on the page of a tenant.
const pastRows = 10

// tenantPast are the newest operations of a tenant and the newest entries of its
// audit.
func (s *Server) tenantPast(r *http.Request, actor loom.Actor, name string) ([]templ.Component, error) {
	happened, err := s.Accounts.Activity(r.Context(), actor, account.ActivityInput{All: true, Tenant: name, About: "clusters", Page: loom.Page{Limit: pastRows}})
	if err != nil {
		return nil, err
	}
	audit, err := s.Accounts.Audit(r.Context(), actor, account.AuditInput{Tenant: name, Page: loom.Page{Limit: pastRows}})
	if err != nil {
		return nil, err
	}
	happened.Next, happened.Prev, audit.Next, audit.Prev = "", "", "", ""
	all := func(base string) templ.Component {
		return officeview.Link("All of it", route.Query(base, "tenant", name))
	}
	return []templ.Component{
		officeview.Card("happened-title", "Operations", s.activityFeed(ui.ViewerOf(r.Context()), "", true, activityQuery{tenant: name}, happened), all(route.SystemActivity())),
		s.auditGrid(ui.ViewerOf(r.Context()), "", auditQuery{}, audit), all(route.SystemAudit()),
	}, nil
}

// quotaBars show how much of the quotas of a tenant is used.
func quotaBars(use loom.QuotaUse) templ.Component {
	limit := func(n int) int {
		if n >= loom.Unlimited {
			return -1
		}
		return n
	}
	return officeview.Card("quota-title", "Quotas", ui.Quota(ui.QuotaModel{Label: "Clusters", Used: use.Clusters, Max: limit(use.MaxClusters)}),
		ui.Quota(ui.QuotaModel{Label: "Nodes", Used: use.Nodes, Max: limit(use.MaxNodes)}))
}
