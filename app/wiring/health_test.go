package wiring

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"loom/app/config"
	"loom/app/loom"
	"loom/app/telemetry"
	"loom/app/testkit"
)

func healthEnvironment(t *testing.T, options ...string) *Environment {
	t.Helper()
	values, err := config.Load(nil, options)
	if err != nil {
		t.Fatal(err)
	}
	return &Environment{Values: values, Log: slog.New(slog.DiscardHandler), Out: io.Discard, ErrOut: io.Discard}
}

// asked returns the answer of a health address to somebody at an address.
func asked(t *testing.T, e *Environment, s *System, path, from, host string) (int, string) {
	t.Helper()
	networks, err := e.metricsNetworks(false)
	if err != nil {
		t.Fatal(err)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
	r.RemoteAddr, r.Host = from, cmp.Or(host, "127.0.0.1")
	e.healthPages(s, networks).ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestReadiness goes through what keeps a process from its work: no lease, a
// schema of another release, a database that is away.
func TestReadiness(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	for _, kinds := range [][]string{{loom.ProcessWeb}, {loom.ProcessScheduler}, {loom.ProcessProvisioner},
		{loom.ProcessWeb, loom.ProcessScheduler, loom.ProcessProvisioner}} {
		e := healthEnvironment(t)
		s := &System{metrics: telemetry.NewMetrics(), Health: newHealth(db.DSN)}
		s.Health.Expect(kinds...)
		w := watch{s.metrics, s.Health}
		want := func(status int, part string) {
			t.Helper()
			if code, body := asked(t, e, s, "/readyz", "127.0.0.1:1", ""); code != status || !strings.Contains(body, part) {
				t.Errorf("%v: readyz gives %d %q, want %d and %q", kinds, code, body, status, part)
			}
			if code, body := asked(t, e, s, "/healthz", "203.0.113.9:1", ""); code != 200 || !strings.HasPrefix(body, "ok ") {
				t.Errorf("%v: healthz gives %d %q", kinds, code, body)
			}
		}
		for _, kind := range kinds {
			want(503, "no lease")
			w.LeaseHeld(kind, true)
		}
		w.LeaseHeld("something else", true)
		want(200, "ready")
		last := kinds[len(kinds)-1]
		w.LeaseHeld(last, false)
		want(503, "no lease as "+last)
		w.LeaseHeld(last, true)
		want(200, "ready")
	}

	e := healthEnvironment(t)
	s := &System{metrics: telemetry.NewMetrics(), Health: newHealth(db.DSN)}
	if _, err := db.Exec(`UPDATE goose_db_version SET is_applied = false WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`); err != nil {
		t.Fatal(err)
	}
	if code, body := asked(t, e, s, "/readyz", "127.0.0.1:1", ""); code != 503 || !strings.Contains(body, "loom migrate up") {
		t.Errorf("on an old schema: %d %q", code, body)
	}
	s.Health = newHealth("host=/nowhere dbname=none sslmode=disable")
	if code, body := asked(t, e, s, "/readyz", "127.0.0.1:1", ""); code != 503 || !strings.Contains(body, "the log says why") {
		t.Errorf("without a database: %d %q", code, body)
	}
}

// TestReadinessIsAskedSeldom: whoever asks often must not keep the database busy.
func TestReadinessIsAskedSeldom(t *testing.T) {
	t.Parallel()
	var times atomic.Int32
	away := errors.New("away")
	h := &health{held: map[string]bool{}, schema: func(context.Context) error { times.Add(1); return away }}
	for range 50 {
		if err := h.ready(t.Context()); !errors.Is(err, away) {
			t.Fatal(err)
		}
	}
	h.asking.Lock()
	asked, last := times.Load(), h.askedAt
	h.askedAt = time.Now().Add(-readyAge)
	h.asking.Unlock()
	if asked > 1+int32(time.Since(last)/readyAge)+1 {
		t.Errorf("the database was asked %d times", asked)
	}
	before := times.Load()
	if err := h.ready(t.Context()); !errors.Is(err, away) || times.Load() != before+1 {
		t.Errorf("an old answer is not asked for again: %v", err)
	}
}

// TestWhoMayCollect: metrics tell the names of tenants.
func TestWhoMayCollect(t *testing.T) {
	t.Parallel()
	const behind, named = "LOOM_PUBLIC_URL=https://loom.example", "LOOM_METRICS_NETWORKS=10.1.0.0/16, fd00::/8"
	for _, c := range []struct {
		options []string
		pages   bool
		want    string
	}{
		{nil, false, "127.0.0.0/8 ::1/128"},
		{nil, true, "127.0.0.0/8 ::1/128"},
		{[]string{behind}, false, "127.0.0.0/8 ::1/128"},
		{[]string{behind}, true, ""},
		{[]string{named}, true, "10.1.0.0/16 fd00::/8"},
		{[]string{behind, named}, true, "10.1.0.0/16 fd00::/8"},
	} {
		networks, err := healthEnvironment(t, c.options...).metricsNetworks(c.pages)
		var got []string
		for _, n := range networks {
			got = append(got, n.String())
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%v, pages %v: %v, %v", c.options, c.pages, got, err)
		}
	}
	if _, err := healthEnvironment(t, "LOOM_METRICS_NETWORKS=everybody").metricsNetworks(true); err == nil || !strings.Contains(err.Error(), "LOOM_METRICS_NETWORKS") {
		t.Errorf("a bad network: %v", err)
	}
	s := &System{metrics: telemetry.NewMetrics(), Health: newHealth("")}
	e := healthEnvironment(t, named)
	for from, status := range map[string]int{"10.1.2.3:4": 200, "[fd00::1]:4": 200, "127.0.0.1:4": 403, "203.0.113.9:4": 403, "nobody": 403} {
		code, body := asked(t, e, s, "/metrics", from, "")
		if code != status || strings.Contains(body, "loom_build_info") != (status == 200) {
			t.Errorf("from %s: %d %.60q", from, code, body)
		}
	}
	if code, body := asked(t, e, s, "/metrics", "10.1.2.3:4", "rebind.evil.example"); code != 403 {
		t.Errorf("by a name of somebody else: %d %.60q", code, body)
	}
}
