package work_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/store"
	"loom/jobs/work"
	"loom/provisioner"
	"loom/provisioner/automator"
	"loom/provisioner/provider"
	"loom/provisioner/provider/mock"
)

// asking makes a runner with a mock provider, what a provisioner needs to use it,
// and the use cases of whoever asks.
func (w *world) asking() (*provisioner.Runner, func(*work.Provisioner), *processes.Processes) {
	w.t.Helper()
	providers, err := provider.NewRegistry(mock.New())
	if err != nil {
		w.t.Fatal(err)
	}
	automators, err := automator.NewRegistry()
	if err != nil {
		w.t.Fatal(err)
	}
	runner := &provisioner.Runner{Providers: providers, Automators: automators, Log: quiet()}
	return runner, func(p *work.Provisioner) {
		opts := times
		opts.Ring = w.ring
		// On the pool of the process: one of the test's would outlive it.
		common, db := w.common(3)
		w.t.Cleanup(func() { db.Close() })
		common.Processes = processes.New(db, opts)
		common.Asker = runner
		p.Common = common
	}, processes.New(w.db.DB, processes.Options{AskTimeout: time.Minute})
}

// provider stores a provider of the type mock with fields, pin sealed.
func (w *world) provider(name string, fields map[string]any) {
	w.t.Helper()
	ctx := context.Background()
	sealed, err := w.ring.Seal(w.tenant, store.ProviderSecrets(name), "pin", loom.NewSecret("open-sesame"))
	if err != nil {
		w.t.Fatal(err)
	}
	err = store.Exec(ctx, w.db.DB, func(tx *sqlx.Tx) error {
		p := &loom.Provider{Base: loom.Base{Name: name, Version: 1}, Type: "mock", Fields: fields}
		if _, err := store.InsertCatalogVersion(ctx, tx, w.tenant, loom.KindProvider, p, "admin"); err != nil {
			return err
		}
		return store.PutSecrets(ctx, tx, w.tenant, store.ProviderSecrets(name), "admin", map[string][]byte{"pin": sealed})
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestProbeOfAProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.provider("p", map[string]any{"addresses": "10.9.0.0/24"})
	w.provider("broken", map[string]any{"addresses": "open-sesame", "delay_ms": 1})
	runner, configure, asks := w.asking()
	w.scheduler()
	w.provisioner(runner, 1, configure)
	w.registered()
	admin := loom.Actor{Tenant: w.tenant, User: "admin", Role: loom.RoleAdmin, Via: "session"}
	run, err := asks.Probe(t.Context(), admin, "p")
	got := run.Answer
	if err != nil || !got.OK || len(got.Flavors) != 3 || len(got.Images) != 1 || len(got.Checks) != 2 {
		t.Errorf("probe: %+v, %v", got, err)
	}
	run, err = asks.Probe(t.Context(), admin, "broken")
	got = run.Answer
	if err != nil || got.OK || !strings.Contains(got.Checks[1].Message, "addresses is \"[redacted]\"") {
		t.Errorf("probe of a provider whose fields are wrong: %+v, %v", got, err)
	}
	if n := w.count(`SELECT count(*) FROM river_job WHERE kind = 'probe_provider' AND (args::text LIKE '%sesame%' OR args - 'request_id' <> '{}')`); n != 0 {
		t.Error("a River job names more than its request")
	}
	w.eventually(10*time.Second, "River jobs to be completed", func() bool {
		return w.count(`SELECT count(*) FROM river_job WHERE kind = 'probe_provider' AND state <> 'completed'`) == 0
	})
}

// registered waits until a provisioner is there that can be asked.
func (w *world) registered() {
	w.t.Helper()
	w.eventually(10*time.Second, "a provisioner", func() bool {
		return w.count(`SELECT count(*) FROM processes WHERE kind = 'provisioner' AND expires_at > now()`) > 0
	})
}

// TestOrphansAreFoundAndRemoved: the duty of the scheduler asks for the sweeps.
func TestOrphansAreFoundAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`INSERT INTO tenants (id, name) VALUES ('superadmin', 'superadmin')`)
	w.provider("p", nil)
	runner, configure, asks := w.asking()
	cluster, nodes := w.cluster(w.tenant, 3)
	w.exec(`UPDATE clusters SET status = 'active'`)
	for _, n := range nodes { // as CREATE tasks would have
		r := runner.Run(t.Context(), &loom.TaskSpec{Action: loom.ActionCreate, Node: n, Tenant: w.tenant, Hostname: "h", Attempt: 1,
			Ref: loom.TaskRef{Operation: loom.OperationRef{Cluster: cluster}}, IdempotencyKey: loom.IdempotencyKey(n, 1),
			Provider: loom.Provider{Type: "mock"}}, dropped{})
		if r.Status != 0 {
			t.Fatalf("create: %+v", r)
		}
	}
	// The DELETE of one reported success, and its machine is still there.
	w.exec(`UPDATE nodes SET state = 'deleted', incarnation = 2 WHERE id = $1`, nodes[1])
	super := loom.Actor{Tenant: loom.SuperTenant, User: "admin", Role: loom.RoleSuperadmin, Via: "session"}
	w.provisioner(runner, 1, configure)
	w.scheduler()
	var orphans []loom.Orphan
	w.eventually(30*time.Second, "the sweep of the scheduler", func() bool {
		var err error
		orphans, err = asks.Orphans(t.Context(), super)
		return err != nil || len(orphans) > 0
	})
	if len(orphans) != 1 || orphans[0].Node != nodes[1] || orphans[0].Machine != "mock-"+string(nodes[1]) {
		t.Fatalf("orphans: %+v", orphans)
	}
	if err := asks.RemoveOrphan(t.Context(), super, orphans[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := asks.RemoveOrphan(t.Context(), super, orphans[0].ID); !errors.Is(err, loom.NotFound) {
		t.Errorf("again: %v", err)
	}
	left, _, err := runner.Machines(t.Context(), &loom.ProviderCall{Tenant: w.tenant, Provider: loom.Provider{Type: "mock"}})
	if err != nil || len(left) != 2 {
		t.Errorf("machines that are left: %+v, %v", left, err)
	}
}

// TestAProcessThatEndsGivesRequestsBack: a slow provider does not hold it up, and
// another process asks it again.
func TestAProcessThatEndsGivesRequestsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.provider("p", map[string]any{"delay_ms": 600_000})
	runner, configure, asks := w.asking()
	first := w.provisioner(runner, 1, configure, func(p *work.Provisioner) { p.DrainTimeout = time.Hour })
	w.registered()
	admin := loom.Actor{Tenant: w.tenant, User: "admin", Role: loom.RoleAdmin, Via: "session"}
	answered := make(chan error, 1)
	go func() { _, err := asks.Probe(context.WithoutCancel(t.Context()), admin, "p"); answered <- err }()
	w.eventually(20*time.Second, "the probe to begin", func() bool {
		return w.count(`SELECT count(*) FROM provider_requests WHERE started_at IS NOT NULL`) == 1
	})
	first.stop(t)
	if n := w.count(`SELECT count(*) FROM provider_requests WHERE started_at IS NULL AND ended_at IS NULL`); n != 1 {
		t.Fatal("the request was not given back")
	}
	w.exec(`UPDATE catalog_versions SET body = body || '{"provisioner": {}}' WHERE kind = 'providers'`)
	w.scheduler() // what rests becomes available by River's leader
	w.provisioner(runner, 1, configure)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// dropped is a sink for what nobody wants to know.
type dropped struct{}

func (dropped) Log(string, string) {}

func (dropped) Fact(map[string]any) error { return nil }
