package work_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"loom/app/execution"
	"loom/app/loom"
	"loom/app/telemetry"
	"loom/jobs/work"
)

// metricsOf reads all of Loom's own metrics.
func metricsOf(t testing.TB, m *telemetry.Metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	values := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, "loom_") {
			values[name] = value
		}
	}
	return values
}

func (w *world) told(m *telemetry.Metrics, want map[string]string) {
	w.t.Helper()
	got := metricsOf(w.t, m)
	for name, value := range want {
		if got[name] != value {
			w.t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
	if w.t.Failed() {
		for name, value := range got {
			if !strings.Contains(name, "_bucket") {
				w.t.Log(name, value)
			}
		}
	}
}

// watched runs a scheduler and a provisioner of a capacity that tell m.
func (w *world) watched(m *telemetry.Metrics, runner work.Runner, capacity int) {
	w.t.Helper()
	common, db := w.common(6)
	common.Metrics = m
	common.Operations = execution.New(db, w.ring, execution.Options{Logger: quiet(), Ended: m.OperationEnded})
	scheduler := &work.Scheduler{Common: common, ReapEvery: 50 * time.Millisecond, ReconcileEvery: 200 * time.Millisecond}
	w.run(db, scheduler.Run)
	w.provisioner(runner, capacity, func(p *work.Provisioner) {
		p.Metrics = m
		p.Operations = execution.New(w.db.DB, w.ring, execution.Options{Logger: quiet(), Logged: m.Logged})
	})
}

// TestMetricsOfARun runs a small plan and looks what learns of it.
func TestMetricsOfARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 50)
	cluster, nodes := w.cluster(w.tenant, 4)
	plan := layered(nodes, 3, 4, 2, false)
	no := false
	release := make(chan struct{})
	runner := newRunner(func(_ context.Context, spec *loom.TaskSpec, sink loom.Sink) loom.TaskResult {
		sink.Log("stdout", "0123456789")
		if spec.Ref.Number == 12 {
			<-release // the other tasks of its layer go first
			return loom.TaskResult{Status: 1, Message: "no", Retryable: &no}
		}
		return loom.TaskResult{}
	})
	m := telemetry.NewMetrics()
	m.Tenants(func(context.Context) (map[loom.TenantID]string, error) {
		return map[loom.TenantID]string{w.tenant: "acme"}, nil
	}, quiet())
	w.watched(m, runner, 50)
	op := w.insert(w.tenant, cluster, plan)
	w.eventually(20*time.Second, "eleven tasks", func() bool { return w.count(`SELECT count(*) FROM tasks WHERE status = 'complete' AND NOT gate`) == 11 })
	close(release)
	w.ends(op, 20*time.Second, loom.OperationFailed)
	// What is told is told after it is stored.
	w.eventually(10*time.Second, "the end to be told", func() bool {
		return metricsOf(t, m)[`loom_operations_total{action="cluster_create",outcome="failed"}`] == "1" &&
			metricsOf(t, m)[`loom_tasks_total{action="bootstrap",outcome="failed",plugin="other"}`] == "1"
	})
	w.told(m, map[string]string{
		`loom_tasks_total{action="bootstrap",outcome="complete",plugin="other"}`: "11",
		`loom_tenant_tasks_total{outcome="complete",tenant="acme"}`:              "11",
		`loom_tenant_tasks_total{outcome="failed",tenant="acme"}`:                "1",
		`loom_task_seconds_count{action="bootstrap",plugin="other"}`:             "12",
		`loom_hop_seconds_count`:              "12",
		`loom_commit_tasks_sum{what="start"}`: "12",
		`loom_commit_tasks_sum{what="end"}`:   "11",
		`loom_log_bytes_total`:                "120",
		`loom_snoozes_total`:                  "0",
		`loom_slots_used`:                     "0",
		`loom_slots_assigned`:                 "50",
		`loom_slots_capacity`:                 "50",
		`loom_lease_held{kind="provisioner"}`: "1",
		`loom_lease_held{kind="scheduler"}`:   "1",
	})
	// The lease goes, and with it the word that it is held; then comes another.
	w.exec(`DELETE FROM processes WHERE kind = 'provisioner'`)
	w.eventually(10*time.Second, "the loss to be told", func() bool { return metricsOf(t, m)[`loom_lease_held{kind="provisioner"}`] == "0" })
	w.eventually(10*time.Second, "the new lease to be told", func() bool { return metricsOf(t, m)[`loom_lease_held{kind="provisioner"}`] == "1" })
}

// TestMetricsOfAQueue holds two tasks of five and looks what learns of the queue,
// and how a delivery that finds no worker counts.
func TestMetricsOfAQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	cluster, nodes := w.cluster(w.tenant, 5)
	release := make(chan struct{})
	runner := newRunner(func(ctx context.Context, _ *loom.TaskSpec, _ loom.Sink) loom.TaskResult {
		select {
		case <-release:
			return loom.TaskResult{}
		case <-ctx.Done():
			return loom.TaskResult{Status: -1, Interrupted: true}
		}
	})
	m := telemetry.NewMetrics()
	w.watched(m, runner, 2)
	op := w.insert(w.tenant, cluster, layered(nodes, 1, 5, 0, false))
	w.eventually(20*time.Second, "two tasks", func() bool { return runner.started() == 2 })
	common, db := w.common(2)
	defer db.Close()
	state := telemetry.NewMetrics()
	state.State(common.Processes.Figures, quiet())
	w.told(state, map[string]string{
		fmt.Sprintf("loom_queue_depth{tenant=%q}", w.tenant): "3",
		`loom_workers_capacity`:                              "2",
		`loom_workers_wanted`:                                "2",
		`loom_workers_assigned`:                              "2",
		`loom_workers_busy`:                                  "2",
		`loom_clusters{status="pending"}`:                    "1",
		`loom_clusters{status="active"}`:                     "0",
		`loom_processes{kind="provisioner"}`:                 "1",
		`loom_processes{kind="scheduler"}`:                   "1",
		`loom_state_errors_total`:                            "0",
	})
	w.told(m, map[string]string{`loom_slots_used`: "2", `loom_snoozes_total`: "0"})
	close(release)
	w.ends(op, 20*time.Second, loom.OperationComplete)
}
