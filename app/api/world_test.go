package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

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
	"loom/app/secret"
	"loom/app/store"
	"loom/app/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// world is a whole API over a database of its own, with two tenants and a small
// catalog in the tenant acme.
type world struct {
	ring     *secret.Ring
	t        *testing.T
	db       *testkit.Database
	deps     Deps
	api      *api
	server   *httptest.Server
	schemas  *schemas
	stopping chan struct{}
	// Tokens of administrator, user and a second user of acme, of the administrator
	// of another tenant, and of the superadmin.
	admin, user, second, foreign, super string
}

var superActor = loom.Actor{Tenant: loom.SuperTenant, TenantName: "superadmin", User: loom.AdminUser, Role: loom.RoleSuperadmin, Via: "cli"}

// newWorld builds the world; change, if any, is applied to the dependencies.
func newWorld(t *testing.T, change ...func(*Deps)) *world {
	t.Helper()
	return worldOn(t, worldTemplate.NewDatabase(t, func(db *testkit.Database) { makeBasis(t, db) }), change...)
}

// worldOn builds the world on a database of newWorld.
func worldOn(t *testing.T, db *testkit.Database, change ...func(*Deps)) *world {
	t.Helper()
	w := &world{t: t, db: db, schemas: readSchemas(t), stopping: make(chan struct{})}
	w.admin, w.user, w.second, w.foreign, w.super = basis.admin, basis.user, basis.second, basis.foreign, basis.super
	ring := w.useCases()
	w.ring = ring
	accounts, cat := w.deps.Accounts, w.deps.Catalog
	log := slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	w.deps = Deps{
		Accounts: accounts, Catalog: cat, Clusters: clusters.New(w.db.DB, ring, clusters.Options{MaxMachines: 50}),
		Operations: execution.New(w.db.DB, ring, execution.Options{}),
		Processes:  processes.New(w.db.DB, processes.Options{Ring: ring}),
		Fleet:      fleet.New(w.db.DB),
		Hub:        live.New(w.db.DB, w.db.DSN, log), Sessions: httpx.NewSessions(accounts, false), Log: log,
		Hooks: hook.New(w.db.DB, ring, hook.Options{}),
		Ready: func(context.Context) error { return nil }, Version: "test", Stopping: w.stopping,
	}
	for _, f := range change {
		f(&w.deps)
	}
	w.api = newAPI(w.deps)
	w.api.pace, w.api.recheck = 50*time.Millisecond, 100*time.Millisecond
	w.server = httptest.NewServer(httpx.Chain(log, false, http.NewCrossOriginProtection(), Problem, w.api.handler()))
	t.Cleanup(w.server.Close)
	return w
}

// runHub starts the hub; it ends with the test.
func (w *world) runHub() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.deps.Hub.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("hub: %v", err)
		}
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tx(fn func(tx *sqlx.Tx) error) {
	w.t.Helper()
	w.must(store.Exec(w.t.Context(), w.db.DB, fn))
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	_, err := w.db.ExecContext(w.t.Context(), query, args...)
	w.must(err)
}

func (w *world) token(tenant string, user loom.UserID, scopes ...loom.Scope) string {
	w.t.Helper()
	_, secret, err := w.deps.Accounts.CreateTokenFor(w.t.Context(), superActor, tenant, user, account.NewToken{Name: "test", Scopes: scopes})
	w.must(err)
	return secret.Reveal()
}

var pluginTypes = []loom.PluginType{
	{Base: loom.Base{Name: "fake"}},
	{Base: loom.Base{Name: "needy"}, Parameters: map[string]loom.FieldGroup{
		"user": {Fields: map[string]loom.FieldSchema{
			"zone": {Label: "Zone", Type: "text", Default: "a"}, "key": {Label: "Key", Type: "password"},
		}, Required: [][]string{{"zone", "key"}}},
	}},
}

var automatorTypes = []loom.PluginType{{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{
	"scripts": {Format: "file", Permissions: "0755"},
}}}

// loadCatalog stores the catalog that the tests work with. Two services cannot
// share a node, so one machine is too few.
func (w *world) loadCatalog(tenant string) {
	w.t.Helper()
	ctx := w.t.Context()
	w.must(w.deps.Catalog.RegisterTypes(ctx, pluginTypes, automatorTypes))
	found, err := w.deps.Accounts.Tenant(ctx, superActor, tenant)
	w.must(err)
	for _, e := range []struct {
		kind loom.EntityKind
		body string
	}{
		{loom.KindProvider, `{"name":"lab","description":"Lab","providertype":"fake"}`},
		{loom.KindProvider, `{"name":"cloud","description":"Cloud","providertype":"needy"}`},
		{loom.KindHardwareType, `{"name":"small","providermap":{"lab":{"flavor":"s"},"cloud":{"flavor":"s"}}}`},
		{loom.KindImageType, `{"name":"deb12","providermap":{"lab":{"image":"i","sshuser":"loom"},"cloud":{"image":"i"}}}`},
		{loom.KindService, service("web", `["start"]`)},
		{loom.KindService, service("balancer", `["start"]`)},
		{loom.KindTemplate, `{"name":"site","description":"Web site","defaults":{"services":["web","balancer"],"provider":"lab","hardwaretype":"small","imagetype":"deb12","config":{"web":{"port":80}}},
			"constraints":{"size":{"min":1,"max":5},"layout":{"cantcoexist":[["web","balancer"]]},"services":{"balancer":{"quantities":{"min":1,"max":1}}}},
			"administration":{"leaseduration":{"initial":"8h","max":"2d"}},"links":[{"label":"Page","url":"http://%ip.access_v4.service.balancer[0]%/"}]}`},
	} {
		entry, err := catalog.Decode(e.kind, []byte(e.body))
		w.must(err)
		_, _, err = w.deps.Catalog.Save(ctx, loom.SystemActor(found.ID, tenant), e.kind, catalog.SaveInput{Entry: entry})
		w.must(err)
	}
}

func service(name, _ string) string {
	return fmt.Sprintf(`{"name":%q,"description":"A service","provisioner":{"actions":{
		"install":{"type":"shell","fields":{"script":"%[2]s.sh"}},"start":{"type":"shell","fields":{"script":"%[2]s.sh","args":"start"}}}},
		"links":[{"label":"Node","url":"http://%%ip.access_v4.self%%/"}]}`, name, name)
}

// reply is an answer, read to its end.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// call sends a request as the owner of a token, with further headers as pairs, and
// holds the answer against the OpenAPI document.
func (w *world) call(token, method, path, body string, headers ...string) reply {
	w.t.Helper()
	if token != "" {
		headers = append([]string{"Authorization", "Bearer " + token}, headers...)
	}
	return w.send(method, path, body, headers...)
}

func (w *world) send(method, path, body string, headers ...string) reply {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.server.URL+path, strings.NewReader(body))
	w.must(err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	w.must(err)
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	w.must(err)
	if answer.Close { // the client takes the header away
		answer.Header.Set("Connection", "close")
	}
	out := reply{w.t, answer.StatusCode, answer.Header, string(data)}
	w.checkAnswer(r, out)
	return out
}

// checkAnswer holds every answer of every test against what the API says of it.
func (w *world) checkAnswer(r *http.Request, a reply) {
	w.t.Helper()
	if r.Method == http.MethodHead || a.status == http.StatusNotModified {
		if a.body != "" {
			w.t.Errorf("%s %s: a body %q", r.Method, r.URL.Path, a.body)
		}
		return
	}
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if a.status >= 400 {
		if strings.HasSuffix(r.URL.Path, "/readyz") {
			return
		}
		if media != "application/problem+json" {
			w.t.Errorf("%s %s: %d as %q: %s", r.Method, r.URL.Path, a.status, media, a.body)
			return
		}
		w.schemas.check(w.t, schemaOf("Problem"), a.body)
		if p := a.problem(); p.Status != a.status || !strings.HasPrefix(p.Type, "urn:loom:error:") || p.Title == "" || p.Instance == "" {
			w.t.Errorf("%s %s: incomplete problem %+v", r.Method, r.URL.Path, p)
		}
		return
	}
	rt := w.routeOf(r)
	switch {
	case rt == nil:
		w.t.Errorf("%s %s: %d from no route of the table", r.Method, r.URL.Path, a.status)
	case a.status != cmp.Or(rt.success, http.StatusOK):
		w.t.Errorf("%s %s: success is not %d", r.Method, r.URL.Path, a.status)
	case rt.answer == "" && len(rt.media) == 0:
		if a.body != "" || a.header.Get("Content-Length") != "0" && a.status != http.StatusNoContent || a.header.Get("Content-Type") != "" {
			w.t.Errorf("%s %s: not empty: %q, headers %v", r.Method, r.URL.Path, a.body, a.header)
		}
	case media == mediaJSON && a.header.Get("Idempotency-Shortened") == "": // some members only
		w.schemas.check(w.t, schemaOf(rt.answer), a.body)
	}
}

func (w *world) routeOf(r *http.Request) *route {
	path := filepath.Clean(r.URL.EscapedPath())
	var best *route
	for _, rt := range w.api.routes() {
		if rt.method == r.Method && matchesPattern(rt.path, path) &&
			(best == nil || strings.Count(rt.path, "{") < strings.Count(best.path, "{")) {
			best = &rt
		}
	}
	return best
}

func matchesPattern(pattern, path string) bool {
	p, q := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(p) != len(q) {
		return false
	}
	for i := range p {
		if p[i] != q[i] && !strings.HasPrefix(p[i], "{") {
			return false
		}
	}
	return true
}

// want fails unless the status is right.
func (a reply) want(status int) reply {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

func (a reply) into(v any) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		a.t.Fatalf("%v in %s", err, a.body)
	}
}

func (a reply) object() map[string]any {
	a.t.Helper()
	var v map[string]any
	a.into(&v)
	return v
}

func (a reply) array() []map[string]any {
	a.t.Helper()
	var v []map[string]any
	a.into(&v)
	return v
}

func (a reply) problem() httpx.Problem {
	a.t.Helper()
	var p httpx.Problem
	a.into(&p)
	return p
}

// fails checks a refusal: its status, and what field and text name.
func (a reply) fails(status int, field, text string) {
	a.t.Helper()
	a.want(status)
	p := a.problem()
	found := field == ""
	for _, f := range p.Errors {
		found = found || f.Field == field
		p.Detail += " " + f.Message
	}
	for _, r := range p.Reasons {
		p.Detail += " " + r.Message
	}
	if !found {
		a.t.Errorf("no error of the field %q in %s", field, a.body)
	}
	if !strings.Contains(p.Detail, text) {
		a.t.Errorf("%q says nothing of %q", p.Detail, text)
	}
}

// cluster makes a cluster of three machines and gives its id.
func (w *world) cluster(token, name string) string {
	w.t.Helper()
	a := w.call(token, post, "/v2/clusters", fmt.Sprintf(`{"name":%q,"clusterTemplate":"site","numMachines":3}`, name)).want(200)
	return a.object()["id"].(string)
}

// finish ends the operation of a cluster as if all its tasks had run.
func (w *world) finish(id string) {
	w.t.Helper()
	n, _ := loom.ParseClusterID(id)
	w.exec(`UPDATE tasks SET status = 'complete', remaining = 0, attempt = 1, started_at = now(), ended_at = now() WHERE cluster_id = $1`, int64(n))
	w.exec(`INSERT INTO attempts (task_id, number, process_id, status, started_at, ended_at)
		SELECT id, 1, 'test-00000001', 'complete', now(), now() FROM tasks WHERE cluster_id = $1 AND NOT gate
		ON CONFLICT (task_id, number) DO UPDATE SET status = 'complete', ended_at = now()`, int64(n))
	w.exec(`UPDATE operations SET status = 'complete', started_at = now(), ended_at = now() WHERE cluster_id = $1`, int64(n))
	w.exec(`UPDATE nodes SET state = 'ready', ipaddresses = '{"access_v4":"10.0.0.1","bind_v4":"10.0.0.1"}' WHERE cluster_id = $1`, int64(n))
	w.exec(`UPDATE clusters SET status = 'active' WHERE id = $1`, int64(n))
}

// failCreate lets every CREATE of a cluster fail before anything is made, and ends its operation.
func (w *world) failCreate(id string) {
	w.t.Helper()
	n, _ := loom.ParseClusterID(id)
	w.exec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('failing', 'provisioner', 'host.example', now() + interval '1 hour')`)
	var rows []struct {
		Task    loom.TaskID `db:"task"`
		Attempt int         `db:"attempt"`
	}
	w.must(w.db.Select(&rows, `UPDATE river_job r SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = array_append(r.attempted_by, 'failing')
		FROM tasks t WHERE r.id = t.river_job_id AND r.kind = 'run_task' AND r.state = 'available' AND t.cluster_id = $1 AND t.action = 'create'
		RETURNING t.id AS task, r.attempt`, int64(n)))
	var due []execution.AttemptKey
	for _, r := range rows {
		due = append(due, execution.AttemptKey{Task: r.Task, Attempt: r.Attempt})
	}
	begun, _, err := w.deps.Operations.StartTasks(w.t.Context(), "failing", due)
	w.must(err)
	if len(begun) == 0 {
		w.t.Fatalf("no CREATE of %s is due", id)
	}
	for _, key := range due {
		_, err := w.deps.Operations.FailTask(w.t.Context(), key, loom.TaskResult{Status: 200, Message: "no such flavor", Retryable: new(false)})
		w.must(err)
	}
	var operations []loom.OperationID
	w.must(w.db.Select(&operations, `SELECT id FROM operations WHERE cluster_id = $1`, int64(n)))
	for _, operation := range operations {
		w.must(w.deps.Operations.EndOperation(w.t.Context(), operation))
	}
	w.exec(`DELETE FROM processes WHERE id = 'failing'`)
}

func query(pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return "?" + v.Encode()
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}
