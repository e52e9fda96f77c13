package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/views/route"
)

// Several clusters are deleted, prolonged and given away by forms alone, each as it was
// shown.
func TestSeveralClustersByForms(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	one, two := w.create("one", 2), w.create("two", 2)
	both := "?id=" + one.Cluster.String() + "&id=" + two.Cluster.String()
	w.get("ana", route.ClustersBulk("delete")+both).is(http.StatusOK, "Operation 1 (create)", "Its own page offers “Abort and delete”.").lacks("with “abort”")
	w.finish(one, loom.ClusterActive)
	w.finish(two, loom.ClusterActive)

	lease := route.ClustersBulk("lease") + both
	w.press("ana", lease, "Extend leases", "by", "soon").is(http.StatusUnprocessableEntity, "Write a time such as 7d", `value="soon"`)
	page := w.get("ana", lease).is(http.StatusOK, "one", "two", "Maximum")
	w.db.MustExec(`UPDATE clusters SET revision = revision + 1 WHERE name = 'two'`)
	w.pressOn("ana", page, lease, "Extend leases", "by", "1d").is(http.StatusOK, "The leases of 1 cluster end later now.", "1 was left as it is.", "It has changed since it was shown")

	owner := route.ClustersBulk("owner") + both
	w.get("ana", owner).is(http.StatusForbidden)
	w.press("admin", owner, "Change owner", "owner", "nobody").is(http.StatusUnprocessableEntity, "nobody")
	w.press("admin", owner, "Change owner", "owner", "admin").is(http.StatusOK, "2 clusters")
	var left int
	w.must(w.db.Get(&left, `SELECT count(*) FROM clusters WHERE owner_id <> 'admin'`))
	if left != 0 {
		t.Errorf("%d clusters kept their owner", left)
	}

	remove := route.ClustersBulk("delete") + both
	w.press("admin", remove, "Delete 2 clusters", "confirm", "delete").is(http.StatusUnprocessableEntity, "Nothing was deleted.", "delete 2 clusters")
	w.press("admin", remove, "Delete 2 clusters", "confirm", "delete 2 clusters").is(http.StatusOK, "The deletion of 2 clusters has begun.", "Deleting").lacks("left as")
	w.get("admin", route.Cluster(one.Cluster)).is(http.StatusOK, "<h2>Delete</h2>")
	w.get("admin", remove).is(http.StatusOK, "one").lacks("Delete 2 clusters")
	w.post("eve", strings.TrimSuffix(remove, both), url.Values{"id": {one.Cluster.String() + ".1"}, "confirm": {"delete 1 cluster"}}).is(http.StatusOK, "Nothing was done.")
	// The result page reads the clusters again.
	now := route.Query(route.ClustersRows(), "only", one.Cluster.String()+","+two.Cluster.String())
	w.part("admin", now, "list").is(http.StatusOK, "Deleting", `hx-get="`+strings.ReplaceAll(now, "&", "&amp;")+`"`)
	w.finish(one, loom.ClusterTerminated)
	w.finish(two, loom.ClusterIncomplete)
	w.part("admin", now, "list").is(http.StatusOK, "Terminated", "Delete failed").lacks("Deleting")
}

// Preferences, the sign-in that is prolonged and made again, banners that are closed:
// what people set for themselves, without scripts.
func TestOwnThingsByForms(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	at := route.AccountPreferences()
	w.press("ana", at, "Save preferences", "zone", "Nowhere/Else").is(http.StatusUnprocessableEntity, "The preferences were not saved.", `value="Nowhere/Else"`)
	w.press("ana", at, "Save preferences", "zone", "Asia/Tokyo", "density", "compact", "theme", "dark", "rows", "50", "live", "poll").goesTo(at)
	w.get("ana", at).is(http.StatusOK, `value="Asia/Tokyo"`, "JST", `value="compact" checked`, `value="poll" checked`)
	if told := w.post("", at, url.Values{"theme": {"dark"}, "next": {"/login"}}); told.goesTo("/login") != "/login" || !strings.Contains(told.Header.Get("Set-Cookie"), "dark") {
		t.Errorf("without a sign-in the theme is kept as %q", told.Header.Get("Set-Cookie"))
	}
	w.post("", at, url.Values{"zone": {"UTC"}}).is(http.StatusUnauthorized, "Sign-in needed")

	w.press("ana", route.AccountSessionExtend(), "Stay signed in").goesTo(route.AccountSessionExtend())
	w.get("ana", route.AccountSessionExtend()).is(http.StatusOK, "You stay signed in until")
	again := url.Values{"user": {"ana"}, "tenant": {"acme"}, "password": {"wrong"}}
	w.post("", route.SignIn(), again).is(http.StatusUnauthorized, "wrong").lacks(`value="wrong"`)
	again.Set("password", "correct horse battery ana")
	if told := w.post("", route.SignIn(), again); told.goesTo("/") != "/" || !strings.Contains(told.Header.Get("Set-Cookie"), "loom-dev=") {
		t.Errorf("signed in again with the cookie %q", told.Header.Get("Set-Cookie"))
	}

	w.db.MustExec(`UPDATE tenants SET max_nodes = 2 WHERE id = $1`, w.tenant.ID)
	w.create("full", 2)
	page := w.get("ana", "/clusters").is(http.StatusOK, "quota")
	closed := w.pressOn("ana", page, "/clusters", "Hide this for a day")
	closed.goesTo("/clusters")
	cookie, _, _ := strings.Cut(closed.Header.Get("Set-Cookie"), ";")
	hidden := w.send("ana", http.MethodGet, "/clusters", nil, "Cookie", "loom-dev="+w.cookies["ana"]+"; "+cookie).is(http.StatusOK)
	if before, after := strings.Count(page.Body, `name="key"`), strings.Count(hidden.Body, `name="key"`); after != before-1 {
		t.Errorf("%d banners before one was hidden, %d afterwards (%s)", before, after, cookie)
	}
}

// A token gets another secret by a form; the old one works on.
func TestTokenIsRotatedByForms(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	made := w.press("ana", route.AccountTokens(), "Create token", "name", "laptop").is(http.StatusOK, "/v2/whoami")
	var id int64
	w.must(w.db.Get(&id, `SELECT id FROM tokens WHERE name = 'laptop'`))
	at := route.AccountToken(id, "rotate")
	turned := w.press("ana", at, "Rotate token laptop").is(http.StatusOK, "The old secret works until", "/v2/whoami")
	secrets := map[string]bool{}
	for _, page := range []clusterAnswer{made, turned} {
		_, secret, _ := strings.Cut(page.Body, "Authorization: Bearer ")
		secret, _, _ = strings.Cut(secret, "&")
		secrets[secret] = true
		w.send("", http.MethodGet, "/v2/whoami", nil, "Authorization", "Bearer "+secret).is(http.StatusOK, `"ana"`)
	}
	if len(secrets) != 2 {
		t.Errorf("%d secrets were shown", len(secrets))
	}
	w.get("eve", at).is(http.StatusNotFound)
	w.post("eve", at, url.Values{}).is(http.StatusNotFound)
}

// What deletes left behind is tried again and given up by forms; that a machine nobody
// knows cannot be removed for want of a provisioner is said on its form.
func TestLeftoversByForms(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	root := w.superCookie()
	op := w.create("gone", 2)
	w.finish(op, loom.ClusterIncomplete)
	w.db.MustExec(`INSERT INTO leftovers (tenant_id, cluster_id, node_id, incarnation, provider_name, machine_id, tries, last_error)
		SELECT tenant_id, cluster_id, id, 1, 'lab', 'i-0d1c2b', 3, 'the machine is locked' FROM nodes WHERE cluster_id = $1 LIMIT 1`, int64(op.Cluster))
	w.db.MustExec(`INSERT INTO orphans (tenant_id, provider_name, machine_id, name, cluster_id, node_id) VALUES ($1, 'lab', 'i-4711', 'forgotten', 4711, gen_random_uuid())`, w.tenant.ID)
	at, n := route.SystemOrphans(), 0
	w.get(root, at).is(http.StatusOK, "i-0d1c2b", "i-4711", route.SystemLeftovers()+"?as=csv", route.SystemLeftovers()+"?as=json-all")
	w.get(root, route.SystemLeftovers()+"?as=csv").is(http.StatusOK, "machine,host name,provider,tenant,cluster", "i-0d1c2b", "acme", "the machine is locked")
	w.get(root, route.SystemLeftovers()+"?as=json-all").is(http.StatusOK, `"machineId":"i-0d1c2b"`)
	w.get(root, route.SystemLeftovers()).goesTo(at + "#leftovers")
	w.get("admin", route.SystemLeftovers()+"?as=csv").is(http.StatusForbidden).lacks("i-0d1c2b")
	w.press(root, at, "Try all leftovers again").goesTo(at)

	// Look now: a second press while it runs says so.
	w.get(root, at).is(http.StatusOK, "Searches for orphans", "never", "Look now")
	w.press(root, at, "Look now").goesTo(at)
	w.get(root, at).is(http.StatusOK, "Waiting for a provisioner")
	w.press(root, at, "Look now").goesTo(at)
	mine := route.AdminOrphans("lab")
	w.get("admin", mine).is(http.StatusOK, "i-4711", "Waiting for a provisioner")
	w.db.MustExec(`UPDATE provider_requests SET started_at = now() WHERE purpose = 'sweep'`)
	w.get("admin", mine).is(http.StatusOK, ">Looking<")
	w.db.MustExec(`UPDATE provider_requests SET ended_at = now(), failure = 'The cloud is closed.' WHERE purpose = 'sweep'`)
	w.get("admin", mine).is(http.StatusOK, "Failed", "The cloud is closed.")
	w.press("admin", mine, "Look now").goesTo(mine)
	w.press("admin", mine, "Look now").goesTo(mine)
	w.must(w.db.Get(&n, `SELECT count(*) FROM provider_requests WHERE purpose = 'sweep'`))
	if n != 2 {
		t.Errorf("%d searches were asked for", n)
	}
	w.get("ana", mine).is(http.StatusForbidden)

	var orphan string
	w.must(w.db.Get(&orphan, `SELECT id::text FROM orphans`))
	remove := at + "/" + orphan + "/remove"
	w.press(root, remove, "Remove machine i-4711", "confirm", "i-4712").is(http.StatusUnprocessableEntity, "The machine was not removed.")
	w.press(root, remove, "Remove machine i-4711", "confirm", "i-4711").is(http.StatusServiceUnavailable, "The machine was not removed.", `value="i-4711"`)
	w.get("admin", remove).is(http.StatusForbidden)

	id := op.Cluster.String()
	give := route.SystemTenants() + "/acme/clusters/" + id + "/abandon"
	w.press(root, give, "Stop tracking leftovers of cluster "+id, "confirm", "x").is(http.StatusUnprocessableEntity)
	w.press(root, give, "Stop tracking leftovers of cluster "+id, "confirm", id).goesTo(at)
	w.get("ana", route.Cluster(op.Cluster)).is(http.StatusOK, "Terminated")
	w.get("ana", "/clusters?status=terminated").is(http.StatusOK, "Ended", "ended <time")
}

// Lists go into files as they are filtered, for spreadsheets and as JSON, and the search
// finds by name, id, host and entry what the one who asks may see.
func TestExportAndSearchByLinks(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	shop, blog := w.create("shop", 2), w.create("blog", 2)
	w.finish(shop, loom.ClusterActive)
	w.finish(blog, loom.ClusterActive)
	sheet := w.get("ana", "/clusters?as=csv&q=shop").is(http.StatusOK, "shop", shop.Cluster.String()).lacks("blog")
	if got := sheet.Header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment; filename=clusters-") {
		t.Errorf("the file is called %s", got)
	}
	if all := w.get("ana", "/clusters?as=json-all").is(http.StatusOK, `"blog"`, `"shop"`); !strings.HasPrefix(all.Body, "[") {
		t.Errorf("the file begins with %.20s", all.Body)
	}
	w.get("eve", "/clusters?as=csv").is(http.StatusOK).lacks("shop", "blog")

	w.get("ana", "/search?q=blog").is(http.StatusOK, route.Cluster(blog.Cluster)).lacks(route.Cluster(shop.Cluster))
	w.get("ana", "/search?q="+shop.Cluster.String()).is(http.StatusOK, route.Cluster(shop.Cluster))
	w.get("ana", "/search?q=web-cluster").is(http.StatusOK, route.CatalogTemplate("web-cluster"))
	w.get("admin", "/search?q=ana").is(http.StatusOK, route.AdminUser("ana"))
	w.get("admin", "/search?q=haproxy").is(http.StatusOK, route.AdminEntry(loom.KindService, "haproxy"))
	w.get("ana", "/search?q=haproxy").is(http.StatusOK).lacks(route.AdminEntry(loom.KindService, "haproxy"))
	w.get("eve", "/search?q=blog").is(http.StatusOK).lacks(route.Cluster(blog.Cluster))
	// Words of few letters are looked for in another way; host names have "bl", too.
	for q, wanted := range map[string]bool{"bl": true, "BL": true, "b": true, "zz": false, "status:active": true, `"bl"`: true} {
		page := w.get("ana", "/search?q="+url.QueryEscape(q)).is(http.StatusOK)
		if found := strings.Contains(page.Body, route.Cluster(blog.Cluster)); found != wanted {
			t.Errorf("search for %s: found %v, want %v", q, found, wanted)
		}
		w.get("eve", "/search?q="+url.QueryEscape(q)).is(http.StatusOK).lacks(route.Cluster(blog.Cluster))
	}
	w.get("ana", "/search?q=bl").is(http.StatusOK, `href="`+route.Cluster(blog.Cluster)+`/nodes/`).lacks(route.Cluster(shop.Cluster))
	w.get("ana", "/search?q=b").is(http.StatusOK).lacks("/nodes/")
	// A verb and an object.
	w.get("ana", "/search?q=scale+blog").is(http.StatusOK, `href="`+route.ClusterScale(blog.Cluster)).lacks(route.ClusterScale(shop.Cluster))
	w.get("ana", "/search?q=ssh+blog+1000").is(http.StatusOK, "SSH to node 1000").lacks("SSH to node 1001")
	w.get("eve", "/search?q=scale+blog").is(http.StatusOK).lacks(route.ClusterScale(blog.Cluster))
}

// What stops or removes something has a button in the color of danger, on a page as in a dialog;
// what starts something has not.
func TestHarmLooksTheSame(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 2)
	for verb, harmful := range map[string]bool{"stop": true, "start": false, "restart": false} {
		at := route.ClusterServices(id, verb)
		for what, answer := range map[string]clusterAnswer{"page": w.get("ana", at), "dialog": w.part("ana", at, "dialog")} {
			answer.is(http.StatusOK, ">"+strings.ToUpper(verb[:1])+verb[1:]+" services<")
			if red := strings.Contains(answer.Body, `data-kind="danger-filled"`); red != harmful {
				t.Errorf("the %s of a %s is red: %t", what, verb, red)
			}
		}
	}
}
