package wiring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"loom/app/api"
	"loom/app/httpx"
	"loom/app/live"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/telemetry"
	"loom/app/web"
)

// site is the listening web process.
type site struct {
	Listener net.Listener
	Server   *http.Server
	hub      *live.Hub
	URL      string
	// stay keeps the process in the list of those that run, until its context ends.
	stay func(ctx context.Context)
}

// Listen takes the address and builds the handlers; nothing is answered until
// serve.
func (e *Environment) Listen(ctx context.Context, s *System) (*site, error) {
	networks, err := ParseNetworks("LOOM_TRUSTED_HEADER_NETWORKS", e.Values.Text("LOOM_TRUSTED_HEADER_NETWORKS"))
	if err != nil {
		return nil, err
	}
	proxies, err := e.Proxies()
	if err != nil {
		return nil, err
	}
	collectors, err := e.metricsNetworks(true)
	if err != nil {
		return nil, err
	}
	listener, err := e.TakeAddress()
	if err != nil {
		return nil, err
	}
	origin := e.Values.Text("LOOM_PUBLIC_URL")
	if origin == "" {
		origin = "http://" + listener.Addr().String()
	}
	secure := strings.HasPrefix(origin, "https://")
	if err := checkPlainHTTP(listener.Addr(), secure); err != nil {
		e.Log.Warn("pages can be reached from other hosts without TLS", "error", err.Error())
	}
	hub := live.New(s.DB, s.dsn, e.Log)
	sessions := httpx.NewSessions(s.Accounts, secure)
	version := telemetry.BuildVersion()
	protection := http.NewCrossOriginProtection()
	if e.Values.Text("LOOM_PUBLIC_URL") != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" {
			return nil, fmt.Errorf("LOOM_PUBLIC_URL is %q; it takes a URL such as https://loom.example", origin)
		}
		if err := protection.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
			return nil, fmt.Errorf("LOOM_PUBLIC_URL: %w", err)
		}
	}
	trouble := &processes.LastError{}
	log := telemetry.Spare(trouble.Log(e.Log)) // strangers can make it fail as often as they like
	rest := api.New(api.Deps{
		Accounts: s.Accounts, Processes: s.Processes, Fleet: s.Fleet, Catalog: s.Catalog, Clusters: s.Clusters, Operations: s.operations, Hub: hub, Sessions: sessions, Log: log, Version: version,
		TrustedNetworks: networks, Hosts: httpx.OwnHosts(e.Values.Text("LOOM_PUBLIC_URL")), Protection: protection, Hooks: s.Hooks,
		Ready: s.Health.ready, Metrics: s.metrics.Handler(), MetricsNetworks: collectors,
	})
	pages := web.New(web.Deps{
		Accounts: s.Accounts, Catalog: s.Catalog, Clusters: s.Clusters, Operations: s.operations, Processes: s.Processes, Fleet: s.Fleet, Hooks: s.Hooks, Hub: hub, Sessions: sessions, Log: log, Version: version,
		Starter: s.starter, Shortage: s.shortage, Condition: s.Processes.Condition, API: rest, APIDocument: api.Document(), PublicURL: strings.TrimSuffix(origin, "/"),
		ProxyUnknown: e.proxyUnknown(),
	})
	errorPage := web.ErrorPage(version)
	refuse := func(w http.ResponseWriter, r *http.Request, err *loom.Error) {
		if api.Owns(r.URL.Path) {
			api.Problem(w, r, err)
			return
		}
		errorPage(w, r, err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if api.Owns(r.URL.Path) {
			rest.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
	process := processes.NewProcess{Kind: loom.ProcessWeb, Version: version, LastError: trouble}
	if tcp, ok := listener.Addr().(*net.TCPAddr); ok {
		process.Port = tcp.Port
	}
	server := httpx.NewServer(httpx.BehindProxies(proxies, httpx.Chain(log, secure, protection, refuse, handler)))
	server.BaseContext = func(net.Listener) context.Context { return ctx } // streams end when the process does
	return &site{
		Listener: httpx.Listen(listener, proxies), hub: hub, URL: origin,
		stay: func(ctx context.Context) {
			s.Processes.StayRegistered(ctx, process, func(held bool) { watch{s.metrics, s.Health}.LeaseHeld(process.Kind, held) }, func(err error) {
				e.Log.Warn("this process is not in the list of processes", "kind", process.Kind, "error", err.Error())
			})
		},
		Server: server,
	}, nil
}

// TakeAddress takes the listen address, once: before anything is started that an
// address in use would leave behind.
func (e *Environment) TakeAddress() (net.Listener, error) {
	if e.listener != nil {
		return e.listener, nil
	}
	addr := e.Values.Text("LOOM_LISTEN_ADDR")
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("take the address %s; choose another with LOOM_LISTEN_ADDR: %w", addr, err)
	}
	e.listener = listener
	e.closers = append(e.closers, func() { listener.Close() })
	return listener, nil
}

// Serve answers until ctx ends, then lets running requests finish. It is listed as a
// process as long as it answers; pages do not wait for that.
func (s *site) Serve(ctx context.Context) error {
	stayCtx, leave := context.WithCancel(context.WithoutCancel(ctx))
	var staying sync.WaitGroup
	staying.Go(func() { s.stay(stayCtx) })
	defer staying.Wait()
	defer leave()
	hubDone := make(chan error, 1)
	go func() { hubDone <- s.hub.Run(ctx) }()
	served := make(chan error, 1)
	go func() { served <- s.Server.Serve(s.Listener) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err = s.Server.Shutdown(end); err != nil {
			err = s.Server.Close()
		}
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	if ctx.Err() != nil {
		return errors.Join(err, <-hubDone)
	}
	return err
}

// shortage says to administrators that workers are short.
func (s *System) shortage(ctx context.Context, actor loom.Actor) (string, error) {
	short, err := s.Processes.ShortageAtRest(ctx, actor)
	if err != nil {
		return "", err
	}
	for _, t := range short.Tenants {
		if t.Tenant == actor.Tenant && !t.Paused.At.IsZero() {
			return "The queue of this tenant is paused. Running tasks continue; new ones start when a superadmin resumes it.", nil
		}
	}
	if !short.Short() {
		return "", nil
	}
	if short.Assigned == 0 {
		return "No provisioner is running for this tenant, so tasks wait.", nil
	}
	return fmt.Sprintf("Capacity is short: %d of %d requested workers are assigned, so tasks may wait longer.", short.Assigned, short.Requested), nil
}

// Proxies returns the networks whose X-Forwarded-For is believed, and warns where there
// seems to be a proxy that is not named.
func (e *Environment) Proxies() ([]netip.Prefix, error) {
	if e.proxyUnknown() {
		e.Log.Warn("every request counts as one from the proxy: LOOM_PUBLIC_URL is set, LOOM_TRUSTED_PROXIES is not")
	}
	return ParseNetworks("LOOM_TRUSTED_PROXIES", e.Values.Text("LOOM_TRUSTED_PROXIES"))
}

// proxyUnknown reports whether a proxy is in front that is not named.
func (e *Environment) proxyUnknown() bool {
	return e.Values.Text("LOOM_PUBLIC_URL") != "" && strings.Trim(e.Values.Text("LOOM_TRUSTED_PROXIES"), ", ") == ""
}

// ParseNetworks reads the networks of an option.
func ParseNetworks(option, text string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		p, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, fmt.Errorf("%s holds %q; it takes networks such as 10.1.0.0/16", option, part)
		}
		networks = append(networks, p)
	}
	return networks, nil
}

// checkPlainHTTP warns when session cookies would travel without TLS beyond this
// host.
func checkPlainHTTP(addr net.Addr, secure bool) error {
	tcp, ok := addr.(*net.TCPAddr)
	if secure || !ok || tcp.IP.IsLoopback() {
		return nil
	}
	return fmt.Errorf("listening on %s in plain HTTP: put a proxy with TLS in front and set LOOM_PUBLIC_URL", addr)
}
