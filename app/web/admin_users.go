package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"loom/app/account"
	"loom/app/loom"
	"loom/views/officeview"
	"loom/views/route"
	"loom/views/ui"
)

// Names of the fields of the forms about users.
const (
	fieldUser    = "id"
	fieldRole    = "role"
	fieldDisplay = "displayName"
	fieldEmail   = "email"
)

var disabledState = ui.State{Word: "Disabled", Icon: "ban", Tone: ui.ToneIdle}

func (s *Server) adminUsers(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.usersPage(w, r, actor, http.StatusOK, nil, account.UserInput{Role: loom.RoleUser}, ui.FormErrors{})
}

// usersPage lists users, beneath the form for a new one with what was given.
func (s *Server) usersPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, made templ.Component, in account.UserInput, errs ui.FormErrors) error {
	q := r.URL.Query()
	list := account.UserListInput{Page: s.pageOf(r), Q: q.Get("q")}
	role, state := q.Get("role"), q.Get("state")
	if role == string(loom.RoleUser) || role == string(loom.RoleAdmin) {
		list.Roles = []loom.Role{loom.Role(role)}
		if role == string(loom.RoleAdmin) {
			list.Roles = append(list.Roles, loom.RoleSuperadmin)
		}
	}
	if state == "active" || state == "disabled" {
		disabled := state == "disabled"
		list.Disabled = &disabled
	}
	users, err := s.Accounts.ListUsers(r.Context(), actor, list)
	if err != nil {
		return err
	}
	m := officeview.SheetModel{
		Title: "Users", Intro: "Who may sign in to this tenant. Administrators do everything in it; users see and change what is theirs.",
		Actions: []ui.ButtonModel{{Label: "New user", Icon: "plus", Kind: ui.Primary, Href: "#new-user"}},
		Calls:   []ui.JSONCall{call("list", http.MethodGet, "/v2/users", ""), call("create", http.MethodPost, "/v2/users", `{"id":"eve","role":"user"}`)},
	}
	if made != nil {
		m.Parts = append(m.Parts, made)
	}
	filtered := list.Q != "" || role != "" || state != ""
	m.Parts = append(m.Parts, userFilters(list.Q, role, state, filtered), s.userGrid(r, users, filtered, "q", list.Q, "role", role, "state", state),
		officeview.Card("new-user", "New user", newUserForm(in, errs)))
	return s.sheet(w, r, actor, status, adminFrame("Users", route.AdminUsers()), m)
}

func userFilters(q, role, state string, filtered bool) templ.Component {
	m := officeview.FiltersModel{Action: route.AdminUsers(), Target: "users-list", Fields: []ui.FieldModel{
		{Name: "q", Label: "Search users", LabelHidden: true, Kind: ui.FieldSearch, Width: "full", Value: q, Placeholder: "Search id, name or e-mail", Optional: true, MaxLength: 200},
		{Name: "role", ID: "filter-role", Label: "Role", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true, Options: options(role, "", "All roles", "user", "Users", "admin", "Administrators")},
		{Name: "state", Label: "State", LabelHidden: true, Kind: ui.FieldSelect, Width: "s", Optional: true, Options: options(state, "", "All states", "active", "Active", "disabled", "Disabled")},
	}}
	if filtered {
		m.Clear = route.AdminUsers()
	}
	return officeview.Filters(m)
}

// options makes the choices of a select from values and labels in turn.
func options(chosen string, pairs ...string) []ui.Option {
	var all []ui.Option
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, ui.Option{Value: pairs[i], Label: pairs[i+1], Selected: pairs[i] == chosen})
	}
	return all
}

func (s *Server) userGrid(r *http.Request, users account.UserList, filtered bool, filters ...string) templ.Component {
	m := officeview.GridModel{ID: "users", Caption: "Users of the tenant", Now: s.now(), Columns: []ui.Column{
		{Label: "User"}, {Label: "Name", Low: true}, {Label: "Role"}, {Label: "Clusters", Numeric: true}, {Label: "Tokens", Numeric: true, Low: true}, {Label: "Last seen"}, {Label: "Created", Low: true}},
		Pages: turned("Pages of users", route.AdminUsers(), users.Next, users.Prev, filters...),
		Empty: ui.EmptyModel{Icon: "user", Text: "There are no users yet."},
	}
	if filtered {
		m.Empty = ui.EmptyModel{Icon: "search", Text: "No user matches these filters.", Action: ui.ButtonModel{Label: "Clear filters", Href: route.AdminUsers()}}
	}
	for _, u := range users.Items {
		id := officeview.Cell{Text: string(u.ID), Href: route.AdminUser(u.ID), Mono: true}
		if u.Disabled {
			id.State = &disabledState
		}
		m.Rows = append(m.Rows, []officeview.Cell{
			id, {Text: u.DisplayName, Sub: u.Email}, {Text: string(u.Role)}, {Text: strconv.Itoa(u.Clusters)}, {Text: strconv.Itoa(u.Tokens)},
			{Time: u.LastSeen, ShowTime: true}, {Time: u.Created},
		})
	}
	m.CSV, m.JSON = s.exportsOf(r)
	return officeview.Grid(m)
}

func roleOptions(role loom.Role) []ui.Option {
	chosen := string(loom.RoleUser)
	if role != loom.RoleUser {
		chosen = string(loom.RoleAdmin)
	}
	return options(chosen, string(loom.RoleUser), "user: own clusters", string(loom.RoleAdmin), "admin: the whole tenant")
}

func newUserForm(in account.UserInput, errs ui.FormErrors) templ.Component {
	return officeview.Form(officeview.FormModel{Action: route.AdminUsers(), Errors: errs, Button: "Create user", Busy: "Creating…", Parts: []templ.Component{
		officeview.Text("A password is generated and shown once; the user has to choose another one at the first sign-in."),
		field(ui.FieldModel{Name: fieldUser, Label: "User name", Value: string(in.ID), Mono: true, MaxLength: 255, Width: "s"}, errs),
		field(ui.FieldModel{Name: fieldRole, Label: "Role", Kind: ui.FieldSelect, Options: roleOptions(in.Role), Width: "s"}, errs),
		field(ui.FieldModel{Name: fieldDisplay, Label: "Display name", Value: in.DisplayName, Optional: true, MaxLength: 200}, errs),
		field(ui.FieldModel{Name: fieldEmail, Label: "E-mail", Kind: ui.FieldEmail, Value: in.Email, Optional: true, MaxLength: 200}, errs),
	}})
}

func readUser(f url.Values) account.UserInput {
	return account.UserInput{
		ID: loom.UserID(strings.TrimSpace(f.Get(fieldUser))), Role: loom.Role(f.Get(fieldRole)),
		DisplayName: strings.TrimSpace(f.Get(fieldDisplay)), Email: strings.TrimSpace(f.Get(fieldEmail)),
	}
}

// adminUserCreate makes a user and answers with the password in the page: it is
// not kept for a redirect.
func (s *Server) adminUserCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	f, err := accountForm(w, r)
	if err != nil {
		return err
	}
	in := readUser(f)
	user, password, err := s.Accounts.CreateUser(r.Context(), actor, in)
	if errs, status, ok := accountErrors(err, "The user was not created."); ok {
		return s.usersPage(w, r, actor, status, nil, in, errs)
	}
	if err != nil {
		return err
	}
	made := s.madePassword(r, "User "+string(user.ID)+" was created", actor.TenantName, string(user.ID), password, route.AdminUsers())
	return s.usersPage(w, r, actor, http.StatusOK, made, account.UserInput{Role: loom.RoleUser}, ui.FormErrors{})
}

// madePassword shows a generated password, this once, with where to sign in.
func (s *Server) madePassword(r *http.Request, title, tenant, user string, password loom.Secret, back string) templ.Component {
	at := s.signInAddress(r, tenant)
	return officeview.Secret(officeview.SecretModel{
		Title: title, Warning: "Copy the password now. It is shown this once; Loom keeps only a hash of it.", Back: back, Button: "I have copied the password",
		Facts: []ui.Def{{Term: "Sign in at", Value: ui.CopyText(at, "address")}, {Term: "Tenant", Text: tenant, Mono: true}, {Term: "User name", Text: user, Mono: true},
			{Term: "Password", Value: ui.CopyText(password.Reveal(), "password")}},
		All: "Sign in at: " + at + "\nTenant: " + tenant + "\nUser name: " + user + "\nPassword: " + password.Reveal() + "\n", What: "the sign-in",
	})
}
