package account

import (
	"net/http"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// accountActivity lists what the user did himself.
func (s *Server) accountActivity(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := page.ReadAuditQuery(r.URL.Query())
	q.Actor, q.Tenant = "", ""
	in, bad := q.Input(ui.ViewerOf(r.Context()), s.Now())
	errs, status := ui.FormErrors{}, http.StatusOK
	var list account.AuditList
	if len(bad) > 0 {
		errs, status = ui.NewFormErrors("", bad), http.StatusUnprocessableEntity
	} else {
		in.Page, in.Actors = s.PageOf(r), []string{string(actor.User)}
		found, err := s.Accounts.Audit(r.Context(), actor, in)
		if err != nil {
			return err
		}
		list = found
	}
	here := route.AccountActivity()
	filters, err := s.AuditFilters(r, actor, here, q, errs)
	if err != nil {
		return err
	}
	csv, json := s.ExportsOf(r)
	return s.Sheet(w, r, actor, status, page.AccountFrame("Your activity", here), adminview.PageModel{
		Title: "Your activity", Intro: "Your actions, where from, and their changes, including refused ones. Secrets are masked.",
		Parts: []templ.Component{filters, s.AuditGrid(ui.ViewerOf(r.Context()), here, q, list, csv, json)},
	})
}
