package work_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/execution"
	"loom/app/loom"
	"loom/app/processes"
	"loom/app/secret"
	"loom/app/store"
	"loom/app/testkit"
	"loom/jobs/work"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(helperDSN); dsn != "" {
		helper(dsn)
		return
	}
	testkit.Main(m)
}

// world is a database with one tenant.
type world struct {
	t      testing.TB
	db     *testkit.Database
	ring   *secret.Ring
	tenant loom.TenantID
}

func newWorld(t testing.TB, workers int) *world {
	t.Helper()
	db := testkit.NewDatabase(t)
	ring, err := secret.ParseKeys(secret.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: db, ring: ring, tenant: "t1"}
	w.addTenant("t1", workers)
	return w
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Exec(query, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) addTenant(id loom.TenantID, workers int) {
	w.t.Helper()
	w.exec(`INSERT INTO tenants (id, name, workers) VALUES ($1, $1, $2)`, id, workers)
}

func (w *world) count(query string, args ...any) int {
	w.t.Helper()
	var n int
	if err := w.db.Get(&n, query, args...); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) text(query string, args ...any) string {
	w.t.Helper()
	var s string
	if err := w.db.Get(&s, query, args...); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// cluster inserts a pending cluster with nodes.
func (w *world) cluster(tenant loom.TenantID, nodes int) (loom.ClusterID, []loom.NodeID) {
	w.t.Helper()
	var id loom.ClusterID
	w.db.MustExec(`INSERT INTO catalog_versions (tenant_id, kind, name, version, body) VALUES ($1, 'providers', 'p', 1, '{"name": "p", "providertype": "mock"}') ON CONFLICT DO NOTHING`, tenant)
	err := w.db.Get(&id, `INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		VALUES ($1, 'ana', 'c', 'pending', 't', 1, '{}', 'p', '{}', '{}') RETURNING id`, tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []loom.NodeID
	err = w.db.Select(&ids, `INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
		SELECT gen_random_uuid(), $1, $2, 999 + i, 'n' || i, 'h', 'i', 'f', 'm', 'root', '{}', '{}' FROM generate_series(1, $3) AS i RETURNING id`, id, tenant, nodes)
	if err != nil {
		w.t.Fatal(err)
	}
	return id, ids
}

// insert stores a plan for a cluster.
func (w *world) insert(tenant loom.TenantID, cluster loom.ClusterID, plan loom.Plan) loom.Operation {
	w.t.Helper()
	op, err := store.InTx(context.Background(), w.db.DB, func(tx *sqlx.Tx) (loom.Operation, error) {
		return store.InsertPlan(context.Background(), tx, store.NewOperation{Tenant: tenant, Cluster: cluster, Action: plan.Action, RequestedBy: "ana"}, plan)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return op
}

// layered makes a plan of layers with width tasks each, every task behind preds
// of the layer before; every other layer is joined by a gate instead.
func layered(nodes []loom.NodeID, layers, width, preds int, gates bool) loom.Plan {
	random := rand.New(rand.NewPCG(1, 2))
	plan := loom.Plan{Action: loom.ClusterCreate}
	for layer := range layers {
		for i := range width {
			plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: len(plan.Tasks) + 1, Node: nodes[i%len(nodes)], NodeNumber: 1000 + i%len(nodes),
				Action: loom.ActionBootstrap, Level: layer + 1, Rank: layers - layer})
		}
	}
	first := len(plan.Tasks) + 1
	for layer := 1; layer < layers; layer++ {
		if gates && layer%3 == 0 {
			gate := first + len(plan.Gates)
			plan.Gates = append(plan.Gates, loom.Gate{Service: "s", Action: loom.ActionStart})
			for i := range width {
				plan.Edges = append(plan.Edges, loom.Edge{From: (layer-1)*width + i + 1, To: gate}, loom.Edge{From: gate, To: layer*width + i + 1})
			}
			continue
		}
		for i := range width {
			for _, p := range random.Perm(width)[:min(preds, width)] {
				plan.Edges = append(plan.Edges, loom.Edge{From: (layer-1)*width + p + 1, To: layer*width + i + 1})
			}
		}
	}
	plan.Gates = append(plan.Gates, loom.Gate{})
	behind := map[int]bool{}
	for _, e := range plan.Edges {
		behind[e.From] = true
	}
	for i := range plan.Tasks {
		if !behind[i+1] {
			plan.Edges = append(plan.Edges, loom.Edge{From: i + 1, To: plan.EndVertex()})
		}
	}
	slices.SortFunc(plan.Edges, func(a, b loom.Edge) int {
		if a.From != b.From {
			return a.From - b.From
		}
		return a.To - b.To
	})
	return plan
}

// fakeRunner notes what runs and asks script what comes of it.
type fakeRunner struct {
	script func(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) loom.TaskResult

	mu     sync.Mutex
	busy   map[loom.NodeID]int // task number that runs on the node
	runs   map[int]int         // successes by task number
	order  []int               // task numbers in the order of success
	begun  int
	faults []string
	most   int // tasks at once
	now    int
}

func newRunner(script func(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) loom.TaskResult) *fakeRunner {
	return &fakeRunner{script: script, busy: map[loom.NodeID]int{}, runs: map[int]int{}}
}

func (f *fakeRunner) Run(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) loom.TaskResult {
	f.mu.Lock()
	if other := f.busy[spec.Node]; other != 0 {
		f.faults = append(f.faults, fmt.Sprintf("tasks %d and %d ran on one node at once", other, spec.Ref.Number))
	}
	f.busy[spec.Node] = spec.Ref.Number
	f.begun++
	f.now++
	f.most = max(f.most, f.now)
	f.mu.Unlock()
	var r loom.TaskResult
	if f.script != nil {
		r = f.script(ctx, spec, sink)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now--
	delete(f.busy, spec.Node)
	if r.Status == 0 {
		f.runs[spec.Ref.Number]++
		f.order = append(f.order, spec.Ref.Number)
	}
	return r
}

func (f *fakeRunner) started() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begun
}

// quiet drops River's chatter.
func quiet() *slog.Logger {
	if os.Getenv("LOOM_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// process is a running process of the test with a pool of its own.
type process struct {
	kill context.CancelFunc
	done chan error
	db   *sqlx.DB
}

// times makes leases short, but not so short that a busy machine loses them.
var times = processes.Options{Lease: 4 * time.Second, RenewEvery: 100 * time.Millisecond, GiveUpAfter: 3200 * time.Millisecond}

func (w *world) common(conns int) (work.Common, *sqlx.DB) {
	w.t.Helper()
	db, err := store.Open(context.Background(), w.db.DSN, conns)
	if err != nil {
		w.t.Fatal(err)
	}
	return work.Common{DSN: w.db.DSN, Operations: execution.New(db, w.ring, execution.Options{Logger: quiet()}),
		Processes: processes.New(db, times), Version: "test", Logger: quiet(), Test: true}, db
}

func (w *world) run(db *sqlx.DB, run func(ctx context.Context) error) *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{kill: cancel, done: make(chan error, 1), db: db}
	go func() { p.done <- run(ctx) }()
	w.t.Cleanup(func() { p.stop(w.t) })
	return p
}

// stop ends the process and waits for it.
func (p *process) stop(t testing.TB) {
	t.Helper()
	p.kill()
	if p.done == nil {
		return
	}
	select {
	case err := <-p.done:
		if err != nil {
			t.Errorf("process: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("a process did not end")
	}
	p.done = nil
	p.db.Close()
}

func (w *world) provisioner(runner work.Runner, capacity int, change ...func(*work.Provisioner)) *process {
	w.t.Helper()
	common, db := w.common(6)
	p := &work.Provisioner{Common: common, Runner: runner, Capacity: capacity, DrainTimeout: -1,
		Sweep: 300 * time.Millisecond, Retry: 20 * time.Millisecond}
	for _, c := range change {
		c(p)
	}
	return w.run(db, p.Run)
}

func (w *world) scheduler() *process {
	w.t.Helper()
	common, db := w.common(6)
	s := &work.Scheduler{Common: common, ReapEvery: 50 * time.Millisecond, ReconcileEvery: 200 * time.Millisecond}
	if _, bench := w.t.(*testing.B); bench {
		s.ReapEvery, s.ReconcileEvery = 0, 0
	}
	return w.run(db, s.Run)
}

// eventually polls until ok, or fails with what.
func (w *world) eventually(within time.Duration, what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(within)
	for !ok() {
		if time.Now().After(deadline) {
			w.dump()
			w.t.Fatalf("not within %s: %s", within, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (w *world) dump() {
	var rows []string
	_ = w.db.Select(&rows, `SELECT 'op ' || number || ' ' || status || ' ' || message FROM operations
		UNION ALL SELECT 'tasks ' || t.status || ' river ' || coalesce(r.state::text, '-') || ' ' || count(*) FROM tasks t LEFT JOIN river_job r ON r.id = t.river_job_id WHERE NOT gate GROUP BY t.status, r.state
		UNION ALL SELECT 'process ' || id || ' ' || kind FROM processes
		UNION ALL SELECT 'assignment ' || tenant_id || ' ' || process_id || ' ' || workers FROM worker_assignments`)
	for _, r := range rows {
		w.t.Log(r)
	}
}

func (w *world) status(op loom.Operation) string {
	w.t.Helper()
	return w.text(`SELECT status FROM operations WHERE id = $1`, op.Row)
}

func (w *world) ends(op loom.Operation, within time.Duration, status loom.OperationStatus) {
	w.t.Helper()
	w.eventually(within, "operation "+string(status), func() bool { return loom.OperationStatus(w.status(op)).Final() })
	if got := w.status(op); got != string(status) {
		w.dump()
		w.t.Fatalf("the operation ended %s, want %s", got, status)
	}
}

// inOrder checks that each task ran once, after all it depends on.
func inOrder(t testing.TB, plan loom.Plan, f *fakeRunner) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range f.faults {
		t.Error(fault)
	}
	at := map[int]int{}
	for i, n := range f.order {
		at[n] = i + 1
	}
	for _, task := range plan.Tasks {
		if f.runs[task.Number] != 1 {
			t.Fatalf("task %d ran %d times", task.Number, f.runs[task.Number])
		}
	}
	before := map[int][]int{}
	for _, e := range plan.Edges {
		before[e.To] = append(before[e.To], e.From)
	}
	for v, from := range before {
		if v > len(plan.Tasks) {
			continue
		}
		for _, b := range from {
			sources := []int{b}
			if b > len(plan.Tasks) {
				sources = before[b]
			}
			for _, s := range sources {
				if at[s] >= at[v] {
					t.Fatalf("task %d ran before task %d, on which it depends", v, s)
				}
			}
		}
	}
}
