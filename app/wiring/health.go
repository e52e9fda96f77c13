package wiring

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"loom/app/httpx"
	"loom/app/loom"
	"loom/app/telemetry"
	"loom/migrations"
)

const (
	// readyAge is how long an answer about readiness is good: whoever asks more
	// often costs the database nothing.
	readyAge = time.Second
	// readyTimeout bounds the look at the database.
	readyTimeout = 3 * time.Second
)

// health knows whether this process can do its work: the database answers and has
// this release's schema, and the process holds the leases that it should.
type health struct {
	schema func(ctx context.Context) error

	mu      sync.Mutex
	held    map[string]bool // by kind of process; only those that are expected
	asking  sync.Mutex
	askedAt time.Time
	answer  error
}

// newHealth looks at the schema of a database.
func newHealth(dsn string) *health {
	return &health{held: map[string]bool{}, schema: func(ctx context.Context) error {
		status, err := migrations.Check(ctx, dsn)
		if err == nil && status.Behind() {
			err = loom.NewError(loom.Unavailable, "The schema is older than this release: run `loom migrate up`.")
		}
		return err
	}}
}

// Expect says which kinds of process this one is: it is not ready before it holds
// a lease for each.
func (h *health) Expect(kinds ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, kind := range kinds {
		h.held[kind] = false
	}
}

// leaseHeld notes a lease that came or went.
func (h *health) leaseHeld(kind string, held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.held[kind]; ok {
		h.held[kind] = held
	}
}

// ready says why the process cannot do its work. The message of a loom.Error of
// another kind than Internal is for anybody; other errors are for the log.
func (h *health) ready(ctx context.Context) error {
	if err := h.schemaIsRight(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for kind, held := range h.held {
		if !held {
			return loom.NewError(loom.Unavailable, "This process has no lease as %s.", kind)
		}
	}
	return nil
}

func (h *health) schemaIsRight(ctx context.Context) error {
	h.asking.Lock()
	defer h.asking.Unlock()
	if !h.askedAt.IsZero() && time.Since(h.askedAt) < readyAge {
		return h.answer
	}
	// Not cut short by whoever asked first: the answer is for all.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	h.answer = h.schema(ctx)
	h.askedAt = time.Now()
	return h.answer
}

// watch tells both metrics and health what happens in a process.
type watch struct {
	*telemetry.Metrics
	health *health
}

// LeaseHeld is told of leases that come and go.
func (w watch) LeaseHeld(kind string, held bool) {
	w.Metrics.LeaseHeld(kind, held)
	w.health.leaseHeld(kind, held)
}

// loopback is this host.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// metricsNetworks are those that read /metrics without a token: this host unless
// others are named. Where pages are served behind a proxy, every request comes
// from this host, so that says nothing.
func (e *Environment) metricsNetworks(pages bool) ([]netip.Prefix, error) {
	named, err := ParseNetworks("LOOM_METRICS_NETWORKS", e.Values.Text("LOOM_METRICS_NETWORKS"))
	switch {
	case err != nil || len(named) > 0:
		return named, err
	case pages && e.Values.Text("LOOM_PUBLIC_URL") != "":
		return nil, nil
	}
	return slices.Clone(loopback), nil
}

// ServeHealth answers /healthz, /readyz and /metrics for processes without pages
// and returns the port; 0 when LOOM_HEALTH_ADDR is empty.
func (e *Environment) ServeHealth(ctx context.Context, s *System) (int, error) {
	networks, err := e.metricsNetworks(false)
	if err != nil {
		return 0, err
	}
	addr := e.Values.Text("LOOM_HEALTH_ADDR")
	if addr == "" {
		return 0, nil
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		// Two processes of one host share the default; health is not worth dying for.
		e.Log.Warn("no health page: its address is taken", "error", err.Error())
		return 0, nil
	}
	server := httpx.NewServer(e.healthPages(s, networks))
	server.ReadTimeout, server.WriteTimeout = 10*time.Second, time.Minute
	go server.Serve(httpx.Listen(listener, nil)) //nolint:errcheck // ends with Close
	context.AfterFunc(ctx, func() { server.Close() })
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// healthPages are the pages of a health address.
func (e *Environment) healthPages(s *System, networks []netip.Prefix) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok", telemetry.BuildVersion())
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		err := s.Health.ready(r.Context())
		if err == nil {
			fmt.Fprintln(w, "ready")
			return
		}
		e.Log.Warn("not ready", "error", err.Error())
		message := "the log says why"
		if known := loom.AsError(err); known.Kind != loom.Internal {
			message = known.Message
		}
		http.Error(w, "not ready: "+message, http.StatusServiceUnavailable)
	})
	metrics, hosts := s.metrics.Handler(), httpx.OwnHosts(e.Values.Text("LOOM_PUBLIC_URL"))
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !httpx.Within(r, networks) || !hosts.Names(r) {
			http.Error(w, "Metrics are for this host and the networks of LOOM_METRICS_NETWORKS only, by an IP address or the name of this host.", http.StatusForbidden)
			return
		}
		metrics.ServeHTTP(w, r)
	})
	return mux
}
