package web_test

import (
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loom/app/account"
	"loom/app/clusters"
	"loom/app/hook"
	"loom/app/loom"
	"loom/app/web"
	"loom/views/route"
)

// callWorld makes something of its own for each call, so that none meets what another
// one left.
type callWorld struct {
	*clusterWorld
	values map[string]string
	made   int
	token  map[loom.UserID]string
	super  loom.UserID
}

// stage gives the parts of the path of a page: for pages of clusters, a new one in the
// state in which what the page offers can be done.
func (w *callWorld) stage(pattern string) map[string]string {
	w.t.Helper()
	values := make(map[string]string, len(w.values))
	for name, value := range w.values {
		values[name] = value
	}
	w.made++
	if !strings.Contains(pattern, "{cluster}") && !strings.Contains(pattern, "{preview}") || strings.Contains(pattern, "/abandon") {
		w.office(pattern, values)
		return values
	}
	ref := w.create(fmt.Sprintf("made-%d", w.made), 4)
	values["{cluster}"] = ref.Cluster.String()
	switch end := pattern[strings.LastIndex(pattern, "/"):]; {
	case end == "/update":
		w.finish(ref, loom.ClusterActive)
		nginx := webService("nginx", "Serves the pages.")
		nginx.DefaultConfig = map[string]any{"nginx": map[string]any{"for": values["{cluster}"]}}
		w.save(loom.KindService, nginx)
	case end == "/retry", end == "/rollback", strings.HasSuffix(pattern, "/repair"):
		w.fail(loom.TaskRef{Operation: ref, Number: 1}, "the script ended with status 1")
	case end == "/skip", end == "/abort", strings.Contains(pattern, "/operations/{n}"):
		w.runSome(ref, 1, 1)
		values["{task}"] = "3"
		if end == "/skip" {
			w.db.MustExec(`UPDATE operations SET status = 'paused' WHERE cluster_id = $1`, int64(ref.Cluster))
		}
	default:
		w.finish(ref, loom.ClusterActive)
		if strings.HasSuffix(pattern, "/start") {
			w.db.MustExec(`UPDATE nodes SET service_states = (SELECT jsonb_object_agg(s, 'stopped') FROM unnest(services) AS s) WHERE cluster_id = $1`, int64(ref.Cluster))
		}
	}
	var node string
	w.must(w.db.Get(&node, `SELECT id FROM nodes WHERE cluster_id = $1 ORDER BY number LIMIT 1`, int64(ref.Cluster)))
	values["{node}"] = node
	if strings.Contains(pattern, "{preview}") {
		preview, err := w.clusters.Preview(w.ctx, w.actor("admin"), clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: ref.Cluster})
		w.must(err)
		values["{preview}"] = string(preview.ID)
	}
	return values
}

// office makes what pages besides those of clusters are about.
func (w *callWorld) office(pattern string, values map[string]string) {
	w.t.Helper()
	name := fmt.Sprintf("spare-%d", w.made)
	base := loom.Base{Name: name, Description: "It’s a spare one."}
	admin := w.actor("admin")
	for kind, entry := range map[loom.EntityKind]loom.Entry{
		loom.KindProvider:        &loom.Provider{Base: base, Type: "lab", Fields: map[string]any{"region": "south"}},
		loom.KindHardwareType:    &loom.HardwareType{Base: base, ProviderMap: map[string]map[string]string{"lab": {"flavor": "1 GiB"}}},
		loom.KindImageType:       &loom.ImageType{Base: base, ProviderMap: map[string]map[string]string{"lab": {"image": "bookworm", "sshuser": "loom"}}},
		loom.KindService:         webService(name, "Spare."),
		loom.KindTemplate:        &loom.Template{Base: base, Defaults: webTemplate().Defaults, Compatibility: webTemplate().Compatibility, Constraints: webTemplate().Constraints},
		loom.KindPartialTemplate: &loom.PartialTemplate{Base: base, Constraints: loom.Constraints{Size: loom.SizeConstraint{Min: 1, Max: 5}}},
	} {
		if at := "GET " + route.AdminKind(kind) + "/{name}"; strings.HasPrefix(pattern, at) {
			w.save(kind, entry)
			values[strings.TrimPrefix(at, "GET ")] = name
		}
	}
	switch {
	case strings.Contains(pattern, "/admin/users"):
		_, _, err := w.accounts.CreateUser(w.ctx, admin, account.UserInput{ID: loom.UserID(name), Role: loom.RoleUser, Password: loom.NewSecret("correct horse battery")})
		w.must(err)
		_, cookie, _, err := w.accounts.SignIn(w.ctx, account.SignInInput{Tenant: "acme", User: name, Password: loom.NewSecret("correct horse battery"), Address: "127.0.0.1"})
		w.must(err)
		w.cookies["spare"] = cookie.Reveal()
		token, _, err := w.accounts.CreateToken(w.ctx, w.actor("spare"), account.NewToken{Name: "one", Scopes: []loom.Scope{loom.ScopeRead}})
		w.must(err)
		var session string
		w.must(w.db.Get(&session, `SELECT encode(id, 'hex') FROM sessions WHERE user_id = $1`, name))
		values["/admin/users/{id}"], values["{token}"], values["{session}"] = name, fmt.Sprint(token.ID), session
	case strings.Contains(pattern, "/account/tokens"):
		by := admin
		if secret := w.token["admin"]; secret != "" { // a token rotates what it created
			var err error
			by, err = w.accounts.ActorByToken(w.ctx, account.TokenInput{Secret: loom.NewSecret(secret)})
			w.must(err)
		}
		token, _, err := w.accounts.CreateToken(w.ctx, by, account.NewToken{Name: name, Scopes: []loom.Scope{loom.ScopeRead}})
		w.must(err)
		values["{id}"] = fmt.Sprint(token.ID)
	case strings.Contains(pattern, "/admin/hooks"):
		hook, _, err := w.hooks.Create(w.ctx, admin, hook.Input{Name: name, URL: "https://ci.example/loom"})
		w.must(err)
		values["/admin/hooks/{id}"] = fmt.Sprint(hook.ID)
	case strings.Contains(pattern, "/admin/groups"):
		group, err := w.accounts.CreateGroup(w.ctx, admin, account.GroupInput{Name: &name})
		w.must(err)
		values["/admin/groups/{id}"] = fmt.Sprint(group.ID)
	case strings.Contains(pattern, "/admin/identity"):
		provider, err := w.accounts.CreateIdentityProvider(w.ctx, admin, identityProvider(name))
		w.must(err)
		values["/admin/identity/{id}"] = provider.ID
	case strings.Contains(pattern, "/system/tenants/{tenant}"):
		w.makeTenant(name)
		values["{tenant}"] = name
	}
}

// again signs a user in whose sessions a call ended.
func (w *callWorld) again(user loom.UserID) {
	w.t.Helper()
	_, cookie, _, err := w.accounts.SignIn(w.ctx, account.SignInInput{Tenant: "acme", User: string(user), Password: loom.NewSecret("correct horse battery " + string(user)), Address: "127.0.0.1"})
	w.must(err)
	w.cookies[user] = cookie.Reveal()
}

var (
	paneCall = regexp.MustCompile(`id="pane-call-(\d+)">([^<]+)</code>`)
	curlLine = regexp.MustCompile(`(?s)^curl -H "Authorization: Bearer \$LOOM_TOKEN" (?:-X ([A-Z]+) )?(?:-H 'Content-Type: application/json' -d '(.*)' )?"\$LOOM_URL([^"]+)"$`)
)

// send does what a line for a shell says.
func (w *callWorld) sendLine(user loom.UserID, line string) (method, target, body string, answer clusterAnswer) {
	w.t.Helper()
	part := curlLine.FindStringSubmatch(line)
	if part == nil {
		w.t.Fatalf("no such line: %s", line)
	}
	if method = part[1]; method == "" {
		method = http.MethodGet
	}
	body = strings.ReplaceAll(part[2], `'\''`, `'`)
	r := httptest.NewRequest(method, part[3], strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+w.token[user])
	r.RemoteAddr = "127.0.0.1:4711"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return method, part[3], body, clusterAnswer{t: w.t, Code: rec.Code, Body: rec.Body.String(), Header: rec.Header()}
}

// refusedHere are the calls that this world has nothing for, by what their answer says.
var refusedHere = []string{
	"no provisioner runs", "No provisioner is running", "No provisioner answered", "is off; switch it on first", "have the hardware type", "left without a service", "no user with this id",
}

// TestPrintedCallsAreRight does each call that a page offers as it is printed: none is
// refused for what it says.
func TestPrintedCallsAreRight(t *testing.T) {
	t.Parallel()
	w := &callWorld{clusterWorld: newClusterWorld(t), token: map[loom.UserID]string{}}
	w.super = w.superCookie()
	w.values = w.documentValues()
	w.db.MustExec(`UPDATE tenants SET max_clusters = 1000000, max_nodes = 1000000`)
	for _, user := range []loom.UserID{"admin", w.super} {
		_, secret, err := w.accounts.CreateToken(w.ctx, w.actor(user), account.NewToken{Name: "walk", Scopes: []loom.Scope{loom.ScopeAdmin}})
		w.must(err)
		w.token[user] = secret.Reveal()
	}
	patterns := slices.Sorted(maps.Keys(web.DocumentPatterns()))
	slices.Reverse(patterns) // the catalog, which clusters need, comes last
	seen := map[string]bool{}
	for _, pattern := range patterns {
		if strings.HasSuffix(pattern, "/workers/{id}/{verb}") || strings.Contains(pattern, "/orphans/{id}") || strings.HasSuffix(pattern, "/journal") {
			continue // nothing of that kind is here, and nothing is sent along
		}
		user := loom.UserID("admin")
		if strings.Contains(pattern, " /system") {
			user = w.super
		}
		calls, values := w.calls(user, pattern)
		for n := range calls {
			if shape := w.shape(calls[n], values); n == 0 || seen[shape] {
				continue
			} else {
				seen[shape] = true
			}
			if n > 1 { // the ones before left their traces
				calls, values = w.calls(user, pattern)
			}
			method, target, body, a := w.sendLine(user, calls[n])
			if strings.Contains(target, "/sessions") {
				w.again("admin")
			}
			if a.Code < 300 || slices.ContainsFunc(refusedHere, func(said string) bool { return strings.Contains(a.Body, said) }) {
				continue
			}
			t.Errorf("%s: %s %s %s: %d %.600s", pattern, method, target, body, a.Code, a.Body)
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d different calls were found", len(seen))
	}
}

// calls stages a page and gives the lines it prints.
func (w *callWorld) calls(user loom.UserID, pattern string) ([]string, map[string]string) {
	w.t.Helper()
	values := w.stage(pattern)
	path, _ := fill(strings.TrimPrefix(pattern, "GET "), values)
	var lines []string
	for _, found := range paneCall.FindAllStringSubmatch(w.get(user, path+"?as=pane").is(200).Body, -1) {
		lines = append(lines, html.UnescapeString(found[2]))
	}
	return lines, values
}

// shape is a line without what differs from stage to stage.
func (w *callWorld) shape(line string, values map[string]string) string {
	for name, value := range values {
		if len(value) > 2 {
			line = strings.ReplaceAll(line, value, name)
		}
	}
	return line
}

// TestDraftIsInThePane prints the request that the form for a new cluster stands for.
func TestDraftIsInThePane(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	v := createValues("drafted", "4")
	v.Set("initialLeaseDuration", "2d")
	v.Set("do", "draft")
	w.post("ana", "/previews", v).goesTo("/clusters")
	pane := html.UnescapeString(w.get("ana", "/clusters/new?as=pane").is(200).Body)
	for _, text := range []string{`"name":"drafted"`, `"numMachines":4`, `"initialLeaseDuration":172800000`, `"services":["haproxy","nginx"]`} {
		if !strings.Contains(pane, text) {
			t.Errorf("the pane does not say %s", text)
		}
	}
	w.get("ana", "/clusters/new").has(`value="drafted"`, "Restored your unsaved form")
	if example := html.UnescapeString(w.get("admin", "/clusters/new?as=pane").is(200).Body); strings.Contains(example, "drafted") {
		t.Error("somebody else sees the draft")
	}
}
