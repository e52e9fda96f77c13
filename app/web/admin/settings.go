package admin

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// Names of the fields of the settings, as the REST API has them.
const (
	fieldReminders  = "leaseReminderHours"
	fieldGrace      = "leaseGraceHours"
	fieldTokenDays  = "maxTokenDays"
	fieldNeedsLease = "requireLease"
)

// settingsDraft is the form as it was typed.
type settingsDraft struct {
	reminders, grace, tokenDays string
	needsLease                  bool
}

func (s *Server) adminSettings(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	set, err := s.Accounts.Settings(r.Context(), actor)
	if err != nil {
		return err
	}
	draft := settingsDraft{grace: strconv.Itoa(set.LeaseGraceHours), needsLease: set.RequireLease}
	var hours []string
	for _, h := range set.LeaseReminderHours {
		hours = append(hours, strconv.Itoa(h))
	}
	draft.reminders = strings.Join(hours, " ")
	if set.MaxTokenDays != nil {
		draft.tokenDays = strconv.Itoa(*set.MaxTokenDays)
	}
	return s.settingsPage(w, r, actor, http.StatusOK, draft, ui.FormErrors{})
}

func (s *Server) settingsPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, draft settingsDraft, errs ui.FormErrors) error {
	tenant, err := s.Accounts.Tenant(r.Context(), actor, actor.TenantName)
	if err != nil {
		return err
	}
	use, err := s.Accounts.Quota(r.Context(), actor)
	if err != nil {
		return err
	}
	m := adminview.PageModel{
		Title: "Settings", Intro: "What holds for all of the tenant. How long clusters of a template live is set in the template; here is what happens around the end.",
		Calls: []ui.JSONCall{page.Call("read", http.MethodGet, "/v2/settings", ""), page.Call("change", http.MethodPatch, "/v2/settings", `{"requireLease":true}`)},
		Parts: []templ.Component{
			adminview.Form(adminview.FormModel{Action: route.AdminSettings(), Errors: errs, Button: "Save settings", Busy: "Saving…", Parts: settingsFields(draft, errs)}),
			adminview.Card("quota-title", "Quotas", adminview.Text("They are set by a superadmin."), ui.Definitions([]ui.Def{
				{Term: "Tenant", Text: tenant.Name, Mono: true}, {Term: "Description", Text: tenant.Description}, {Term: "Workers", Text: strconv.Itoa(tenant.Workers)},
				{Term: "Clusters", Text: page.UsedOf(use.Clusters, use.MaxClusters)}, {Term: "Nodes", Text: page.UsedOf(use.Nodes, use.MaxNodes)},
			})),
		},
	}
	return s.Sheet(w, r, actor, status, page.AdminFrame("Settings", route.AdminSettings()), m)
}

func settingsFields(draft settingsDraft, errs ui.FormErrors) []templ.Component {
	return []templ.Component{
		page.Field(ui.FieldModel{Name: fieldNeedsLease, Label: "Every cluster has an end", Kind: ui.FieldCheckbox, Checked: draft.needsLease,
			Help: "Clusters that would live for ever are refused; those that are there stay as they are."}, errs),
		page.Field(ui.FieldModel{Name: fieldReminders, Label: "Remind before the end, in hours", Value: draft.reminders, Optional: true, Width: "s",
			Help: "Numbers separated by blanks, such as “24 1”; empty means no reminders."}, errs),
		page.Field(ui.FieldModel{Name: fieldGrace, Label: "Grace after the end, in hours", Kind: ui.FieldNumber, Value: draft.grace, Min: "0",
			Help: "For so long machines stay, stopped, before they are deleted. 0 deletes at once."}, errs),
		page.Field(ui.FieldModel{Name: fieldTokenDays, Label: "Longest life of API tokens, in days", Kind: ui.FieldNumber, Value: draft.tokenDays, Min: "1", Optional: true,
			Help: "Empty lets tokens live for ever. Tokens that are there stay as they are."}, errs),
	}
}

// readSettings reads the form; what is no number is an error of its field.
func readSettings(f url.Values) (settingsDraft, account.SettingsChange, []loom.FieldError) {
	draft := settingsDraft{reminders: f.Get(fieldReminders), grace: strings.TrimSpace(f.Get(fieldGrace)), tokenDays: strings.TrimSpace(f.Get(fieldTokenDays)), needsLease: f.Get(fieldNeedsLease) == "true"}
	in := account.SettingsChange{LeaseReminderHours: []int{}, RequireLease: &draft.needsLease}
	var errs []loom.FieldError
	number := func(field, text, unit string) *int {
		n, err := strconv.Atoi(text)
		if err != nil {
			errs = append(errs, loom.FieldError{Field: field, Message: "“" + page.CutShort(text) + "” is no whole number of " + unit + "."})
		}
		return &n
	}
	for _, text := range strings.Fields(strings.ReplaceAll(draft.reminders, ",", " ")) {
		in.LeaseReminderHours = append(in.LeaseReminderHours, *number(fieldReminders, text, "hours"))
	}
	in.LeaseGraceHours = number(fieldGrace, draft.grace, "hours")
	if draft.tokenDays == "" {
		in.EndlessTokens = true
	} else {
		in.MaxTokenDays = number(fieldTokenDays, draft.tokenDays, "days")
	}
	return draft, in, errs
}

func (s *Server) adminSettingsSave(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	draft, in, bad := readSettings(f)
	if err = loom.InvalidFields(bad); err == nil {
		_, err = s.Accounts.UpdateSettings(r.Context(), actor, in)
	}
	if errs, status, ok := hookErrors(err, "The settings were not saved."); err != nil && ok {
		return s.settingsPage(w, r, actor, status, draft, errs)
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.AdminSettings(), httpx.Flash{Tone: "ok", Text: "Saved the settings."})
}
