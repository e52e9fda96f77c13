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
	"loom/views/adminview"
	"loom/views/layout"
	"loom/views/route"
	"loom/views/ui"
)

func groupFrame(title string, crumbs ...ui.Crumb) layout.Model {
	if len(crumbs) > 0 {
		crumbs = append([]ui.Crumb{{Label: "Admin", Href: route.Admin()}, {Label: "Groups", Href: route.AdminGroups()}}, crumbs...)
	}
	m := page.AdminFrame(title, route.AdminGroups(), crumbs...)
	m.Section = "Groups"
	return m
}

func (s *Server) adminGroups(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	q := r.URL.Query().Get("q")
	list, err := s.Accounts.ListGroups(r.Context(), actor, q, s.PageOf(r))
	if err != nil {
		return err
	}
	m := adminview.PageModel{
		Title: "Groups", Intro: "A role of a group is a role of each of its members.",
		Actions: []ui.ButtonModel{{Label: "New group", Icon: "plus", Kind: ui.Primary, Href: route.AdminGroupNew()}},
		Calls:   []ui.JSONCall{page.Call("list", http.MethodGet, "/v2/groups", ""), page.Call("create", http.MethodPost, "/v2/groups", `{"name":"Team web"}`)},
	}
	filters := adminview.FiltersModel{Action: route.AdminGroups(), Whole: true, Label: "Filter groups", Fields: []ui.FieldModel{
		{Name: "q", Label: "Search groups", LabelHidden: true, Kind: ui.FieldSearch, Width: "full", Value: q, Placeholder: "Search name or description", Optional: true, MaxLength: 200}}}
	table := adminview.TableModel{ID: "groups", Caption: "Groups of the tenant", Now: s.Now(), Columns: []ui.Column{{Label: "Group"}, {Label: "Members", Numeric: true}, {Label: "Roles", Numeric: true}, {Label: "Created"}},
		Pages: page.Turned("Pages of groups", route.AdminGroups(), list.Next, list.Prev, "q", q),
		Empty: ui.EmptyModel{Icon: "user", Text: "No groups yet.", Action: ui.ButtonModel{Label: "New group", Icon: "plus", Href: route.AdminGroupNew()}}}
	if q != "" {
		filters.Clear = route.AdminGroups()
		table.Empty = ui.EmptyModel{Icon: "search", Text: "No matches.", More: "Clear filters", MoreHref: route.AdminGroups()}
	}
	for _, g := range list.Items {
		table.Rows = append(table.Rows, []adminview.Cell{{Text: g.Name, Href: route.AdminGroup(g.ID), Sub: g.Description}, {Text: strconv.Itoa(g.Members)}, {Text: strconv.Itoa(g.Bindings)}, {Time: g.Created}})
	}
	table.CSV, table.JSON = s.ExportsOf(r)
	m.Parts = append(m.Parts, adminview.Filters(filters), adminview.Table(table))
	return s.Sheet(w, r, actor, http.StatusOK, groupFrame("Groups"), m)
}

// editGroup is the form of a group.
func editGroup(g loom.Group) form.Edit {
	return form.Of(
		form.Field{Path: form.At("name"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Name", MaxLength: 100, Width: "m"}},
		form.Field{Path: form.At("description"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "Description", Optional: true, MaxLength: 200, Width: "l"}},
	).Over(map[string]any{"name": g.Name, "description": g.Description})
}

func (s *Server) adminGroupNew(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.groupNewPage(w, r, actor, http.StatusOK, editGroup(loom.Group{}))
}

func (s *Server) groupNewPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, e form.Edit) error {
	shown := e.Shown()
	return s.Sheet(w, r, actor, status, groupFrame("New group", ui.Crumb{Label: "New"}), adminview.PageModel{Parts: []templ.Component{
		adminview.Form(adminview.FormModel{Action: route.AdminGroups(), Errors: shown.Errors, Button: "Create group", Busy: "Creating…", Cancel: route.AdminGroups(), Parts: shown.Parts()})}})
}

func (s *Server) adminGroupCreate(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	values, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	var g loom.Group
	e := editGroup(loom.Group{})
	in, err := form.Decode(&e, values, wire.ReadGroup)
	if err == nil {
		g, err = s.Accounts.CreateGroup(r.Context(), actor, in)
	}
	if fields, status, ok := page.Refused(err); ok {
		return s.groupNewPage(w, r, actor, status, e.Refused("The group was not created.", fields))
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.AdminGroup(g.ID), httpx.Flash{Tone: "ok", Text: "Created the group " + g.Name + ". Add its members and roles."})
}

// groupForms are the forms of a group's page; one that was refused says why.
type groupForms struct{ edit, member, role form.Edit }

func formsOf(g loom.Group) groupForms {
	return groupForms{edit: editGroup(g), member: memberForm(), role: roleForm()}
}

func memberForm() form.Edit {
	return form.Of(form.Field{Path: form.At("user"), Face: ui.FieldModel{Label: "User", Mono: true, MaxLength: 255, Width: "s", Help: "The user name with which the user signs in."}}).Over(map[string]any{"user": ""})
}

// roleForm gives a role in the tenant or on the clusters of a template; those on one cluster are given there.
func roleForm() form.Edit {
	var roles []string
	for _, role := range loom.BoundAt(loom.PlaceTenant) {
		roles = append(roles, string(role), string(role)+": "+roleHelp[role])
	}
	return form.Of(
		form.Field{Path: form.At("role"), Face: ui.FieldModel{Label: "Role", Kind: ui.FieldSelect, Width: "m", Options: page.Options("", roles...)}},
		form.Field{Path: form.At("template"), Face: ui.FieldModel{Label: "Template", Mono: true, Optional: true, Width: "s", MaxLength: 255, Help: "The role holds for clusters of this template; empty: in all of the tenant."}},
	).Over(map[string]any{"role": string(loom.RoleReader), "template": ""})
}

// roleHelp says what each role may do.
var roleHelp = map[loom.Role]string{
	loom.RoleReader: "sees clusters", loom.RoleUser: "creates clusters", loom.RoleOperator: "sees and changes clusters", loom.RolePublisher: "writes the catalog", loom.RoleAdmin: "does everything",
}

func (s *Server) ofGroup(r *http.Request, actor loom.Actor) (loom.Group, error) {
	id, err := page.PathNumber(r, "id", "group")
	if err != nil {
		return loom.Group{}, err
	}
	return s.Accounts.Group(r.Context(), actor, id)
}

func (s *Server) adminGroup(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	g, err := s.ofGroup(r, actor)
	if err != nil {
		return err
	}
	return s.groupPage(w, r, actor, http.StatusOK, g, nil)
}

func (s *Server) groupPage(w http.ResponseWriter, r *http.Request, actor loom.Actor, status int, g loom.Group, change func(f *groupForms)) error {
	members, err := s.Accounts.Members(r.Context(), actor, g.ID, loom.UserID(r.URL.Query().Get("after")))
	if err != nil {
		return err
	}
	bindings, err := s.Accounts.ListBindings(r.Context(), actor, account.BindingFilter{Group: g.ID}, loom.Page{Limit: maxRoles})
	if err != nil {
		return err
	}
	forms := formsOf(g)
	if change != nil {
		change(&forms)
	}
	at := "/v2/groups/" + strconv.FormatInt(g.ID, 10)
	m := adminview.PageModel{Title: g.Name, Intro: g.Description, Menu: []ui.MenuItem{page.Deleting(route.AdminGroupVerb(g.ID, "delete"))},
		Calls: []ui.JSONCall{page.Call("read", http.MethodGet, at, ""), page.Call("add a member", http.MethodPut, at+"/members/eve", ""),
			page.Call("give a role", http.MethodPost, "/v2/bindings", `{"group":"`+strconv.FormatInt(g.ID, 10)+`","role":"operator"}`)}}
	inline := func(e form.Edit, verb, button, busy string) templ.Component {
		shown := e.Shown()
		return adminview.Form(adminview.FormModel{Action: route.AdminGroupVerb(g.ID, strings.Fields(verb)...), Errors: shown.Errors, Button: button, Busy: busy, Secondary: verb != verbMembers, Parts: shown.Parts()})
	}
	m.Parts = append(m.Parts,
		adminview.Card("members-title", "Members", s.memberTable(g, members), inline(forms.member, verbMembers, "Add member", "Adding…")),
		adminview.Card("roles-title", "Roles", s.roleTable(bindings.Items, route.AdminGroupVerb(g.ID, "roles", "remove")), inline(forms.role, "roles", "Give role", "Giving…")),
		adminview.Card("edit-title", "Change", inline(forms.edit, "", "Save", "Saving…")))
	return s.Sheet(w, r, actor, status, groupFrame(g.Name, ui.Crumb{Label: g.Name}), m)
}

// verbMembers adds a member, which is what people open a group for.
const verbMembers = "members"

func (s *Server) memberTable(g loom.Group, members account.MemberList) templ.Component {
	m := adminview.TableModel{ID: "members", Caption: "Members of " + g.Name, Now: s.Now(), Columns: []ui.Column{{Label: "User"}, {Label: "Name"}, {Label: "Added"}, {Label: "Actions", LabelHidden: true}},
		Empty: ui.EmptyModel{Icon: "user", Text: "No members yet."}}
	if members.Next != "" {
		m.Pages = page.Turned("Pages of members", route.AdminGroup(g.ID), string(members.Next), "")
	}
	for _, one := range members.Items {
		row := []adminview.Cell{{Text: string(one.User), Href: route.AdminUser(one.User), Mono: true}, {Text: one.DisplayName}, {Time: one.Added, Sub: "by " + string(one.AddedBy)}, {}}
		if one.Source != loom.MemberByHand {
			row[2].Sub = "by a rule"
		}
		if one.Source == loom.MemberByHand {
			row[3] = adminview.Cell{Part: adminview.Act(route.AdminGroupVerb(g.ID, "members", "remove"), ui.ButtonModel{Label: "Remove", Small: true, Submit: true, Busy: "Removing…",
				Attrs: templ.Attributes{"aria-label": "Remove " + string(one.User)}}, "user", string(one.User))}
		}
		m.Rows = append(m.Rows, row)
	}
	return adminview.Table(m)
}

// grantWords say where a role holds.
func grantWords(b loom.Binding) adminview.Cell {
	switch b.Place() {
	case loom.PlaceCluster:
		return adminview.Cell{Text: "Cluster " + b.ClusterName, Href: route.Cluster(b.Cluster)}
	case loom.PlaceTemplate:
		return adminview.Cell{Text: "Clusters of " + b.Template, Href: route.AdminEntry(loom.KindTemplate, b.Template)}
	}
	return adminview.Cell{Text: "All of the tenant"}
}

// roleTable lists roles; remove is where a form takes one back.
func (s *Server) roleTable(bindings []loom.Binding, remove string) templ.Component {
	m := adminview.TableModel{ID: "roles", Caption: "Roles given", Now: s.Now(), Columns: []ui.Column{{Label: "Role"}, {Label: "For"}, {Label: "Given"}, {Label: "Actions", LabelHidden: true}},
		Empty: ui.EmptyModel{Icon: "key", Text: "No roles yet."}}
	for _, b := range bindings {
		m.Rows = append(m.Rows, []adminview.Cell{{Text: page.Capital(string(b.Role)), Sub: roleHelp[b.Role]}, grantWords(b), {Time: b.Created, Sub: "by " + string(b.CreatedBy)},
			{Part: adminview.Act(remove, ui.ButtonModel{Label: "Take back", Small: true, Submit: true, Busy: "Taking back…", Attrs: templ.Attributes{"aria-label": "Take back the role " + string(b.Role)}}, "binding", strconv.FormatInt(b.ID, 10))}})
	}
	return adminview.Table(m)
}

// changeGroup does what a form of a group's page asks for; one that is refused is shown again by again.
func (s *Server) changeGroup(w http.ResponseWriter, r *http.Request, actor loom.Actor, do func(g loom.Group, values url.Values) (said string, err error), again func(f *groupForms, fields []loom.FieldError)) error {
	values, err := page.ReadForm(w, r)
	if err != nil {
		return err
	}
	g, err := s.ofGroup(r, actor)
	if err != nil {
		return err
	}
	said, err := do(g, values)
	if fields, status, ok := page.Refused(err); ok && again != nil {
		return s.groupPage(w, r, actor, status, g, func(f *groupForms) { again(f, fields) })
	}
	if err != nil {
		return err
	}
	return s.Say(w, r, route.AdminGroup(g.ID), httpx.Flash{Tone: "ok", Text: said})
}

func (s *Server) adminGroupSave(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	var e form.Edit
	return s.changeGroup(w, r, actor, func(g loom.Group, values url.Values) (string, error) {
		e = editGroup(g)
		in, err := form.Decode(&e, values, wire.ReadGroup)
		if err == nil {
			_, err = s.Accounts.UpdateGroup(r.Context(), actor, g.ID, in)
		}
		return "Saved the group.", err
	}, func(f *groupForms, fields []loom.FieldError) {
		f.edit = e.Refused("The group was not changed.", fields)
	})
}

func (s *Server) adminMemberAdd(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	e := memberForm()
	return s.changeGroup(w, r, actor, func(g loom.Group, values url.Values) (string, error) {
		in, err := form.Decode(&e, values, wire.ReadMember)
		if err == nil {
			err = s.Accounts.AddMember(r.Context(), actor, g.ID, in)
		}
		return "Added " + string(in) + " to " + g.Name + ".", err
	}, func(f *groupForms, fields []loom.FieldError) { f.member = e.Refused("Nobody was added.", fields) })
}

func (s *Server) adminMemberRemove(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.changeGroup(w, r, actor, func(g loom.Group, values url.Values) (string, error) {
		user := loom.UserID(values.Get("user"))
		return "Removed " + string(user) + " from " + g.Name + ".", s.Accounts.RemoveMember(r.Context(), actor, g.ID, user)
	}, nil)
}

func (s *Server) adminGroupBind(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	e := roleForm()
	return s.changeGroup(w, r, actor, func(g loom.Group, values url.Values) (string, error) {
		in, err := form.Decode(&e, values, wire.ReadBinding)
		if err == nil {
			in.Group = g.ID
			_, err = s.Accounts.Bind(r.Context(), actor, in)
		}
		return "Gave the role " + string(in.Role) + ".", err
	}, func(f *groupForms, fields []loom.FieldError) { f.role = e.Refused("The role was not given.", fields) })
}

func (s *Server) adminGroupUnbind(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return s.changeGroup(w, r, actor, func(_ loom.Group, values url.Values) (string, error) {
		id, err := strconv.ParseInt(values.Get("binding"), 10, 64)
		if err != nil {
			return "", loom.NewError(loom.NotFound, "There is no such binding.")
		}
		return "Took the role back.", s.Accounts.Unbind(r.Context(), actor, id)
	}, nil)
}

func (s *Server) adminGroupDeleteAsk(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	g, err := s.ofGroup(r, actor)
	if err != nil {
		return err
	}
	m := adminview.ConfirmModel{Action: r.URL.Path, Button: "Delete group " + g.Name, Busy: "Deleting…", Cancel: route.AdminGroup(g.ID),
		Lines: []string{"This can't be undone. " + ui.Count(g.Members, "member loses", "members lose") + " what the group gives at once."}}
	return s.Confirm(w, r, actor, groupFrame("Delete group "+g.Name, ui.Crumb{Label: g.Name, Href: route.AdminGroup(g.ID)}, ui.Crumb{Label: "Delete"}), adminview.Confirm(m))
}

func (s *Server) adminGroupDelete(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	g, err := s.ofGroup(r, actor)
	if err != nil {
		return err
	}
	if err := s.Accounts.DeleteGroup(r.Context(), actor, g.ID); err != nil {
		return err
	}
	return s.Say(w, r, route.AdminGroups(), httpx.Flash{Tone: "ok", Text: "Deleted the group " + g.Name + "."})
}
