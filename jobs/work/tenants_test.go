package work_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"loom/app/loom"
	"loom/jobs/work"
)

// gated runs tasks that end when the test lets one of their tenant go.
type gated struct {
	*fakeRunner
	gates map[loom.TenantID]chan struct{}
}

func newGated(tenants ...loom.TenantID) *gated {
	g := &gated{gates: map[loom.TenantID]chan struct{}{}}
	for _, t := range tenants {
		g.gates[t] = make(chan struct{})
	}
	g.fakeRunner = newRunner(func(ctx context.Context, spec *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		select {
		case <-g.gates[spec.Tenant]:
			return loom.TaskResult{}
		case <-ctx.Done():
			return loom.TaskResult{Status: -1, Message: "interrupted", Interrupted: true}
		}
	})
	return g
}

// let ends n running tasks of a tenant, each as soon as there is one.
func (g *gated) let(t testing.TB, tenant loom.TenantID, n int) {
	t.Helper()
	for i := range n {
		select {
		case g.gates[tenant] <- struct{}{}:
		case <-time.After(20 * time.Second):
			t.Fatalf("only %d of %d tasks of %s ran", i, n, tenant)
		}
	}
}

// running says how many tasks of a tenant run, by process.
func (w *world) running(tenant loom.TenantID) map[string]int {
	w.t.Helper()
	var rows []struct {
		Process string `db:"process_id"`
		N       int    `db:"n"`
	}
	if err := w.db.Select(&rows, `SELECT process_id, count(*) AS n FROM tasks WHERE status = 'running' AND tenant_id = $1 GROUP BY process_id`, tenant); err != nil {
		w.t.Fatal(err)
	}
	by := map[string]int{}
	for _, r := range rows {
		by[r.Process] = r.N
	}
	return by
}

// runs waits until tasks of a tenant run like this, by process.
func (w *world) runs(tenant loom.TenantID, want map[string]int) {
	w.t.Helper()
	w.eventually(20*time.Second, fmt.Sprintf("tasks of %s as %v", tenant, want), func() bool { return fmt.Sprint(w.running(tenant)) == fmt.Sprint(want) })
}

// renewals waits until every provisioner has acted upon what it was assigned by now,
// looked over its queues and had time to take what it should not.
func (w *world) renewals() {
	w.t.Helper()
	since := w.text(`SELECT max(expires_at)::text FROM processes WHERE kind = 'provisioner'`)
	w.eventually(20*time.Second, "renewals", func() bool {
		return w.count(`SELECT count(*) FROM processes WHERE kind = 'provisioner' AND expires_at < $1::timestamptz + interval '700 milliseconds'`, since) == 0
	})
}

// provisionerOf starts a provisioner and gives its id.
func (w *world) provisionerOf(runner work.Runner, capacity int, only string) string {
	w.t.Helper()
	before := w.count(`SELECT count(*) FROM processes WHERE kind = 'provisioner'`)
	w.provisioner(runner, capacity, func(p *work.Provisioner) { p.OnlyTenant = only })
	w.eventually(20*time.Second, "the provisioner", func() bool { return w.count(`SELECT count(*) FROM processes WHERE kind = 'provisioner'`) > before })
	return w.text(`SELECT id FROM processes WHERE kind = 'provisioner' ORDER BY started_at DESC LIMIT 1`)
}

func (w *world) setWorkers(tenant loom.TenantID, n int) {
	w.t.Helper()
	w.exec(`UPDATE tenants SET workers = $2 WHERE id = $1`, tenant, n)
	w.eventually(20*time.Second, "the workers to be assigned", func() bool {
		return w.count(`SELECT coalesce(sum(workers), 0) FROM worker_assignments WHERE tenant_id = $1`, tenant) == n
	})
}

// TestTenantsGetTheirShareOfEachProcess deals workers of two tenants over two
// processes: each runs exactly what it was assigned, also where it has idle slots,
// and a changed number neither interrupts what runs nor holds the other tenant up.
func TestTenantsGetTheirShareOfEachProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.addTenant("t2", 2)
	runner := newGated("t1", "t2")
	w.scheduler()
	first := w.provisionerOf(runner, 4, "t1")
	second := w.provisionerOf(runner, 8, "")
	w.eventually(20*time.Second, "the workers to be assigned", func() bool { return w.count(`SELECT coalesce(sum(workers), 0) FROM worker_assignments`) == 6 })
	w.renewals()
	c1, n1 := w.cluster("t1", 12)
	c2, n2 := w.cluster("t2", 12)
	op1, op2 := w.insert("t1", c1, layered(n1, 1, 12, 0, false)), w.insert("t2", c2, layered(n2, 1, 12, 0, false))

	// The second process has six idle slots and none for t1.
	w.runs("t1", map[string]int{first: 4})
	w.runs("t2", map[string]int{second: 2})
	w.renewals()
	w.runs("t1", map[string]int{first: 4})
	w.runs("t2", map[string]int{second: 2})

	// More workers: they act at once, beside what runs.
	w.setWorkers("t1", 6)
	w.runs("t1", map[string]int{first: 4, second: 2})

	// Fewer: what runs goes on, nothing takes its place until there are so few.
	w.setWorkers("t1", 1)
	w.renewals()
	w.runs("t1", map[string]int{first: 4, second: 2})
	runner.let(t, "t1", 3)
	w.renewals()
	if n := w.count(`SELECT count(*) FROM tasks WHERE status = 'running' AND tenant_id = 't1'`); n != 3 {
		t.Errorf("%d tasks of t1 run above its one worker, want the 3 that ran", n)
	}
	// Meanwhile the other tenant goes on, two at a time.
	runner.let(t, "t2", 7)
	w.runs("t2", map[string]int{second: 2})

	runner.let(t, "t1", 9)
	runner.let(t, "t2", 5)
	w.ends(op1, 20*time.Second, loom.OperationComplete)
	w.ends(op2, 20*time.Second, loom.OperationComplete)
	if n := w.count(`SELECT count(*) FROM attempts WHERE status <> 'complete'`); n != 0 {
		t.Errorf("%d attempts were cut off", n)
	}
	if n := w.count(`SELECT count(*) FROM attempts`); n != 24 {
		t.Errorf("%d attempts for 24 tasks", n)
	}
	if n := w.count(`SELECT count(*) FROM attempts a JOIN tasks t ON t.id = a.task_id WHERE a.process_id = $1 AND t.tenant_id <> 't1'`, first); n != 0 {
		t.Errorf("%d tasks of others ran in the process of t1", n)
	}
}

// TestProvisionerOfOneTenant leaves alone what is not its tenant's, also when
// nobody else is there and it has nothing to do.
func TestProvisionerOfOneTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	w.addTenant("t2", 2)
	w.scheduler()
	runner := newRunner(nil)
	own := w.provisionerOf(runner, 10, "t2")
	c1, n1 := w.cluster("t1", 3)
	c2, n2 := w.cluster("t2", 3)
	op1, op2 := w.insert("t1", c1, layered(n1, 2, 3, 2, false)), w.insert("t2", c2, layered(n2, 2, 3, 2, false))
	w.ends(op2, 20*time.Second, loom.OperationComplete)
	w.renewals()
	if n := w.count(`SELECT count(*) FROM attempts a JOIN tasks t ON t.id = a.task_id WHERE t.tenant_id = 't1'`); n != 0 {
		t.Errorf("%d tasks of t1 ran in the process of t2", n)
	}
	if s := w.status(op1); s != string(loom.OperationRunning) {
		t.Errorf("the operation of t1 is %s", s)
	}
	general := w.provisionerOf(runner, 10, "")
	w.ends(op1, 20*time.Second, loom.OperationComplete)
	for process, tenant := range map[string]string{own: "t2", general: "t1"} {
		if n := w.count(`SELECT count(*) FROM attempts a JOIN tasks t ON t.id = a.task_id WHERE a.process_id = $1 AND t.tenant_id = $2`, process, tenant); n != 6 {
			t.Errorf("%d tasks of %s ran in its process, want 6", n, tenant)
		}
	}
}

// TestUnknownTenantOfAProvisioner is said at once.
func TestUnknownTenantOfAProvisioner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	common, db := w.common(2)
	defer db.Close()
	p := &work.Provisioner{Common: common, Runner: newRunner(nil), Capacity: 1, OnlyTenant: "nobody"}
	err := p.Run(t.Context())
	if err == nil || loom.AsError(err).Kind != loom.NotFound {
		t.Errorf("an unknown tenant: %v", err)
	}
}
