package web_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/loom"
	"loom/views/route"
)

// TestGroupsInPages makes a group with a member and a role by forms alone, and takes all of it back.
func TestGroupsInPages(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.colleague()
	admin := loom.UserID("admin")
	w.get(admin, "/admin/groups").is(200, "No groups yet.", "New group")
	w.post(admin, "/admin/groups", url.Values{"name": {""}}).is(422, "The group was not created.", "Enter a name of 1–100 characters")
	at := w.post(admin, "/admin/groups", url.Values{"name": {"Team web"}, "description": {"Web people"}}).goesTo(`^/admin/groups/\d+$`)
	w.get(admin, at).is(200, "Created the group Team web.", "Web people", "No members yet.", "No roles yet.")
	w.post(admin, at+"/members", url.Values{"user": {"nobody"}}).is(422, "Nobody was added.", "There is no user with this id who can sign in.")
	w.post(admin, at+"/members", url.Values{"user": {"ben"}}).goesTo(`^` + at + `$`)
	w.get(admin, at).is(200, "Added ben to Team web.", `href="/admin/users/ben"`)
	w.post(admin, at+"/roles", url.Values{"role": {"publisher"}, "template": {"web-cluster"}}).is(422, "The role was not given.", "Choose one of these roles: reader, user, operator, admin.")
	w.post(admin, at+"/roles", url.Values{"role": {"operator"}, "template": {"web-cluster"}}).goesTo(`^` + at + `$`)
	w.get(admin, at).is(200, "Gave the role operator.", "Clusters of web-cluster", "sees and changes clusters")
	w.post(admin, at, url.Values{"name": {"Team shop"}, "description": {""}}).goesTo(`^` + at + `$`)
	w.get(admin, "/admin/groups?q=shop").is(200, "Team shop")
	w.get(admin, "/admin/groups?q=zzz").is(200, "No matches.")

	id := w.active("shop", 2)
	w.get("ben", route.Cluster(id)).is(200, "shop", "Scale")
	w.get("ben", route.Clusters()).is(200, "shop", "Mine", "ana")
	var binding int64
	w.must(w.db.Get(&binding, `SELECT id FROM role_bindings`))
	w.post(admin, at+"/roles/remove", url.Values{"binding": {fmt.Sprint(binding)}}).goesTo(`^` + at + `$`)
	w.get("ben", route.Cluster(id)).is(404)
	w.post(admin, at+"/roles/remove", url.Values{"binding": {"x"}}).is(404)
	w.post(admin, at+"/members/remove", url.Values{"user": {"ben"}}).goesTo(`^` + at + `$`)
	w.get(admin, at+"/delete").is(200, "Delete group Team shop", "0 members lose")
	w.post(admin, at+"/delete", nil).goesTo(`^/admin/groups$`)
	w.get(admin, at).is(404)
	w.get("ana", "/admin/groups").is(403)
}

// TestAccessInPages shares a cluster by forms alone: each role finds on its pages what it may do, and no more.
func TestAccessInPages(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.colleague()
	id := w.active("shop", 2)
	at := route.ClusterAccess(id)
	w.get("ben", at).is(404)
	w.get("ana", route.Cluster(id)).is(200, `href="`+at+`"`)
	w.get("ana", at).is(200, "shop", `href="`+at+`" aria-current="page"`, "Owner", "Share", "Change owner")
	w.post("ana", at, url.Values{"user": {"nobody"}, "role": {"reader"}}).is(422, "The cluster was not shared.", "There is no user with this id who can sign in.", `value="nobody"`)
	w.post("ana", at, url.Values{"role": {"reader"}}).is(422, "Name a user or a group.")
	w.post("ana", at, url.Values{"user": {"ben"}, "role": {"reader"}}).goesTo(`^` + at + `$`)
	w.get("ana", at).is(200, "Shared with ben.", "Take back")

	seen := w.get("ben", route.Cluster(id)).is(200, "shop", `href="`+at+`"`)
	for _, not := range []string{route.ClusterScale(id), route.ClusterDelete(id), "Restart services"} {
		if strings.Contains(seen.main(), not) {
			t.Errorf("a reader finds %s", not)
		}
	}
	if body := w.get("ben", at).is(200, "Reader").main(); strings.Contains(body, "Take back") || strings.Contains(body, "Change owner") {
		t.Error("a reader may share")
	}
	w.post("ben", at, url.Values{"user": {"ana"}, "role": {"admin"}}).is(403)
	w.post("ben", route.ClusterVerb(id, "check"), nil).is(403)

	var binding int64
	w.must(w.db.Get(&binding, `SELECT id FROM role_bindings`))
	w.post("ben", route.ClusterAccessRemove(id), url.Values{"binding": {fmt.Sprint(binding)}}).is(403)
	w.db.MustExec(`INSERT INTO audit (tenant_id, actor, via, verb, kind, object, result) SELECT tenant_id, 'ben', 'session', 'reveal', 'cluster', $1, 'ok' FROM role_bindings`, id.String())
	w.post("ana", route.ClusterAccessRemove(id), url.Values{"binding": {fmt.Sprint(binding)}}).goesTo(`^` + at + `$`)
	w.get("ana", at).is(200, "Took the role back. Sign-ins that were revealed stay known:")
	w.get("ben", route.Cluster(id)).is(404)

	w.post("ana", route.ClusterAccessOwner(id), url.Values{"owner": {"nobody"}}).is(422, "The owner was not changed.", "There is no user with this id who may create clusters")
	w.post("ana", route.ClusterAccessOwner(id), url.Values{"owner": {"ben"}}).goesTo(`^/clusters$`)
	w.get("ana", route.Cluster(id)).is(404)
	w.get("ben", route.Cluster(id)).is(200, "shop")

	// Both get news of it, also where an administrator does it.
	news := func(user loom.UserID, want string) {
		t.Helper()
		feed := strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(w.get(user, route.Activity()).is(200).main(), " ")), " ")
		if !strings.Contains(feed, want) {
			t.Errorf("%s does not read that %s: %s", user, want, feed)
		}
	}
	news("ana", "You handed over shop from you to ben")
	news("ben", "ana handed over shop from ana to you")
	w.post("admin", route.ClusterAccessOwner(id), url.Values{"owner": {"ana"}}).goesTo(`^` + at + `$`)
	news("ana", "admin handed over shop from ben to you")
	news("ben", "admin handed over shop from you to ana")
}

// TestPagesOfAPublisher: somebody whose only role is to write the catalog finds that, and creates no clusters.
func TestPagesOfAPublisher(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.colleague()
	w.db.MustExec(`UPDATE users SET role = 'none' WHERE id = 'ben'`)
	w.bind(account.BindingInput{User: "ben", Role: loom.RolePublisher})
	home := w.get("ben", route.Home()).is(200, "No clusters yet", `href="`+route.AdminKind(loom.KindTemplate)+`"`).Body
	for _, not := range []string{route.ClusterNew(), route.AdminUsers()} {
		if strings.Contains(home, `href="`+not+`"`) {
			t.Errorf("a publisher finds %s", not)
		}
	}
	w.get("ben", route.AdminKind(loom.KindTemplate)).is(200, "web-cluster")
	w.get("ben", route.ClusterNew()).is(403)
	w.get("ben", route.AdminUsers()).is(403)
}

// TestSharedWithMe: what others shared is a list of its own, also for somebody who sees all of the tenant.
func TestSharedWithMe(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.colleague()
	shop := w.active("shop", 2)
	w.active("forge", 2)
	w.get("ben", route.Clusters()).is(200).lacks("Shared with me")
	w.bind(account.BindingInput{User: "ben", Role: loom.RoleReader, Cluster: shop})
	counted := regexp.MustCompile(`Shared with me\s*<span class="c-count">1</span>`)
	for _, all := range []bool{false, true} {
		if all {
			w.bind(account.BindingInput{User: "ben", Role: loom.RoleReader})
			w.get("ben", route.Clusters()).is(200, "shop", "forge")
		}
		list := w.get("ben", route.Clusters()+"?shared=true").is(200, "shop").lacks("forge")
		if !counted.MatchString(list.Body) {
			t.Error("the tab does not count what is shared")
		}
	}
	w.get("ben", route.Clusters()+"?shared=true&q=zzz").is(200, "No matches.", `href="/clusters?shared=true">Clear filters`)
	w.db.MustExec(`UPDATE clusters SET owner_id = 'ben' WHERE id = $1`, int64(shop))
	w.get("ben", route.Clusters()+"?shared=true").is(200, "No clusters of others are shared with you.")
}

// TestRolesOfAUser: the page of a user says each role that he has, where it holds and whence it comes.
func TestRolesOfAUser(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.colleague()
	shop := w.active("shop", 2)
	rows := func() []string {
		t.Helper()
		body := w.get("admin", route.AdminUser("ben")).is(200).main()
		_, table, _ := strings.Cut(body, `id="roles-rows"`)
		table, _, _ = strings.Cut(table, "</tbody>")
		var rows []string
		for _, row := range strings.Split(table, "<tr>")[1:] {
			rows = append(rows, strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(row, " ")), " "))
		}
		return rows
	}
	if got := rows(); len(got) != 1 || got[0] != "User creates clusters All of the tenant The user&#39;s own" {
		t.Errorf("roles of a user: %q", got)
	}
	name := "Team web"
	g, err := w.accounts.CreateGroup(w.ctx, w.actor("admin"), account.GroupInput{Name: &name})
	w.must(err)
	w.must(w.accounts.AddMember(w.ctx, w.actor("admin"), g.ID, "ben"))
	w.bind(account.BindingInput{Group: g.ID, Role: loom.RoleOperator, Template: "web-cluster"})
	w.bind(account.BindingInput{User: "ben", Role: loom.RoleReader, Cluster: shop})
	w.bind(account.BindingInput{User: "ana", Role: loom.RolePublisher})
	w.db.MustExec(`UPDATE users SET role = 'none' WHERE id = 'ben'`)
	got := rows()
	if len(got) != 2 || !strings.HasPrefix(got[0], "Reader sees clusters Cluster shop") || !strings.Contains(got[0], "Given by admin") || got[1] != "Operator sees and changes clusters Clusters of web-cluster Group Team web" {
		t.Errorf("roles by bindings: %q", got)
	}
	w.db.MustExec(`DELETE FROM role_bindings`)
	w.get("admin", route.AdminUser("ben")).is(200, "No roles, so the user can&#39;t sign in.", ">Team web</a>")
}

// TestHeadsKeepDeleteInTheMenu: no page about a thing has Delete among the buttons of its head, and
// at most one button of a page is filled.
func TestHeadsKeepDeleteInTheMenu(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.colleague()
	name := "Team web"
	g, err := w.accounts.CreateGroup(w.ctx, w.actor("admin"), account.GroupInput{Name: &name})
	w.must(err)
	for _, path := range []string{route.AdminGroup(g.ID), route.AdminUser("ben")} {
		body := w.get("admin", path).is(200, `class="c-menu-item"`, path+"/delete").main()
		if regexp.MustCompile(`class="c-button"[^>]*href="` + path + `/delete"`).MatchString(body) {
			t.Errorf("%s: Delete is a button", path)
		}
		if n := strings.Count(body, `data-kind="primary"`); n > 1 {
			t.Errorf("%s has %d primary buttons", path, n)
		}
	}
}

// colleague makes the user ben, who is signed in.
func (w *clusterWorld) colleague() {
	w.t.Helper()
	password := loom.NewSecret("correct horse battery ben")
	_, _, err := w.accounts.CreateUser(w.ctx, w.actor("admin"), account.UserInput{ID: "ben", Role: loom.RoleUser, Password: password})
	w.must(err)
	_, cookie, _, err := w.accounts.SignIn(w.ctx, account.SignInInput{Tenant: "acme", User: "ben", Password: password, Address: "127.0.0.1"})
	w.must(err)
	w.cookies["ben"] = cookie.Reveal()
}

func (w *clusterWorld) bind(in account.BindingInput) {
	w.t.Helper()
	_, err := w.accounts.Bind(w.ctx, w.actor("admin"), in)
	w.must(err)
}
