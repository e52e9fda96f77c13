// Package api is the REST API under /v2: what the predecessor's clients call, and
// what Loom adds.
//
// A handler decodes with package wire, calls one use case and answers; it decides
// nothing and reads no database. All routes stand in one table, routes.go, from
// which also the OpenAPI document is made. A newcomer's usual mistake: looking at
// a Content-Type (clients of the predecessor send anything), or answering success
// with another status than 200.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"loom/app/account"
	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/execution"
	"loom/app/fleet"
	"loom/app/hook"
	"loom/app/httpx"
	"loom/app/live"
	"loom/app/loom"
	"loom/app/processes"
)

// Deps are what the API works with. All fields are needed but those that say
// otherwise.
type Deps struct {
	Accounts *account.Accounts
	Catalog  *catalog.Catalog
	Clusters *clusters.Clusters
	// Operations pauses, resumes and aborts.
	Operations *execution.Operations
	Hooks      *hook.Hooks
	Processes  *processes.Processes
	Fleet      *fleet.Fleet
	// Hub wakes event streams and followers of logs; something must Run it.
	Hub      *live.Hub
	Sessions *httpx.Sessions
	Log      *slog.Logger
	// TrustedNetworks may name their user by headers alone; empty: none may.
	TrustedNetworks []netip.Prefix
	// Hosts are the names by which Loom is called: where a network alone gives rights, a
	// request has to use one of them, or an IP address.
	Hosts httpx.Hosts
	// Ready says why the process cannot serve: the database does not answer, the
	// schema is not current. The message of a loom.Error is shown to anyone; other
	// errors are for the log.
	Ready func(ctx context.Context) error
	// Metrics answers GET /metrics; nil: there is nothing. MetricsNetworks may read
	// them without a token.
	Metrics         http.Handler
	MetricsNetworks []netip.Prefix
	// Version of this build, for the OpenAPI document and GET /healthz.
	Version string
	// MaxUpload is the largest plugin resource in bytes; 0 takes the default.
	MaxUpload int64
	// Stopping, when it is closed, ends event streams so that the server can stop.
	// May be nil where the server cancels the contexts of requests instead.
	Stopping <-chan struct{}
	// Protection knows the site's own origins; nil compares with the Host header.
	Protection *http.CrossOriginProtection
}

// api holds the handlers.
type api struct {
	Deps
	// How often streams check rights again, how they are kept open, and how long
	// signals are collected; tests shorten them.
	recheck, keepAlive, pace time.Duration
	// patience is how long the follower of a log may take for what came since it was
	// last at the end, before lines are passed over.
	patience time.Duration
}

// New makes the handler of every path that Owns names. It expects httpx.Chain
// around it, for request ids, the access log and recovery.
func New(deps Deps) http.Handler { return newAPI(deps).handler() }

func newAPI(deps Deps) *api {
	if deps.Protection == nil {
		deps.Protection = http.NewCrossOriginProtection()
	}
	return &api{Deps: deps, recheck: 4 * time.Second, keepAlive: httpx.KeepAlive, pace: time.Second, patience: 10 * time.Second}
}

// Owns reports whether a path belongs to the API rather than to the pages. The
// probes of old clients are among them: they must never be asked to sign in.
func Owns(path string) bool {
	if path == "/v2" || strings.HasPrefix(path, "/v2/") {
		return true
	}
	switch strings.TrimSuffix(path, "/") {
	case "/status", "/healthz", "/readyz", "/metrics", "/ping", "/v3/ping":
		return true
	}
	return false
}

// Problem answers errors that arise outside of routes, such as a panic, on paths
// that the API owns.
func Problem(w http.ResponseWriter, r *http.Request, e *loom.Error) {
	if e.Kind == loom.Unauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="loom"`)
	}
	httpx.WriteProblem(w, r, e)
}

// newProblem is Problem for routes that the predecessor did not have.
func newProblem(w http.ResponseWriter, r *http.Request, e *loom.Error) {
	if e.Kind == loom.Unauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="loom"`)
	}
	httpx.WriteNewProblem(w, r, e)
}
