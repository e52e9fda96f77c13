package web_test

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/account"
	"loom/app/api"
	"loom/app/api/wire"
	"loom/app/catalog"
	"loom/app/clusters"
	"loom/app/execution"
	"loom/app/fleet"
	"loom/app/hook"
	"loom/app/httpx"
	"loom/app/live"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/secret"
	"loom/app/testkit"
	"loom/app/web"
	"loom/seeds"
)

// rooms is the whole surface of the pages on a database of its own, with the
// tenants superadmin and demo as a first start makes them.
type rooms struct {
	t         *testing.T
	ctx       context.Context
	server    *httptest.Server
	catalog   *catalog.Catalog
	accounts  *account.Accounts
	processes *processes.Processes
	hooks     *hook.Hooks
	db        *sqlx.DB
	// bucket is the folder of its files.
	bucket string
	// passwords by "tenant/user".
	passwords map[string]loom.Secret
}

// newRooms has the pages without the REST API, from which documents and files come.
func newRooms(t *testing.T) *rooms { return makeRooms(t, false) }

// roomsTemplate is the database that all rooms begin with, roomsBasis what they know of it.
var (
	roomsTemplate testkit.Template
	roomsBasis    struct {
		key       string
		passwords map[string]loom.Secret
	}
)

// useCases makes those that the first start needs, and gives the ring of all.
func (r *rooms) useCases(db *testkit.Database) *secret.Ring {
	r.t.Helper()
	ring, err := secret.ParseKeys(roomsBasis.key)
	check(r.t, err)
	r.bucket = r.t.TempDir() + "/bucket"
	r.catalog, err = catalog.New(db.DB, ring, "file://"+r.bucket)
	check(r.t, err)
	r.t.Cleanup(func() { r.catalog.Close() })
	r.accounts = account.New(db.DB, ring)
	r.accounts.Resources = r.catalog
	return ring
}

func makeRooms(t *testing.T, withAPI bool, change ...func(*web.Deps)) *rooms {
	t.Helper()
	db := roomsTemplate.NewDatabase(t, func(db *testkit.Database) {
		roomsBasis.key = secret.GenerateKey()
		r := &rooms{t: t, ctx: context.Background(), passwords: map[string]loom.Secret{}}
		r.useCases(db)
		r.seed()
		roomsBasis.passwords = r.passwords
	})
	r := &rooms{t: t, ctx: context.Background(), passwords: maps.Clone(roomsBasis.passwords)}
	ring := r.useCases(db)
	r.processes = processes.New(db.DB, processes.Options{Ring: ring, Lease: time.Minute, AskTimeout: 50 * time.Millisecond})
	r.hooks = hook.New(db.DB, ring, hook.Options{Reach: loom.Reach{Networks: loom.Named(netip.MustParsePrefix("127.0.0.0/8"))}, PublicURL: "https://loom.example", Body: wire.HookBody})
	r.db = db.DB

	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	deps := web.Deps{
		Accounts: r.accounts, Catalog: r.catalog, Clusters: clusters.New(db.DB, ring, clusters.Options{}),
		Processes: r.processes, Fleet: fleet.New(db.DB), Hooks: r.hooks,
		Hub: live.New(db.DB, db.DSN, log), Sessions: httpx.NewSessions(r.accounts, false), Log: log, Version: "test",
	}
	if withAPI {
		deps.API = api.New(api.Deps{Accounts: deps.Accounts, Catalog: deps.Catalog, Clusters: deps.Clusters, Operations: execution.New(db.DB, ring, execution.Options{}),
			Processes: deps.Processes, Fleet: deps.Fleet, Hooks: deps.Hooks, Hub: deps.Hub, Sessions: deps.Sessions, Log: log, Version: "test"})
	}
	for _, c := range change {
		c(&deps)
	}
	handler := web.New(deps)
	r.server = httptest.NewServer(countForms(httpx.Chain(log, false, http.NewCrossOriginProtection(), web.ErrorPage("test"), handler)))
	t.Cleanup(r.server.Close)
	return r
}

// seed does what the first start does: plugin types, users, the starter catalog.
func (r *rooms) seed() {
	r.t.Helper()
	providers := []loom.PluginType{
		{Base: loom.Base{Name: "local", Label: "This host"}, Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{
			"internet": {Label: "Internet", Type: "checkbox", Tip: "Machines reach what this host reaches."}}}},
			ResourceTypes: map[string]loom.ResourceType{"ssh_keys": {Format: "file", Permissions: "0400"}}},
		{Base: loom.Base{Name: "cloudy", Description: "A cloud for tests."}, Parameters: map[string]loom.FieldGroup{"admin": {Fields: map[string]loom.FieldSchema{
			"region": {Label: "Region", Type: "text", Tip: "Where the machines are."},
			"access": {Label: "Access key", Type: "password", Tip: "From the cloud's console."}}, Required: [][]string{{"region", "access"}}}}},
	}
	shell := loom.PluginType{Base: loom.Base{Name: "shell", Label: "Shell", Description: "Runs scripts over SSH."}, Parameters: map[string]loom.FieldGroup{
		"admin": {Fields: map[string]loom.FieldSchema{"script": {Label: "Script", Type: "text", Tip: "Name of a script."}, "args": {Label: "Arguments", Type: "text"}}}},
		ResourceTypes: map[string]loom.ResourceType{"scripts": {Format: "file", Permissions: "0755"}}}
	check(r.t, r.catalog.RegisterTypes(r.ctx, providers, []loom.PluginType{shell}))
	made, err := r.accounts.EnsureSuperadmin(r.ctx)
	check(r.t, err)
	folder, err := fs.Sub(seeds.Catalog, "catalog")
	check(r.t, err)
	bundle, err := catalog.DecodeFolder(folder)
	check(r.t, err)
	_, err = r.catalog.Import(r.ctx, loom.SystemActor(loom.SuperTenant, "superadmin"), bundle, catalog.Merge)
	check(r.t, err)
	demo, err := r.accounts.EnsureDemo(r.ctx, 2)
	check(r.t, err)
	for _, m := range append(made, demo...) {
		r.passwords[m.Tenant+"/"+string(m.User)] = m.Password
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// visitor is a client with cookies that does not follow redirects.
type visitor struct {
	*rooms
	client *http.Client
}

// answer is a response with its body read.
type answer struct {
	status   int
	header   http.Header
	location string
	body     string
}

func (r *rooms) visitor() *visitor {
	r.t.Helper()
	jar, err := cookiejar.New(nil)
	check(r.t, err)
	return &visitor{rooms: r, client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// signedIn gives a visitor who is signed in as a user of a tenant.
func (r *rooms) signedIn(tenant, user string) *visitor {
	r.t.Helper()
	v := r.visitor()
	a := v.post("/login", "tenant", tenant, "user", user, "password", r.passwords[tenant+"/"+user].Reveal())
	if a.status != http.StatusSeeOther {
		r.t.Fatalf("sign-in as %s of %s: status %d", user, tenant, a.status)
	}
	return v
}

func (v *visitor) do(req *http.Request) answer {
	v.t.Helper()
	resp, err := v.client.Do(req)
	check(v.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	check(v.t, err)
	return answer{resp.StatusCode, resp.Header, resp.Header.Get("Location"), string(body)}
}

func (v *visitor) get(path string, headers ...string) answer {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.ctx, http.MethodGet, v.server.URL+path, nil)
	check(v.t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return v.do(req)
}

func (v *visitor) post(path string, pairs ...string) answer {
	v.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	req, err := http.NewRequestWithContext(v.ctx, http.MethodPost, v.server.URL+path, strings.NewReader(form.Encode()))
	check(v.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.do(req)
}

// shows fails unless the answer has the status and contains all texts.
func (a answer) shows(t *testing.T, status int, texts ...string) answer {
	t.Helper()
	if a.status != status {
		t.Errorf("status %d, want %d", a.status, status)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("the page does not say %q", text)
		}
	}
	return a
}

// hides fails if the answer contains one of the texts.
func (a answer) hides(t *testing.T, texts ...string) answer {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) || strings.Contains(a.location, text) {
			t.Errorf("the page holds %q", text)
		}
	}
	return a
}

// goes fails unless the answer redirects to a path.
func (a answer) goes(t *testing.T, path string) answer {
	t.Helper()
	if a.status != http.StatusSeeOther || a.location != path {
		t.Errorf("status %d to %q, want a redirect to %q", a.status, a.location, path)
	}
	return a
}
