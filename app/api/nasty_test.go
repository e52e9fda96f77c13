package api

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// TestNothingNastyIsAnInternalError sends every route what no client should, as
// somebody with all rights: it is refused with a reason, never with 500.
func TestNothingNastyIsAnInternalError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cluster(w.admin, "target")
	sameAsServices := regexp.MustCompile(`^/v2/(hardwaretypes|imagetypes|partialtemplates|plugins/providertypes)`)
	anyName := regexp.MustCompile(`\{\w+\}`)
	values := []string{"%27%3B%20DROP%20TABLE%20users%3B--", "1%29%20OR%20%281%3D1", "%00", "%ff", "99999999999", "99999999999999999999", "-1", "+1", "1e3", "..%2f..", "%2e%2e", "'", "%25", strings.Repeat("x", 3000), "00000001-99999999999", "é"}
	bodies := []string{"", "null", "[]", `"x"`, "{", "\xff", `{"name":"a\u0000b"}`, `{"name":1e999}`, strings.Repeat("[", 20_000),
		`{"kind":"delete","clusterId":"99999999999999999999"}`, `{"hash":{},"tenant":[],"request":1,"labels":{"":""}}`}
	for _, rt := range w.api.routes() {
		if rt.path == "/v2/events" || rt.path == "/readyz" || sameAsServices.MatchString(rt.path) {
			continue
		}
		token := w.admin
		if strings.HasPrefix(rt.path, "/v2/tenants") || strings.HasPrefix(rt.path, "/v2/plugins") {
			token = w.super
		}
		path := anyName.ReplaceAllString(rt.path, "\x01")
		for _, value := range values {
			if !strings.Contains(path, "\x01") {
				break
			}
			// Nasty in the last place, behind good ones; then in all places.
			last := strings.LastIndex(path, "\x01")
			w.survives(token, rt.method, strings.ReplaceAll(path[:last], "\x01", "1")+value+path[last+1:], "")
			w.survives(token, rt.method, strings.ReplaceAll(path, "\x01", value), "")
		}
		path = fill(rt.path, "00000001")
		for _, p := range rt.params() {
			for _, value := range []string{"%27%3B%20DROP%20TABLE%20users%3B--", "1%29%20OR%20%281%3D1", "name%3B", "%5C", "%25%27", "%00", "%ff", "99999999999", "-1", "", "x"} {
				w.survives(token, rt.method, path+"?"+p.name+"="+value, "")
			}
		}
		if rt.method == get {
			continue
		}
		for _, body := range bodies {
			w.survives(token, rt.method, path, body)
		}
	}
}

func (w *world) survives(token, method, path, body string) {
	w.t.Helper()
	if a := w.call(token, method, path, body); a.status >= 500 && a.status != 501 {
		w.t.Errorf("%s %.200s with %.60q: %d %s", method, path, body, a.status, a.body)
	}
}

func TestNastyHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(d *Deps) { d.TrustedNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	w.send(get, "/v2/clusters", "", headerUser, "\xff", headerTenant, "acme").fails(400, "", headerUser)
	w.send(get, "/v2/clusters", "", headerUser, "ana", headerTenant, "\xff").fails(400, "", headerTenant)
	w.send(get, "/v2/clusters", "", headerUser, strings.Repeat("x", 300), headerTenant, "acme").fails(400, "id", "255")
	w.send(get, "/v2/clusters", "", headerUser, "ana", headerTenant, "acme", "Authorization", "Bearer \xff").want(401)
	w.send(get, "/v2/clusters", "", "Cookie", "loom-dev=%00").want(401)
}

// TestSameKeyAtOnce sends one request many times at the same moment: it is
// carried out once, and who does not get its answer is told to wait.
func TestSameKeyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answers := make([]reply, 8)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			answers[i] = w.call(w.user, post, "/v2/clusters", `{"name":"once","clusterTemplate":"site","numMachines":3}`, "Idempotency-Key", "same")
		})
	}
	group.Wait()
	ids := map[string]int{}
	for _, a := range answers {
		switch {
		case a.status == 200:
			ids[a.body]++
		case a.status != 409 || a.header.Get("Retry-After") == "":
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if n := len(w.call(w.user, get, "/v2/clusters", "").want(200).array()); n != 1 || len(ids) != 1 {
		t.Errorf("%d clusters, answers %v", n, fmt.Sprint(ids))
	}
}
