package system

import (
	"net/http"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// systemActAsk asks whether to act as the administrator of a tenant.
func (s *Server) systemActAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, err := s.Accounts.Tenant(r.Context(), actor, pathTenant(r))
	if err != nil {
		return err
	}
	m := adminview.ConfirmModel{Action: route.SystemActAs(t.Name), Harmless: true, Button: "Act as administrator of " + t.Name, Busy: "Changing…", Cancel: route.SystemTenant(t.Name),
		Lines: []string{"For half an hour, or until you end it, you see and do what the administrator of " + t.Name + " sees and does. Until then you can't open system pages.",
			"Both tenants keep a record of it, and every change names you."}}
	if t.ID == actor.Tenant {
		m.WhyNot = "You are an administrator of the tenant " + t.Name + " already."
	}
	page := tenantFrame("Act in tenant "+t.Name, ui.Crumb{Label: t.Name, Href: route.SystemTenant(t.Name)}, ui.Crumb{Label: "Act as administrator"})
	return s.Confirm(w, r, actor, page, adminview.Confirm(m))
}

func (s *Server) systemAct(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if _, err := s.Accounts.ActAsTenant(r.Context(), actor, s.Sessions.Cookie(r), pathTenant(r)); err != nil {
		return err
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
