package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/store"
)

// signIn gives a user a password and the header of a session that it began.
func (w *world) signIn(tenant, user string) string {
	w.t.Helper()
	password, err := w.deps.Accounts.SetPassword(w.t.Context(), tenant, loom.UserID(user), loom.Secret{})
	w.must(err)
	return w.signInWith(tenant, user, password.Reveal())
}

func (w *world) signInWith(tenant, user, password string) string {
	w.t.Helper()
	_, cookie, _, err := w.deps.Accounts.SignIn(w.t.Context(), account.SignInInput{
		Tenant: tenant, User: user, Password: loom.NewSecret(password), Address: "192.0.2.1", Agent: "Firefox/1",
	})
	w.must(err)
	return (&http.Cookie{Name: "loom-dev", Value: cookie.Reveal()}).String()
}

func TestUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.call(w.admin, post, "/v2/users", `{"id":"carl","displayName":"Carl","role":"admin"}`).want(200).object()
	password, _ := made["password"].(string)
	if made["role"] != "admin" || made["disabled"] != false || len(password) < 20 || made["clusters"] != 0.0 || made["lastSeen"] != nil {
		t.Errorf("made %v", made)
	}
	given := w.call(w.admin, post, "/v2/users", `{"id":"dora","password":"a good password","sshKeys":[]}`).want(200).object()
	if given["password"] != nil || given["role"] != "user" {
		t.Errorf("with a password of its own: %v", given)
	}
	w.call(w.user, post, "/v2/users", `nonsense`).fails(403, "", "administrator")
	w.call(w.user, get, "/v2/users", "").want(403)
	w.call(w.user, get, "/v2/users/carl", "").want(404)
	w.call(w.user, get, "/v2/users/ana", "").want(200)
	w.call(w.user, patch, "/v2/users/ana", `{"displayName":"Ana","email":"ana@example.org"}`).want(200)
	shown := w.call(w.user, patch, "/v2/users/ana", `{"email":null}`).want(200).object()
	if shown["displayName"] != "Ana" || shown["email"] != nil {
		t.Errorf("after clearing the address: %v", shown)
	}
	w.call(w.user, patch, "/v2/users/ana", `{"role":"admin"}`).fails(403, "role", "own role")
	w.call(w.user, patch, "/v2/users/ben", `{}`).want(403)
	w.call(w.user, del, "/v2/users/ana", "").want(403)
	w.call(w.foreign, patch, "/v2/users/carl", `{"disabled":true}`).want(404)

	// The numbers are those of live clusters and valid tokens.
	id := w.cluster(w.user, "mine")
	shown = w.call(w.admin, get, "/v2/users/ana", "").want(200).object()
	if shown["clusters"] != 1.0 || shown["tokens"] != 1.0 || shown["lastSeen"] == nil {
		t.Errorf("ana is %v", shown)
	}
	if who := w.call(w.user, get, "/v2/whoami", "").want(200).object()["user"].(map[string]any); who["clusters"] != 1.0 || who["tokens"] != 1.0 {
		t.Errorf("whoami says %v", who)
	}
	w.call(w.admin, del, "/v2/users/ana", "").fails(409, "", "owns 1 clusters")
	n, _ := loom.ParseClusterID(id)
	w.exec(`UPDATE clusters SET status = 'terminated' WHERE id = $1`, int64(n))
	w.call(w.admin, del, "/v2/users/ana", "").want(200)
	w.call(w.user, get, "/v2/whoami", "").want(401)
	w.call(w.admin, del, "/v2/users/ana", "").want(404)
	if c := w.call(w.admin, get, "/v2/clusters/"+id, "").want(200).object(); c["account"].(map[string]any)["userId"] != "ana" {
		t.Errorf("the cluster of a removed user is of %v", c["account"])
	}

	// Disabling ends everything at once.
	w.call(w.admin, patch, "/v2/users/ben", `{"disabled":true}`).want(200)
	w.call(w.second, get, "/v2/whoami", "").want(401)
	w.call(w.admin, patch, "/v2/users/ben", `{"disabled":false}`).want(200)
	w.call(w.second, get, "/v2/whoami", "").want(401)
	// An acting administrator is the user, whole: his own password needs the old one,
	// once there is one.
	w.call(w.admin, patch, "/v2/users/ben", `{"password":"a first password"}`).want(200)
	a := w.send(patch, "/v2/users/ben", `{"password":"a good password"}`, "Authorization", "Bearer "+w.admin, headerUser, "ben")
	a.fails(400, "oldPassword", "current password")
}

func TestUserLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got []string
	path := "/v2/users?limit=2&sort=-id"
	for path != "" {
		a := w.call(w.admin, get, path, "").want(200)
		for _, u := range a.array() {
			got = append(got, u["id"].(string))
		}
		path = nextLink(t, a)
	}
	if strings.Join(got, " ") != "ben ana admin" {
		t.Errorf("paged %v", got)
	}
	for want, filter := range map[string]string{"admin": "?role=admin", "ana ben": "?role=user,superadmin", "ana": "?q=AN&disabled=false", "": "?disabled=true"} {
		got = nil
		for _, u := range w.call(w.admin, get, "/v2/users"+filter, "").want(200).array() {
			got = append(got, u["id"].(string))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s gives %v", filter, got)
		}
	}
	for i := range 5 {
		w.call(w.user, post, "/v2/tokens", fmt.Sprintf(`{"name":"item-%d","scopes":["read"]}`, 5-i)).want(200)
	}
	names := func(path string) (all []string) {
		for path != "" {
			a := w.call(w.user, get, path, "").want(200)
			for _, token := range a.array() {
				all = append(all, token["name"].(string))
			}
			path = nextLink(t, a)
		}
		return all
	}
	if got := names("/v2/tokens?limit=2"); strings.Join(got, " ") != "item-1 item-2 item-3 item-4 item-5 test" {
		t.Errorf("by name %v", got)
	}
	if got := names("/v2/tokens?limit=4&sort=-createTime&q=t"); strings.Join(got, " ") != "item-1 item-2 item-3 item-4 item-5 test" {
		t.Errorf("newest first %v", got)
	}
	if got := names("/v2/tokens?q=ITEM-3"); strings.Join(got, " ") != "item-3" {
		t.Errorf("item-3 is %v", got)
	}
	if got := w.call(w.admin, get, "/v2/users/ana/tokens?limit=500", "").want(200).array(); len(got) != 6 {
		t.Errorf("an administrator sees %v", got)
	}
	w.call(w.second, get, "/v2/users/ana/tokens", "").want(404)
	w.call(w.second, get, "/v2/users/ana/sessions", "").want(404)
	if got := len(w.call(w.super, get, "/v2/tenants", "").want(200).array()); got != 3 {
		t.Errorf("%d tenants", got)
	}
	if got := w.call(w.super, get, "/v2/tenants?q=ACM&unknown=x", "").want(200).array(); len(got) != 1 || got[0]["name"] != "acme" {
		t.Errorf("found %v", got)
	}
	first := w.call(w.super, get, "/v2/tenants?limit=1&sort=-name", "").want(200)
	if second := w.call(w.super, get, nextLink(t, first), "").want(200).array(); second[0]["name"] != "other" {
		t.Errorf("behind %s comes %v", first.body, second)
	}
}

// nextLink gives the path of the next page, "" on the last.
func nextLink(t *testing.T, a reply) string {
	t.Helper()
	for _, link := range strings.Split(a.header.Get("Link"), ", ") {
		if target, ok := strings.CutSuffix(link, `>; rel="next"`); ok {
			u, err := url.Parse(strings.TrimPrefix(target, "<"))
			if err != nil {
				t.Fatal(err)
			}
			return u.RequestURI()
		}
	}
	return ""
}

func TestSessionRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	here := w.signIn("acme", "ana")
	password := "a password of my own"
	_, err := w.deps.Accounts.SetPassword(t.Context(), "acme", "ana", loom.NewSecret(password))
	w.must(err) // which ended that session
	w.send(get, "/v2/sessions", "", "Cookie", here).want(401)
	here = w.signInWith("acme", "ana", password)
	there := w.signInWith("acme", "ana", password)
	byCookie := func(cookie, method, path, body string) reply {
		t.Helper()
		return w.send(method, path, body, "Cookie", cookie, "Sec-Fetch-Site", "same-origin")
	}
	list := byCookie(here, get, "/v2/sessions?sort=-createTime", "").want(200)
	sessions := list.array()
	if len(sessions) != 2 || sessions[0]["current"] != false || sessions[1]["current"] != true || sessions[1]["agent"] != "Firefox/1" {
		t.Errorf("sessions %s", list.body)
	}
	for _, cookie := range []string{here, there} {
		if _, value, _ := strings.Cut(cookie, "="); strings.Contains(list.body, value) {
			t.Error("the list holds a cookie")
		}
	}
	for _, s := range w.call(w.user, get, "/v2/sessions", "").want(200).array() {
		if s["current"] == true {
			t.Errorf("a token has the session %v", s)
		}
	}
	w.call(w.second, del, "/v2/sessions/"+sessions[0]["id"].(string), "").want(404)
	w.call(w.foreign, del, "/v2/sessions/"+sessions[0]["id"].(string), "").want(404)
	w.call(w.admin, del, "/v2/sessions/"+sessions[0]["id"].(string), "").want(200)
	byCookie(there, get, "/v2/whoami", "").want(401)
	there = w.signInWith("acme", "ana", password)
	byCookie(here, del, "/v2/sessions", "").want(200)
	byCookie(there, get, "/v2/whoami", "").want(401)
	byCookie(here, get, "/v2/whoami", "").want(200)

	// A session may do everything of the role, tokens included, and goes on after it
	// changed its password, when all others end.
	byCookie(here, post, "/v2/tokens", `{"name":"mine","scopes":["admin"]}`).want(200)
	there = w.signInWith("acme", "ana", password)
	byCookie(here, patch, "/v2/users/ana", `{"password":"another password","oldPassword":"`+password+`"}`).want(200)
	byCookie(here, get, "/v2/whoami", "").want(200)
	byCookie(there, get, "/v2/whoami", "").want(401)
	if n := len(w.call(w.admin, get, "/v2/users/ana/sessions", "").want(200).array()); n != 1 {
		t.Errorf("ana has %d sessions", n)
	}
	w.call(w.user, del, "/v2/sessions", "").fails(403, "", "one by one")
	for _, session := range w.call(w.user, get, "/v2/sessions", "").want(200).array() {
		w.call(w.user, del, "/v2/sessions/"+session["id"].(string), "").want(200)
	}
	byCookie(here, get, "/v2/whoami", "").want(401)
}

func TestTokenRotationRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.call(w.user, post, "/v2/tokens", `{"name":"ci","scopes":["clusters:write","read"]}`).want(200).object()
	path := "/v2/tokens/" + made["id"].(string)
	old := made["secret"].(string)
	w.call(old, post, path+"/rotate", "").fails(403, "", "admin")
	w.call(w.second, post, path+"/rotate", "").want(404)
	rotated := w.call(w.user, post, path+"/rotate", "").want(200).object()
	fresh := rotated["secret"].(string)
	if rotated["id"] != made["id"] || rotated["expires"] != made["expires"] || rotated["prefix"] != fresh[:9] || fresh == old {
		t.Errorf("rotated %v", rotated)
	}
	w.call(old, get, "/v2/whoami", "").want(200)
	if scopes := w.call(fresh, get, "/v2/whoami", "").want(200).object()["scopes"].([]any); len(scopes) != 2 {
		t.Errorf("scopes %v", scopes)
	}
	w.call(w.admin, del, path, "").want(200)
	w.call(old, get, "/v2/whoami", "").want(401)
	w.call(fresh, get, "/v2/whoami", "").want(401)
}

// TestKeptAnswersObeyScopes: a token gets no answer that was kept for one that may do more.
func TestKeptAnswersObeyScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wide, narrow := w.token("acme", "ana", "admin"), w.token("acme", "ana", "read")
	w.call(wide, post, "/v2/tokens", `{"name":"ci","scopes":["read"]}`, "Idempotency-Key", "k").want(200)
	w.call(narrow, post, "/v2/tokens", `{"name":"ci","scopes":["read"]}`, "Idempotency-Key", "k").want(403)
	w.call(wide, post, "/v2/tokens", `{"name":"ci","scopes":["read"]}`, "Idempotency-Key", "k").want(200)
}

// TestKeptAnswersEndWithTheRight: who is no longer an administrator, or no longer owns the
// cluster, gets no answer that was kept for her when she was.
func TestKeptAnswersEndWithTheRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const body = `{"id":"carl"}`
	w.call(w.admin, post, "/v2/users", body, "Idempotency-Key", "k").want(200)
	w.call(w.admin, post, "/v2/users", body, "Idempotency-Key", "k").want(200)
	id := w.cluster(w.user, "given")
	ask := `{"kind":"delete","clusterId":"` + id + `","request":{"abort":true}}`
	w.exec(`UPDATE clusters SET status = 'active' WHERE id = $1::bigint`, id)
	ask = strings.Replace(ask, `{"abort":true}`, `{}`, 1)
	w.call(w.user, post, "/v2/previews", ask, "Idempotency-Key", "p").want(200)
	w.call(w.user, post, "/v2/previews", ask, "Idempotency-Key", "p").want(200)
	w.exec(`UPDATE clusters SET owner_id = 'ben' WHERE id = $1::bigint`, id)
	w.exec(`UPDATE users SET role = 'user' WHERE role = 'admin'`)
	w.call(w.user, post, "/v2/previews", ask, "Idempotency-Key", "p").want(404)
	if status := w.call(w.admin, post, "/v2/users", body, "Idempotency-Key", "k").status; status != 403 && status != 409 {
		t.Errorf("a demoted administrator gets %d", status)
	}
}

// TestKeysOfOtherScopesAreApart: a token that may only read keeps no key from one that may
// do more, whichever comes first, and fills up what is kept for itself alone.
func TestKeysOfOtherScopesAreApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	narrow, other, wide := w.token("acme", "ana", "read"), w.token("acme", "ana", "read"), w.token("acme", "ana", "clusters:write", "read")
	const preview, create = `{"kind":"create","request":{"name":"one","clusterTemplate":"site","numMachines":3}}`, `{"name":"one","clusterTemplate":"site","numMachines":3}`
	first := w.call(narrow, post, "/v2/previews", preview, "Idempotency-Key", "deploy-1").want(200)
	made := w.call(wide, post, "/v2/clusters", create, "Idempotency-Key", "deploy-1").want(200).object()
	if again := w.call(wide, post, "/v2/clusters", create, "Idempotency-Key", "deploy-1").want(200); again.object()["id"] != made["id"] || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %s", again.body)
	}
	if again := w.call(other, post, "/v2/previews", preview, "Idempotency-Key", "deploy-1").want(200); again.object()["id"] != first.object()["id"] {
		t.Errorf("a token of the same scopes: %s", again.body)
	}
	w.exec(`INSERT INTO idempotency_keys (tenant_id, user_id, key, path, body_hash, status)
		SELECT tenant_id, user_id, key || n, path, body_hash, status FROM idempotency_keys, generate_series(1, 999) n WHERE path = '/v2/previews'`)
	w.call(narrow, post, "/v2/previews", preview, "Idempotency-Key", "deploy-2").fails(429, "", "Leave the header out")
	w.call(narrow, post, "/v2/previews", preview, "Idempotency-Key", "deploy-1").want(200)
	w.call(narrow, post, "/v2/previews", preview).want(200)
	w.call(wide, post, "/v2/previews", preview, "Idempotency-Key", "deploy-2").want(200)
	w.exec(`UPDATE idempotency_keys SET created_at = now() - interval '25 hours'`)
	w.call(narrow, post, "/v2/previews", preview, "Idempotency-Key", "deploy-2").want(200)
}

// TestKeptAnswersAreShort: of a long answer, and of all behind those of 4 MiB, little is
// kept: what tells where to read it.
func TestKeptAnswersAreShort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "large")
	w.finish(id)
	keys := make([]string, 3000)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"a key of its own %d":1`, i)
	}
	long := `{"kind":"configure","clusterId":"` + id + `","request":{"config":{` + strings.Join(keys, ",") + `}}}`
	length := func(key string) (n int) {
		w.must(w.db.GetContext(t.Context(), &n, `SELECT coalesce(octet_length(response), 0) FROM idempotency_keys WHERE key = $1`, key))
		return n
	}
	repeated := func(key, body string, whole bool) {
		t.Helper()
		first := w.call(w.user, post, "/v2/previews", body, "Idempotency-Key", key).want(200).object()
		again := w.call(w.user, post, "/v2/previews", body, "Idempotency-Key", key).want(200)
		for _, member := range []string{"id", "kind", "hash", "clusterId"} {
			if again.object()[member] != first[member] {
				t.Errorf("%s: %s is %v, want %v", key, member, again.object()[member], first[member])
			}
		}
		said, _ := again.object()["detail"].(string)
		if whole != (said == "") || whole != (again.object()["plan"] != nil) || !whole && length(key) > 1000 || again.header.Get("Idempotency-Replayed") != "true" || whole != (again.header.Get("Idempotency-Shortened") == "") {
			t.Errorf("%s: %d bytes are kept, %.300s", key, length(key), again.body)
		}
	}
	short := `{"kind":"delete","clusterId":"` + id + `","request":{}}`
	repeated("long", long, false)
	repeated("short", short, true)
	w.exec(`INSERT INTO idempotency_keys (tenant_id, user_id, key, path, body_hash, status, response)
		SELECT tenant_id, user_id, 'read' || E'\n' || 'filler', path, body_hash, 200, convert_to(repeat('x', 4 << 20), 'UTF8') FROM idempotency_keys WHERE key = 'short'`)
	repeated("later", short, false)
	restarted := w.call(w.user, post, "/v2/clusters/"+id+"/services/stop", "", "Idempotency-Key", "stop").want(200)
	if again := w.call(w.user, post, "/v2/clusters/"+id+"/services/stop", "", "Idempotency-Key", "stop").want(200); again.body != restarted.body {
		t.Errorf("an answer without a body: %q, then %q", restarted.body, again.body)
	}
	w.exec(`UPDATE idempotency_keys SET created_at = now() - interval '25 hours' WHERE path = '/v2/previews'`)
	repeated("next day", `{"kind":"create","request":{"name":"one","clusterTemplate":"site","numMachines":3}}`, true)
}

// TestShortenedAnswers keeps what is short, whole, no secret, and before the cut.
func TestShortenedAnswers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"id":"1","secret":"s","password":"p","list":[1,{"x":2}],"n":12,"none":null,"long":"` + strings.Repeat("x", 100) + `","kind":"a"}` + "\n": `"id":"1","kind":"a","n":12,"none":null`,
		`{"id":"1","n":12`:     `"id":"1"`,
		`{"id":"1","list":[1,`: `"id":"1"`,
		`{"id":"1","kin`:       `"id":"1"`,
		`[1,2]`:                ``,
		``:                     ``,
	} {
		got := string(shortened([]byte(body)))
		rest, ok := strings.CutPrefix(got, `{"detail":"The first answer was too long to be kept. This is its beginning; read the rest at its id."`)
		if !ok || strings.TrimPrefix(rest, ",") != want+"}\n" {
			t.Errorf("%.40s: got %s", body, got)
		}
	}
}

// TestKeptAnswersHoldNoSecret repeats requests whose answers show a secret once.
func TestKeptAnswersHoldNoSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for path, c := range map[string]struct{ body, member string }{
		"/v2/users":  {`{"id":"carl"}`, "password"},
		"/v2/tokens": {`{"name":"ci","scopes":["read"]}`, "secret"},
	} {
		first := w.call(w.admin, post, path, c.body, "Idempotency-Key", "k"+path).want(200)
		secret := first.object()[c.member].(string)
		again := w.call(w.admin, post, path, c.body, "Idempotency-Key", "k"+path).want(200)
		if again.object()["id"] != first.object()["id"] || again.object()[c.member] != nil || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s again: %s", path, again.body)
		}
		w.call(w.admin, post, path, `{}`, "Idempotency-Key", "k"+path).want(409)
		var n int
		w.must(w.db.GetContext(t.Context(), &n, `SELECT count(*) FROM idempotency_keys WHERE position(convert_to($1, 'UTF8') IN response) > 0`, secret))
		if n != 0 {
			t.Errorf("%s: the kept answer holds the secret", path)
		}
	}
	if n := len(w.call(w.admin, get, "/v2/users?q=carl", "").want(200).array()); n != 1 {
		t.Errorf("%d users of the name carl", n)
	}
}

// TestHeaderChecksInOrder breaks everything at once and then mends one thing after
// the other.
func TestHeaderChecksInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(d *Deps) { d.TrustedNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	const path, body = "/v2/tenants", "nonsense"
	var headers []string
	for _, step := range []struct {
		name, value, text string
		status            int
	}{
		{headerTenant, "nowhere", headerUser, 401}, // the user comes before the tenant
		{headerUser, "newcomer", "nowhere", 404},   // the tenant before the role, also on this route
		{headerTenant, "acme", "superadmin", 403},  // the role before the body
	} {
		headers = append(headers, step.name, step.value)
		w.send(post, path, body, headers...).fails(step.status, "", step.text)
	}
	w.send(post, path, body, headerUser, "admin", headerTenant, "superadmin", headerKey, dummyKey).fails(400, "", "not JSON")
	// The first use made a row, without a password.
	got := w.call(w.admin, get, "/v2/users/newcomer", "").want(200).object()
	if got["role"] != "user" || got["lastSeen"] == nil {
		t.Errorf("the newcomer is %v", got)
	}
	w.tx(func(tx *sqlx.Tx) error {
		tenant, err := store.TenantByNameAllTenants(t.Context(), tx, "acme")
		if err != nil {
			return err
		}
		if hash, err := store.PasswordHash(t.Context(), tx, tenant.ID, "newcomer"); err != nil || hash != "" {
			t.Errorf("the newcomer has the password %q, %v", hash, err)
		}
		return nil
	})
	// Header names are case-insensitive.
	w.send(get, "/v2/whoami", "", "coopr-userid", "ana", "COOPR-TENANTID", "acme").want(200)
	all := w.call(w.admin, get, "/v2/users", "").want(200).array()
	if !slices.ContainsFunc(all, func(u map[string]any) bool { return u["id"] == "newcomer" }) {
		t.Errorf("users %v", all)
	}
}

// TestGeneratedPasswordStopsSessions: who has to change the password does nothing with
// that session before; API tokens go on.
func TestGeneratedPasswordStopsSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.signIn("acme", "ana")
	byCookie := func(method, path, body string) reply {
		t.Helper()
		return w.send(method, path, body, "Cookie", session, "Sec-Fetch-Site", "same-origin")
	}
	byCookie(get, "/v2/clusters", "").fails(403, "", "choose one of your own at /account/password")
	byCookie(post, "/v2/tokens", `{"name":"mine","scopes":["admin"]}`).want(403)
	w.call(w.user, get, "/v2/clusters", "").want(200)
	if ana := w.call(w.admin, get, "/v2/users/ana", "").want(200).object(); ana["mustChangePassword"] != true {
		t.Errorf("the user is %v", ana)
	}
	changed := w.call(w.admin, patch, "/v2/users/ana", `{"password":"four words in a row"}`).want(200).object()
	if changed["mustChangePassword"] != nil {
		t.Errorf("with a chosen password the user is %v", changed)
	}
	session = w.signInWith("acme", "ana", "four words in a row")
	byCookie(get, "/v2/clusters", "").want(200)
}

// TestPasswordRules: common passwords are refused at their field, and a new password ends
// tokens where that is asked for.
func TestPasswordRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.admin, post, "/v2/users", `{"id":"carl","password":"Basketball1"}`).fails(400, "password", "most common passwords")
	w.call(w.admin, patch, "/v2/users/ana", `{"password":"qwertyuiop"}`).fails(400, "password", "sequence")
	w.call(w.admin, patch, "/v2/users/ana", `{"endTokens":true}`).fails(400, "endTokens", "with a new password only")
	w.call(w.admin, patch, "/v2/users/ana", `{"endTokens":"yes","password":"four words in a row"}`).fails(400, "endTokens", "")
	w.call(w.admin, patch, "/v2/users/ana", `{"password":"four words in a row"}`).want(200)
	w.call(w.user, get, "/v2/clusters", "").want(200)
	w.call(w.admin, patch, "/v2/users/ana", `{"password":"another four words","endTokens":true}`).want(200)
	w.call(w.user, get, "/v2/clusters", "").fails(401, "", "revoked")
}
