package processes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"loom/app/loom"
	"loom/app/processes"
)

// node makes a cluster of one node, whose machine is what a provider would list.
func (a *asked) node(tenant loom.TenantID, cluster int, status, state string) loom.TaggedMachine {
	a.t.Helper()
	id := loom.NodeID(fmt.Sprintf("0c1d0000-0000-4000-8000-%012d", cluster))
	name := fmt.Sprintf("web%d-1000.lab", cluster)
	a.exec(`INSERT INTO clusters (id, tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		VALUES ($1, $2, 'ana', 'web', $3, 't', 1, '{}', 'lab', '{}', '{}')`, cluster, tenant, status)
	a.exec(`INSERT INTO nodes (id, cluster_id, tenant_id, number, state, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators, results)
		VALUES ($1, $2, $3, 1000, $4, $5, 'h', 'i', 'f', 'm', 'root', '{}', '{}', jsonb_build_object('providerid', $6::text))`, id, cluster, tenant, state, name, fmt.Sprint("m", cluster))
	return loom.TaggedMachine{ID: fmt.Sprint("m", cluster), Name: name, Node: id, Key: loom.IdempotencyKey(id, 1), Cluster: loom.ClusterID(cluster).String(), Tenant: tenant}
}

// operation returns a cluster an operation.
func (a *asked) operation(cluster int, status string, ended any) {
	a.t.Helper()
	a.exec(`INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by, ended_at)
		SELECT tenant_id, id, 1 + latest_operation, 'cluster_create', $2, 'ana', now() + $3::interval FROM clusters WHERE id = $1`, cluster, status, ended)
	a.exec(`UPDATE clusters SET latest_operation = latest_operation + 1 WHERE id = $1`, cluster)
}

// sweep asks for sweeps and works them.
func (a *asked) sweep(c *cloud) error {
	a.t.Helper()
	a.must(a.RequestSweeps(a.ctx))
	var errs []error
	for _, id := range a.requests() {
		errs = append(errs, a.WorkRequest(a.ctx, a.process, id, c))
	}
	return errors.Join(errs...)
}

// listed returns the machines of the list of orphans.
func (a *asked) listed() string {
	a.t.Helper()
	orphans, err := a.Orphans(a.ctx, a.super)
	a.must(err)
	var machines []string
	for _, o := range orphans {
		machines = append(machines, o.Machine)
	}
	slices.Sort(machines)
	return strings.Join(machines, " ")
}

func TestSweepFindsWhatNobodyClaims(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	live := a.node("t1", 1, "active", "ready")
	dead := a.node("t1", 2, "terminated", "deleted")
	a.operation(2, "complete", "-1 h")
	making := a.node("t1", 3, "pending", "creating")
	a.operation(3, "running", nil)
	a.exec(`UPDATE nodes SET results = '{}' WHERE cluster_id = 3`) // its id is not heard of yet
	shrunk := a.node("t1", 4, "active", "deleted")
	foreignTenant := a.node("t2", 5, "terminated", "deleted")
	just := a.node("t1", 6, "terminated", "deleted")
	a.operation(6, "complete", "1 h") // ends while the list is made
	failed := a.node("t1", 7, "incomplete", "failed")
	a.operation(7, "failed", "-1 h")
	a.exec(`UPDATE nodes SET results = '{}' WHERE cluster_id = 7`)
	old := live
	old.ID, old.Key = "m1-old", loom.IdempotencyKey(live.Node, 0)
	elsewhere := dead
	elsewhere.ID, elsewhere.Node = "m-elsewhere", "ffffffff-0000-4000-8000-000000000000"
	garbage := loom.TaggedMachine{ID: "m-garbage", Node: "'; --", Cluster: "x", Tenant: "t1"}
	dead.Node = loom.NodeID(strings.ToUpper(string(dead.Node)))

	c := &cloud{machines: []loom.TaggedMachine{live, dead, making, shrunk, foreignTenant, just, failed, old, elsewhere, garbage}}
	a.must(a.sweep(c))
	if got := a.listed(); got != "m1-old m2 m4" {
		t.Errorf("orphans: %q", got)
	}
	orphans, err := a.Orphans(a.ctx, a.super)
	a.must(err)
	i := slices.IndexFunc(orphans, func(o loom.Orphan) bool { return o.Machine == "m2" })
	first := orphans[i]
	if first.Tenant != "t1" || first.TenantName != "acme" || first.Provider != "lab" || first.Cluster != 2 || first.Name != "web2-1000.lab" || first.FirstSeen.IsZero() {
		t.Errorf("orphan: %+v", first)
	}
	if n := a.count(`SELECT count(*) FROM events WHERE tenant_id = 'superadmin' AND topic = 'system' AND ids = '{orphans}'`); n != 1 {
		t.Errorf("%d events", n)
	}
	// What is still there keeps its time; what is gone or claimed vanishes; while an
	// operation runs nothing is said of what was known.
	a.exec(`UPDATE nodes SET state = 'ready' WHERE cluster_id = 4`)
	a.operation(1, "running", nil)
	c.machines = []loom.TaggedMachine{live, dead, shrunk, old}
	a.must(a.sweep(c))
	if got := a.listed(); got != "m1-old m2" {
		t.Errorf("orphans of the second sweep: %q", got)
	}
	c.machines = []loom.TaggedMachine{live, dead}
	a.must(a.sweep(c))
	orphans, err = a.Orphans(a.ctx, a.super)
	if err != nil || len(orphans) != 1 || !orphans[0].FirstSeen.Equal(first.FirstSeen) || orphans[0].ID != first.ID {
		t.Errorf("orphans of the third sweep: %+v, %v", orphans, err)
	}
	// A list that cannot be had, or is not for this plugin, proves nothing.
	c.before = func(context.Context) error { return loom.NewError(loom.Unavailable, "The cloud is closed.") }
	if err := a.sweep(c); !errors.Is(err, processes.ErrRecorded) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a list that fails: %v", err)
	}
	c.before, c.blind, c.machines = nil, true, nil
	a.must(a.sweep(c))
	if got := a.listed(); got != "m2" {
		t.Errorf("orphans after lists that failed: %q", got)
	}
	c.blind = false
	a.must(a.sweep(c))
	if got := a.listed(); got != "" {
		t.Errorf("orphans of an empty cloud: %q", got)
	}
}

// TestSweepRecordsWhatMachinesAre: the first list that says what a machine is stays beside the
// newest one, unless the list is not believed.
func TestSweepRecordsWhatMachinesAre(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	c := &cloud{}
	for i := range 3 {
		m := a.node("t1", i+1, "active", "ready")
		m.State, m.Flavor = loom.StateRunning, "small"
		c.machines = append(c.machines, m)
	}
	a.exec(`INSERT INTO node_health (node_id, tenant_id, cluster_id, incarnation, operation, status) SELECT id, tenant_id, cluster_id, 1, 0, 'healthy' FROM nodes`)
	expect := func(what, want string) {
		t.Helper()
		var got string
		a.must(a.db.Get(&got, `SELECT string_agg(coalesce(machine->'first'->>'size' || '-' || (machine->'last'->>'size'), 'none'), ' ' ORDER BY cluster_id) FROM node_health`))
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	expect("before a list", "none none none")
	c.machines[2].State = loom.StateStopped
	a.must(a.sweep(c))
	expect("one is stopped", "small-small small-small none")
	c.machines[0].Flavor, c.machines[2].State, c.machines[2].Flavor = "large", loom.StateRunning, "medium"
	a.must(a.sweep(c))
	expect("one is larger", "small-large small-small medium-medium")
	c.machines[1].Flavor = "huge"
	c.machines[0].State, c.machines[2].State = loom.StateStopped, loom.StateStopped
	a.must(a.sweep(c))
	expect("too many are stopped", "small-large small-small medium-medium")
}

// TestSecondMachineOfALivingNode: it is listed while the cluster lives, and removing it
// leaves the node's own.
func TestSecondMachineOfALivingNode(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	own := a.node("t1", 1, "active", "ready")
	a.operation(1, "complete", "-1 h")
	double := own
	double.ID = "m1-double"
	// An answer was lost, and the operation still looks for the machine that it made.
	making := a.node("t1", 2, "pending", "creating")
	a.operation(2, "running", nil)
	a.exec(`UPDATE nodes SET results = '{}' WHERE cluster_id = 2`)
	made := making
	made.ID = "m2-double"
	// The operation failed after it had heard of one: a retry may take the other.
	failed := a.node("t1", 3, "incomplete", "failed")
	a.operation(3, "failed", "-1 h")
	other := failed
	other.ID = "m3-double"
	c := &cloud{machines: []loom.TaggedMachine{own, double, making, made, failed, other}}
	a.must(a.sweep(c))
	orphans, err := a.Orphans(a.ctx, a.super)
	if err != nil || len(orphans) != 1 || orphans[0].Machine != "m1-double" || orphans[0].Own != "m1" {
		t.Fatalf("orphans: %+v, %v", orphans, err)
	}
	a.serve(c)
	remove := func() error { return a.RemoveOrphan(a.ctx, a.super, orphans[0].ID) }
	set := func(machines ...loom.TaggedMachine) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.machines = machines
	}
	a.operation(1, "running", nil)
	if err := remove(); !errors.Is(err, loom.Conflict) || !strings.Contains(err.Error(), "operation") {
		t.Errorf("while an operation runs: %v", err)
	}
	a.exec(`UPDATE operations SET status = 'complete', ended_at = now() - interval '1 s' WHERE cluster_id = 1`)
	set(double)
	if err := remove(); !errors.Is(err, loom.Conflict) {
		t.Errorf("while the node's own machine is not listed: %v", err)
	}
	a.exec(`UPDATE nodes SET results = '{"providerid": "m1-double"}' WHERE cluster_id = 1`)
	set(own, double)
	if err := remove(); !errors.Is(err, loom.Conflict) {
		t.Errorf("of the machine that the node has by now: %v", err)
	}
	if len(c.removed) != 0 {
		t.Fatalf("removed: %v", c.removed)
	}
	a.exec(`UPDATE nodes SET results = '{"providerid": "m1"}' WHERE cluster_id = 1`)
	a.must(remove())
	if !slices.Equal(c.removed, []string{"m1-double"}) || !slices.Equal(c.alone, c.removed) {
		t.Errorf("removed %v, alone %v", c.removed, c.alone)
	}
}

func TestWhatIsSwept(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	targets := func() int { t.Helper(); a.must(a.RequestSweeps(a.ctx)); return len(a.requests()) }
	end := func() { a.exec(`UPDATE provider_requests SET ended_at = now()`) }
	if n := targets(); n != 0 {
		t.Errorf("%d sweeps without clusters", n)
	}
	a.node("t1", 1, "active", "ready")
	a.node("t1", 2, "terminated", "deleted")
	a.node("t2", 3, "terminated", "deleted")
	a.operation(3, "complete", "-30 days")
	if n := targets(); n != 1 {
		t.Errorf("%d sweeps, want that of t1", n)
	}
	if n := targets(); n != 0 {
		t.Errorf("%d sweeps beside the one that waits", n)
	}
	end()
	a.exec(`UPDATE clusters SET status = 'terminated'`)
	if n := targets(); n != 0 {
		t.Errorf("%d sweeps of what ended long ago", n)
	}
	a.operation(2, "complete", "-1 h")
	if n := targets(); n != 1 {
		t.Errorf("%d sweeps of what ended lately", n)
	}
	// One that nobody took for a day is given up for a new one.
	a.exec(`UPDATE provider_requests SET ended_at = NULL, created_at = now() - interval '2 days'`)
	if n := targets(); n != 1 {
		t.Errorf("%d sweeps after one that was lost", n)
	}
	end()
	a.exec(`DELETE FROM operations`)
	a.exec(`INSERT INTO orphans (tenant_id, provider_name, machine_id, cluster_id, node_id) VALUES ('t2', 'lab', 'm', 3, gen_random_uuid())`)
	if n := targets(); n != 1 {
		t.Errorf("%d sweeps of what has orphans", n)
	}
}

// TestLookNow: one look at a provider at a time, audited, with its progress.
func TestLookNow(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	ana := a.admin
	ana.Role = loom.RoleUser
	for _, err := range []error{a.BeginSweep(a.ctx, ana, "lab"), ignore(a.BeginSweeps(a.ctx, a.admin)), ignore(a.Sweeps(a.ctx, a.admin))} {
		if !errors.Is(err, loom.Forbidden) {
			t.Errorf("without the right to: %v", err)
		}
	}
	if err := a.BeginSweep(a.ctx, a.admin, "moon"); !errors.Is(err, loom.NotFound) {
		t.Errorf("at no provider: %v", err)
	}
	if _, err := a.BeginSweeps(a.ctx, a.super); !errors.Is(err, loom.Conflict) || !strings.Contains(err.Error(), "no clusters") {
		t.Errorf("where nothing is: %v", err)
	}
	left := a.node("t1", 1, "terminated", "deleted")
	a.operation(1, "complete", "-1 h")
	sweep, _, err := a.Sweep(a.ctx, a.admin, "lab")
	if err != nil || sweep.Asked != nil || sweep.Last != nil {
		t.Errorf("before the first look: %+v, %v", sweep, err)
	}
	var pressed atomic.Int32
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := a.BeginSweep(a.ctx, a.admin, "lab"); err == nil {
				pressed.Add(1)
			} else if !errors.Is(err, loom.Conflict) || !strings.Contains(err.Error(), "under way") {
				t.Errorf("a press: %v", err)
			}
		})
	}
	wg.Wait()
	if _, err := a.BeginSweeps(a.ctx, a.super); !errors.Is(err, loom.Conflict) || !strings.Contains(err.Error(), "under way") {
		t.Errorf("all, while it runs: %v", err)
	}
	a.must(a.RequestSweeps(a.ctx)) // the duty asks for no second one
	waiting := a.requests()
	if pressed.Load() != 1 || len(waiting) != 1 {
		t.Fatalf("%d presses began one, %d wait", pressed.Load(), len(waiting))
	}
	c := &cloud{machines: []loom.TaggedMachine{left}}
	c.before = func(context.Context) error {
		if sweep, _, err := a.Sweep(a.ctx, a.admin, "lab"); err != nil || sweep.Asked == nil || !sweep.Started {
			t.Errorf("while it runs: %+v, %v", sweep, err)
		}
		return nil
	}
	a.must(a.WorkRequest(a.ctx, a.process, waiting[0], c))
	sweep, found, err := a.Sweep(a.ctx, a.admin, "lab")
	if err != nil || sweep.Asked != nil || sweep.Last == nil || sweep.Found != 1 || sweep.Failure != "" || len(found) != 1 || found[0].Machine != "m1" {
		t.Errorf("afterwards: %+v, %+v, %v", sweep, found, err)
	}
	// A look that fails says so; the last one is kept for its age.
	n, err := a.BeginSweeps(a.ctx, a.super)
	if err != nil || n != 1 {
		t.Errorf("all: %d, %v", n, err)
	}
	c.before, c.blind = nil, true
	a.must(a.WorkRequest(a.ctx, a.process, a.requests()[0], c))
	a.exec(`UPDATE provider_requests SET created_at = now() - interval '3 days', ended_at = now() - interval '3 days'`)
	a.must(a.RequestSweeps(a.ctx))
	all, err := a.Sweeps(a.ctx, a.super)
	if err != nil || len(all) != 1 || all[0].Last == nil || !strings.Contains(all[0].Failure, "cannot be listed") || all[0].Found != 1 || all[0].TenantName != "acme" {
		t.Errorf("sweeps: %+v, %v", all, err)
	}
	for query, want := range map[string]int{
		`SELECT count(*) FROM audit WHERE tenant_id = 't1' AND verb = 'sweep' AND kind = 'provider' AND object = 'lab' AND result = 'ok'`: 1,
		`SELECT count(*) FROM audit WHERE tenant_id = 'superadmin' AND verb = 'sweep' AND object = 'all'`:                                 1,
		`SELECT count(*) FROM provider_requests WHERE purpose = 'sweep' AND ended_at IS NOT NULL`:                                         1,
	} {
		if n := a.count(query); n != want {
			t.Errorf("%d, want %d: %s", n, want, query)
		}
	}
}

func ignore[T any](_ T, err error) error { return err }

func TestRemoveOrphan(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	var machines []loom.TaggedMachine
	for i := range 5 {
		machines = append(machines, a.node("t1", i+1, "terminated", "deleted"))
		a.operation(i+1, "complete", "-1 h")
	}
	c := &cloud{machines: machines}
	a.must(a.sweep(c))
	ids := map[string]int64{}
	orphans, err := a.Orphans(a.ctx, a.super)
	a.must(err)
	for _, o := range orphans {
		ids[o.Machine] = o.ID
	}
	if len(ids) != 5 {
		t.Fatalf("orphans: %+v", orphans)
	}
	a.serve(c)
	a.must(a.RemoveOrphan(a.ctx, a.super, ids["m1"]))
	if err := a.RemoveOrphan(a.ctx, a.super, ids["m1"]); !errors.Is(err, loom.NotFound) {
		t.Errorf("again: %v", err)
	}
	// A node took it up meanwhile, however that came to be.
	a.exec(`UPDATE clusters SET status = 'active' WHERE id IN (2, 3)`)
	a.exec(`UPDATE nodes SET state = 'ready' WHERE cluster_id IN (2, 3)`)
	a.operation(3, "running", nil)
	for machine, word := range map[string]string{"m2": "live node", "m3": "operation"} {
		if err := a.RemoveOrphan(a.ctx, a.super, ids[machine]); !errors.Is(err, loom.Conflict) || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", machine, err)
		}
	}
	// The provider refuses.
	c.mu.Lock()
	c.err = loom.NewError(loom.Unavailable, "The cloud is closed.")
	c.mu.Unlock()
	if err := a.RemoveOrphan(a.ctx, a.super, ids["m4"]); !errors.Is(err, loom.Unavailable) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a provider that refuses: %v", err)
	}
	if got := a.listed(); got != "m2 m3 m4 m5" {
		t.Errorf("orphans: %q", got)
	}
	// A static host that does not answer may be anybody's, and is not gone.
	c.mu.Lock()
	c.err, c.machines = nil, append([]loom.TaggedMachine{{ID: "m4"}}, machines[:3]...)
	c.mu.Unlock()
	if err := a.RemoveOrphan(a.ctx, a.super, ids["m4"]); !errors.Is(err, loom.Unavailable) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a machine that does not answer: %v", err)
	}
	if got := a.listed(); got != "m2 m3 m4 m5" {
		t.Errorf("orphans while one does not answer: %q", got)
	}
	// It is gone at the provider already.
	c.mu.Lock()
	c.err, c.machines = nil, machines[:4]
	c.mu.Unlock()
	a.must(a.RemoveOrphan(a.ctx, a.super, ids["m5"]))
	a.must(a.RemoveOrphan(a.ctx, a.super, ids["m4"]))
	if got := strings.Join(c.removed, " "); got != "m1 m4" {
		t.Errorf("removed: %s", got)
	}
	for query, want := range map[string]int{
		`SELECT count(*) FROM audit WHERE tenant_id = 'superadmin' AND actor = 'admin' AND verb = 'delete' AND kind = 'orphan'`:                      7,
		`SELECT count(*) FROM audit WHERE tenant_id = 'superadmin' AND actor = 'system' AND verb = 'remove' AND object = 'lab/m1' AND result = 'ok'`: 1,
		`SELECT count(*) FROM audit WHERE tenant_id = 'superadmin' AND verb = 'remove' AND result = 'failed'`:                                        4,
	} {
		if n := a.count(query); n != want {
			t.Errorf("%d, want %d: %s", n, want, query)
		}
	}
	if err := a.RemoveOrphan(a.ctx, a.super, 99999); !errors.Is(err, loom.NotFound) {
		t.Errorf("one that never was: %v", err)
	}
	// Requests that are done are not kept forever.
	a.exec(`UPDATE provider_requests SET created_at = now() - interval '2 days'`)
	a.must(a.RequestSweeps(a.ctx))
	if n := a.count(`SELECT count(*) FROM provider_requests WHERE purpose = 'remove'`); n != 0 {
		t.Errorf("%d old requests are kept", n)
	}
}
