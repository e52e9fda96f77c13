package system

import (
	"net/http"
	"net/url"

	"github.com/a-h/templ"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// Fields of the question: why, and the cluster to be opened then.
const (
	fieldReason  = "reason"
	fieldCluster = "cluster"
)

// systemActAsk asks whether to act as the administrator of a tenant, and why.
func (s *Server) systemActAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.actPage(w, r, actor, http.StatusOK, r.URL.Query(), ui.FormErrors{})
}

func (s *Server) actPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, v url.Values, errs ui.FormErrors) error {
	t, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	if err != nil {
		return err
	}
	m := adminview.ConfirmModel{Action: route.SystemActAs(t.Name), Harmless: true, Button: "Act as administrator of " + t.Name, Busy: "Changing…", Cancel: route.SystemTenant(t.Name), Errors: errs,
		Lines: []string{"For half an hour, or until you end it, you see and do what the administrator of " + t.Name + " sees and does. Until then you can't open system pages.",
			"Both tenants keep a record of it with your reason, and every change names you."},
		Fields: []ui.FieldModel{{Name: fieldReason, Label: "Reason", Width: "l", MaxLength: 200, Value: v.Get(fieldReason), Error: errs.For(fieldReason), Autocomplete: "off"}}}
	if id, ok := loom.ParseClusterID(v.Get(fieldCluster)); ok {
		m.Hidden, m.Cancel = []string{fieldCluster, id.String()}, route.SystemTenantTab(t.Name, tabClusters)
	}
	if t.ID == actor.Tenant {
		m.WhyNot = "You are an administrator of the tenant " + t.Name + " already."
	}
	frame := tenantFrame("Act in tenant "+t.Name, ui.Crumb{Label: t.Name, Href: route.SystemTenant(t.Name)}, ui.Crumb{Label: "Act as administrator"})
	if status != http.StatusOK {
		return s.Sheet(w, r, actor, status, frame, adminview.PageModel{Parts: []templ.Component{adminview.Bare("c-card", adminview.Confirm(m))}})
	}
	return s.Confirm(w, r, actor, frame, adminview.Confirm(m))
}

// systemAct begins to act, and opens the cluster that was asked for.
func (s *Server) systemAct(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	_, err = s.Accounts.ActAsTenant(r.Context(), actor, s.Sessions.Cookie(r), pathTenant(r), v.Get(fieldReason))
	if e := loom.AsError(err); err != nil && e.Kind == loom.Invalid && len(e.Fields) > 0 {
		return s.actPage(w, r, actor, http.StatusUnprocessableEntity, v, ui.NewFormErrors("You don't act as administrator yet.", e.Fields))
	}
	if err != nil {
		return err
	}
	if id, ok := loom.ParseClusterID(v.Get(fieldCluster)); ok {
		return httpx.SeeOther(w, r, route.Cluster(id))
	}
	return httpx.SeeOther(w, r, route.Admin())
}

// actEnd ends acting as another; it does no harm to who does not.
func (s *Server) actEnd(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := s.Accounts.EndActing(r.Context(), actor, s.Sessions.Cookie(r)); err != nil {
		return err
	}
	if !actor.ByRole.May(loom.Install) {
		return httpx.SeeOther(w, r, route.Home())
	}
	return s.Say(w, r, route.SystemTenant(actor.TenantName), httpx.Flash{Tone: "ok", Text: "You act for yourself again."})
}
