package web_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

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
)

// clusterWorld is a test's own world: two tenants, a small catalog and the whole
// router of the pages.
type clusterWorld struct {
	t         testing.TB
	ctx       context.Context
	db        *testkit.Database
	accounts  *account.Accounts
	catalog   *catalog.Catalog
	clusters  *clusters.Clusters
	hub       *live.Hub
	ops       *execution.Operations
	processes *processes.Processes
	hooks     *hook.Hooks
	handler   http.Handler
	// serve makes the router anew, as a process that starts does.
	serve  func(hub *live.Hub) http.Handler
	tenant loom.Tenant
	// cookies by user; "eve" is of another tenant.
	cookies map[loom.UserID]string
	// troubles are the errors that handlers logged.
	troubles *troubles
}

// clusterTemplate is the database that these worlds begin with, clusterBasis what they
// know of it: passwords are hashed once, not in each test.
var (
	clusterTemplate testkit.Template
	clusterBasis    struct {
		key     string
		tenant  loom.Tenant
		cookies map[loom.UserID]string
	}
)

// clusterDatabase is one with the tenants and the catalog of a cluster world.
func clusterDatabase(t testing.TB) *testkit.Database {
	t.Helper()
	return clusterTemplate.NewDatabase(t, func(db *testkit.Database) {
		clusterBasis.key = secret.GenerateKey()
		w := &clusterWorld{t: t, ctx: context.Background(), db: db, cookies: map[loom.UserID]string{}}
		w.useCases()
		_, err := w.accounts.EnsureSuperadmin(w.ctx)
		w.must(err)
		w.must(w.catalog.RegisterTypes(w.ctx, []loom.PluginType{labProvider()}, nil))
		w.tenant = w.makeTenant("acme", "ana", "admin")
		w.makeTenant("other", "eve")
		w.fillCatalog()
		clusterBasis.tenant, clusterBasis.cookies = w.tenant, w.cookies
	})
}

// useCases makes those that worlds begin with, and gives the ring of all.
func (w *clusterWorld) useCases() *secret.Ring {
	w.t.Helper()
	ring, err := secret.ParseKeys(clusterBasis.key)
	w.must(err)
	w.accounts = account.New(w.db.DB, ring)
	w.catalog, err = catalog.New(w.db.DB, ring, "file://"+w.t.TempDir())
	w.must(err)
	w.t.Cleanup(func() { w.catalog.Close() }) //nolint:errcheck // a directory of the test
	w.accounts.Resources = w.catalog
	return ring
}

func newClusterWorld(t testing.TB) *clusterWorld {
	t.Helper()
	return clusterWorldOn(t, clusterDatabase(t))
}

// clusterWorldOn makes the world on a clusterDatabase.
func clusterWorldOn(t testing.TB, db *testkit.Database) *clusterWorld {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	w := &clusterWorld{t: t, ctx: ctx, db: db, tenant: clusterBasis.tenant, cookies: maps.Clone(clusterBasis.cookies), troubles: &troubles{}}
	ring := w.useCases()
	w.clusters = clusters.New(w.db.DB, ring, clusters.Options{MaxMachines: 500})
	w.ops = execution.New(w.db.DB, ring, execution.Options{})
	log := slog.New(slog.NewTextHandler(w.troubles, &slog.HandlerOptions{Level: slog.LevelError}))
	w.hub = live.New(w.db.DB, w.db.DSN, log)
	sessions := httpx.NewSessions(w.accounts, false)
	w.processes = processes.New(w.db.DB, processes.Options{Lease: time.Minute, AskTimeout: 50 * time.Millisecond})
	w.hooks = hook.New(w.db.DB, ring, hook.Options{Body: wire.HookBody})
	w.serve = func(hub *live.Hub) http.Handler {
		rest := api.New(api.Deps{Accounts: w.accounts, Catalog: w.catalog, Clusters: w.clusters, Operations: w.ops, Processes: w.processes, Fleet: fleet.New(w.db.DB), Hooks: w.hooks, Hub: hub, Sessions: sessions, Log: log, Version: "test"})
		pages := web.New(web.Deps{
			Accounts: w.accounts, Catalog: w.catalog, Clusters: w.clusters, Operations: w.ops, Processes: w.processes, Fleet: fleet.New(w.db.DB), Hooks: w.hooks, Hub: hub, Sessions: sessions, Log: log, Version: "test",
			API: rest, APIDocument: api.Document(),
		})
		return countForms(httpx.Chain(log, false, http.NewCrossOriginProtection(), web.ErrorPage("test"), http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if api.Owns(r.URL.Path) {
				rest.ServeHTTP(rw, r)
				return
			}
			pages.ServeHTTP(rw, r)
		})))
	}
	w.handler = w.serve(w.hub)
	return w
}

func (w *clusterWorld) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *clusterWorld) makeTenant(name string, users ...loom.UserID) loom.Tenant {
	w.t.Helper()
	super := loom.SystemActor(loom.SuperTenant, string(loom.SuperTenant))
	super.Role = loom.RoleSuperadmin
	clusters, nodes := 20, 60
	tenant, err := w.accounts.CreateTenant(w.ctx, super, account.TenantInput{Name: name, MaxClusters: &clusters, MaxNodes: &nodes})
	w.must(err)
	for _, user := range users {
		password := loom.NewSecret("correct horse battery " + string(user))
		role := loom.RoleUser
		if user == "admin" {
			role = loom.RoleAdmin
		}
		system := loom.SystemActor(tenant.ID, tenant.Name)
		if user == loom.AdminUser {
			_, err = w.accounts.SetPassword(w.ctx, name, user, password)
			if err != nil {
				_, _, err = w.accounts.CreateUser(w.ctx, system, account.UserInput{ID: user, Role: role, Password: password})
			}
		} else {
			_, _, err = w.accounts.CreateUser(w.ctx, system, account.UserInput{ID: user, Role: role, Password: password})
		}
		w.must(err)
		_, cookie, _, err := w.accounts.SignIn(w.ctx, account.SignInInput{Tenant: name, User: string(user), Password: password, Address: "127.0.0.1"})
		w.must(err)
		w.cookies[user] = cookie.Reveal()
	}
	return tenant
}

func labProvider() loom.PluginType {
	return loom.PluginType{
		Reboots: true,
		Base:    loom.Base{Name: "lab"},
		Parameters: map[string]loom.FieldGroup{
			"admin": {Fields: map[string]loom.FieldSchema{"region": {Label: "Region", Type: "text"}}},
			"user": {Fields: map[string]loom.FieldSchema{
				"zone":  {Label: "Zone", Type: "select", Options: []string{"a", "b"}, Tip: "Where in the region."},
				"token": {Label: "Access token", Type: "password"},
			}},
		},
		ResourceTypes: map[string]loom.ResourceType{},
	}
}

func webService(name, description string, requires ...string) *loom.Service {
	actions := map[loom.TaskAction]loom.ServiceAction{}
	for _, a := range []loom.TaskAction{loom.ActionInstall, loom.ActionConfigure, loom.ActionStart, loom.ActionStop} {
		actions[a] = loom.ServiceAction{Type: "shell", Fields: map[string]string{"script": name + ".sh", "args": string(a)}}
	}
	return &loom.Service{
		Base:         loom.Base{Name: name, Description: description},
		Dependencies: loom.Dependencies{Runtime: loom.PhaseDependency{Requires: requires}},
		Provisioner:  loom.ServiceProvisioner{Actions: actions},
	}
}

func (w *clusterWorld) save(kind loom.EntityKind, e loom.Entry) {
	w.t.Helper()
	_, _, err := w.catalog.Save(w.ctx, loom.SystemActor(w.tenant.ID, w.tenant.Name), kind, catalog.SaveInput{Entry: e})
	w.must(err)
}

func (w *clusterWorld) fillCatalog() {
	lab := func(entries map[string]string) map[string]map[string]string {
		return map[string]map[string]string{"lab": entries}
	}
	w.save(loom.KindProvider, &loom.Provider{Base: loom.Base{Name: "lab", Label: "The lab"}, Type: "lab", Fields: map[string]any{"region": "north"}})
	w.save(loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "small"}, ProviderMap: lab(map[string]string{"flavor": "512 MiB"})})
	w.save(loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "large"}, ProviderMap: lab(map[string]string{"flavor": "4 GiB"})})
	w.save(loom.KindImageType, &loom.ImageType{Base: loom.Base{Name: "debian-12"}, ProviderMap: lab(map[string]string{"image": "bookworm", "sshuser": "loom"})})
	balancer := webService("haproxy", "Spreads requests over the web servers.", "nginx")
	balancer.Links = []loom.Link{{Label: "Statistics", URL: "http://%ip.access_v4.self%:8404/"}}
	w.save(loom.KindService, balancer)
	w.save(loom.KindService, webService("nginx", "Serves the pages."))
	w.save(loom.KindService, webService("cache", "Keeps answers for a while."))
	w.save(loom.KindTemplate, webTemplate())
	w.save(loom.KindTemplate, &loom.Template{
		Base:          loom.Base{Name: "single", Label: "Single server", Description: "One machine with a web server, to try things out."},
		Defaults:      loom.Defaults{Services: []string{"nginx"}, Provider: "lab"},
		Compatibility: loom.Compatibility{Services: []string{"nginx", "cache"}},
		Constraints:   loom.Constraints{Size: loom.SizeConstraint{Min: 1, Max: 1}},
	})
}

func webTemplate() *loom.Template {
	one := 1
	return &loom.Template{
		Base: loom.Base{Name: "web-cluster", Label: "Web cluster", Description: "A load balancer in front of web servers."},
		Defaults: loom.Defaults{
			Services: []string{"haproxy", "nginx"}, Provider: "lab", DNSSuffix: "lab.example",
			Config: map[string]any{"web": map[string]any{"port": 80, "peers": "%host.service.nginx%"}},
		},
		Compatibility: loom.Compatibility{Services: []string{"haproxy", "nginx", "cache"}},
		Constraints: loom.Constraints{
			Layout:   loom.LayoutConstraints{CantCoexist: [][]string{{"haproxy", "nginx"}}},
			Services: map[string]loom.ServiceConstraint{"haproxy": {Quantities: &loom.Quantities{Min: &one, Max: &one}}},
			Size:     loom.SizeConstraint{Min: 1, Max: 50},
		},
		Administration: loom.Administration{Lease: loom.LeaseRule{Initial: 7 * 86_400_000, Max: 30 * 86_400_000}},
		Links:          []loom.Link{{Label: "Web page", URL: "http://%ip.access_v4.service.haproxy%/"}},
	}
}

func (w *clusterWorld) actor(user loom.UserID) loom.Actor {
	actor, _, err := w.accounts.ActorBySession(w.ctx, loom.NewSecret(w.cookies[user]), "127.0.0.1")
	w.must(err)
	return actor
}

// create makes a cluster of ana's; its operation runs as far as a test lets it.
func (w *clusterWorld) create(name string, machines int) loom.OperationRef {
	w.t.Helper()
	ref, err := w.clusters.Create(w.ctx, w.actor("ana"), loom.CreateInput{
		Name: name, Template: "web-cluster", Machines: machines, LeaseMillis: loom.TemplateLease})
	w.must(err)
	return ref
}

// finish ends the operation of a cluster as a provisioner would have.
func (w *clusterWorld) finish(ref loom.OperationRef, status loom.ClusterStatus) {
	id := int64(ref.Cluster)
	w.db.MustExec(`UPDATE tasks SET status = 'complete', attempt = 1, started_at = now() - interval '20 s', ended_at = now() - interval '15 s'
		WHERE cluster_id = $1 AND NOT gate AND status <> 'failed'`, id)
	w.db.MustExec(`INSERT INTO attempts (task_id, number, process_id, status, started_at, ended_at)
		SELECT id, 1, 'host-1a2b3c4d', 'complete', started_at, ended_at FROM tasks WHERE cluster_id = $1 AND NOT gate AND status = 'complete'
		ON CONFLICT DO NOTHING`, id)
	w.db.MustExec(`UPDATE nodes SET state = 'ready', ipaddresses = jsonb_build_object('access_v4', '10.77.1.' || (number - 990)),
		results = '{"providerid": "m-17", "ssh-auth": {"password": "planted-marker-7"}}',
		service_states = (SELECT coalesce(jsonb_object_agg(s, 'started'), '{}') FROM unnest(services) AS s) WHERE cluster_id = $1`, id)
	end := "complete"
	if status == loom.ClusterIncomplete {
		end = "failed"
	}
	w.db.MustExec(`UPDATE operations SET status = $2, started_at = now() - interval '30 s', ended_at = now() WHERE cluster_id = $1 AND ended_at IS NULL`, id, end)
	w.db.MustExec(`UPDATE clusters SET status = $2, revision = revision + 1 WHERE id = $1`, id, status)
}

// runSome lets the first tasks be complete, the next ones run with a log.
func (w *clusterWorld) runSome(ref loom.OperationRef, complete, runs int) {
	id := int64(ref.Cluster)
	w.db.MustExec(`UPDATE operations SET started_at = now() - interval '42 s' WHERE cluster_id = $1`, id)
	w.db.MustExec(`UPDATE tasks SET status = 'complete', attempt = 1, started_at = now() - interval '40 s', ended_at = now() - interval '30 s'
		WHERE cluster_id = $1 AND NOT gate AND number <= $2`, id, complete)
	w.db.MustExec(`UPDATE tasks SET status = 'running', attempt = 1, started_at = now() - interval '8 s'
		WHERE cluster_id = $1 AND NOT gate AND number > $2 AND number <= $3`, id, complete, complete+runs)
	w.db.MustExec(`INSERT INTO attempts (task_id, number, process_id, status, started_at, ended_at)
		SELECT id, 1, 'host-1a2b3c4d', status, started_at, ended_at FROM tasks WHERE cluster_id = $1 AND NOT gate AND attempt = 1`, id)
	w.db.MustExec(`UPDATE nodes SET state = 'creating' WHERE cluster_id = $1`, id)
}

// log stores lines of the first attempt of a task.
func (w *clusterWorld) log(ref loom.TaskRef, stream string, lines ...string) {
	for _, line := range lines {
		level := map[string]string{"stderr": "warn"}[stream]
		if level == "" {
			level = "info"
		}
		w.db.MustExec(`INSERT INTO task_logs (task_id, attempt, seq, operation_id, node_id, at, stream, level, text)
			SELECT t.id, 1, 1 + (SELECT count(*) FROM task_logs l WHERE l.task_id = t.id), t.operation_id, t.node_id, now(), $3, $4, $5
			FROM tasks t WHERE t.cluster_id = $1 AND t.number = $2 AND NOT t.gate`, int64(ref.Operation.Cluster), ref.Number, stream, level, line)
	}
}

// fail makes a task of a cluster fail for good.
func (w *clusterWorld) fail(ref loom.TaskRef, message string) {
	id := int64(ref.Operation.Cluster)
	w.db.MustExec(`UPDATE tasks SET status = 'failed', attempt = 1, message = $3, code = 1, started_at = now() - interval '9 s', ended_at = now() - interval '5 s'
		WHERE cluster_id = $1 AND number = $2 AND NOT gate`, id, ref.Number, message)
	w.db.MustExec(`INSERT INTO attempts (task_id, number, process_id, status, code, message, started_at, ended_at)
		SELECT id, 1, 'host-1a2b3c4d', 'failed', 1, message, started_at, ended_at FROM tasks WHERE cluster_id = $1 AND number = $2 AND NOT gate
		ON CONFLICT (task_id, number) DO UPDATE SET status = 'failed', code = 1, message = excluded.message, ended_at = excluded.ended_at`, id, ref.Number)
	w.db.MustExec(`UPDATE operations SET status = 'failed', message = $2, ended_at = now() WHERE cluster_id = $1`, id, "Task "+ref.String()+" failed: "+message)
	w.db.MustExec(`UPDATE tasks SET status = 'dropped' WHERE cluster_id = $1 AND status IN ('blocked', 'ready', 'running') AND NOT gate`, id)
	w.db.MustExec(`UPDATE clusters SET status = 'incomplete' WHERE id = $1`, id)
}

func (w *clusterWorld) send(user loom.UserID, method, target string, form url.Values, headers ...string) clusterAnswer {
	w.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, target, body)
	r.RemoteAddr = "127.0.0.1:4711"
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if user != "" {
		r.Header.Set("Cookie", "loom-dev="+w.cookies[user])
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return clusterAnswer{t: w.t, Code: rec.Code, Body: rec.Body.String(), Header: rec.Header()}
}

func (w *clusterWorld) get(user loom.UserID, target string) clusterAnswer {
	w.t.Helper()
	return w.send(user, http.MethodGet, target, nil)
}

// part asks as htmx does for an element of the page.
func (w *clusterWorld) part(user loom.UserID, target, id string) clusterAnswer {
	w.t.Helper()
	return w.send(user, http.MethodGet, target, nil, "HX-Request", "true", "HX-Target", id)
}

func (w *clusterWorld) post(user loom.UserID, target string, form url.Values) clusterAnswer {
	w.t.Helper()
	return w.send(user, http.MethodPost, target, form)
}

// createValues is the form for a cluster as a browser sends it.
func createValues(name, machines string) url.Values {
	config, err := json.Marshal(webTemplate().Defaults.Config)
	if err != nil {
		panic(err)
	}
	return url.Values{
		"kind": {"create"}, "clusterTemplate": {"web-cluster"}, "for": {"web-cluster"}, "forProvider": {"lab"}, "name": {name},
		"numMachines": {machines}, "provider": {"lab"}, "servicesShown": {"1"}, "services": {"haproxy", "nginx"}, "config": {string(config)},
	}
}
