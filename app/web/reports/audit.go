package reports

import (
	"net/http"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

func (s *Server) adminAudit(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := page.ReadAuditQuery(r.URL.Query())
	q.Tenant = ""
	return s.auditPage(w, r, actor, page.AdminFrame("Audit log", route.AdminAudit()), route.AdminAudit(), q)
}

func (s *Server) systemAudit(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := page.ReadAuditQuery(r.URL.Query())
	if q.Tenant == "" {
		q.Tenant = "*"
	}
	return s.auditPage(w, r, actor, page.SystemFrame("Audit log", route.SystemAudit()), route.SystemAudit(), q)
}

func (s *Server) auditPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, frame layout.Model, base string, q page.AuditQuery) error {
	in, bad := q.Input(ui.ViewerOf(r.Context()), s.Now())
	errs, status := ui.FormErrors{}, http.StatusOK
	var list account.AuditList
	if len(bad) == 0 {
		in.Page = s.PageOf(r)
		found, err := s.Accounts.Audit(r.Context(), actor, in)
		e := loom.AsError(err)
		switch {
		case err == nil:
			list = found
		case e.Kind == loom.NotFound: // of a tenant that never was
			bad = []loom.FieldError{{Field: "tenant", Message: e.Message}}
		default:
			return err
		}
	}
	if len(bad) > 0 {
		errs, status = ui.NewFormErrors("", bad), http.StatusUnprocessableEntity
	}
	filters, err := s.AuditFilters(r, actor, base, q, errs)
	if err != nil {
		return err
	}
	csv, json := s.ExportsOf(r)
	m := adminview.PageModel{
		Title: "Audit log", Intro: "Who did what, from where, and what it changed. Entries are chained and cannot be changed; secrets are masked. Entries are kept for 400 days, unless whoever runs Loom chose another time.",
		Calls: []ui.JSONCall{page.Call("list", http.MethodGet, route.Query("/v2/audit", "tenant", q.Tenant, "actor", q.Actor, "verb", q.Verb, "kind", q.Kind, "result", q.Result), "")},
		Parts: []templ.Component{filters, s.AuditGrid(ui.ViewerOf(r.Context()), base, q, list, csv, json)},
	}
	return s.Sheet(w, r, actor, status, frame, m)
}
