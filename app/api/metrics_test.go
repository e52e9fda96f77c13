package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	"loom/app/loom"
)

func someMetrics(d *Deps) {
	d.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintln(w, `loom_queue_depth{tenant="acme"} 3`)
	})
}

// TestMetricsAreNotForEverybody: they tell the names of tenants.
func TestMetricsAreNotForEverybody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, someMetrics)
	w.send(get, "/metrics", "").fails(401, "", "token")
	for _, token := range []string{w.user, w.admin, w.foreign} {
		w.call(token, get, "/metrics", "").fails(403, "", "superadmin")
	}
	w.call("loom_nonsense", get, "/metrics", "").fails(401, "", "")
	if a := w.call(w.super, get, "/metrics", "").want(200); a.body != "loom_queue_depth{tenant=\"acme\"} 3\n" {
		t.Errorf("answer %q", a.body)
	}
	w.call(w.token("superadmin", "admin", loom.ScopeRead), get, "/metrics", "").want(200)
	w.call(w.super, get, "/metrics?name=x", "").fails(400, "name", "takes none")
}

// TestMetricsForNetworks: programs of named networks need no token, unless they
// come through a proxy, which hides who asks.
func TestMetricsForNetworks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, someMetrics, func(d *Deps) { d.MetricsNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	w.send(get, "/metrics", "").want(200)
	for _, header := range proxyHeaders {
		w.send(get, "/metrics", "", header, "203.0.113.9").fails(401, "", "")
		w.call(w.super, get, "/metrics", "", header, "203.0.113.9").want(200)
	}
	far := newWorld(t, someMetrics, func(d *Deps) { d.MetricsNetworks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} })
	far.send(get, "/metrics", "").fails(401, "", "")
}

func TestNoMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.super, get, "/metrics", "").fails(404, "", "no metrics")
}
