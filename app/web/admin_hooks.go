package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/hook"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/views/layout"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

// Names of the fields of the form of a hook.
const (
	fieldName      = "name"
	fieldURL       = "url"
	fieldEvents    = "events"
	fieldActions   = "actions"
	fieldTemplates = "templates"
	fieldBlocking  = "blocking"
	fieldOnTimeout = "onTimeout"
	fieldGlobal    = "global"
	fieldLegacy    = "legacyBody"
	fieldEnabled   = "enabled"
	fieldSecret    = "secret"
)

func hooksFrame(title string, crumbs ...ui.Crumb) layout.Model {
	if len(crumbs) > 0 {
		crumbs = append([]ui.Crumb{{Label: "Admin", Href: route.Admin()}, {Label: "Hooks", Href: route.AdminHooks()}}, crumbs...)
	}
	m := adminFrame(title, route.AdminHooks(), crumbs...)
	if title != "Hooks" {
		m.Section = "Hooks"
	}
	return m
}

func (s *Server) adminHooks(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	hooks, err := s.Hooks.Hooks(r.Context(), actor)
	if err != nil {
		return err
	}
	add := ui.ButtonModel{Label: "New hook", Icon: "plus", Kind: ui.Primary, Href: route.AdminHookNew()}
	m := officeview.SheetModel{
		Title: "Hooks", Actions: []ui.ButtonModel{add}, Calls: []ui.JSONCall{call("list", http.MethodGet, "/v2/hooks", "")},
		Intro: "A hook tells another system by HTTP when operations start and end. A blocking hook is asked first and may refuse.",
	}
	grid := officeview.GridModel{ID: "hooks", Caption: "Hooks of the tenant", Now: s.now(),
		Columns: []ui.Column{{Label: "Name"}, {Label: "Address"}, {Label: "Events"}, {Label: "State"}, {Label: "Created", Low: true}},
		Empty:   ui.EmptyModel{Icon: "external", Text: "There are no hooks yet. A hook calls an address of yours when an operation starts, succeeds or fails.", Action: add}}
	for _, h := range hooks {
		state := hookState(h)
		grid.Rows = append(grid.Rows, []officeview.Cell{
			{Text: h.Name, Href: route.AdminHook(h.ID), Sub: hookKind(h)}, {Text: h.URL, Mono: true}, {Text: hookWords(h.Events)}, {State: &state}, {Time: h.Created},
		})
	}
	grid.CSV, grid.JSON = s.exportsOf(r)
	m.Parts = []templ.Component{officeview.Grid(grid)}
	return s.sheet(w, r, actor, http.StatusOK, hooksFrame("Hooks"), m)
}

func hookState(h loom.Hook) ui.State {
	if h.Enabled {
		return ui.State{Word: "On", Icon: "check-circle", Tone: ui.ToneOK}
	}
	return ui.State{Word: "Off", Icon: "ban", Tone: ui.ToneIdle}
}

func hookKind(h loom.Hook) string {
	var words []string
	if h.Blocking {
		words = append(words, "blocking")
	}
	if h.Global {
		words = append(words, "for all tenants")
	}
	return strings.Join(words, ", ")
}

func hookWords[T ~string](items []T) string {
	words := make([]string, len(items))
	for i, item := range items {
		words[i] = string(item)
	}
	return strings.Join(words, ", ")
}

func (s *Server) adminHookNew(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	in := hook.Input{Events: loom.HookEvents, Enabled: true, OnTimeout: loom.OnTimeoutRefuse}
	return s.hookForm(w, r, actor, http.StatusOK, 0, "", in, ui.FormErrors{})
}

// hookForm is the form of a new hook (id 0) or an old one.
func (s *Server) hookForm(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, id loom.HookID, name string, in hook.Input, errs ui.FormErrors) error {
	m := officeview.FormModel{Action: route.AdminHooks(), Errors: errs, Button: "Create hook", Busy: "Creating…", Cancel: route.AdminHooks()}
	page := hooksFrame("New hook", ui.Crumb{Label: "New"})
	secret := ui.FieldModel{Name: fieldSecret, Label: "Secret", Kind: ui.FieldPassword, Optional: true, MaxLength: 200, Autocomplete: "off",
		Help: "Signs every delivery; 16 to 200 characters. One is made up, and shown once, when this is left empty."}
	if id != 0 {
		m.Action, m.Button, m.Busy, m.Cancel = route.AdminHook(id), "Save hook", "Saving…", route.AdminHook(id)
		page = hooksFrame("Edit "+name, ui.Crumb{Label: name, Href: route.AdminHook(id)}, ui.Crumb{Label: "Edit"})
		secret.Label, secret.Help = "New secret", "16 to 200 characters; the present one stays when this is left empty. It is never shown."
	}
	m.Parts = []templ.Component{
		field(ui.FieldModel{Name: fieldName, Label: "Name", Value: in.Name, MaxLength: 100, Help: "Says what it is for, such as “tell the monitoring”."}, errs),
		field(ui.FieldModel{Name: fieldURL, Label: "Address", Value: in.URL, Mono: true, Width: "l", MaxLength: 2000, Placeholder: "https://ci.example/loom", Help: "Receives a POST with JSON."}, errs),
		ui.Picker(ui.ChoiceModel{Name: fieldEvents, Legend: "Events", Help: "None chosen means all.", Optional: true, Choices: choices(loom.HookEvents, in.Events), Error: errs.For(fieldEvents)}),
		ui.Picker(ui.ChoiceModel{Name: fieldActions, Legend: "Only for these actions", Help: "None chosen means all.", Optional: true, Filter: "Filter actions",
			Choices: choices(loom.HookActions, in.Actions), Error: errs.For(fieldActions)}),
		field(ui.FieldModel{Name: fieldTemplates, Label: "Only for clusters of these templates", Value: strings.Join(in.Templates, " "), Mono: true, Optional: true, Width: "l",
			Help: "Names, separated by blanks; none means all."}, errs),
		field(ui.FieldModel{Name: fieldBlocking, Label: "Ask before an operation starts (blocking)", Kind: ui.FieldCheckbox, Checked: in.Blocking,
			Help: "The operation waits: 2xx lets it go, 409 refuses it with the reason in the answer."}, errs),
		field(ui.FieldModel{Name: fieldOnTimeout, Label: "When there is no answer that counts", Kind: ui.FieldSelect, Width: "s", Optional: true,
			Options: options(in.OnTimeout, loom.OnTimeoutRefuse, "refuse the operation", loom.OnTimeoutGo, "let it go")}, errs),
		field(secret, errs),
		field(ui.FieldModel{Name: fieldLegacy, Label: "Send the body of the predecessor", Kind: ui.FieldCheckbox, Checked: in.LegacyBody, Help: "Cluster, job and nodes, for receivers that were written for it."}, errs),
		field(ui.FieldModel{Name: fieldEnabled, Label: "On", Kind: ui.FieldCheckbox, Checked: in.Enabled}, errs),
	}
	if actor.IsSuperadmin() {
		m.Parts = append(m.Parts, field(ui.FieldModel{Name: fieldGlobal, Label: "For all tenants", Kind: ui.FieldCheckbox, Checked: in.Global}, errs))
	}
	return s.sheet(w, r, actor, status, page, officeview.SheetModel{Parts: []templ.Component{officeview.Form(m)}})
}

func choices[T ~string](all, chosen []T) []ui.Choice {
	var out []ui.Choice
	for _, value := range all {
		c := ui.Choice{Value: string(value), Label: string(value)}
		for _, v := range chosen {
			c.Checked = c.Checked || v == value
		}
		out = append(out, c)
	}
	return out
}

func readHook(f url.Values) hook.Input {
	in := hook.Input{
		Name: f.Get(fieldName), URL: strings.TrimSpace(f.Get(fieldURL)), Templates: strings.Fields(strings.ReplaceAll(f.Get(fieldTemplates), ",", " ")),
		Blocking: f.Get(fieldBlocking) == "true", OnTimeout: f.Get(fieldOnTimeout), Global: f.Get(fieldGlobal) == "true", LegacyBody: f.Get(fieldLegacy) == "true", Enabled: f.Get(fieldEnabled) == "true",
	}
	for _, e := range f[fieldEvents] {
		in.Events = append(in.Events, loom.HookEvent(e))
	}
	for _, a := range f[fieldActions] {
		in.Actions = append(in.Actions, loom.ClusterAction(a))
	}
	if secret := f.Get(fieldSecret); secret != "" {
		in.Secret = &secret
	}
	return in
}

// hookErrors puts the errors of members of lists beside their field.
func hookErrors(err error, title string) (ui.FormErrors, int, bool) {
	e := loom.AsError(err)
	status, ok := httpx.PageStatus(e.Kind), e.Kind == loom.Invalid || e.Kind == loom.Exhausted || e.Kind == loom.Conflict
	if !ok {
		return ui.FormErrors{}, 0, false
	}
	errs := ui.NewFormErrors(title, e.Fields)
	if len(e.Fields) == 0 {
		errs.Items = []ui.FormError{{Message: e.Message}}
	}
	for i := range errs.Items {
		name, _, _ := strings.Cut(errs.Items[i].Field, "[")
		if name != "" {
			errs.Items[i].Field, errs.Items[i].FieldID = name, ui.FieldID("", name)
		}
	}
	return errs, status, true
}

// adminHookCreate stores a hook; a secret that was made up is in the answer.
func (s *Server) adminHookCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := accountForm(w, r)
	if err != nil {
		return err
	}
	in := readHook(f)
	h, secret, err := s.Hooks.Create(r.Context(), actor, in)
	if errs, status, ok := hookErrors(err, "The hook was not created."); err != nil && ok {
		return s.hookForm(w, r, actor, status, 0, "", in, errs)
	}
	if err != nil {
		return err
	}
	if secret.IsZero() {
		return s.say(w, r, route.AdminHook(h.ID), httpx.Flash{Tone: "ok", Text: "Created the hook " + h.Name + "."})
	}
	shown := officeview.Secret(officeview.SecretModel{
		Title: "Hook " + h.Name + " was created", Warning: "Copy the secret now. It is shown this once; it proves that a delivery is Loom's.", Back: route.AdminHook(h.ID), Button: "I have copied the secret",
		Facts: []ui.Def{{Term: "Address", Text: h.URL, Mono: true}, {Term: "Secret", Value: ui.CopyText(secret.Reveal(), "secret")},
			{Term: "How it signs", Text: "X-Loom-Signature: t=<seconds>,v1=<HMAC-SHA256 of “t.body”, hexadecimal>"}},
	})
	return s.sheet(w, r, actor, http.StatusOK, hooksFrame(h.Name, ui.Crumb{Label: h.Name}), officeview.SheetModel{Parts: []templ.Component{shown}})
}

func pathHook(r *http.Request) (loom.HookID, error) {
	n, err := pathNumber(r, "id", "hook")
	return loom.HookID(n), err
}

// ofHook reads the hook of the path.
func (s *Server) ofHook(r *http.Request, actor loom.Actor) (loom.Hook, error) {
	id, err := pathHook(r)
	if err != nil {
		return loom.Hook{}, err
	}
	return s.Hooks.Hook(r.Context(), actor, id)
}

func (s *Server) adminHookEdit(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	h, err := s.ofHook(r, actor)
	if err != nil {
		return err
	}
	in := hook.Input{Name: h.Name, URL: h.URL, Events: h.Events, Actions: h.Actions, Templates: h.Templates, Blocking: h.Blocking,
		OnTimeout: h.OnTimeout, Global: h.Global, LegacyBody: h.LegacyBody, Enabled: h.Enabled}
	return s.hookForm(w, r, actor, http.StatusOK, h.ID, h.Name, in, ui.FormErrors{})
}

func (s *Server) adminHookSave(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := accountForm(w, r)
	if err != nil {
		return err
	}
	old, err := s.ofHook(r, actor)
	if err != nil {
		return err
	}
	in := readHook(f)
	h, err := s.Hooks.Put(r.Context(), actor, old.ID, in)
	if errs, status, ok := hookErrors(err, "The hook was not changed."); err != nil && ok {
		return s.hookForm(w, r, actor, status, old.ID, old.Name, in, errs)
	}
	if err != nil {
		return err
	}
	return s.say(w, r, route.AdminHook(h.ID), httpx.Flash{Tone: "ok", Text: "Saved the hook " + h.Name + "."})
}

func (s *Server) adminHookDeleteAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	h, err := s.ofHook(r, actor)
	if err != nil {
		return err
	}
	m := officeview.ConfirmModel{Action: r.URL.Path, Button: "Delete hook " + h.Name, Busy: "Deleting…", Cancel: route.AdminHook(h.ID),
		Lines: []string{"Nothing more is sent to " + h.URL + ", also not what waits, and the log of deliveries goes with it. An operation that waits for its answer goes on."}}
	return s.accountConfirm(w, r, actor, hooksFrame("Delete hook "+h.Name, ui.Crumb{Label: h.Name, Href: route.AdminHook(h.ID)}, ui.Crumb{Label: "Delete"}), officeview.Confirm(m))
}

func (s *Server) adminHookDelete(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	h, err := s.ofHook(r, actor)
	if err != nil {
		return err
	}
	if err := s.Hooks.Delete(r.Context(), actor, h.ID); err != nil {
		return err
	}
	return s.say(w, r, route.AdminHooks(), httpx.Flash{Tone: "ok", Text: "Deleted the hook " + h.Name + "."})
}

func itoa[T ~int64](n T) string { return strconv.FormatInt(int64(n), 10) }
