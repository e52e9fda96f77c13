package processes_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/processes"
	"loom/app/secret"
	"loom/app/store"
	"loom/app/testkit"
)

// asked is a tenant with a provider, and a provisioner of the test's own.
type asked struct {
	t    *testing.T
	ctx  context.Context
	db   *testkit.Database
	ring *secret.Ring
	*processes.Processes
	process loom.ProcessID
	admin   loom.Actor
	super   loom.Actor
}

const pin = "open-sesame-42"

func newAsked(t *testing.T) *asked {
	t.Helper()
	ring, err := secret.ParseKeys(secret.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	a := &asked{t: t, ctx: ctx, db: testkit.NewDatabase(t), ring: ring,
		admin: loom.Actor{Tenant: "t1", TenantName: "acme", User: "admin", Role: loom.RoleAdmin, Via: "session"},
		super: loom.Actor{Tenant: loom.SuperTenant, TenantName: "superadmin", User: "admin", Role: loom.RoleSuperadmin, Via: "session"}}
	a.Processes = processes.New(a.db.DB, processes.Options{Ring: ring, AskTimeout: 30 * time.Second, Lease: time.Hour})
	a.exec(`INSERT INTO tenants (id, name, resource_set) VALUES ('superadmin', 'superadmin', 0), ('t1', 'acme', 3), ('t2', 'other', 0)`)
	sealed, err := ring.Seal("t1", "provider:lab", "pin", loom.NewSecret(pin))
	if err != nil {
		t.Fatal(err)
	}
	a.must(store.Exec(ctx, a.db.DB, func(tx *sqlx.Tx) error {
		p := &loom.Provider{Base: loom.Base{Name: "lab", Version: 1}, Type: "lab", Fields: map[string]any{"region": "north"}, Sealed: []string{"pin"}}
		if _, err := store.InsertCatalogVersion(ctx, tx, "t1", loom.KindProvider, p, "admin"); err != nil {
			return err
		}
		return store.PutSecrets(ctx, tx, "t1", "provider:lab", "admin", map[string][]byte{"pin": sealed})
	}))
	a.process, err = a.Register(ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 1})
	a.must(err)
	return a
}

// Probe returns the answer alone.
func (a *asked) Probe(ctx context.Context, actor loom.Actor, provider string) (loom.Probe, error) {
	run, err := a.Processes.Probe(ctx, actor, provider)
	return run.Answer, err
}

// LastProbe returns the answer alone.
func (a *asked) LastProbe(ctx context.Context, actor loom.Actor, provider string) (loom.Probe, error) {
	run, err := a.Processes.LastProbe(ctx, actor, provider)
	return run.Answer, err
}

func (a *asked) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *asked) exec(query string, args ...any) {
	a.t.Helper()
	_, err := a.db.Exec(query, args...)
	a.must(err)
}

func (a *asked) count(query string, args ...any) int {
	a.t.Helper()
	var n int
	a.must(a.db.Get(&n, query, args...))
	return n
}

// requests returns the ids of the requests whose River jobs wait, oldest first, and
// takes the jobs away.
func (a *asked) requests() []int64 {
	a.t.Helper()
	var args []string
	// One statement: a job that comes in between must not go unseen.
	a.must(a.db.Select(&args, `WITH gone AS (DELETE FROM river_job WHERE kind = 'probe_provider' AND queue IN ('probe', 'sweep') AND state = 'available' RETURNING id, args)
		SELECT args::text FROM gone ORDER BY id`))
	var ids []int64
	for _, text := range args {
		var body map[string]int64
		if err := json.Unmarshal([]byte(text), &body); err != nil || len(body) != 1 {
			a.t.Fatalf("arguments %s: %v", text, err)
		}
		ids = append(ids, body["request_id"])
	}
	return ids
}

// serve works requests until the test or the returned stop ends, as a
// provisioner's River client would.
func (a *asked) serve(asker processes.Asker) (stop func()) {
	ctx, cancel := context.WithCancel(a.ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			var id int64
			err := a.db.GetContext(ctx, &id, `DELETE FROM river_job WHERE id = (SELECT id FROM river_job WHERE kind = 'probe_provider' ORDER BY id LIMIT 1)
				RETURNING (args->>'request_id')::bigint`)
			if err == nil {
				err = a.WorkRequest(ctx, a.process, id, asker)
			}
			if err != nil {
				select { // nothing to do, or the end
				case <-time.After(5 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		}
	})
	stop = func() { cancel(); done.Wait() }
	a.t.Cleanup(stop)
	return stop
}

// cloud is an asker with machines in memory.
type cloud struct {
	mu       sync.Mutex
	calls    []*loom.ProviderCall
	probe    loom.Probe
	machines []loom.TaggedMachine
	// regions, unless nil, has the machines instead, by the region that a call names.
	regions map[string][]loom.TaggedMachine
	blind   bool // cannot list
	err     error
	removed []string
	// alone are those of removed that were to go alone.
	alone []string
	// before is called before anything is answered.
	before func(ctx context.Context) error
}

func (c *cloud) take(ctx context.Context, call *loom.ProviderCall) error {
	if c.before != nil {
		if err := c.before(ctx); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
	return nil
}

func (c *cloud) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	return c.probe, c.take(ctx, call)
}

func (c *cloud) Machines(ctx context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, bool, error) {
	if err := c.take(ctx, call); err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	machines := c.machines
	if c.regions != nil {
		region, _ := call.Provider.Fields["region"].(string)
		machines = c.regions[region]
	}
	return append([]loom.TaggedMachine(nil), machines...), !c.blind, nil
}

func (c *cloud) Remove(_ context.Context, call *loom.ProviderCall, m loom.TaggedMachine, alone bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if region, _ := call.Provider.Fields["region"].(string); c.regions != nil {
		c.regions[region] = slices.DeleteFunc(c.regions[region], func(o loom.TaggedMachine) bool { return o.ID == m.ID })
	}
	if c.err != nil {
		return c.err
	}
	c.removed = append(c.removed, m.ID)
	if alone {
		c.alone = append(c.alone, m.ID)
	}
	return nil
}

func TestProbe(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	if _, err := a.LastProbe(a.ctx, a.admin, "lab"); !errors.Is(err, loom.NotFound) || !strings.Contains(loom.AsError(err).Message, "never probed") {
		t.Errorf("before the first: %v", err)
	}
	c := &cloud{probe: loom.Probe{OK: true, Checks: []loom.ProbeCheck{{Name: "root", OK: true, Message: "Yes."}},
		Flavors: []loom.ProbeFlavor{{ID: "s", Name: "Small", RAM: 512}}, Images: []loom.ProbeImage{{ID: "deb", Name: "Debian"}}}}
	a.serve(c)
	got, err := a.Probe(a.ctx, a.admin, "lab")
	a.must(err)
	if !got.OK || got.Time.IsZero() || len(got.Checks) != 1 || got.Flavors[0].RAM != 512 || got.Images[0].ID != "deb" {
		t.Errorf("probe: %+v", got)
	}
	call := c.calls[0]
	if call.Tenant != "t1" || call.ResourceSet != 3 || call.Provider.Fields["pin"] != pin || call.Provider.Fields["region"] != "north" || call.Sensitive[0] != pin {
		t.Errorf("call: %+v", call)
	}
	last, err := a.LastProbe(a.ctx, a.admin, "lab")
	if err != nil || !last.Time.Equal(got.Time) {
		t.Errorf("the last probe: %+v, %v", last, err)
	}
	c.mu.Lock()
	c.probe = loom.FailedProbe("root", "No.")
	c.mu.Unlock()
	if got, err = a.Probe(a.ctx, a.admin, "lab"); err != nil || got.OK || got.Checks[0].Message != "No." {
		t.Errorf("a provider that does not work: %+v, %v", got, err)
	}
	if n := a.count(`SELECT count(*) FROM provider_requests`); n != 1 {
		t.Errorf("%d probes are kept, not the newest alone", n)
	}
	if n := a.count(`SELECT count(*) FROM audit WHERE tenant_id = 't1' AND actor = 'admin' AND verb = 'probe' AND kind = 'provider' AND object = 'lab'`); n != 2 {
		t.Errorf("%d audit entries", n)
	}
	if n := a.count(`SELECT count(*) FROM events WHERE tenant_id = 't1' AND topic = 'tenant'`); n != 2 {
		t.Errorf("%d events", n)
	}
	var rows string
	a.must(a.db.Get(&rows, `SELECT (SELECT string_agg(r::text, ' ') FROM provider_requests r) || (SELECT coalesce(string_agg(a::text, ' '), '') FROM audit a)`))
	if strings.Contains(rows, pin) {
		t.Errorf("the secret is stored: %s", rows)
	}
}

func TestWhoMayProbe(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	user, reader, other := a.admin, a.admin, a.admin
	user.Role, reader.Scopes, other.Tenant = loom.RoleUser, []loom.Scope{loom.ScopeRead}, "t2"
	for name, c := range map[string]struct {
		actor    loom.Actor
		provider string
		probe    loom.Kind
		last     loom.Kind
	}{
		"a user":            {user, "lab", loom.Forbidden, loom.Forbidden},
		"a token to read":   {reader, "lab", loom.Forbidden, loom.NotFound},
		"another tenant":    {other, "lab", loom.NotFound, loom.NotFound},
		"no such provider":  {a.admin, "moon", loom.NotFound, loom.NotFound},
		"no name of a text": {a.admin, "a\x00b", loom.Invalid, loom.Invalid},
	} {
		if _, err := a.Probe(a.ctx, c.actor, c.provider); !errors.Is(err, c.probe) {
			t.Errorf("%s probes: %v", name, err)
		}
		if _, err := a.LastProbe(a.ctx, c.actor, c.provider); !errors.Is(err, c.last) {
			t.Errorf("%s reads: %v", name, err)
		}
	}
	if _, err := a.Orphans(a.ctx, a.admin); !errors.Is(err, loom.Forbidden) {
		t.Errorf("orphans for a tenant's administrator: %v", err)
	}
	if err := a.RemoveOrphan(a.ctx, a.admin, 1); !errors.Is(err, loom.Forbidden) {
		t.Errorf("removal by a tenant's administrator: %v", err)
	}
	if n := a.count(`SELECT count(*) FROM provider_requests`); n != 0 {
		t.Errorf("%d requests came of refusals", n)
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	short := processes.New(a.db.DB, processes.Options{Ring: a.ring, AskTimeout: 50 * time.Millisecond})
	_, err := short.Probe(a.ctx, a.admin, "lab")
	if e := loom.AsError(err); e.Kind != loom.Unavailable || !strings.Contains(e.Message, "loom provisioner") || e.RetryAfter == 0 {
		t.Errorf("without a provisioner: %v", err)
	}
	if n := a.count(`SELECT count(*) FROM provider_requests`); n != 0 {
		t.Errorf("%d requests wait for nobody", n)
	}
	for _, id := range a.requests() { // its River job finds nothing to do
		a.must(a.WorkRequest(a.ctx, a.process, id, &cloud{}))
	}
	// One that is being worked goes on.
	began, go_on := make(chan struct{}), make(chan struct{})
	stop := a.serve(&cloud{probe: loom.Probe{OK: true}, before: func(context.Context) error {
		close(began)
		<-go_on
		return nil
	}})
	patient := make(chan error, 1)
	go func() { _, err := a.Probe(a.ctx, a.admin, "lab"); patient <- err }()
	<-began
	ctx, cancel := context.WithCancelCause(a.ctx)
	gone := errors.New("the client is gone")
	cancel(gone)
	if _, err := a.Probe(ctx, a.admin, "lab"); err == nil {
		t.Error("a request that is over was answered")
	}
	id := a.count(`SELECT id FROM provider_requests WHERE started_at IS NOT NULL`)
	_, err = short.Probe(a.ctx, a.admin, "lab") // a second one waits behind
	if e := loom.AsError(err); e.Kind != loom.Unavailable {
		t.Errorf("behind a slow one: %v", err)
	}
	if a.count(`SELECT count(*) FROM provider_requests WHERE id = $1`, id) != 1 {
		t.Error("the one that is worked on was dropped")
	}
	close(go_on)
	a.must(<-patient)
	stop()
}

func TestRequestsGoToWhoMayHaveThem(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	ask := func() int64 {
		t.Helper()
		short := processes.New(a.db.DB, processes.Options{AskTimeout: time.Hour})
		ctx, cancel := context.WithCancel(a.ctx)
		over := make(chan struct{})
		go func() { defer close(over); _, _ = short.Probe(ctx, a.admin, "lab") }()
		defer func() { cancel(); <-over }()
		for {
			if ids := a.requests(); len(ids) > 0 {
				return ids[0]
			}
			if a.ctx.Err() != nil {
				t.Fatal("no request came")
			}
		}
	}
	id := ask()
	foreign, err := a.Register(a.ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 1, OnlyTenant: "other"})
	a.must(err)
	if err := a.WorkRequest(a.ctx, foreign, id, &cloud{}); !errors.Is(err, processes.ErrNotForUs) {
		t.Errorf("a provisioner of another tenant: %v", err)
	}
	if err := a.WorkRequest(a.ctx, "gone-00000000", id, &cloud{}); !errors.Is(err, processes.ErrNotForUs) {
		t.Errorf("a process without a lease: %v", err)
	}
	// A process that is told to end gives it back.
	ctx, cancel := context.WithCancelCause(a.ctx)
	ends := errors.New("the process ends")
	err = a.WorkRequest(ctx, a.process, id, &cloud{before: func(context.Context) error { cancel(ends); return ends }})
	if !errors.Is(err, ends) || a.count(`SELECT count(*) FROM provider_requests WHERE started_at IS NULL AND process_id = '' AND ended_at IS NULL`) != 1 {
		t.Errorf("it was not given back: %v", err)
	}
	// A late answer of a process that lost it does not count.
	own, err := a.Register(a.ctx, processes.NewProcess{Kind: loom.ProcessProvisioner, Capacity: 1, OnlyTenant: "acme"})
	a.must(err)
	a.must(a.WorkRequest(a.ctx, a.process, id, &cloud{probe: loom.FailedProbe("late", "Late."), before: func(context.Context) error {
		return a.WorkRequest(a.ctx, own, id, &cloud{probe: loom.Probe{OK: true}})
	}}))
	if last, err := a.LastProbe(a.ctx, a.admin, "lab"); err != nil || !last.OK {
		t.Errorf("the late answer counts: %+v, %v", last, err)
	}
	// A sealed field that does not open is the answer.
	a.exec(`UPDATE secrets SET sealed = 'nonsense'`)
	id = ask()
	c := &cloud{}
	a.must(a.WorkRequest(a.ctx, a.process, id, c))
	if last, err := a.LastProbe(a.ctx, a.admin, "lab"); err != nil || last.OK || !strings.Contains(last.Checks[0].Message, "pin") || len(c.calls) != 0 {
		t.Errorf("with a damaged secret: %+v, %v", last, err)
	}
}
