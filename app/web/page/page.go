// Package page is what all areas of the pages share: roles and routes, the frame around a
// page, errors, lists and their exports, what the REST API has for a page, texts. It knows
// no area.
package page

import (
	"context"
	"log/slog"
	"net/http"
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

// Deps are what the pages need; all must be set.
type Deps struct {
	Accounts  *account.Accounts
	Catalog   *catalog.Catalog
	Clusters  *clusters.Clusters
	Processes *processes.Processes
	Fleet     *fleet.Fleet
	Hooks     *hook.Hooks
	// Operations pauses, resumes, aborts and leaves out tasks.
	Operations *execution.Operations
	Hub        *live.Hub
	Sessions   *httpx.Sessions
	Log        *slog.Logger
	Version    string
	// APIDocument is the OpenAPI document that /docs/api shows.
	APIDocument []byte
	// API answers the documents that pages offer as JSON, with the session of whoever
	// asks; nil offers none.
	API http.Handler
	// PublicURL is the address at which browsers reach Loom, without a slash at
	// its end; examples of calls use it.
	PublicURL string
	// ProxyUnknown says that Loom is behind a proxy whose network is not named, so that
	// every request seems to come from there.
	ProxyUnknown bool
	// Starter loads the starter catalog into the actor's tenant; nil where there is
	// none.
	Starter func(ctx context.Context, actor loom.Actor) error
	// Shortage says, for banners, that a tenant has fewer workers than it wants
	// because capacity is short; empty when there is none.
	Shortage func(ctx context.Context, actor loom.Actor) (string, error)
	// Condition says, for banners, what hinders work in the whole installation; nil never
	// says anything.
	Condition func(ctx context.Context) (processes.Condition, error)
}

// Shared is what the pages of all areas have in common; each area's server embeds it.
type Shared struct {
	Deps
	// Now is the clock.
	Now   func() time.Time
	turns turns
	// Begun is when this process began to serve pages, state what they know of the
	// installation.
	Begun time.Time
	state condition
	// reports counts those about the content policy.
	reports reports
	// documents are what the API has for pages, by the patterns of their routes.
	documents map[string]Document
}

// New is what areas share.
func New(d Deps) *Shared {
	return &Shared{Deps: d, Now: time.Now, Begun: time.Now(), documents: map[string]Document{}}
}

// AddDocument says what the API has for the page at a path.
func (s *Shared) AddDocument(path string, d Document) { s.documents["GET "+path] = d }

// HasDocument reports whether the API has something for the page of a pattern.
func (s *Shared) HasDocument(pattern string) bool { _, ok := s.documents[pattern]; return ok }

// ErrorPage renders errors that happen before a page's handler is reached.
func ErrorPage(version string) httpx.ErrorRenderer { return New(Deps{Version: version}).renderError }
