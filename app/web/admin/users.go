package admin

import (
	"net/http"
	"net/url"
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
	"loom/views/sharedview"
	"loom/views/ui"
)

func pathUser(r *http.Request) loom.UserID { return loom.UserID(route.Segment(r.PathValue("id"))) }

func userFrame(id loom.UserID, last string) layout.Model {
	crumbs := []ui.Crumb{{Label: "Admin", Href: route.Admin()}, {Label: "Users", Href: route.AdminUsers()}, {Label: string(id)}}
	title := string(id)
	if last != "" {
		crumbs[2].Href = route.AdminUser(id)
		crumbs, title = append(crumbs, ui.Crumb{Label: last}), last+" "+title
	}
	m := page.AdminFrame(title, route.AdminUsers(), crumbs...)
	m.Section = "Users"
	return m
}

func (s *Server) adminUser(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.userPage(w, r, actor, http.StatusOK, nil, nil)
}

// userPage shows a user of the tenant with what he has; given is a refused form.
func (s *Server) userPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, top templ.Component, given *form.Edit) error {
	u, err := s.Accounts.UserSummary(r.Context(), actor, pathUser(r))
	if err != nil {
		return err
	}
	tokens, err := s.Accounts.TokensOf(r.Context(), actor, u.ID)
	if err != nil {
		return err
	}
	sessions, err := s.Accounts.SessionsOf(r.Context(), actor, u.ID)
	if err != nil {
		return err
	}
	groups, err := s.Accounts.GroupsOf(r.Context(), actor, u.ID)
	if err != nil {
		return err
	}
	identities, err := s.Accounts.Identities(r.Context(), actor, u.ID)
	if err != nil {
		return err
	}
	if given == nil {
		e := editUser(actor, u.User)
		given = &e
	}
	shown := given.Shown()
	roles, err := s.Accounts.ListBindings(r.Context(), actor, account.BindingFilter{Holder: u.ID}, loom.Page{Limit: maxRoles})
	if err != nil {
		return err
	}
	m := adminview.PageModel{
		Title: string(u.ID),
		Calls: []ui.JSONCall{page.Call("read", http.MethodGet, "/v2/users/"+string(u.ID), ""), page.Call("change", http.MethodPatch, "/v2/users/"+string(u.ID), `{"displayName":"Eve"}`)},
	}
	m.Actions, m.Menu = userActions(actor, u)
	if u.Disabled {
		m.State = &disabledState
	}
	if top != nil {
		m.Parts = append(m.Parts, top)
	}
	m.Parts = append(m.Parts, s.userFacts(u, groups, identities), s.userRoles(u.User, roles), adminview.Card("edit-title", "Change",
		adminview.Form(adminview.FormModel{Action: route.AdminUser(u.ID), Errors: shown.Errors, Button: "Save", Busy: "Saving…", Parts: shown.Parts()})),
		s.userTokens(u.ID, tokens), s.userSessions(u.ID, sessions))
	return s.Sheet(w, r, actor, status, userFrame(u.ID, ""), m)
}

func (s *Server) userFacts(u loom.UserSummary, groups []loom.Group, identities []account.IdentityOf) templ.Component {
	facts := []ui.Def{
		{Term: "Clusters", Value: adminview.Link(strconv.Itoa(u.Clusters), route.Query(route.Clusters(), "owner", string(u.ID)))},
		{Term: "SSH keys", Text: strconv.Itoa(len(u.SSHKeys))}, {Term: "Last seen", Value: ui.Time(u.LastSeen, s.Now())}, {Term: "Created", Value: ui.Time(u.Created, s.Now())},
		{Term: "Activity", Value: adminview.Link("Audit log", route.Query(route.AdminAudit(), "actor", string(u.ID)))},
	}
	if len(groups) > 0 {
		var links []ui.Tab
		for _, g := range groups {
			links = append(links, ui.Tab{Label: g.Name, Href: route.AdminGroup(g.ID)})
		}
		facts = append(facts, ui.Def{Term: "Groups", Value: adminview.Links(links)})
	}
	for _, identity := range identities {
		facts = append(facts, ui.Def{Term: "Signed in with " + identity.ProviderName, Value: ui.Time(identity.Seen, s.Now())})
	}
	if u.PasswordChange == loom.PasswordRequired {
		facts = append(facts, ui.Def{Term: "Password", Text: "To be changed at the next sign-in"})
	}
	return ui.Definitions(facts)
}

// maxRoles is how many roles by bindings the page of a user, or of a group, shows.
const maxRoles = 500

// userRoles lists what a user may do, and whence.
func (s *Server) userRoles(u loom.User, bound account.BindingList) templ.Component {
	m := adminview.TableModel{ID: "roles", Caption: "Roles", ShowCaption: true, Now: s.Now(), Columns: []ui.Column{{Label: "Role"}, {Label: "For"}, {Label: "From"}},
		Empty: ui.EmptyModel{Icon: "key", Text: "No roles, so the user can't sign in. Choose one below, or add the user to a group."}}
	row := func(role loom.Role, place, from adminview.Cell) {
		m.Rows = append(m.Rows, []adminview.Cell{{Text: page.Capital(string(role)), Sub: roleHelp[role]}, place, from})
	}
	if u.Role.Stored() != loom.RoleNone {
		row(u.Role, grantWords(loom.Binding{}), adminview.Cell{Text: "The user's own"})
	}
	for _, b := range bound.Items {
		from := adminview.Cell{Text: "Given by " + string(b.CreatedBy), Time: b.Created}
		if b.Group != 0 {
			from = adminview.Cell{Text: "Group " + b.GroupName, Href: route.AdminGroup(b.Group)}
		}
		row(b.Role, grantWords(b), from)
	}
	if bound.Next != "" {
		m.Pages.Text = "The first " + strconv.Itoa(maxRoles)
	}
	return adminview.Table(m)
}

// userActions are what an administrator does to somebody else.
func userActions(actor loom.Actor, u loom.UserSummary) (actions []ui.ButtonModel, menu []ui.MenuItem) {
	switch {
	case u.ID == actor.User:
		return []ui.ButtonModel{{Label: "Your account", Icon: "user", Href: route.Account()}}, nil
	case u.Disabled:
		actions = []ui.ButtonModel{page.Opening("Enable", "", route.AdminUserVerb(u.ID, "enable"), ui.Secondary)}
	default:
		actions = []ui.ButtonModel{page.Opening("New password", "", route.AdminUserVerb(u.ID, "password"), ui.Secondary)}
	}
	if u.ID == loom.AdminUser {
		return actions, nil
	}
	if !u.Disabled {
		menu = append(menu, page.Asking("Disable", "ban", route.AdminUserVerb(u.ID, "disable")))
	}
	return actions, append(menu, page.Deleting(route.AdminUserVerb(u.ID, "delete")))
}

// userFields are those that a form of a user has besides.
func userFields(first ...form.Part) form.Form {
	return form.Of(append(first,
		form.Field{Path: form.At("displayName"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Display name", Optional: true, MaxLength: 200}},
		form.Field{Path: form.At("email"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Email", Kind: ui.FieldEmail, Optional: true, MaxLength: 200}})...)
}

var roleField = form.Field{Path: form.At("role"), Face: ui.FieldModel{Label: "Role", Kind: ui.FieldSelect, Width: "s",
	Options: page.Options("", string(loom.RoleUser), "user: own clusters", string(loom.RoleAdmin), "admin: the whole tenant", string(loom.RoleNone), "none: what groups give")}}

// newUser is the form of a new user.
func newUser() form.Edit {
	id := form.Field{Path: form.At("id"), Face: ui.FieldModel{Label: "User name", Mono: true, MaxLength: 255, Width: "s"}}
	return userFields(id, roleField).Over(map[string]any{"role": loom.RoleUser})
}

// editUser is the form of a user; its document has the role only where that can be changed.
func editUser(actor loom.Actor, u loom.User) form.Edit {
	doc := map[string]any{"displayName": u.DisplayName, "email": u.Email}
	locked := form.Fixed{Path: roleField.Path, Label: roleField.Face.Label, Value: string(u.Role)}
	switch u.ID {
	case actor.User:
		locked.Why = "You can't change your own role."
	case loom.AdminUser:
		locked.Why = "The built-in administrator stays one."
	default:
		doc["role"] = u.Role.Stored()
		return userFields(roleField).Over(doc)
	}
	return userFields(locked).Over(doc)
}

func (s *Server) userTokens(id loom.UserID, tokens []loom.Token) templ.Component {
	m := adminview.TableModel{ID: "tokens", Caption: "API tokens", ShowCaption: true, Now: s.Now(), Empty: ui.EmptyModel{Icon: "key", Text: "The user has no API tokens."},
		Columns: []ui.Column{{Label: "Name"}, {Label: "Starts with"}, {Label: "Scopes"}, {Label: "Last used"}, {Label: "Expires"}, {Label: "Actions", LabelHidden: true}}}
	for _, t := range tokens {
		used := adminview.Cell{Time: t.LastUsed, ShowTime: true}
		if t.LastAddress != "" {
			used.Sub = "from " + t.LastAddress
		}
		m.Rows = append(m.Rows, []adminview.Cell{
			{Text: t.Name}, {Text: t.Prefix + "…", Mono: true}, {Text: ui.ScopeWords(t.Scopes)}, used, {Time: t.Expires, ShowTime: true},
			{Buttons: []ui.ButtonModel{page.Opening("Revoke", "Revoke token "+t.Name, route.AdminUserToken(id, t.ID), ui.Danger)}},
		})
	}
	return adminview.Table(m)
}

func (s *Server) userSessions(id loom.UserID, sessions []loom.Session) templ.Component {
	m := adminview.TableModel{ID: "sessions", Caption: "Sessions", ShowCaption: true, Now: s.Now(), Empty: ui.EmptyModel{Icon: "monitor", Text: "No sessions."},
		Columns: []ui.Column{{Label: "Browser"}, {Label: "Address"}, {Label: "Last used"}, {Label: "Signed in"}, {Label: "Actions", LabelHidden: true}}}
	for _, one := range sessions {
		m.Rows = append(m.Rows, []adminview.Cell{
			{Text: ui.BrowserName(one.Agent)}, {Text: one.Address, Mono: true}, {Time: one.LastUsed, ShowTime: true}, {Time: one.Created},
			{Buttons: []ui.ButtonModel{page.Opening("Sign out", "Sign out "+ui.BrowserName(one.Agent)+" at "+one.Address, route.AdminUserSession(id, one.ID), ui.Danger)}},
		})
	}
	return adminview.Table(m)
}

func (s *Server) adminUserSave(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	values, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	u, err := s.Accounts.User(r.Context(), actor, pathUser(r))
	if err != nil {
		return err
	}
	e := editUser(actor, u)
	in, err := form.Decode(&e, values, wire.ReadUserChange)
	if err == nil {
		_, err = s.Accounts.UpdateUser(r.Context(), actor, u.ID, in)
	}
	if fields, status, ok := page.Refused(err); ok {
		e = e.Refused("The user was not changed.", fields)
		return s.userPage(w, r, actor, status, nil, &e)
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.AdminUser(u.ID), httpx.Flash{Tone: "ok", Text: "Saved " + string(u.ID) + "."})
}

// userVerb is a medium act on a user: its question, and what it does.
type userVerb struct {
	verb, button, busy, said string
	lines                    func(u loom.UserSummary) []string
	harmless                 bool
}

var userVerbs = map[string]userVerb{
	"disable": {"Disable", "Disable", "Disabling…", "Disabled", func(u loom.UserSummary) []string {
		return []string{"The user is signed out everywhere, " + ui.Count(u.Tokens, "API token is", "API tokens are") + " revoked, and the user can't sign in. Clusters stay unchanged."}
	}, false},
	"enable": {"Enable", "Enable", "Enabling…", "Enabled", func(loom.UserSummary) []string {
		return []string{"The user can sign in again with the current password. Revoked tokens stay revoked."}
	}, true},
	"password": {"New password for", "Make a new password for", "Making…", "", func(loom.UserSummary) []string {
		return []string{"A password is generated and shown once. The user is signed out everywhere, and has to choose another one at the next sign-in."}
	}, false},
	"delete": {"Delete", "Delete user", "Deleting…", "Deleted", func(loom.UserSummary) []string {
		return []string{"This can't be undone. Sessions and tokens end at once. The audit log keeps the user's entries."}
	}, false},
}

func pathVerb(r *http.Request) (userVerb, error) {
	v, ok := userVerbs[r.PathValue("verb")]
	if !ok {
		return v, loom.NewError(loom.NotFound, "There is no page %.100s.", r.URL.Path)
	}
	return v, nil
}

func (s *Server) adminUserAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := pathVerb(r)
	if err != nil {
		return err
	}
	u, err := s.Accounts.UserSummary(r.Context(), actor, pathUser(r))
	if err != nil {
		return err
	}
	m := adminview.ConfirmModel{Action: r.URL.Path, Lines: v.lines(u), Button: v.button + " " + string(u.ID), Busy: v.busy, Cancel: route.AdminUser(u.ID), Harmless: v.harmless}
	if r.PathValue("verb") == "password" {
		m.Fields = []ui.FieldModel{{Name: accountview.FieldEndTokens, Label: "Revoke the API tokens too", Kind: ui.FieldCheckbox,
			Help: ui.Count(u.Tokens, "valid token", "valid tokens") + " now; programs need new ones then."}}
	}
	if r.PathValue("verb") == "delete" && u.Clusters > 0 {
		m.WhyNot = string(u.ID) + " owns " + ui.Count(u.Clusters, "cluster that is", "clusters that are") + " not terminated; delete them or give them to another owner first."
		m.Instead, m.InsteadHref = "See the clusters", route.Query(route.Clusters(), "owner", string(u.ID))
	}
	return s.Confirm(w, r, actor, userFrame(u.ID, v.verb), adminview.Confirm(m))
}

// adminUserAct does what was confirmed. A new password is in the answer: it is not
// kept for a redirect.
func (s *Server) adminUserAct(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	v, err := pathVerb(r)
	if err != nil {
		return err
	}
	id, back := pathUser(r), route.AdminUser(pathUser(r))
	switch verb := r.PathValue("verb"); verb {
	case "password":
		f, err := page.ReadForm(w, r)
		if err != nil {
			return err
		}
		made, err := s.Accounts.ResetPassword(r.Context(), actor, id, f.Get(accountview.FieldEndTokens) == "true")
		if err != nil {
			return err
		}
		shown := s.MadePassword(r, "New password of "+string(id), actor.TenantName, string(id), made, back)
		return s.userPage(w, r, actor, http.StatusOK, shown, nil)
	case "delete":
		err, back = s.Accounts.DeleteUser(r.Context(), actor, id), route.AdminUsers()
	default:
		disabled := verb == "disable"
		_, err = s.Accounts.UpdateUser(r.Context(), actor, id, account.UserChange{Disabled: &disabled})
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, back, httpx.Flash{Tone: "ok", Text: v.said + " the user " + string(id) + "."})
}

// userToken finds a token of the path's user.
func (s *Server) userToken(r *http.Request, actor loom.Actor) (loom.Token, error) {
	tokens, err := s.Accounts.TokensOf(r.Context(), actor, pathUser(r))
	if err != nil {
		return loom.Token{}, err
	}
	for _, t := range tokens {
		if strconv.FormatInt(t.ID, 10) == r.PathValue("token") {
			return t, nil
		}
	}
	return loom.Token{}, loom.NewError(loom.NotFound, "There is no such token; it may have been revoked.")
}

func (s *Server) adminUserTokenAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, err := s.userToken(r, actor)
	if err != nil {
		return err
	}
	m := adminview.ConfirmModel{Action: r.URL.Path, Button: "Revoke token " + t.Name, Busy: "Revoking…", Cancel: route.AdminUser(pathUser(r)),
		Lines: []string{"Programs that use the token " + t.Name + " (" + t.Prefix + "…) are refused from the next request on. This cannot be undone."}}
	return s.Confirm(w, r, actor, userFrame(pathUser(r), "Revoke a token of"), adminview.Confirm(m))
}

func (s *Server) adminUserTokenRevoke(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	t, err := s.userToken(r, actor)
	if err != nil {
		return err
	}
	if err := s.Accounts.RevokeToken(r.Context(), actor, t.ID); err != nil {
		return err
	}
	return s.Say(w, r, route.AdminUser(pathUser(r)), httpx.Flash{Tone: "ok", Text: "Revoked the token " + t.Name + "."})
}

func (s *Server) adminUserSessionAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	sessions, err := s.Accounts.SessionsOf(r.Context(), actor, pathUser(r))
	if err != nil {
		return err
	}
	for _, one := range sessions {
		if one.ID == r.PathValue("session") {
			m := adminview.ConfirmModel{Action: r.URL.Path, Button: "Sign out " + string(pathUser(r)), Busy: "Signing out…", Cancel: route.AdminUser(pathUser(r)),
				Lines: []string{strings.TrimSpace("The session of " + ui.BrowserName(one.Agent) + " at " + one.Address + " ends at once; the user may sign in again.")}}
			return s.Confirm(w, r, actor, userFrame(pathUser(r), "End a session of"), adminview.Confirm(m))
		}
	}
	return loom.NewError(loom.NotFound, "There is no such session; it may have ended.")
}

func (s *Server) adminUserSessionEnd(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	if err := s.Accounts.EndSession(r.Context(), actor, r.PathValue("session")); err != nil {
		return err
	}
	return s.Say(w, r, route.AdminUser(pathUser(r)), httpx.Flash{Tone: "ok", Text: "Signed " + string(pathUser(r)) + " out there."})
}

var disabledState = ui.State{Word: "Disabled", Icon: "ban", Tone: ui.ToneIdle}

func (s *Server) adminUsers(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.usersPage(w, r, actor, nil)
}

// filteredRoles are the roles that a choice in the filter of the list is about.
var filteredRoles = map[loom.Role][]loom.Role{loom.RoleUser: {loom.RoleUser}, loom.RoleAdmin: {loom.RoleAdmin, loom.RoleSuperadmin}, loom.RoleNone: {loom.RoleNone}}

// userQuery is what the filters of the list say.
type userQuery struct{ q, role, state string }

func readUserQuery(v url.Values) userQuery {
	return userQuery{v.Get("q"), v.Get("role"), v.Get("state")}
}

func (q userQuery) pairs() []string {
	return []string{"q", q.q, "role", q.role, "state", q.state}
}

func (q userQuery) input(p loom.Page) account.UserListInput {
	in := account.UserListInput{Page: p, Q: q.q, Roles: filteredRoles[loom.Role(q.role)]}
	if q.state == "active" || q.state == "disabled" {
		disabled := q.state == "disabled"
		in.Disabled = &disabled
	}
	return in
}

// usersPage lists users; made shows the password of one that was created.
func (s *Server) usersPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, made templ.Component) error {
	q := readUserQuery(r.URL.Query())
	users, err := s.Accounts.ListUsers(r.Context(), actor, q.input(s.PageOf(r)))
	if err != nil {
		return err
	}
	m := adminview.PageModel{
		Title: "Users", Intro: "Who may sign in to this tenant. Administrators do everything in it; users see and change what is theirs.",
		Actions: []ui.ButtonModel{{Label: "New user", Icon: "plus", Kind: ui.Primary, Href: route.AdminUserNew()}},
		Calls:   []ui.JSONCall{page.Call("list", http.MethodGet, "/v2/users", ""), page.Call("create", http.MethodPost, "/v2/users", `{"id":"eve","role":"user"}`)},
	}
	if made != nil {
		m.Parts = append(m.Parts, made)
	}
	m.Parts = append(m.Parts, userFilters(q), s.userGrid(r, users, q))
	return s.Sheet(w, r, actor, http.StatusOK, page.AdminFrame("Users", route.AdminUsers()), m)
}

func (s *Server) adminUserNew(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.userNewPage(w, r, actor, http.StatusOK, newUser())
}

func (s *Server) userNewPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, e form.Edit) error {
	shown := e.Shown()
	frame := page.AdminFrame("New user", route.AdminUsers(), ui.Crumb{Label: "Admin", Href: route.Admin()}, ui.Crumb{Label: "Users", Href: route.AdminUsers()}, ui.Crumb{Label: "New"})
	frame.Section = "Users"
	return s.Sheet(w, r, actor, status, frame, adminview.PageModel{Intro: "A password is generated and shown once. The user has to choose another one at the first sign-in.",
		Parts: []templ.Component{adminview.Form(adminview.FormModel{Action: route.AdminUsers(), Errors: shown.Errors, Button: "Create user", Busy: "Creating…", Cancel: route.AdminUsers(), Parts: shown.Parts()})}})
}

func userFilters(q userQuery) templ.Component {
	m := adminview.FiltersModel{Action: route.AdminUsers(), Whole: true, Label: "Filter users", Fields: []ui.FieldModel{
		{Name: "q", Label: "Search users", LabelHidden: true, Kind: ui.FieldSearch, Width: "full", Value: q.q, Placeholder: "Search id, name or email", Optional: true, MaxLength: 200},
		{Name: "role", ID: "filter-role", Label: "Role", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true, Options: page.Options(q.role, "", "All roles", "user", "Users", "admin", "Administrators", "none", "No role of their own")},
		{Name: "state", Label: "State", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true, Options: page.Options(q.state, "", "All states", "active", "Active", "disabled", "Disabled")},
	}}
	if q != (userQuery{}) {
		m.Clear = route.AdminUsers()
	}
	return adminview.Filters(m)
}

func (s *Server) userGrid(r *http.Request, users account.UserList, q userQuery) templ.Component {
	m := adminview.TableModel{ID: "users", Caption: "Users of the tenant", Now: s.Now(), Columns: []ui.Column{
		{Label: "User"}, {Label: "Name"}, {Label: "Role"}, {Label: "Clusters", Numeric: true}, {Label: "Tokens", Numeric: true}, {Label: "Last seen"}, {Label: "Created"}},
		Pages: page.Turned("Pages of users", route.AdminUsers(), users.Next, users.Prev, q.pairs()...),
		Empty: ui.EmptyModel{Icon: "user", Text: "There are no users yet."},
		Bulk: &sharedview.BulkBar{Noun: "user", Filters: q.pairs(), Buttons: []ui.ButtonModel{
			{Label: "Disable", Icon: "ban", Kind: ui.Danger, Small: true, Submit: true, FormAction: route.AdminUsersDisable()}}},
	}
	if q != (userQuery{}) {
		m.Empty = ui.EmptyModel{Icon: "search", Text: "No user matches these filters.", Action: ui.ButtonModel{Label: "Clear filters", Href: route.AdminUsers()}}
	}
	for _, u := range users.Items {
		id := adminview.Cell{Text: string(u.ID), Href: route.AdminUser(u.ID), Mono: true}
		if u.Disabled {
			id.State = &disabledState
		}
		m.Keys = append(m.Keys, string(u.ID))
		m.Rows = append(m.Rows, []adminview.Cell{
			id, {Text: u.DisplayName, Sub: u.Email}, {Text: page.Capital(string(u.Role))}, {Text: page.CountOrDash(u.Clusters)}, {Text: page.CountOrDash(u.Tokens)},
			{Time: u.LastSeen, ShowTime: true}, {Time: u.Created},
		})
	}
	m.CSV, m.JSON = s.ExportsOf(r)
	return adminview.Table(m)
}

// adminUserCreate makes a user and answers with the password in the page: it is
// not kept for a redirect.
func (s *Server) adminUserCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	values, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	var user loom.User
	var password loom.Secret
	e := newUser()
	in, err := form.Decode(&e, values, wire.ReadUser)
	if err == nil {
		user, password, err = s.Accounts.CreateUser(r.Context(), actor, in)
	}
	if fields, status, ok := page.Refused(err); ok {
		return s.userNewPage(w, r, actor, status, e.Refused("The user was not created.", fields))
	}
	if err != nil {
		return err
	}
	made := s.MadePassword(r, "User "+string(user.ID)+" was created", actor.TenantName, string(user.ID), password, route.AdminUsers())
	return s.usersPage(w, r, actor, made)
}
