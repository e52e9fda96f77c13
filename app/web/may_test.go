package web_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/testkit"
	"loom/app/web"
	"loom/app/web/page"
)

// documentedPages says which verb of docs/decisions/0064-one-decision-point.md a page needs whose object is a tenant or
// the installation; the first that fits counts. What is about a cluster, or oneself, is for
// everybody who sees it. They are typed from the document, not from the tables of routes.
var documentedPages = []struct{ path, verb string }{
	{`^/admin(/(users|new-user|bulk/users|groups|identity|hooks|settings|queue|clusters|usage|audit)\b|$)`, "administer"},
	{`^/clusters/bulk/owner$`, "administer"}, // it lists users
	{`^/admin/(tests\b|providers/\{name\}/test$)`, "administer"},
	{`^/(admin|validate)/`, "publish"},
	{`^/act/end$`, ""},
	{`^/system\b`, "install"},
	{`/skip$`, "override"},
}

// reader is somebody of the matrix; what is asked for is ana's, of acme.
type reader struct {
	role, place, tenant string
	user                loom.UserID
}

// readers are those who ask, by the role of ana.
var readers = map[loom.Role][]reader{
	loom.RoleUser: {
		{"user", "own", "acme", "ana"}, {"user", "foreign", "acme", "ben"}, {"user", "other tenant", "other", "eve"},
		{"admin", "foreign", "acme", "admin"}, {"admin", "other tenant", "other", "admin"}, {"superadmin", "other tenant", "superadmin", "admin"},
	},
	loom.RoleAdmin: {{"admin", "own", "acme", "ana"}},
}

// TestReadersChangeNothing sends every form of a cluster as somebody who may only see it: each is refused, for the
// role or for what it says, and nothing is done.
func TestReadersChangeNothing(t *testing.T) {
	t.Parallel()
	made := newClusterWorld(t)
	made.colleague()
	id := made.active("own", 2)
	made.db.MustExec(`UPDATE users SET role = 'none' WHERE id = 'ben'`)
	made.bind(account.BindingInput{User: "ben", Role: loom.RoleReader, Cluster: id})
	made.db.MustExec(`UPDATE sessions SET last_seen_at = now() + interval '1 hour'`)
	cookies := made.cookies
	values := strings.NewReplacer("{cluster}", id.String(), "{paused}", id.String(), "{failed}", id.String(), "{gone}", id.String(), "{n}", "1", "{task}", "1", "{ready}", "1",
		"{node}", string(made.cluster(id).Nodes[0].ID), "{service}", "nginx", "{preview}", "x")
	testkit.RefuseCommits(t, made.db)
	w := clusterWorldOn(t, made.db)
	maps.Copy(w.cookies, cookies)
	asked := 0
	for _, rt := range web.Routes() {
		if !strings.HasPrefix(rt.Path, "/clusters/{cluster}") || rt.Method != http.MethodPost || strings.HasSuffix(rt.Path, "/try") { // which shows a preview
			continue
		}
		for _, sample := range rt.Samples {
			asked++
			target := regexp.MustCompile(`\{[a-z ]+\}`).ReplaceAllString(values.Replace(sample), "1")
			if a := w.send("ben", http.MethodPost, target, url.Values{"reason": {"x"}, "confirm": {"own"}, "description": {"changed"}, "owner": {"ben"}}); a.Code < 400 || a.Code >= 500 {
				t.Errorf("POST %s answers %d", target, a.Code)
			}
		}
	}
	if asked < 20 {
		t.Errorf("only %d forms", asked)
	}
}

// outcomeOfPage is the status that refuses a page, 0 where it is allowed.
func outcomeOfPage(who reader, rt *web.Route) int {
	verb := ""
	for _, d := range documentedPages {
		if regexp.MustCompile(d.path).MatchString(rt.Path) {
			verb = d.verb
			break
		}
	}
	entitled := verb == "" || who.role == "superadmin" || verb != "install" && who.role == "admin"
	sees := who.place == "own" || who.place == "foreign" && who.role == "admin"
	switch {
	case !entitled && verb != "override":
		return http.StatusForbidden
	case strings.HasPrefix(rt.Path, "/previews/{") && who.place != "own", strings.HasPrefix(rt.Path, "/clusters/{cluster}") && !sees:
		return http.StatusNotFound
	case !entitled:
		return http.StatusForbidden
	}
	return 0
}

// TestWhoMayOpenWhat asks for every page, and sends every form empty, as every role: about
// what is his own, another's and another tenant's. What is allowed is undone at its end.
func TestWhoMayOpenWhat(t *testing.T) {
	t.Parallel()
	for owner, readers := range readers {
		t.Run("ana is "+string(owner), func(t *testing.T) {
			t.Parallel()
			openEverything(t, owner, readers)
		})
	}
}

// openEverything asks for every page about what is ana's, whose role is the owner's.
func openEverything(t *testing.T, owner loom.Role, readers []reader) {
	made := newClusterWorld(t)
	id := made.active("own", 2)
	preview, err := made.clusters.Preview(made.ctx, made.actor("ana"), clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: id})
	made.must(err)
	values := strings.NewReplacer("{cluster}", id.String(), "{paused}", id.String(), "{failed}", id.String(), "{gone}", id.String(), "{n}", "1", "{task}", "1", "{ready}", "1",
		"{node}", string(made.cluster(id).Nodes[0].ID), "{service}", "nginx", "{template}", "web-cluster", "{preview}", string(preview.ID), "{tenant}", "acme", "{chapter}", "clusters")
	made.db.MustExec(`INSERT INTO users (tenant_id, id, role) SELECT id, 'ben', 'user' FROM tenants WHERE name = 'acme' UNION ALL SELECT id, 'admin', 'admin' FROM tenants WHERE name = 'other' ON CONFLICT DO NOTHING`)
	cookies := map[reader]string{}
	for _, who := range readers {
		cookies[who] = "matrix-" + who.tenant + "-" + string(who.user)
		made.db.MustExec(`INSERT INTO sessions (id, tenant_id, user_id, expires_at) SELECT decode($1, 'hex'), id, $2, now() + interval '1 hour' FROM tenants WHERE name = $3`,
			account.SessionID(loom.NewSecret(cookies[who])), who.user, who.tenant)
	}
	made.db.MustExec(`UPDATE sessions SET last_seen_at = now() + interval '1 hour'`) // noting it is a change
	made.db.MustExec(`UPDATE users SET password_change = NULL`)
	made.db.MustExec(`UPDATE users SET role = $1 WHERE id = 'ana'`, owner)
	testkit.RefuseCommits(t, made.db)
	w := clusterWorldOn(t, made.db)
	asked := 0
	for _, rt := range web.Routes() {
		if slices.Contains([]page.Access{page.Open, page.OpenFile, page.Changing}, rt.Access) || rt.Path == "/events" {
			continue
		}
		target := regexp.MustCompile(`\{[a-z ]+\}`).ReplaceAllString(values.Replace(rt.Samples[0]), "1")
		for _, who := range readers {
			asked++
			var form url.Values
			if rt.Method == http.MethodPost {
				form = url.Values{"x": {""}}
			}
			w.cookies["reader"] = cookies[who]
			a := w.send("reader", rt.Method, target, form)
			want := outcomeOfPage(who, &rt)
			switch {
			case a.Code == want:
			case want == http.StatusNotFound && a.Code == http.StatusSeeOther && rt.Piece: // only leads to the page of the cluster
			case want != 0, a.Code == http.StatusUnauthorized, a.Code == http.StatusForbidden, a.Code == http.StatusTooManyRequests,
				a.Code == http.StatusNotFound && (strings.Contains(a.Body, "that you may see") || strings.Contains(a.Body, "There is no cluster")):
				t.Errorf("%s (%s), %s: %s %s answers %d, want %d", who.role, who.user, who.place, rt.Method, target, a.Code, want)
			}
		}
	}
	if asked < 170*len(readers) {
		t.Errorf("only %d requests", asked)
	}
}
