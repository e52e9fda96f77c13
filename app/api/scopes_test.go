package api

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// scopeFamilies says which scope a family of routes needs; the
// first that fits counts. GET needs read everywhere.
var scopeFamilies = []struct {
	method, path string // path is an expression
	scope        loom.Scope
}{
	{"", `^/v2/(resolve|getNodeProperties|getClusterStatuses)$`, loom.ScopeRead},
	{post, `^/v2/previews$`, loom.ScopeRead},
	{del, `^/v2/previews/\{id\}$`, loom.ScopeRead}, // dropping what making needs no more for
	{"", `^/v2/(clusters|previews|profile)\b`, loom.ScopeClusterWrite},
	{"", `^/v2/(clustertemplates|partialtemplates|providers|services|hardwaretypes|imagetypes)\b`, loom.ScopeCatalogWrite},
	{"", `^/v2/(import|plugins/sync)$`, loom.ScopeCatalogWrite},
	{"", `^/v2/plugins/(providertypes|automatortypes)/\{name\}/\{version\}/\{resource\}`, loom.ScopeCatalogWrite},
	{"", `^/v2/`, loom.ScopeAdmin},
}

func neededScope(t *testing.T, rt route) loom.Scope {
	t.Helper()
	if rt.method == get {
		return loom.ScopeRead
	}
	for _, f := range scopeFamilies {
		if (f.method == "" || f.method == rt.method) && regexp.MustCompile(f.path).MatchString(rt.path) {
			return f.scope
		}
	}
	t.Fatalf("no family for %s %s", rt.method, rt.path)
	return ""
}

// scopeBodies are bodies for routes that read them before they look at rights.
var scopeBodies = map[string]string{
	"/v2/clusters": `{"name":"x","clusterTemplate":"site","numMachines":2}`, "/v2/clusters/{id}": `{"expireTime":1}`,
	"/v2/clusters/{id}/config": `{"config":{}}`, "/v2/clusters/{id}/services": `{"services":["web"]}`,
	"/v2/previews/{id}/apply": `{"hash":"x"}`,
	"/v2/hooks":               `{"name":"x","url":"https://example.org/"}`, "/v2/hooks/{id}": `{"name":"x","url":"https://example.org/"}`,
}

var openPlace = regexp.MustCompile(`\{\w+\}`)

// TestScopeOfEveryRoute calls every route with tokens of an administrator that
// have one scope each. One that has not enough is refused as such, whatever else
// is wrong; one that has enough is not.
func TestScopeOfEveryRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.finish(w.cluster(w.admin, "scoped"))
	admin, super := map[loom.Scope]string{}, map[loom.Scope]string{}
	for _, scope := range loom.Scopes {
		admin[scope], super[scope] = w.token("acme", "admin", scope), w.token("superadmin", "admin", scope)
	}
	walked := 0
	for _, rt := range w.api.routes() {
		if rt.open || rt.path == "/v2/events" || rt.path == "/v2/sessions" && rt.method == del { // which no token may, see TestTokensKeepNobodyOut
			continue
		}
		needed := neededScope(t, rt)
		tokens := admin
		if slices.ContainsFunc(append([]string{"/v2/metrics"}, superPaths...), func(p string) bool { return strings.HasPrefix(rt.path, p) }) {
			tokens = super
		}
		for _, scope := range loom.Scopes {
			walked++
			if scope == needed || scope == loom.ScopeAdmin || needed == loom.ScopeRead {
				// Nothing of this name is there, so nothing is broken for those who may.
				path := openPlace.ReplaceAllString(rt.path, "0")
				if a := w.call(tokens[scope], rt.method, path, ""); a.status == 403 || a.status == 401 || a.status >= 500 {
					t.Errorf("%s %s with the scope %s: %d %s", rt.method, rt.path, scope, a.status, a.body)
				}
				continue
			}
			body := scopeBodies[rt.path]
			if body == "" && rt.method != del {
				body = "{}"
			}
			a := w.call(tokens[scope], rt.method, openPlace.ReplaceAllString(fill(rt.path, "00000001"), "1"), body)
			if a.status != 403 || !strings.Contains(a.problem().Detail, "scope") {
				t.Errorf("%s %s with only the scope %s, not %s: %d %s", rt.method, rt.path, scope, needed, a.status, a.body)
			}
		}
	}
	if walked < 400 {
		t.Errorf("only %d pairs of scope and route", walked)
	}
}
