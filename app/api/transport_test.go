package api

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"loom/app/loom"
)

func TestTransport(t *testing.T) {
	t.Parallel()
	broken := errors.New("the database does not answer")
	var ready error
	w := newWorld(t, func(d *Deps) { d.Ready = func(context.Context) error { return ready } })

	status := w.send(get, "/status", "").want(200)
	if status.body != "OK\n" || status.header.Get("Connection") != "close" {
		t.Errorf("/status: %q, %v", status.body, status.header)
	}
	w.send(get, "/healthz", "").want(200)
	w.send(get, "/readyz", "").want(200)
	ready = loom.NewError(loom.Unavailable, "The schema is older than this program; run “loom migrate”.")
	if a := w.send(get, "/readyz", "").want(503); !strings.Contains(a.body, "loom migrate") {
		t.Errorf("/readyz: %q", a.body)
	}
	ready = broken
	if a := w.send(get, "/readyz", "").want(503); strings.Contains(a.body, "database") {
		t.Errorf("/readyz tells of internals: %q", a.body)
	}

	// Old clients take 401 on their probes for a sign-in protocol that we do not have.
	for _, probe := range []string{"/v2/ping", "/v3/ping", "/ping"} {
		w.send(get, probe, "").want(404)
	}
	for _, path := range []string{"/v2", "/v2/", "/v2/nothing", "/v2/clusters/1/nothing", "/v2/plugins/other", "/v2/finishtask"} {
		w.send(get, path, "").fails(404, "", "openapi.json")
	}
	for _, c := range []struct{ method, path, allow string }{
		{"OPTIONS", "/v2/clusters", "GET, HEAD, POST"},
		{"PUT", "/v2/clusters", "GET, HEAD, POST"},
		{"POST", "/v2/services/web", "DELETE, GET, HEAD, PUT"},
		{"GET", "/v2/plugins/sync", "POST"},
		{"DELETE", "/v2/events", "GET, HEAD"},
	} {
		a := w.call(w.user, c.method, c.path, "").want(405)
		if a.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, a.header.Get("Allow"), c.allow)
		}
	}
	head := w.call(w.user, "HEAD", "/v2/services", "").want(200)
	if head.header.Get("Content-Type") != mediaJSON || head.header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %v", head.header)
	}
	w.call(w.user, "HEAD", "/v2/events?topics=clusters", "").want(200)

	// One trailing slash is ignored, dot segments are resolved, escaped slashes stay.
	w.call(w.user, get, "/v2/services/", "").want(200)
	w.call(w.user, get, "/v2/services/web/", "").want(200)
	w.call(w.user, get, "/v2/providers/../services/./web", "").want(200)
	w.call(w.user, get, "/v2/services/a%2Fb", "").fails(404, "", "no service")

	// Query parameters: ignored on old routes, refused with the valid ones on new.
	w.call(w.user, get, "/v2/services?full=true", "").want(200)
	w.call(w.user, get, "/v2/tokens?nonsense=1", "").fails(400, "nonsense", "limit, sort, after, before")
	w.call(w.user, get, "/v2/whoami?x=1", "").fails(400, "x", "takes none")

	huge := `{"name":"` + strings.Repeat("x", 5<<20) + `"}`
	w.call(w.user, post, "/v2/clusters", huge).fails(400, "", "4 MiB")
}

// TestLongQueriesOfStrangers: probes answer whatever the query is, other open routes refuse a
// long one before they read it, and routes of users list 100 wrong names.
func TestLongQueriesOfStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, someMetrics, func(d *Deps) { d.Ready = func(context.Context) error { return nil } })
	names := make([]string, 5000)
	for i := range names {
		names[i] = "a" + strconv.Itoa(i)
	}
	long := "?" + strings.Join(names, "&")
	for _, path := range []string{"/healthz", "/readyz"} {
		w.send(get, path+"?a=1", "").want(200)
		w.send(get, path+long, "").want(200)
	}
	for _, path := range []string{"/v2/openapi.json", "/metrics", "/status"} {
		a := w.send(get, path+long, "")
		a.fails(400, "", "longer than")
		if len(a.body) > 1000 {
			t.Errorf("%s: %d bytes", path, len(a.body))
		}
	}
	w.send(get, "/v2/openapi.json?x=1", "").fails(400, "x", "takes none")
	w.send(get, "/v2/whoami"+long, "").want(401)
	if errs := w.call(w.user, get, "/v2/whoami"+long, "").want(400).object()["errors"].([]any); len(errs) != 100 {
		t.Errorf("%d errors", len(errs))
	}
}

func TestOwns(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/v2": true, "/v2/x": true, "/status": true, "/status/": true, "/readyz": true, "/ping": true, "/v3/ping": true,
		"/": false, "/clusters": false, "/v20": false, "/v3": false, "": false,
	} {
		if Owns(path) != want {
			t.Errorf("Owns(%q) is %v", path, !want)
		}
	}
	for _, rt := range (&api{}).routes() {
		if !Owns(rt.path) {
			t.Errorf("%s is served but not owned", rt.path)
		}
	}
}

// fill makes a path of a route, with ids that exist or do not.
func fill(path, id string) string {
	for _, name := range []string{"{n}", "{t}", "{v}", "{r}"} {
		path = strings.ReplaceAll(path, name, "1")
	}
	path = strings.ReplaceAll(path, "{planId}", id+"-001")
	return strings.NewReplacer("{id}", id, "{nodeId}", "0c1d0000-0000-4000-8000-000000000000",
		"{name}", "web", "{service}", "web", "{version}", "1", "{resource}", "r").Replace(path)
}

func TestEveryRouteNeedsIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, rt := range w.api.routes() {
		if rt.open {
			continue
		}
		path := fill(rt.path, "00000001")
		a := w.send(rt.method, path, "").want(401)
		if !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s %s: WWW-Authenticate %q", rt.method, path, a.header.Get("WWW-Authenticate"))
		}
		w.call("loom_"+strings.Repeat("x", 43), rt.method, path, "").want(401)
	}
}

// TestForeignTenant walks all routes of a cluster as others than its owner.
func TestForeignTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.cluster(w.user, "mine")
	walked := 0
	for _, rt := range w.api.routes() {
		if !strings.HasPrefix(rt.path, "/v2/clusters/{id}") {
			continue
		}
		walked++
		body := map[string]string{
			"/v2/clusters/{id}":             `{"expireTime": 1, "description": "x"}`,
			"/v2/clusters/{id}/config":      `{"config": {}}`,
			"/v2/clusters/{id}/services":    `{"services": ["web"]}`,
			"/v2/clusters/{id}/maintenance": `{"until": 4102444800000, "reason": "x"}`,
		}[rt.path]
		switch {
		case rt.method == del:
			body = ""
		case rt.method == patch:
			body = `{"description": "x"}`
		case rt.method == post && body == "":
			body = `{}`
		}
		for who, token := range map[string]string{"another tenant": w.foreign, "another user": w.second, "the superadmin": w.super} {
			if a := w.call(token, rt.method, fill(rt.path, id), body); a.status != 404 {
				t.Errorf("%s %s as %s: %d %s", rt.method, rt.path, who, a.status, a.body)
			}
		}
		w.call(w.admin, get, fill("/v2/clusters/{id}", id), "").want(200)
		// What is no id names no cluster.
		if a := w.call(w.user, rt.method, fill(rt.path, "nonsense"), body); a.status != 404 {
			t.Errorf("%s %s of no cluster: %d %s", rt.method, rt.path, a.status, a.body)
		}
	}
	if walked < 15 {
		t.Errorf("only %d routes walked", walked)
	}
	preview := w.call(w.user, post, "/v2/previews", `{"kind":"create","request":{"name":"p","clusterTemplate":"site","numMachines":2}}`).want(200).object()
	for _, rt := range w.api.routes() {
		if !strings.HasPrefix(rt.path, "/v2/previews/{id}") {
			continue
		}
		for _, token := range []string{w.foreign, w.second, w.admin} { // a preview is its maker's alone
			w.call(token, rt.method, fill(rt.path, preview["id"].(string)), `{"hash":"x"}`).want(404)
		}
	}
	w.call(w.second, post, "/v2/previews", `{"kind":"delete","clusterId":"`+id+`"}`).want(404)
	for _, topic := range []string{"cluster:" + id, "op:" + id + "/1", "system", "cluster:nonsense"} {
		w.call(w.second, get, "/v2/events"+query("topics", topic), "").fails(404, "", "no topic")
	}
	if all := w.call(w.foreign, get, "/v2/clusters", "").want(200).array(); len(all) != 0 {
		t.Errorf("another tenant lists %v", all)
	}
	if all := w.call(w.second, get, "/v2/clusters?owner=ana", "").want(200).array(); len(all) != 0 {
		t.Errorf("another user lists %v", all)
	}
}
