package hook_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/api/wire"
	"loom/app/execution"
	"loom/app/hook"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/secret"
	"loom/app/store"
	"loom/app/testkit"
	"loom/jobs/work"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var ctx = context.Background()

// Administrators of a tenant, of another one, and of the installation.
var (
	admin   = loom.Actor{Tenant: "t1", TenantName: "acme", User: "admin", Role: loom.RoleAdmin, Via: "session"}
	foreign = loom.Actor{Tenant: "t2", TenantName: "other", User: "admin", Role: loom.RoleAdmin, Via: "session"}
	super   = loom.Actor{Tenant: loom.SuperTenant, TenantName: "superadmin", User: "admin", Role: loom.RoleSuperadmin, Via: "session"}
	member  = loom.Actor{Tenant: "t1", TenantName: "acme", User: "ana", Role: loom.RoleUser, Via: "session"}
)

// world is a database with tenants, and the use cases that may call loopback.
type world struct {
	t     *testing.T
	db    *testkit.Database
	ring  *secret.Ring
	hooks *hook.Hooks
	ops   *execution.Operations
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func newWorld(t *testing.T, networks ...netip.Prefix) *world {
	t.Helper()
	ring, err := secret.ParseKeys(secret.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	db := testkit.NewDatabase(t)
	w := &world{t: t, db: db, ring: ring}
	w.hooks = hook.New(db.DB, ring, hook.Options{Reach: loom.Reach{Networks: loom.Named(networks...)}, PublicURL: "https://loom.example/", Body: wire.HookBody})
	w.ops = execution.New(db.DB, ring, execution.Options{Logger: slog.New(slog.DiscardHandler), MaxAttempts: 1})
	w.exec(`INSERT INTO tenants (id, name, workers) VALUES ('t1', 'acme', 10), ('t2', 'other', 10), ('superadmin', 'superadmin', 0) ON CONFLICT DO NOTHING`)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	_, err := w.db.Exec(query, args...)
	w.must(err)
}

func (w *world) text(query string, args ...any) string {
	w.t.Helper()
	var s string
	w.must(w.db.Get(&s, query, args...))
	return s
}

// runs starts a scheduler and a provisioner whose tasks end as result says.
func (w *world) runs(result loom.TaskResult) {
	w.t.Helper()
	leases := processes.New(w.db.DB, processes.Options{Lease: 4 * time.Second, RenewEvery: 100 * time.Millisecond, GiveUpAfter: 3200 * time.Millisecond})
	common := work.Common{DSN: w.db.DSN, Operations: w.ops, Processes: leases, Hooks: w.hooks, Version: "test", Logger: slog.New(slog.DiscardHandler), Test: true}
	scheduler := &work.Scheduler{Common: common, ReapEvery: 50 * time.Millisecond, ReconcileEvery: 100 * time.Millisecond}
	provisioner := &work.Provisioner{Common: common, Runner: runner{result}, Capacity: 10, DrainTimeout: -1, Sweep: 300 * time.Millisecond}
	for _, run := range []func(context.Context) error{scheduler.Run, provisioner.Run} {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx) }()
		w.t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				w.t.Errorf("process: %v", err)
			}
		})
	}
}

type runner struct{ result loom.TaskResult }

func (r runner) Run(context.Context, *loom.TaskSpec, loom.Sink) loom.TaskResult { return r.result }

// cluster inserts a cluster with two nodes in a status.
func (w *world) cluster(tenant loom.TenantID, status loom.ClusterStatus) loom.ClusterID {
	w.t.Helper()
	var id loom.ClusterID
	w.must(w.db.Get(&id, `INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services, config)
		VALUES ($1, 'ana', 'shop', $2, 'site', 1, '{"name": "site"}', 'lab', '{}', '{"web": {"name": "web"}}',
		'{"db_password": "pa55word", "port": 80}') RETURNING id`, tenant, status))
	w.exec(`INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, results)
		SELECT gen_random_uuid(), $1, $2, 999 + i, 'n' || i, 'h', 'i', 'f', 'm', 'root', '{web}', '{}', '{"zone": "z1", "api_token": "pa55word", "ssh-auth": {"user": "pa55word"}}'
		FROM generate_series(1, 2) AS i`, id, tenant)
	return id
}

// begin starts an operation of one task per node.
func (w *world) begin(tenant loom.TenantID, id loom.ClusterID, action loom.ClusterAction) loom.Operation {
	w.t.Helper()
	op, err := store.InTx(ctx, w.db.DB, func(tx *sqlx.Tx) (loom.Operation, error) {
		if _, err := store.LockCluster(ctx, tx, tenant, id); err != nil {
			return loom.Operation{}, err
		}
		nodes, err := store.NodesByCluster(ctx, tx, tenant, id)
		if err != nil {
			return loom.Operation{}, err
		}
		plan := loom.Plan{Action: action, Gates: []loom.Gate{{}}}
		for i, n := range nodes {
			plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: i + 1, Node: n.ID, Action: loom.ActionBootstrap, Level: 1, Rank: 1})
		}
		for i := range nodes {
			plan.Edges = append(plan.Edges, loom.Edge{From: i + 1, To: plan.EndVertex()})
		}
		return store.InsertPlan(ctx, tx, store.NewOperation{Tenant: tenant, Cluster: id, Action: action, RequestedBy: "ana"}, plan)
	})
	w.must(err)
	return op
}

// eventually polls until ok, or fails with what.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			var rows []string
			_ = w.db.Select(&rows, `SELECT 'op ' || id || ' ' || action || ' ' || status || ' ' || message FROM operations
				UNION ALL SELECT 'delivery ' || id || ' ' || event || ' ' || status || ' ' || tries || ' ' || error FROM hook_deliveries
				UNION ALL SELECT 'river ' || kind || ' ' || args || ' ' || state FROM river_job WHERE kind LIKE '%hook' OR kind = 'end_operation'`)
			w.t.Fatalf("never: %s\n%v", what, rows)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (w *world) becomes(op loom.Operation, status loom.OperationStatus) {
	w.t.Helper()
	w.eventually("operation "+string(status), func() bool {
		return w.text(`SELECT status FROM operations WHERE id = $1`, int64(op.Row)) == string(status)
	})
}

func (w *world) clusterIs(id loom.ClusterID, status loom.ClusterStatus) {
	w.t.Helper()
	if got := w.text(`SELECT status FROM clusters WHERE id = $1`, int64(id)); got != string(status) {
		w.t.Errorf("the cluster is %s, want %s", got, status)
	}
}

// due lets every delivery that waits be tried at once, older than it is.
func (w *world) due(older time.Duration) {
	w.t.Helper()
	w.exec(`UPDATE hook_deliveries SET next_at = now(), created_at = created_at - make_interval(secs => $1) WHERE status = 'waiting'`, older.Seconds())
	w.exec(`UPDATE river_job SET state = 'available', scheduled_at = now() WHERE kind = 'deliver_hook' AND state IN ('scheduled', 'available', 'retryable')`)
	w.exec(`SELECT loom_wake('{hook}')`)
}

func (w *world) create(actor loom.Actor, in hook.Input) (loom.Hook, string) {
	w.t.Helper()
	if in.Name == "" {
		in.Name = "test"
	}
	in.Enabled = true
	h, key, err := w.hooks.Create(ctx, actor, in)
	w.must(err)
	return h, key.Reveal()
}

// log is what was sent to a hook, newest first.
func (w *world) log(actor loom.Actor, h loom.Hook) []loom.Delivery {
	w.t.Helper()
	list, err := w.hooks.Deliveries(ctx, actor, h.ID, hook.Filter{}, loom.Page{})
	w.must(err)
	return list.Items
}

// call is a request that an endpoint got.
type call struct {
	header http.Header
	body   string
}

func (c call) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(c.body), &v); err != nil {
		t.Fatalf("%v in %s", err, c.body)
	}
	return v
}

// endpoint is a receiver of notices that notes what it gets.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	calls  []call
	answer func(w http.ResponseWriter, n int) // n counts from 1
}

func newEndpoint(t *testing.T, answer func(w http.ResponseWriter, n int)) *endpoint {
	e := &endpoint{answer: answer}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.calls = append(e.calls, call{r.Header, string(body)})
		n := len(e.calls)
		e.mu.Unlock()
		if e.answer != nil {
			e.answer(w, n)
		}
	}))
	t.Cleanup(e.Close)
	return e
}

func status(code int) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, _ int) { w.WriteHeader(code) }
}

func (e *endpoint) got() []call {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]call(nil), e.calls...)
}

func (e *endpoint) events() string {
	var all string
	for _, c := range e.got() {
		all += c.header.Get("X-Loom-Event") + " "
	}
	return all
}
