package account_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/store"
)

// sharer is a bundle with some users, a group and a cluster of the user's.
type sharer struct {
	bundle
	ana   loom.Actor
	group loom.Group
}

func sharing(t *testing.T) sharer {
	t.Helper()
	s := sharer{bundle: setup(t)}
	for _, id := range []loom.UserID{"ana", "ben", "gone"} {
		if _, _, err := s.CreateUser(s.ctx, s.admin, account.UserInput{ID: id, Role: loom.RoleNone, Password: loom.NewSecret("a long password of " + string(id))}); err != nil {
			t.Fatal(err)
		}
		s.passwords["demo/"+string(id)] = loom.NewSecret("a long password of " + string(id))
	}
	s.exec(t, `UPDATE users SET disabled = true WHERE id = 'gone'`)
	s.exec(t, `INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, services)
		VALUES (41, $1, 'user', 'mine', 'active', 'web', 1, '{}', 'lab', '{}'), (42, $1, 'admin', 'other', 'active', 'web', 1, '{}', 'lab', '{}'), (43, $1, 'user', 'over', 'terminated', 'web', 1, '{}', 'lab', '{}')`, s.admin.Tenant)
	s.exec(t, `INSERT INTO catalog_versions (tenant_id, kind, name, version, body, created_by, weight) VALUES ($1, 'clustertemplates', 'web', 1, '{"name": "web", "version": 1}', 'admin', 1)`, s.admin.Tenant)
	group, err := s.CreateGroup(s.ctx, s.admin, account.GroupInput{Name: ptr("Team web")})
	if err != nil {
		t.Fatal(err)
	}
	s.group = group
	s.ana = loom.Actor{Tenant: s.admin.Tenant, TenantName: "demo", User: "ana", Role: loom.RoleNone, Via: "session"}
	return s
}

// now is an actor as he is recognized now.
func (s sharer) now(t *testing.T, actor loom.Actor) loom.Actor {
	t.Helper()
	u, err := store.User(s.ctx, s.db, actor.Tenant, actor.User)
	if err != nil {
		t.Fatal(err)
	}
	actor.Role, actor.Grants = u.Role, u.Grants
	return actor
}

func TestBindingsAreChecked(t *testing.T) {
	t.Parallel()
	s := sharing(t)
	group := s.group.ID
	if err := s.AddMember(s.ctx, s.admin, group, "ben"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		in    account.BindingInput
		want  loom.Kind
		field string
	}{
		"a reader of all":              {account.BindingInput{User: "ana", Role: loom.RoleReader}, "", ""},
		"a publisher, by group":        {account.BindingInput{Group: group, Role: loom.RolePublisher}, "", ""},
		"a user of a template":         {account.BindingInput{User: "ana", Role: loom.RoleUser, Template: "web"}, "", ""},
		"an admin of a cluster":        {account.BindingInput{User: "ana", Role: loom.RoleAdmin, Cluster: 41}, "", ""},
		"a publisher of a cluster":     {account.BindingInput{User: "ana", Role: loom.RolePublisher, Cluster: 41}, loom.Invalid, "role"},
		"a user of a cluster":          {account.BindingInput{User: "ana", Role: loom.RoleUser, Cluster: 41}, loom.Invalid, "role"},
		"a publisher of a template":    {account.BindingInput{User: "ana", Role: loom.RolePublisher, Template: "web"}, loom.Invalid, "role"},
		"a superadmin":                 {account.BindingInput{User: "ana", Role: loom.RoleSuperadmin}, loom.Invalid, "role"},
		"no role":                      {account.BindingInput{User: "ana"}, loom.Invalid, "role"},
		"nobody":                       {account.BindingInput{Role: loom.RoleReader}, loom.Invalid, "user"},
		"both":                         {account.BindingInput{User: "ana", Group: group, Role: loom.RoleReader}, loom.Invalid, "group"},
		"the built-in administrator":   {account.BindingInput{User: "admin", Role: loom.RoleReader}, loom.Invalid, "user"},
		"template and cluster":         {account.BindingInput{User: "ana", Role: loom.RoleReader, Template: "web", Cluster: 41}, loom.Invalid, "cluster"},
		"a user who is not there":      {account.BindingInput{User: "nobody", Role: loom.RoleReader}, loom.Invalid, "user"},
		"a disabled user":              {account.BindingInput{User: "gone", Role: loom.RoleReader}, loom.Invalid, "user"},
		"a name that cannot be stored": {account.BindingInput{User: "a\x00", Role: loom.RoleReader}, loom.Invalid, "user"},
		"a group that is not there":    {account.BindingInput{Group: 999, Role: loom.RoleReader}, loom.Invalid, "group"},
		"a template that is not there": {account.BindingInput{User: "ana", Role: loom.RoleReader, Template: "none"}, loom.Invalid, "template"},
		"a cluster that is not there":  {account.BindingInput{User: "ana", Role: loom.RoleReader, Cluster: 9}, loom.Invalid, "cluster"},
		"a cluster that was deleted":   {account.BindingInput{User: "ana", Role: loom.RoleReader, Cluster: 43}, loom.Invalid, "cluster"},
	} {
		b, err := s.Bind(s.ctx, s.admin, c.in)
		if c.want == "" && err != nil || c.want != "" && !errors.Is(err, c.want) || fieldsOf(err) != c.field {
			t.Errorf("%s: %v (fields %q)", name, err, fieldsOf(err))
		}
		if c.want == "" && (b.Grant != (loom.Grant{Role: c.in.Role, Template: c.in.Template, Cluster: c.in.Cluster}) || b.User != c.in.User || b.Group != c.in.Group || b.CreatedBy != "admin") {
			t.Errorf("%s: %+v", name, b)
		}
	}
	if _, err := s.Bind(s.ctx, s.admin, account.BindingInput{User: "ana", Role: loom.RoleReader}); !errors.Is(err, loom.Conflict) {
		t.Errorf("the same once more: %v", err)
	}
	unknown, disabled := error(nil), error(nil)
	_, unknown = s.Bind(s.ctx, s.admin, account.BindingInput{User: "nobody", Role: loom.RoleReader})
	_, disabled = s.Bind(s.ctx, s.admin, account.BindingInput{User: "gone", Role: loom.RoleReader})
	if unknown.Error() != disabled.Error() {
		t.Errorf("who is there shows: %q, %q", unknown, disabled)
	}
	if _, err := s.Bind(s.ctx, s.user, account.BindingInput{User: "ana", Role: loom.RoleReader}); !errors.Is(err, loom.Forbidden) {
		t.Errorf("by a user: %v", err)
	}
	for i := range 100 {
		s.exec(t, `INSERT INTO role_bindings (tenant_id, user_id, role, template, created_by) VALUES ($1, 'ben', 'reader', $2, 'x')`, s.admin.Tenant, fmt.Sprint("t", i))
	}
	if _, err := s.Bind(s.ctx, s.admin, account.BindingInput{User: "ben", Role: loom.RoleReader, Cluster: 41}); !errors.Is(err, loom.Exhausted) {
		t.Errorf("more than there may be: %v", err)
	}
	if _, err := s.Bind(s.ctx, s.admin, account.BindingInput{User: "ben", Role: loom.RoleReader}); err != nil {
		t.Errorf("one of the tenant: %v", err)
	}
}

// TestSharedClusters: an owner shares with a user by id and with his own groups, gives no more than he has, and who
// loses the role has nothing left, not even a request that began before.
func TestSharedClusters(t *testing.T) {
	t.Parallel()
	s := sharing(t)
	with := func(in account.BindingInput) account.BindingInput { in.Cluster = 41; return in }
	if _, _, _, err := s.SignIn(s.ctx, account.SignInInput{Tenant: "demo", User: "ana", Password: s.passwords["demo/ana"]}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("somebody without any role signs in: %v", err)
	}
	b, err := s.Share(s.ctx, s.user, with(account.BindingInput{User: "ana", Role: loom.RoleOperator}))
	if err != nil {
		t.Fatal(err)
	}
	_, cookie := s.signIn(t, "demo", "ana")
	ana, _, err := s.ActorBySession(s.ctx, cookie, "")
	if err != nil || ana.May(loom.Operate, loom.Object{Tenant: ana.Tenant, Owner: "user", Template: "web", Cluster: 41}) != nil {
		t.Fatalf("ana: %+v, %v", ana, err)
	}
	for name, c := range map[string]struct {
		actor loom.Actor
		in    account.BindingInput
		want  loom.Kind
		field string
	}{
		"an operator shares":         {ana, with(account.BindingInput{User: "ben", Role: loom.RoleReader}), loom.Forbidden, ""},
		"of another":                 {s.user, account.BindingInput{Cluster: 42, User: "ben", Role: loom.RoleReader}, loom.NotFound, ""},
		"not there":                  {s.user, account.BindingInput{Cluster: 99, User: "ben", Role: loom.RoleReader}, loom.NotFound, ""},
		"to publish":                 {s.user, with(account.BindingInput{User: "ben", Role: loom.RolePublisher}), loom.Invalid, "role"},
		"with a group of others":     {s.user, with(account.BindingInput{Group: s.group.ID, Role: loom.RoleReader}), loom.Invalid, "group"},
		"with a group, by an admin":  {s.admin, with(account.BindingInput{Group: s.group.ID, Role: loom.RoleReader}), "", ""},
		"with a template in passing": {s.user, with(account.BindingInput{User: "ben", Role: loom.RoleReader, Template: "web"}), "", ""},
	} {
		if _, err := s.Share(s.ctx, c.actor, c.in); c.want == "" && err != nil || c.want != "" && !errors.Is(err, c.want) || fieldsOf(err) != c.field {
			t.Errorf("%s: %v (fields %q)", name, err, fieldsOf(err))
		}
	}
	if err := s.AddMember(s.ctx, s.admin, s.group.ID, "user"); err != nil {
		t.Fatal(err)
	}
	user := s.now(t, s.user)
	if _, err := s.Share(s.ctx, user, with(account.BindingInput{Group: s.group.ID, Role: loom.RoleAdmin})); err != nil {
		t.Errorf("with a group of his: %v", err)
	}
	user = s.now(t, user)
	access, err := s.Access(s.ctx, ana, 41)
	if err != nil || access.MayShare || len(access.Bindings) != 4 || access.Owner != "user" {
		t.Errorf("ana sees %+v, %v", access, err)
	}
	if access, err := s.Access(s.ctx, user, 41); err != nil || !access.MayShare || len(access.Groups) != 1 {
		t.Errorf("the owner sees %+v, %v", access, err)
	}

	s.exec(t, `INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
		SELECT ('00000000-0000-4000-8000-00000000000' || n)::uuid, 41, $1, n, 'web-' || n, 'h', 'i', 'f', 'i', 'root', '{}', '{}' FROM generate_series(1, 2) n`, s.admin.Tenant)
	s.exec(t, `INSERT INTO audit (tenant_id, actor, via, verb, kind, object, result) VALUES ($1, 'ana', 'session', 'reveal', 'node', '00000041/00000000-0000-4000-8000-000000000002', 'ok')`, s.admin.Tenant)
	if _, err := s.Unshare(s.ctx, ana, 41, b.ID); !errors.Is(err, loom.Forbidden) {
		t.Errorf("an operator takes back: %v", err)
	}
	if _, err := s.Unshare(s.ctx, s.admin, 42, b.ID); !errors.Is(err, loom.NotFound) {
		t.Errorf("by way of another cluster: %v", err)
	}
	revealed, err := s.Unshare(s.ctx, user, 41, b.ID)
	if err != nil || !slices.Equal(revealed, []string{"web-2"}) {
		t.Errorf("revealed %v, %v", revealed, err)
	}
	if _, _, err := s.ActorBySession(s.ctx, cookie, ""); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("the session of one who has no role left: %v", err)
	}
	if _, _, err := s.CreateToken(s.ctx, ana, account.NewToken{Name: "late", Scopes: []loom.Scope{loom.ScopeRead}}); !errors.Is(err, loom.Unauthenticated) {
		t.Errorf("a request that began before: %v", err)
	}
	var seen []string
	if err := s.db.Select(&seen, `SELECT verb || ' ' || (coalesce(after, before)->>'role') FROM audit WHERE kind = 'binding' AND actor = 'user' ORDER BY id`); err != nil || strings.Join(seen, ", ") != "create operator, create reader, create admin, delete operator" {
		t.Errorf("on record: %v, %v", seen, err)
	}
}

func TestGroupsAreChecked(t *testing.T) {
	t.Parallel()
	s := sharing(t)
	for name, c := range map[string]struct {
		in    account.GroupInput
		want  loom.Kind
		field string
	}{
		"no name":            {account.GroupInput{Name: ptr(" ")}, loom.Invalid, "name"},
		"a long name":        {account.GroupInput{Name: ptr(strings.Repeat("x", 101))}, loom.Invalid, "name"},
		"a name of nothing":  {account.GroupInput{Name: ptr("a\u200bb")}, loom.Invalid, "name"},
		"a name in use":      {account.GroupInput{Name: ptr("team WEB")}, loom.Conflict, "name"},
		"a long description": {account.GroupInput{Name: ptr("x"), Description: ptr(strings.Repeat("x", 201))}, loom.Invalid, "description"},
	} {
		if _, err := s.CreateGroup(s.ctx, s.admin, c.in); !errors.Is(err, c.want) || fieldsOf(err) != c.field {
			t.Errorf("%s: %v (fields %q)", name, err, fieldsOf(err))
		}
	}
	id := s.group.ID
	if g, err := s.UpdateGroup(s.ctx, s.admin, id, account.GroupInput{Name: ptr("TEAM web"), Description: ptr("Web people")}); err != nil || g.Name != "TEAM web" {
		t.Errorf("another name: %+v, %v", g, err)
	}
	for _, user := range []loom.UserID{"ana", "ana", "ben"} {
		if err := s.AddMember(s.ctx, s.admin, id, user); err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []loom.UserID{"nobody", "gone", ""} {
		if err := s.AddMember(s.ctx, s.admin, id, user); fieldsOf(err) != "user" {
			t.Errorf("adding %q: %v", user, err)
		}
	}
	if list, err := s.Members(s.ctx, s.admin, id, ""); err != nil || len(list.Items) != 2 || list.Next != "" {
		t.Errorf("members: %+v, %v", list, err)
	}
	if _, err := s.Bind(s.ctx, s.admin, account.BindingInput{Group: id, Role: loom.RoleOperator}); err != nil {
		t.Fatal(err)
	}
	operates := func(want bool) {
		t.Helper()
		ana := s.now(t, s.ana)
		if got := ana.May(loom.Operate, ana.InTenant()) == nil; got != want {
			t.Errorf("ana operates: %v, want %v", got, want)
		}
	}
	operates(true)
	if err := s.RemoveMember(s.ctx, s.admin, id, "ana"); err != nil {
		t.Fatal(err)
	}
	operates(false)
	if err := s.RemoveMember(s.ctx, s.admin, id, "ana"); !errors.Is(err, loom.NotFound) {
		t.Errorf("once more: %v", err)
	}
	if err := s.AddMember(s.ctx, s.admin, id, "ana"); err != nil {
		t.Fatal(err)
	}
	operates(true)
	if err := s.DeleteUser(s.ctx, s.admin, "ben"); err != nil {
		t.Fatal(err)
	}
	if g, err := s.Group(s.ctx, s.admin, id); err != nil || g.Members != 1 || g.Bindings != 1 {
		t.Errorf("after a user was removed: %+v, %v", g, err)
	}
	if err := s.DeleteGroup(s.ctx, s.admin, id); err != nil {
		t.Fatal(err)
	}
	operates(false)
	for what, err := range map[string]error{
		"read":   func() error { _, err := s.Group(s.ctx, s.admin, id); return err }(),
		"delete": s.DeleteGroup(s.ctx, s.admin, id),
		"add":    s.AddMember(s.ctx, s.admin, id, "ana"),
	} {
		if !errors.Is(err, loom.NotFound) {
			t.Errorf("%s a group that is gone: %v", what, err)
		}
	}
	if err := s.AddMember(s.ctx, s.user, id, "user"); !errors.Is(err, loom.Forbidden) {
		t.Errorf("a user adds himself: %v", err)
	}
}

// A user is in 500 groups at most: each request reads the roles of all.
func TestGroupsOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	s := sharing(t)
	s.exec(t, `WITH teams AS (INSERT INTO groups (tenant_id, name) SELECT $1, 'team ' || n FROM generate_series(1, 499) n RETURNING tenant_id, id)
		INSERT INTO group_members (tenant_id, group_id, user_id, added_by) SELECT tenant_id, id, 'user', 'x' FROM teams`, s.admin.Tenant)
	one, two := s.groupWith(t, s.admin, "one more", ""), s.groupWith(t, s.admin, "one too many", "")
	if err := s.AddMember(s.ctx, s.admin, one.ID, "user"); err != nil {
		t.Errorf("group 500: %v", err)
	}
	if err := s.AddMember(s.ctx, s.admin, two.ID, "user"); kind(err) != loom.Exhausted {
		t.Errorf("group 501: %v", err)
	}
	if err := s.AddMember(s.ctx, s.admin, one.ID, "user"); err != nil {
		t.Errorf("one that he is in already: %v", err)
	}
}
