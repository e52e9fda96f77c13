package admin

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"loom/app/api/wire"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// settingsForm changes the settings: its document is what the REST API has for them.
var settingsForm = form.Of(
	form.Field{Path: form.At("requireLease"), Face: ui.FieldModel{Label: "Require expiry", Kind: ui.FieldCheckbox,
		Help: "Refuses clusters without expiry. Existing clusters keep theirs."}},
	form.Words{Path: form.At("leaseReminderHours"), Face: ui.FieldModel{Label: "Remind before expiry, in hours", Optional: true, Width: "s",
		Help: "Numbers separated by spaces, such as “24 1”; empty means no reminders."}},
	form.Field{Path: form.At("leaseGraceHours"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Grace period in hours", Kind: ui.FieldNumber, Min: "0",
		Help: "Time that stopped machines are kept before they are deleted. 0 deletes at once."}},
	form.Field{Path: form.At("maxTokenDays"), Empty: form.EmptyNull, Face: ui.FieldModel{Label: "Maximum token lifetime in days", Kind: ui.FieldNumber, Min: "1", Optional: true,
		Help: "Empty: no maximum. Existing tokens keep theirs."}},
	form.Field{Path: form.At("automaticRepairs"), Face: ui.FieldModel{Label: "Automatic repairs", Kind: ui.FieldCheckbox,
		Help: "Loom repairs by itself where a template or a cluster lets it. Without this it asks."}},
	form.Field{Path: form.At("localSignIn"), Face: ui.FieldModel{Label: "Sign-in with a password", Kind: ui.FieldSelect, Width: "m",
		Options: page.Options("", loom.LocalEveryone, "everyone who has one", loom.LocalBuiltin, "the built-in administrator alone"),
		Help:    "Others sign in with an identity provider."}},
	form.Field{Path: form.At("repairsPerDay"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Maximum automatic repairs in 24 hours", Kind: ui.FieldNumber, Min: "0"}},
)

func (s *Server) adminSettings(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	set, err := s.Accounts.Settings(r.Context(), actor)
	if err != nil {
		return err
	}
	return s.settingsPage(w, r, actor, http.StatusOK, settingsForm.Over(set))
}

func (s *Server) settingsPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, e form.Edit) error {
	shown := e.Shown()
	tenant, err := s.Accounts.Tenant(r.Context(), actor, actor.TenantName)
	if err != nil {
		return err
	}
	use, err := s.Accounts.Quota(r.Context(), actor)
	if err != nil {
		return err
	}
	m := adminview.PageModel{
		Title: "Settings", Intro: "These settings apply to the whole tenant. Templates set how long clusters live; here you set what happens when they expire.",
		Calls: []ui.JSONCall{page.Call("read", http.MethodGet, "/v2/settings", ""), page.Call("change", http.MethodPatch, "/v2/settings", `{"requireLease":true}`)},
		Parts: []templ.Component{
			adminview.Form(adminview.FormModel{Action: route.AdminSettings(), Errors: shown.Errors, Button: "Save settings", Busy: "Saving…", Parts: shown.Parts()}),
			adminview.Card("quota-title", "Quotas", adminview.Text("They are set by a superadmin."), ui.Definitions([]ui.Def{
				{Term: "Tenant", Text: tenant.Name, Mono: true}, {Term: "Description", Text: tenant.Description}, {Term: "Workers", Text: strconv.Itoa(tenant.Workers)},
				{Term: "Clusters", Text: page.UsedOf(use.Clusters, use.MaxClusters)}, {Term: "Nodes", Text: page.UsedOf(use.Nodes, use.MaxNodes)},
			})),
		},
	}
	return s.Sheet(w, r, actor, status, page.AdminFrame("Settings", route.AdminSettings()), m)
}

func (s *Server) adminSettingsSave(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	values, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	set, err := s.Accounts.Settings(r.Context(), actor)
	if err != nil {
		return err
	}
	e := settingsForm.Over(set)
	in, err := form.Decode(&e, values, wire.ReadSettings)
	if err == nil {
		_, err = s.Accounts.UpdateSettings(r.Context(), actor, in)
	}
	if fields, status, ok := page.Refused(err); ok {
		return s.settingsPage(w, r, actor, status, e.Refused("The settings were not saved.", fields))
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.AdminSettings(), httpx.Flash{Tone: "ok", Text: "Saved the settings."})
}
