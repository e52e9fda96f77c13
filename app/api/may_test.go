package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/loom"
	"loom/app/testkit"
)

// documentedVerbs says which verb of docs/decisions/0064-one-decision-point.md a route needs; the first that fits counts.
// They are typed from the document, not from the table of routes.
var documentedVerbs = []struct{ method, path, verb string }{
	{get, `^/v2/(whoami|tokens|sessions|profile)$`, "self"},
	{"", `^/v2/profile$`, "profile"},
	{"", `^/v2/(tokens|sessions)\b`, "self"},
	{get, `^/v2/users/\{id\}`, "see"},
	{patch, `^/v2/users/\{id\}$`, "self"}, // of others: administer
	{"", `^/v2/(users|hooks|groups|bindings|identity-providers)\b`, "administer"},
	{get, `^/v2/clusters/\{id\}/access$`, "see"},
	{"", `^/v2/clusters/\{id\}/access\b`, "own"},
	{get, `^/v2/(settings|audit|check|export|metrics/nodes/usage)$`, "read"},
	{post, `^/v2/resolve$`, "read"},
	{"", `^/v2/(settings|metrics/queues)$`, "administer"},
	{"", `^/v2/(import|check/fix|fleet-previews)$`, "publish"},
	{"", `^/v2/rollouts\b`, "operate on the tenant"},
	{"", `^/v2/plugins/(sync|resources)$`, "publish"},
	{"", `/\{name\}/\{version\}/\{resource\}`, "publish"},
	{get, `^/v2/plugins/`, "read"},
	{"", `^/v2/plugins/`, "install"},
	{"", `^/v2/(probes/|providers/(probe$|\{name\}/probe))`, "administer"},
	{"", `^/v2/providers/\{name\}/sweep`, "publish"},
	{get, `^/v2/(clustertemplates|partialtemplates|providers|services|hardwaretypes|imagetypes)\b`, "read"},
	{"", `^/v2/(clustertemplates|partialtemplates|providers|services|hardwaretypes|imagetypes)\b`, "publish"},
	{"", `^/v2/(tenants|system|queues|riverjobs|orphans|leftovers|sweeps|processes|provisioners)\b`, "install"},
	{"", `^/v2/(getNodeProperties|getClusterStatuses)$`, "see"},
	{get, `^/v2/(nodes|incidents)\b`, "see"},
	{post, `^/v2/incidents/`, "operate"},
	{"", `^/v2/nodes\b`, "administer"},
	{post, `^/v2/clusters$`, "create"},
	{del, `^/v2/clusters/\{id\}$`, "own"},
	{"", `/skip$`, "override"},
	{get, `/journal$`, "operate"},
	{get, `^/v2/clusters\b`, "see"},
	{"", `^/v2/(clusters|previews)\b`, "operate"},
}

// scopeOf is the scope that a verb needs, for those who change something.
var scopeOf = map[string]loom.Scope{
	"see": "read", "read": "read", "create": "clusters:write", "operate": "clusters:write", "own": "clusters:write", "override": "clusters:write",
	"operate on the tenant": "clusters:write",
	"publish":               "catalog:write", "administer": "admin", "install": "admin", "self": "admin", "profile": "clusters:write",
}

func documentedVerb(t *testing.T, rt *route) (verb string, scope loom.Scope) {
	t.Helper()
	for _, d := range documentedVerbs {
		if (d.method == "" || d.method == rt.method) && regexp.MustCompile(d.path).MatchString(rt.path) {
			if rt.method == get && !strings.HasSuffix(rt.path, "/journal") || strings.Contains(rt.path, "previews") && !strings.HasSuffix(rt.path, "/apply") {
				return d.verb, loom.ScopeRead // reading and previewing
			}
			return d.verb, scopeOf[d.verb]
		}
	}
	t.Fatalf("the document says nothing of %s %s", rt.method, rt.path)
	return "", ""
}

// caller is somebody of the matrix; what is asked for is carol's, of acme: a cluster of the template
// “site”. Bound callers have no role but the one that a group gives them at a place: T in the tenant, t for
// that template, x for another one, c for that cluster, y for another one.
type caller struct {
	role, place, tenant string
	user                loom.UserID
	bound               string
}

// callers are those who ask, by the role of carol.
var callers = map[loom.Role][]caller{
	loom.RoleUser: {
		{"user", "own", "acme", "carol", ""}, {"user", "foreign", "acme", "ben", ""}, {"user", "other tenant", "other", "ana", ""},
		{"admin", "foreign", "acme", "admin", ""}, {"admin", "other tenant", "other", "admin", ""}, {"superadmin", "other tenant", "superadmin", "admin", ""},
	},
	loom.RoleAdmin: {{"admin", "own", "acme", "carol", ""}},
	// Carol has no role of her own any longer: what is hers stays hers.
	loom.RoleNone: append(boundCallers(), caller{"reader", "own", "acme", "carol", "y"}),
}

// boundCallers are those of each role at each place.
func boundCallers() []caller {
	var all []caller
	for _, role := range []string{"reader", "user", "operator", "publisher", "admin"} {
		for _, place := range []string{"T", "t", "x", "c", "y"} {
			if role == "publisher" && place != "T" || role == "user" && (place == "c" || place == "y") {
				continue
			}
			all = append(all, caller{role, "foreign", "acme", loom.UserID(role + map[string]string{"T": "-of-all", "t": "-of-site", "x": "-of-another", "c": "-of-one", "y": "-of-other"}[place]), place})
		}
	}
	return all
}

// documentedRoles is the table of docs/decisions/0064-one-decision-point.md: where each role does what.
var documentedRoles = map[string]map[string]string{
	"see":                   {"reader": "Ttc", "operator": "Ttc", "admin": "Ttc", "superadmin": "T"},
	"create":                {"user": "Tt", "admin": "Tt", "superadmin": "T"},
	"operate":               {"operator": "Ttc", "admin": "Ttc", "superadmin": "T"},
	"own":                   {"admin": "Ttc", "superadmin": "T"},
	"operate on the tenant": {"operator": "T", "admin": "T", "superadmin": "T"},
	"override":              {"admin": "T", "superadmin": "T"},
	"publish":               {"publisher": "T", "admin": "T", "superadmin": "T"},
	"administer":            {"admin": "T", "superadmin": "T"},
	"install":               {"superadmin": "T"},
}

// does reports whether the role of a caller lets him do something at places that are concerned.
func (c caller) does(verb, places string) bool {
	at := c.bound
	if at == "" {
		at = "T"
	}
	return strings.Contains(places, at) && strings.Contains(documentedRoles[verb][c.role], at)
}

var (
	ofCluster = regexp.MustCompile(`^/v2/((clusters|nodes|incidents)/\{|previews$)`)
	// private is what even administrators see only of themselves.
	private = regexp.MustCompile(`^/v2/previews/\{id\}`)
	ofUser  = regexp.MustCompile(`^/v2/(tokens|sessions|users)/\{id\}`)
)

// outcome is the status that refuses a request, 0 where it is allowed.
func outcome(who caller, rt *route, verb string, scope, has loom.Scope) int {
	entitled := true
	switch verb {
	case "override", "publish", "administer", "operate on the tenant", "install":
		entitled = who.does(verb, "T")
	case "create":
		entitled = who.does(verb, "Tt")
	}
	enough := has == "" || has == scope || has == loom.ScopeAdmin || scope == loom.ScopeRead
	sees := who.place == "own" || who.place == "foreign" && who.does("see", "Ttc")
	seesUsers := who.place == "own" || who.place == "foreign" && who.does("administer", "T")
	switch {
	case !entitled && verb != "override", !enough:
		return http.StatusForbidden
	case rt.path == "/v2/nodes/{id}" && rt.method != get: // writes what is not there
		return 0
	case private.MatchString(rt.path) && who.place != "own", ofCluster.MatchString(rt.path) && !sees, ofUser.MatchString(rt.path) && rt.method != patch && !seesUsers:
		return http.StatusNotFound
	case !entitled:
		return http.StatusForbidden
	case ofCluster.MatchString(rt.path) && who.place == "foreign" && (verb == "operate" || verb == "own") && !who.does(needed(rt, verb), "Ttc"):
		return http.StatusForbidden
	case rt.method == patch && ofUser.MatchString(rt.path) && who.place != "own" && !who.does("administer", "T"):
		return http.StatusForbidden // of others: administer
	case strings.HasSuffix(rt.path, "/rotate") && (who.place != "own" || has != ""):
		return http.StatusForbidden // the secret stands for its owner, and a token rotates itself
	}
	return 0
}

// needed is what a route needs of a cluster: the preview that the matrix asks for is that of a delete.
func needed(rt *route, verb string) string {
	if rt.path == "/v2/previews" {
		return "own"
	}
	return verb
}

// TestWhoMayWhat asks every route as every role, about what is his own, another's and another
// tenant's, by session and with a token of each scope. What is allowed is undone at its end.
func TestWhoMayWhat(t *testing.T) {
	t.Parallel()
	for owner, callers := range callers {
		t.Run("carol is "+string(owner), func(t *testing.T) {
			t.Parallel()
			askEverything(t, owner, callers)
		})
	}
}

// askEverything asks every route for what is carol's, whose role is the owner's.
func askEverything(t *testing.T, owner loom.Role, callers []caller) {
	made := newWorld(t)
	ids := made.markedTenant()
	made.exec(`UPDATE clusters SET owner_id = 'carol' WHERE id <> 999999`)
	made.exec(`UPDATE previews SET user_id = 'carol'`)
	made.exec(`UPDATE tokens SET user_id = 'carol' WHERE id = $1`, ids["tokens/id"])
	made.exec(`UPDATE users SET password_change = NULL`)
	made.exec(`UPDATE users SET role = $1 WHERE id = 'carol'`, owner)
	for _, who := range callers {
		if who.bound != "" {
			made.bind(who, ids)
		}
	}
	keys := map[string]string{}
	for _, who := range callers {
		for _, scope := range loom.Scopes {
			keys[who.tenant+string(who.user)+string(scope)] = "Bearer " + made.token(who.tenant, who.user, loom.ScopeRead)
			made.exec(`UPDATE tokens SET scopes = ARRAY[$1] WHERE id = (SELECT max(id) FROM tokens)`, scope) // a user asks for catalog:write in vain
		}
		keys[who.tenant+string(who.user)] = "loom-dev=" + made.session(who.tenant, who.user)
	}
	made.exec(`UPDATE tokens SET last_used_at = now() + interval '1 hour'`) // noting a use is a change
	made.exec(`UPDATE sessions SET last_seen_at = now() + interval '1 hour'`)
	testkit.RefuseCommits(t, made.db)
	w := worldOn(t, made.db)
	bodies := foreignBodies(ids)
	asked := 0
	for _, rt := range w.api.routes() {
		if rt.open || rt.path == "/v2/events" || rt.path == "/v2/sessions" && rt.method == del { // no token may, see TestTokensKeepNobodyOut
			continue
		}
		verb, scope := documentedVerb(t, &rt)
		path, _ := made.foreignPath(rt.path, ids)
		body := made.foreignBody(rt, path, bodies)
		for _, who := range callers {
			for _, has := range append([]loom.Scope{""}, loom.Scopes...) {
				if who.bound != "" && has != "" {
					continue // scopes are the same whatever the role
				}
				asked++
				status, text := w.ask(rt.method, path, body, keys[who.tenant+string(who.user)+string(has)])
				want := outcome(who, &rt, verb, scope, has)
				if status != want && (want != 0 || refuses(status, text)) {
					t.Errorf("%s (%s) with %q, %s: %s %s answers %d, want %d: %.200s", who.role, who.user, has, who.place, rt.method, rt.path, status, want, text)
				}
			}
		}
	}
	if asked < 140*len(callers) {
		t.Errorf("only %d requests", asked)
	}
}

// refuses reports whether an answer is about who asked. Where something is merely not
// there, the answer says what.
func refuses(status int, text string) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return true
	case http.StatusNotFound:
		return strings.Contains(text, "that you may see") || strings.Contains(text, "There is no cluster 0")
	}
	return false
}

// bind gives a caller his role at its place, by a group that has no other member.
func (w *world) bind(who caller, ids map[string]string) {
	w.t.Helper()
	w.exec(`INSERT INTO users (tenant_id, id, role) SELECT id, $1, 'none' FROM tenants WHERE name = 'acme' ON CONFLICT DO NOTHING`, who.user)
	w.exec(`DELETE FROM role_bindings WHERE user_id = $1`, who.user)
	w.exec(`DELETE FROM group_members WHERE user_id = $1`, who.user)
	w.exec(`INSERT INTO groups (tenant_id, name) SELECT id, $1 FROM tenants WHERE name = 'acme'`, who.user)
	w.exec(`INSERT INTO group_members (tenant_id, group_id, user_id, added_by) SELECT tenant_id, id, name, 'x' FROM groups WHERE name = $1`, who.user)
	// Another cluster, which the matrix asks nothing of.
	w.exec(`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, services)
		SELECT 999999, tenant_id, 'admin', 'another', 'terminated', 'another', 1, '{}', 'lab', '{}' FROM groups WHERE name = $1 ON CONFLICT DO NOTHING`, who.user)
	var template, cluster any
	switch who.bound {
	case "t":
		template = "site"
	case "x":
		template = "another"
	case "c":
		cluster = strings.TrimLeft(ids["clusters/id"], "0")
	case "y":
		cluster = 999999
	}
	w.exec(`INSERT INTO role_bindings (tenant_id, group_id, role, template, cluster_id, created_by) SELECT tenant_id, id, $2, $3, $4, 'x' FROM groups WHERE name = $1`, who.user, who.role, template, cluster)
}

// session is the cookie of a session of a user.
func (w *world) session(tenant string, user loom.UserID) string {
	w.t.Helper()
	cookie := fmt.Sprintf("cookie of %s of %s", user, tenant)
	cookie = strings.ReplaceAll(cookie, " ", "-")
	w.exec(`INSERT INTO sessions (id, tenant_id, user_id, address, agent, expires_at)
		SELECT decode($1, 'hex'), id, $2, '', 'matrix', now() + interval '1 hour' FROM tenants WHERE name = $3`, account.SessionID(loom.NewSecret(cookie)), user, tenant)
	return cookie
}

// ask sends a request without a connection.
func (w *world) ask(method, path, body, key string) (status int, text string) {
	w.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	header := "Authorization"
	if strings.HasPrefix(key, "loom-dev") {
		header = "Cookie"
	}
	r.Header.Set(header, key)
	answer := httptest.NewRecorder()
	w.server.Config.Handler.ServeHTTP(answer, r)
	return answer.Code, answer.Body.String()
}
