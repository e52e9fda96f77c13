package admin

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/api/wire"
	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/web/form"
	"loom/app/web/page"
	"loom/views/accountview"
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

func identityFrame(title string, crumbs ...ui.Crumb) layout.Model {
	if len(crumbs) > 0 {
		crumbs = append([]ui.Crumb{{Label: "Admin", Href: route.Admin()}, {Label: "Identity", Href: route.AdminIdentity()}}, crumbs...)
	}
	m := page.AdminFrame(title, route.AdminIdentity(), crumbs...)
	m.Section = "Identity"
	return m
}

// enabledState says whether people sign in with a provider.
func enabledState(p loom.IdentityProvider) *ui.State {
	if p.Enabled {
		return &ui.State{Word: "On", Icon: "check", Tone: ui.ToneOK}
	}
	return &ui.State{Word: "Off", Icon: "pause", Tone: ui.ToneIdle}
}

func (s *Server) adminIdentity(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	providers, err := s.Accounts.IdentityProviders(r.Context(), actor)
	if err != nil {
		return err
	}
	add := ui.ButtonModel{Label: "New identity provider", Icon: "plus", Kind: ui.Primary, Href: route.AdminIdentityNew()}
	m := adminview.PageModel{
		Title: "Identity", Intro: "People sign in with their organization’s account. Rules make them members of groups, and groups have roles.",
		Actions: []ui.ButtonModel{add}, Calls: []ui.JSONCall{page.Call("list", http.MethodGet, "/v2/identity-providers", "")},
	}
	if actor.Tenant == loom.SuperTenant {
		m.Intro += " These are for all tenants."
	}
	add.Kind = ui.Secondary
	table := adminview.TableModel{ID: "identity-providers", Caption: "Identity providers", Now: s.Now(), Columns: []ui.Column{{Label: "Provider"}, {Label: "State"}, {Label: "Users", Numeric: true}, {Label: "Rules", Numeric: true}, {Label: "Created"}},
		Empty: ui.EmptyModel{Icon: "key", Text: "No identity providers yet. Everybody signs in with a password.", Action: add}}
	for _, p := range providers {
		table.Rows = append(table.Rows, []adminview.Cell{{Text: p.Name, Href: route.AdminIdentityProvider(p.ID), Sub: p.Issuer}, {State: enabledState(p)}, {Text: strconv.Itoa(p.Users)}, {Text: strconv.Itoa(p.Rules)}, {Time: p.Created}})
	}
	table.CSV, table.JSON = s.ExportsOf(r)
	m.Parts = append(m.Parts, adminview.Table(table))
	return s.Sheet(w, r, actor, http.StatusOK, identityFrame("Identity"), m)
}

// editIdentity is the form of an identity provider; a new one has no id.
func editIdentity(p loom.IdentityProvider) form.Edit {
	secret := ui.FieldModel{Label: "Client secret", Kind: ui.FieldPassword, Width: "m", Autocomplete: "off", MaxLength: 1000}
	if p.ID != "" {
		secret.Optional, secret.Help = true, "Empty: keep the present one."
	}
	return form.Of(
		form.Field{Path: form.At("name"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Name", MaxLength: 60, Width: "m", Help: "People see it on the sign-in page: “Sign in with Example”."}},
		form.Field{Path: form.At("issuer"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Issuer", Mono: true, Width: "l", MaxLength: 500, Help: "The URL that the provider calls itself, such as https://id.example.com/realms/main."}},
		form.Field{Path: form.At("clientId"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Client ID", Mono: true, Width: "m", MaxLength: 200}},
		form.Field{Path: form.At("clientSecret"), Face: secret},
		form.Field{Path: form.At("userClaim"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "User name claim", Mono: true, Width: "s", MaxLength: 200, Help: "It becomes the user name of new users."}},
		form.Field{Path: form.At("subjectClaim"), Face: ui.FieldModel{Label: "Person claim", Kind: ui.FieldSelect, Width: "s", Options: page.Options("", "sub", "sub", "oid", "oid (Microsoft Entra)"), Help: "It never changes for a person."}},
		form.Field{Path: form.At("maxAgeDays"), Face: ui.FieldModel{Label: "Days that API tokens work after a sign-in", Kind: ui.FieldNumber, Min: "1", Max: "365", Width: "s"}},
		form.Field{Path: form.At("enabled"), Face: ui.FieldModel{Label: "People sign in with it", Kind: ui.FieldCheckbox}},
	).Over(map[string]any{"name": p.Name, "issuer": p.Issuer, "clientId": p.ClientID, "userClaim": p.UserClaim, "subjectClaim": p.SubjectClaim, "maxAgeDays": p.MaxAgeDays, "enabled": p.Enabled})
}

func newIdentity() form.Edit { return editIdentity(account.NewIdentityProvider()) }

func (s *Server) adminIdentityNew(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.identityNewPage(w, r, actor, http.StatusOK, newIdentity())
}

func (s *Server) identityNewPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, e form.Edit) error {
	shown := e.Shown()
	return s.Sheet(w, r, actor, status, identityFrame("New identity provider", ui.Crumb{Label: "New"}), adminview.PageModel{
		Intro: "Register Loom with your provider as a web application first. Next you get the addresses to enter there.",
		Parts: []templ.Component{adminview.Form(adminview.FormModel{Action: route.AdminIdentity(), Errors: shown.Errors, Button: "Create identity provider", Busy: "Creating…", Cancel: route.AdminIdentity(), Parts: shown.Parts()})}})
}

func (s *Server) adminIdentityCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	values, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	var p loom.IdentityProvider
	e := newIdentity()
	in, err := form.Decode(&e, values, wire.ReadIdentityProvider)
	if err == nil {
		p, err = s.Accounts.CreateIdentityProvider(r.Context(), actor, in)
	}
	if fields, status, ok := page.Refused(err); ok {
		return s.identityNewPage(w, r, actor, status, e.Refused("The identity provider was not created.", fields))
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.AdminIdentityProvider(p.ID), httpx.Flash{Tone: "ok", Text: "Created the identity provider " + p.Name + ". Enter the two addresses there, then add rules."})
}

func (s *Server) ofIdentity(r *http.Request, actor loom.Actor) (loom.IdentityProvider, error) {
	return s.Accounts.IdentityProvider(r.Context(), actor, r.PathValue("id"))
}

func (s *Server) adminIdentityProvider(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, err := s.ofIdentity(r, actor)
	if err != nil {
		return err
	}
	return s.identityPage(w, r, actor, http.StatusOK, p, nil, nil)
}

// identityPage is the page of an identity provider; a form that was refused says why, and banner
// what came of a check.
func (s *Server) identityPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, p loom.IdentityProvider, refused *form.Edit, banner *ui.BannerModel) error {
	rules, err := s.Accounts.IdentityRules(r.Context(), actor, p.ID)
	if err != nil {
		return err
	}
	edit := editIdentity(p)
	if refused != nil {
		edit = *refused
	}
	at := "/v2/identity-providers/" + p.ID
	m := adminview.PageModel{Title: p.Name, State: enabledState(p), Intro: ui.Count(p.Users, "user signs in with it.", "users sign in with it."),
		Menu:  []ui.MenuItem{page.Deleting(route.AdminIdentityVerb(p.ID, "delete"))},
		Calls: []ui.JSONCall{page.Call("read", http.MethodGet, at, ""), page.Call("check", http.MethodPost, at+"/check", ""), page.Call("list its rules", http.MethodGet, at+"/rules", "")}}
	if banner != nil {
		m.Banners = append(m.Banners, *banner)
	}
	shown := edit.Shown()
	m.Parts = append(m.Parts,
		adminview.Card("rules-title", "Rules", adminview.Text("Whoever fulfills all conditions of a rule joins its group, and leaves it at the next sign-in that does not."),
			s.ruleTable(p, rules), adminview.Buttons(ui.ButtonModel{Label: "Add rule", Icon: "plus", Kind: ui.Primary, Href: route.AdminIdentityVerb(p.ID, "rules")})),
		adminview.Card("addresses-title", "Addresses to enter at the provider", ui.Definitions([]ui.Def{
			{Term: "Redirect URI", Value: ui.CopyText(s.Accounts.CallbackURL(p.ID), "redirect URI")},
			{Term: "Back-channel logout URI", Value: ui.CopyText(s.Accounts.LogoutURL(p.ID), "logout URI")},
			{Term: "Post-logout redirect URI", Value: ui.CopyText(s.Accounts.PublicURL+"/login", "post-logout URI")},
		}), adminview.Act(route.AdminIdentityVerb(p.ID, "check"), ui.ButtonModel{Label: "Check the provider", Busy: "Checking…", Submit: true})),
		adminview.Card("edit-title", "Settings", adminview.Form(adminview.FormModel{Action: route.AdminIdentityProvider(p.ID), Errors: shown.Errors, Button: "Save", Busy: "Saving…", Secondary: true, Parts: shown.Parts()})))
	return s.Sheet(w, r, actor, status, identityFrame(p.Name, ui.Crumb{Label: p.Name}), m)
}

func (s *Server) ruleTable(p loom.IdentityProvider, rules []loom.IdentityRule) templ.Component {
	m := adminview.TableModel{ID: "rules", Caption: "Rules of the provider", Now: s.Now(), Columns: []ui.Column{{Label: "Conditions"}, {Label: "Group"}, {Label: "Actions", LabelHidden: true}},
		Empty: ui.EmptyModel{Icon: "key", Text: "No rules yet: nobody gets a role by signing in."}}
	for i, rule := range rules {
		group := adminview.Cell{Text: rule.GroupName}
		if rule.Tenant == p.Tenant {
			group.Href = route.AdminGroup(rule.Group)
		}
		m.Rows = append(m.Rows, []adminview.Cell{{Text: conditionsText(rule), Mono: true}, group,
			{Part: adminview.Act(route.AdminIdentityVerb(p.ID, "rules", "preview"), ui.ButtonModel{Label: "Remove", Small: true, Submit: true, Busy: "Working out…",
				Attrs: templ.Attributes{"aria-label": "Remove rule " + strconv.Itoa(i+1)}}, "rules", rulesText(slices.Delete(slices.Clone(rules), i, i+1)))}})
	}
	return adminview.Table(m)
}

func conditionsText(rule loom.IdentityRule) string {
	var words []string
	for _, c := range rule.Conditions {
		words = append(words, accountview.ConditionText(c))
	}
	return strings.Join(words, " and ")
}

// rulesText is the body of the request that previews rules; forms carry it along.
func rulesText(rules []loom.IdentityRule) string {
	text, err := json.Marshal(wire.NewIdentityRules(rules))
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(text)
}

func (s *Server) adminIdentitySave(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	values, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	p, err := s.ofIdentity(r, actor)
	if err != nil {
		return err
	}
	e := editIdentity(p)
	in, err := form.Decode(&e, values, wire.ReadIdentityProvider)
	if err == nil {
		_, err = s.Accounts.UpdateIdentityProvider(r.Context(), actor, p.ID, in)
	}
	if fields, status, ok := page.Refused(err); ok {
		e = e.Refused("The identity provider was not changed.", fields)
		return s.identityPage(w, r, actor, status, p, &e, nil)
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.AdminIdentityProvider(p.ID), httpx.Flash{Tone: "ok", Text: "Saved the identity provider."})
}

func (s *Server) adminIdentityCheck(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, err := s.ofIdentity(r, actor)
	if err != nil {
		return err
	}
	found, err := s.Accounts.CheckIdentityProvider(r.Context(), actor, p.ID)
	if e := loom.AsError(err); err != nil && (e.Kind == loom.Unavailable || e.Kind == loom.Invalid) {
		return s.identityPage(w, r, actor, http.StatusOK, p, nil, &ui.BannerModel{Tone: ui.ToneBad, Text: e.Message})
	}
	if err != nil {
		return err
	}
	said := "The provider answers. People sign in at " + found.SignIn + "."
	if !found.Logout {
		said += " It does not announce back-channel logout. Without it, somebody who signs out there stays signed in here for up to 12 hours."
	}
	return s.identityPage(w, r, actor, http.StatusOK, p, nil, &ui.BannerModel{Tone: ui.ToneOK, Text: said})
}

// conditionsOfForm is how many conditions the form has; the API takes loom.MaxConditions.
const conditionsOfForm = 3

// ruleForm is the form of a rule.
func ruleForm(groups []loom.Group) form.Edit {
	var options []string
	for _, g := range groups {
		options = append(options, strconv.FormatInt(g.ID, 10), g.Name)
	}
	parts := []form.Part{form.Field{Path: form.At("group"), Face: ui.FieldModel{Label: "Group to join", Kind: ui.FieldSelect, Width: "m", Options: page.Options("", options...)}}}
	var conditions []map[string]string
	for i := range conditionsOfForm {
		at, number := form.At("conditions", i), strconv.Itoa(i+1)
		conditions = append(conditions, map[string]string{"claim": "", "op": string(loom.ConditionIs), "value": ""})
		parts = append(parts, form.Row{Parts: []form.Part{
			form.Field{Path: at.To("claim"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Claim " + number, Mono: true, Optional: i > 0, Width: "s", MaxLength: 255}},
			form.Field{Path: at.To("op"), Face: ui.FieldModel{Label: "Comparison " + number, Kind: ui.FieldSelect, Width: "s", Options: page.Options("", "is", "is", "matches", "matches the regular expression")}},
			form.Field{Path: at.To("value"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Value " + number, Mono: true, Optional: i > 0, Width: "m", MaxLength: 255}},
		}})
	}
	return form.Of(parts...).Over(map[string]any{"group": "", "conditions": conditions})
}

// groupsFor lists the groups that rules may name.
func (s *Server) groupsFor(r *http.Request, actor loom.Actor) ([]loom.Group, error) {
	list, err := s.Accounts.ListGroups(r.Context(), actor, "", loom.Page{Limit: 500})
	return list.Items, err
}

func (s *Server) adminRuleNew(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, err := s.ofIdentity(r, actor)
	if err != nil {
		return err
	}
	groups, err := s.groupsFor(r, actor)
	if err != nil {
		return err
	}
	return s.rulePage(w, r, actor, http.StatusOK, p, ruleForm(groups))
}

func (s *Server) rulePage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, p loom.IdentityProvider, e form.Edit) error {
	shown := e.Shown()
	return s.Sheet(w, r, actor, status, identityFrame("Add rule", ui.Crumb{Label: p.Name, Href: route.AdminIdentityProvider(p.ID)}, ui.Crumb{Label: "Add rule"}), adminview.PageModel{
		Intro: "Whoever fulfills all conditions joins the group. For example: groups is platform-team.",
		Parts: []templ.Component{adminview.Form(adminview.FormModel{Action: route.AdminIdentityVerb(p.ID, "rules"), Errors: shown.Errors, Button: "Preview", Busy: "Working out…", Cancel: route.AdminIdentityProvider(p.ID), Parts: shown.Parts()})}})
}

// readRule reads the rule of the form. Conditions that are empty, but the first, are none.
func readRule(body []byte) (loom.IdentityRule, error) {
	rules, _, err := wire.ReadIdentityRules([]byte(`{"rules":[` + string(body) + `]}`))
	if err != nil {
		return loom.IdentityRule{}, err
	}
	rule := rules[0]
	for n := len(rule.Conditions); n > 1 && rule.Conditions[n-1].Claim == "" && rule.Conditions[n-1].Value == ""; n-- {
		rule.Conditions = rule.Conditions[:n-1]
	}
	return rule, nil
}

// adminRuleAdd previews the rules with another one.
func (s *Server) adminRuleAdd(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	values, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	p, err := s.ofIdentity(r, actor)
	if err != nil {
		return err
	}
	groups, err := s.groupsFor(r, actor)
	if err != nil {
		return err
	}
	rules, err := s.Accounts.IdentityRules(r.Context(), actor, p.ID)
	if err != nil {
		return err
	}
	e := ruleForm(groups)
	rule, err := form.Decode(&e, values, readRule)
	var preview account.RulesPreview
	if err == nil {
		preview, err = s.Accounts.PreviewIdentityRules(r.Context(), actor, p.ID, append(rules, rule))
	}
	if fields, status, ok := page.Refused(err); ok {
		return s.rulePage(w, r, actor, status, p, e.Refused("The rule was not added.", fieldsOfForm(fields)))
	}
	if err != nil {
		return err
	}
	return s.previewPage(w, r, actor, http.StatusOK, p, preview)
}

// fieldsOfForm puts the errors of a rule at the fields of its form.
func fieldsOfForm(errs []loom.FieldError) []loom.FieldError {
	out := slices.Clone(errs)
	for i, e := range out {
		if _, field, ok := strings.Cut(e.Field, "]."); ok && strings.HasPrefix(e.Field, "rules[") {
			out[i].Field = field
		}
	}
	return out
}

// adminRulesPreview previews the rules that a form carries.
func (s *Server) adminRulesPreview(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, rules, _, err := s.rulesOf(w, r, actor)
	if err != nil {
		return err
	}
	preview, err := s.Accounts.PreviewIdentityRules(r.Context(), actor, p.ID, rules)
	if err != nil {
		return err
	}
	return s.previewPage(w, r, actor, http.StatusOK, p, preview)
}

func (s *Server) rulesOf(w http.ResponseWriter, r *http.Request, actor loom.Actor) (p loom.IdentityProvider, rules []loom.IdentityRule, values url.Values, err error) {
	if values, err = page.ReadForm(w, r); err != nil {
		return p, nil, nil, err
	}
	if p, err = s.ofIdentity(r, actor); err != nil {
		return p, nil, nil, err
	}
	rules, _, err = wire.ReadIdentityRules([]byte(values.Get("rules")))
	return p, rules, values, err
}

// previewPage says what rules would do, and applies them. StatusConflict is that of one in place of a preview that is out
// of date.
func (s *Server) previewPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, p loom.IdentityProvider, preview account.RulesPreview) error {
	m := adminview.PageModel{Intro: ui.Count(preview.Known, "person has signed in with", "people have signed in with") + " " + p.Name + " so far; the new rules match " + strconv.Itoa(preview.Matched) + "."}
	if len(preview.Nowhere) > 0 {
		m.Banners = append(m.Banners, ui.BannerModel{Tone: ui.ToneWarn, Text: ui.Count(len(preview.Nowhere), "user loses the last role and cannot sign in any longer: ", "users lose their last role and cannot sign in any longer: ") + userNames(nowhere(preview.Nowhere)) + "."})
	}
	if status == http.StatusConflict {
		m.Banners = append(m.Banners, ui.BannerModel{Tone: ui.ToneWarn, Text: "Something has changed since the preview. This is what the rules would do now."})
	}
	if len(preview.Roleless) > 0 {
		m.Banners = append(m.Banners, ui.BannerModel{Tone: ui.ToneWarn, Text: "Without a role, a group lets nobody sign in. Give one to: " + strings.Join(preview.Roleless, ", ") + "."})
	}
	changes := adminview.TableModel{ID: "roles", Caption: "Changes of roles", Now: s.Now(), Columns: []ui.Column{{Label: "Change"}, {Label: "For"}, {Label: "Users"}},
		Empty: ui.EmptyModel{Icon: "check", Text: "Nobody gains or loses a role at once."}}
	for _, c := range preview.Roles {
		verb := ui.Count(len(c.Users), "user loses", "users lose")
		if c.Gained {
			verb = ui.Count(len(c.Users), "user gains", "users gain")
		}
		changes.Rows = append(changes.Rows, []adminview.Cell{{Text: verb + " the role “" + string(c.Role) + "”"}, grantWords(loom.Binding{Grant: c.Grant, ClusterName: c.Cluster.String()}), {Text: userNames(c.Users)}})
	}
	rules := adminview.TableModel{ID: "new-rules", Caption: "New rules", Now: s.Now(), Columns: []ui.Column{{Label: "Conditions"}, {Label: "Group"}}, Empty: ui.EmptyModel{Icon: "key", Text: "No rules: nobody gets a role by signing in."}}
	for _, rule := range preview.Rules {
		rules.Rows = append(rules.Rows, []adminview.Cell{{Text: conditionsText(rule), Mono: true}, {Text: rule.GroupName}})
	}
	m.Parts = append(m.Parts, adminview.Card("changes-title", "What changes at once", adminview.Table(changes)), adminview.Card("new-title", "The rules from then on", adminview.Table(rules)),
		adminview.Form(adminview.FormModel{Action: route.AdminIdentityVerb(p.ID, "rules", "apply"), Button: "Apply rules", Busy: "Applying…", Cancel: route.AdminIdentityProvider(p.ID),
			Parts: []templ.Component{adminview.HiddenFields([]string{"rules", rulesText(preview.Rules), "hash", preview.Hash})}}))
	return s.Sheet(w, r, actor, status, identityFrame("Preview of rules", ui.Crumb{Label: p.Name, Href: route.AdminIdentityProvider(p.ID)}, ui.Crumb{Label: "Preview"}), m)
}

func nowhere(accounts []loom.Account) (users []loom.UserID) {
	for _, a := range accounts {
		users = append(users, a.User)
	}
	return users
}

// maxNamed is how many users a preview names in a row.
const maxNamed = 50

func userNames(users []loom.UserID) string {
	var names []string
	for i, user := range users {
		if i == maxNamed {
			names = append(names, "and "+strconv.Itoa(len(users)-i)+" more")
			break
		}
		names = append(names, string(user))
	}
	return strings.Join(names, ", ")
}

func (s *Server) adminRulesApply(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, rules, values, err := s.rulesOf(w, r, actor)
	if err == nil {
		_, err = s.Accounts.SetIdentityRules(r.Context(), actor, p.ID, rules, values.Get("hash"))
	}
	if err != nil && loom.AsError(err).Kind == loom.Conflict {
		preview, err := s.Accounts.PreviewIdentityRules(r.Context(), actor, p.ID, rules)
		if err != nil {
			return err
		}
		return s.previewPage(w, r, actor, http.StatusConflict, p, preview)
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.AdminIdentityProvider(p.ID), httpx.Flash{Tone: "ok", Text: "Applied the rules."})
}

func (s *Server) adminIdentityDeleteAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, err := s.ofIdentity(r, actor)
	if err != nil {
		return err
	}
	m := adminview.ConfirmModel{Action: r.URL.Path, Button: "Delete identity provider " + p.Name, Busy: "Deleting…", Cancel: route.AdminIdentityProvider(p.ID),
		Lines: []string{"This can't be undone. " + ui.Count(p.Users, "user no longer signs in with it and loses", "users no longer sign in with it and lose") + " what its rules gave. Who has no password needs one from an administrator."}}
	return s.Confirm(w, r, actor, identityFrame("Delete identity provider "+p.Name, ui.Crumb{Label: p.Name, Href: route.AdminIdentityProvider(p.ID)}, ui.Crumb{Label: "Delete"}), adminview.Confirm(m))
}

func (s *Server) adminIdentityDelete(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	p, err := s.ofIdentity(r, actor)
	if err != nil {
		return err
	}
	if err := s.Accounts.DeleteIdentityProvider(r.Context(), actor, p.ID); err != nil {
		return err
	}
	return s.Say(w, r, route.AdminIdentity(), httpx.Flash{Tone: "ok", Text: "Deleted the identity provider " + p.Name + "."})
}
