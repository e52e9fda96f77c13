package web_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/clusters"
	"loom/app/hook"
	"loom/app/loom"
	"loom/app/web"
)

// withoutDocument are the pages that show no object and no list of the REST API, by
// their pattern, with the reason.
var withoutDocument = map[string]string{
	"GET /{$}": "sums up several lists", "GET /home/clusters": "part of a page", "GET /clusters/{cluster}/open": "leads elsewhere", "GET /clusters/{cluster}/activity": "leads elsewhere", "GET /home/news": "part of a page",
	"GET /clusters/rows": "part of a page", "GET /clusters/{cluster}/panel": "part of a page", "GET /clusters/{cluster}/ssh-config": "a file", "GET /clusters/{cluster}/copy": "a file",
	"GET /clusters/bulk/delete": "asks about several clusters", "GET /clusters/bulk/lease": "asks about several clusters", "GET /clusters/bulk/owner": "asks about several clusters", "GET /clusters/bulk/restart": "asks about several clusters", "GET /icons/{kind}/{name}/{version}": "a picture",
	"GET /previews/{preview}/graph.svg": "a picture", "GET /previews/{preview}/apply": "leads back", "GET /clusters/{cluster}/protect": "leads back", "GET /clusters/{cluster}/key": "leads back", "GET /clusters/{cluster}/authorize": "leads back",
	"GET /clusters/{cluster}/operations/{n}/resubmit": "leads back", "GET /clusters/{cluster}/operations/{n}/tasks/{task}/retry-now": "leads back", "GET /clusters/{cluster}/operations/{n}/tasks/{task}/stop-retrying": "leads back",
	"GET /clusters/{cluster}/operations/{n}/pause": "leads back", "GET /clusters/{cluster}/operations/{n}/resume": "leads back",
	"GET /clusters/{cluster}/nodes/{node}/reveal": "part of a page", "GET /clusters/{cluster}/operations/{n}/graph.svg": "a picture",
	"GET /clusters/{cluster}/operations/{n}/panel": "part of a page", "GET /clusters/{cluster}/operations/{n}/tasks/{task}/panel": "part of a page",
	"GET /clusters/{cluster}/operations/{n}/tasks/{task}/log": "part of a page", "GET /clusters/{cluster}/operations/{n}/tasks/{task}/log/raw": "a file",
	"GET /login": "no object", "GET /login/dialog": "no object", "GET /account/preferences": "pages only", "GET /account/session": "no object", "GET /account/password": "a form alone",
	"GET /search": "several lists", "GET /palette": "part of a page", "GET /help/keys": "no object", "GET /events": "a stream",
	"GET /docs/api": "the API itself", "GET /docs/api/{chapter}": "the API itself", "GET /favicon.ico": "a picture",
	"GET /admin/providers/{name}/export": "a file", "GET /admin/hardware-types/{name}/export": "a file", "GET /admin/image-types/{name}/export": "a file",
	"GET /admin/services/{name}/export": "a file", "GET /admin/templates/{name}/export": "a file", "GET /admin/partials/{name}/export": "a file",
	"GET /admin/providers/{name}/use": "asks where", "GET /admin/tests/{probe}": "the answer to a form",
	"GET /admin/services/{name}/use": "asks where", "GET /admin/fix": "asks about several entries",
	"GET /system/tenants/{tenant}/clusters": "clusters of another tenant, pages only", "GET /system/tenants/{tenant}/users": "users of another tenant, pages only",
	"GET /login/{provider}": "leads to the identity provider", "GET /login/{provider}/callback": "comes from the identity provider",
	"GET /admin": "sums up several lists", "GET /system": "sums up several lists",
}

// TestEveryObjectHasItsJSON walks the routes: a page either is in the list above, or
// offers its document and a line for a shell that gives the same one.
func TestEveryObjectHasItsJSON(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	known := web.DocumentPatterns()
	for _, pattern := range web.Patterns() {
		if !strings.HasPrefix(pattern, "GET ") || known[pattern] {
			continue
		}
		asksAboutSeveral := strings.HasPrefix(pattern, "GET /admin/bulk/")
		if withoutDocument[pattern] == "" && !officeOnly(pattern) && !asksAboutSeveral {
			t.Errorf("%s offers no JSON, and no reason is given", pattern)
		}
	}
	super := w.superCookie()
	values := w.documentValues()
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.Close)
	tokens := map[loom.UserID]string{}
	for _, user := range []loom.UserID{"admin", super} {
		_, secret, err := w.accounts.CreateToken(w.ctx, w.actor(user), account.NewToken{Name: "walk", Scopes: []loom.Scope{loom.ScopeAdmin}})
		w.must(err)
		tokens[user] = secret.Reveal()
	}
	shells := 0
	for pattern := range known {
		if strings.HasSuffix(pattern, "/journal") {
			continue // it is read from a machine, and there is none; TestJournal of the API has one
		}
		user := loom.UserID("admin")
		if strings.Contains(pattern, " /system") {
			user = super
		}
		path, ok := fill(strings.TrimPrefix(pattern, "GET "), values)
		if !ok {
			t.Errorf("%s: the test has no value for a part of it", pattern)
			continue
		}
		raw := w.get(user, path+"?as=json")
		if raw.Code != 200 || raw.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s?as=json: status %d, %s: %.300s", path, raw.Code, raw.Header.Get("Content-Type"), raw.Body)
			continue
		}
		pane := w.get(user, path+"?as=pane").is(200, "API and JSON")
		line := firstCall.FindStringSubmatch(pane.Body)
		if line == nil {
			t.Errorf("%s: no call: %s", path, pane.main())
			continue
		}
		curl := html.UnescapeString(line[1])
		if got := w.run(server.URL, tokens[user], curl, shells < 2); !same(raw.Body, got) {
			t.Errorf("%s: %s gives\n%.400s\nbut ?as=json\n%.400s", pattern, curl, got, raw.Body)
		}
		shells++
	}
}

var firstCall = regexp.MustCompile(`id="pane-call-0">([^<]+)</code>`)

// officeOnly are pages whose lists are not in the REST API.
func officeOnly(pattern string) bool {
	for _, part := range []string{"/admin/resources", "/system/queues/jobs", "/usage", "/activity", "/admin/transfer", "/system/status", "/system/plugins/", "/act-as", "/admin/starter", "/system/hooks", "/system/clusters", "/clusters/{cluster}/activity", "/try", "/edit/", "/system/leftovers"} {
		if strings.Contains(pattern, part) {
			return true
		}
	}
	return false
}

// run does what a line for a shell says; with a real one where that is wanted and
// there, else by the URL in it.
func (w *clusterWorld) run(base, token, line string, shell bool) string {
	w.t.Helper()
	if _, err := exec.LookPath("curl"); shell && err == nil {
		cmd := exec.CommandContext(w.ctx, "sh", "-c", line)
		cmd.Env = []string{"LOOM_URL=" + base, "LOOM_TOKEN=" + token, "PATH=/usr/bin:/bin:/usr/local/bin"}
		out, err := cmd.Output()
		w.must(err)
		return string(out)
	}
	_, rest, ok := strings.Cut(line, `"$LOOM_URL`)
	target, _, end := strings.Cut(rest, `"`)
	if !ok || !end || !strings.HasPrefix(line, `curl -H "Authorization: Bearer $LOOM_TOKEN" "$LOOM_URL/v2/`) {
		w.t.Fatalf("no such line: %s", line)
	}
	return w.send("", http.MethodGet, target, nil, "Authorization", "Bearer "+token).is(200).Body
}

// same compares documents; which session is the present one differs by who asks, and
// asking itself is counted here and there.
func same(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return reflect.DeepEqual(steady(x), steady(y))
}

func steady(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"current", "lastUsed", "lastSeen", "lastAddress", "via", "scopes", "heartbeat", "expiresTime", "oldestWait"} {
			delete(v, key)
		}
		for key := range v {
			v[key] = steady(v[key])
		}
	case []any:
		for i := range v {
			v[i] = steady(v[i])
		}
	}
	return v
}

var part = regexp.MustCompile(`\{[a-z]+\}`)

func fill(path string, values map[string]string) (string, bool) {
	all := true
	path = part.ReplaceAllStringFunc(path, func(name string) string {
		value := values[path[:strings.Index(path, name)]+name]
		if value == "" {
			value = values[name]
		}
		all = all && value != ""
		return url.PathEscape(value)
	})
	return path, all
}

// superCookie signs a superadmin in.
func (w *clusterWorld) superCookie() loom.UserID {
	w.t.Helper()
	super := loom.SystemActor(loom.SuperTenant, string(loom.SuperTenant))
	password := loom.NewSecret("correct horse battery super")
	_, _, err := w.accounts.CreateUser(w.ctx, super, account.UserInput{ID: "root", Role: loom.RoleAdmin, Password: password})
	w.must(err)
	_, cookie, _, err := w.accounts.SignIn(w.ctx, account.SignInInput{Tenant: string(loom.SuperTenant), User: "root", Password: password, Address: "127.0.0.1"})
	w.must(err)
	w.cookies["root"] = cookie.Reveal()
	return "root"
}

// documentValues are parts of paths that lead to something, by name; a longer key is
// for one page only.
func (w *clusterWorld) documentValues() map[string]string {
	w.t.Helper()
	ref := w.create("shop", 2)
	task := loom.TaskRef{Operation: ref, Number: 1}
	w.fail(task, "the script ended with status 1")
	w.save(loom.KindPartialTemplate, &loom.PartialTemplate{Base: loom.Base{Name: "part"}, Constraints: loom.Constraints{Size: loom.SizeConstraint{Min: 1, Max: 5}}})
	made, _, err := w.hooks.Create(w.ctx, w.actor("admin"), hook.Input{Name: "ci", URL: "https://ci.example/loom"})
	w.must(err)
	token, _, err := w.accounts.CreateToken(w.ctx, w.actor("admin"), account.NewToken{Name: "one", Scopes: []loom.Scope{loom.ScopeRead}})
	w.must(err)
	preview, err := w.clusters.Preview(w.ctx, w.actor("admin"), clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: ref.Cluster})
	w.must(err)
	w.active("blog", 2) // which a rollout can change
	rollout, err := w.clusters.MakeRollout(w.ctx, w.actor("admin"), clusters.RolloutInput{Fleet: clusters.FleetInput{Change: clusters.PreviewInput{Kind: loom.ChangeRestart}}, Settings: loom.DefaultRolloutSettings()})
	w.must(err)
	group, err := w.accounts.CreateGroup(w.ctx, w.actor("admin"), account.GroupInput{Name: new("Team db")})
	w.must(err)
	_, err = w.accounts.Share(w.ctx, w.actor("admin"), account.BindingInput{Group: group.ID, Role: loom.RoleReader, Cluster: ref.Cluster})
	w.must(err)
	provider, err := w.accounts.CreateIdentityProvider(w.ctx, w.actor("admin"), identityProvider("Own"))
	w.must(err)
	var node string
	w.must(w.db.Get(&node, `SELECT id FROM nodes WHERE cluster_id = $1 AND 'nginx' = ANY (services) LIMIT 1`, int64(ref.Cluster)))
	var riverJob string
	w.must(w.db.Get(&riverJob, `INSERT INTO river_job (state, queue, kind, args, max_attempts) VALUES ('available', 'control', 'trim_events', '{}', 25) RETURNING id`))
	return map[string]string{
		"{cluster}": ref.Cluster.String(), "{n}": "1", "{task}": "1", "{node}": node, "{service}": "nginx", "{preview}": string(preview.ID),
		"{template}": "web-cluster", "{version}": "1", "{id}": fmt.Sprint(token.ID), "{verb}": "delete", "{token}": fmt.Sprint(token.ID), "{session}": "x",
		"{tenant}": "acme", "{delivery}": "1", "{queue}": "hook", "/system/queues/{queue}/{verb}": "pause", "/system/queues/jobs/{id}": riverJob,
		"/admin/users/{id}": "ana", "/admin/hooks/{id}": fmt.Sprint(made.ID), "/admin/groups/{id}": fmt.Sprint(group.ID), "/admin/identity/{id}": provider.ID, "{provider}": "none", "/admin/rollouts/{id}": fmt.Sprint(rollout.Number), "/admin/rollouts/{id}/{verb}": "abort", "/system/orphans/{id}": "1", "/system/workers/{id}": "x",
		"/admin/providers/{name}": "lab", "/admin/hardware-types/{name}": "small", "/admin/image-types/{name}": "debian-12", "/admin/services/{name}": "nginx",
		"/admin/templates/{name}": "web-cluster", "/admin/partials/{name}": "part",
	}
}

// identityProvider is one to make, of a name, which nobody calls.
func identityProvider(name string) account.IdentityProviderInput {
	issuer, client, secret := "https://id.example", "loom", loom.NewSecret("secret")
	return account.IdentityProviderInput{Name: &name, Issuer: &issuer, ClientID: &client, Secret: &secret}
}
