package telemetry

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"loom/app/loom"
)

// Buckets of the histograms. Tasks take from milliseconds to half an hour, hops a
// few milliseconds; a batch has at most 500 tasks.
var (
	taskBuckets   = []float64{0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}
	hopBuckets    = []float64{0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1, 2, 5, 15}
	batchBuckets  = []float64{1, 2, 4, 8, 16, 32, 64, 125, 250, 500}
	commitBuckets = []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5}
	solverBuckets = []float64{0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30}
)

// Metrics takes what happens in a process and shows it to programs that collect
// metrics. Its methods may be called from anywhere at any time and do not block.
// Labels come from closed sets or are the names of a bounded number of tenants: the
// number of series is bounded whatever tenants do.
type Metrics struct {
	registry *prometheus.Registry

	leaseHeld                  *prometheus.GaugeVec
	tasks                      *prometheus.CounterVec
	taskSeconds                *prometheus.HistogramVec
	hops                       prometheus.Histogram
	snoozes                    prometheus.Counter
	commitTasks, commitSeconds *prometheus.HistogramVec
	connects                   *prometheus.CounterVec
	logBytes                   prometheus.Counter
	nodeChecks, repairs, held  *prometheus.CounterVec
	watched, late              prometheus.Gauge
	doubt                      *prometheus.GaugeVec
	operations, deliveries     *prometheus.CounterVec
	solver                     prometheus.Histogram
	slots                      atomic.Pointer[func() (used, assigned, capacity int)]
	plugins                    atomic.Pointer[map[string]bool]
	tenants                    *tenantWork
}

// NewMetrics makes the metrics of one process, those of Go and of the operating
// system among them.
func NewMetrics() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), tenants: newTenantWork()}
	m.leaseHeld = gauges(m, "loom_lease_held")
	m.tasks = counters(m, "loom_tasks_total")
	m.taskSeconds = histograms(m, "loom_task_seconds", taskBuckets)
	m.hops = histograms(m, "loom_hop_seconds", hopBuckets).WithLabelValues().(prometheus.Histogram)
	m.snoozes = counters(m, "loom_snoozes_total").WithLabelValues()
	m.commitTasks = histograms(m, "loom_commit_tasks", batchBuckets)
	m.commitSeconds = histograms(m, "loom_commit_seconds", commitBuckets)
	m.connects = counters(m, "loom_ssh_connects_total")
	m.logBytes = counters(m, "loom_log_bytes_total").WithLabelValues()
	m.nodeChecks = counters(m, "loom_node_checks_total")
	m.repairs, m.held = counters(m, "loom_repairs_total"), counters(m, "loom_repairs_held_total")
	m.watched, m.late = gauges(m, "loom_nodes_watched").WithLabelValues(), gauges(m, "loom_node_checks_late").WithLabelValues()
	m.doubt = gauges(m, "loom_health_doubt")
	m.operations = counters(m, "loom_operations_total")
	m.deliveries = counters(m, "loom_hook_deliveries_total")
	m.solver = histograms(m, "loom_solver_seconds", solverBuckets).WithLabelValues().(prometheus.Histogram)
	gauges(m, "loom_build_info").WithLabelValues(BuildVersion()).Set(1)
	m.registry.MustRegister(slotCollector{m}, m.tenants, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counters(m *Metrics, name string) *prometheus.CounterVec {
	f := family(name)
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Name, Help: f.Help}, f.Labels)
	m.registry.MustRegister(v)
	return v
}

func gauges(m *Metrics, name string) *prometheus.GaugeVec {
	f := family(name)
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.Name, Help: f.Help}, f.Labels)
	m.registry.MustRegister(v)
	return v
}

func histograms(m *Metrics, name string, buckets []float64) *prometheus.HistogramVec {
	f := family(name)
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: f.Name, Help: f.Help, Buckets: buckets}, f.Labels)
	m.registry.MustRegister(v)
	return v
}

// Database adds the figures of a pool of connections.
func (m *Metrics) Database(db *sql.DB) {
	m.registry.MustRegister(collectors.NewDBStatsCollector(db, "loom"))
}

// State adds what read knows of the installation: its answer is good for 5
// seconds, however many ask. What goes wrong is counted and logged.
func (m *Metrics) State(read func(ctx context.Context) (loom.Figures, error), log *slog.Logger) {
	m.registry.MustRegister(newStateCollector(read, log))
}

// Handler answers with all metrics in the text form of Prometheus. Who may ask is
// for the caller to decide.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, Timeout: 20 * time.Second})
}

// LeaseHeld reports whether this process holds the lease of a kind of process.
func (m *Metrics) LeaseHeld(kind string, held bool) {
	value := 0.0
	if held {
		value = 1
	}
	m.leaseHeld.WithLabelValues(kind).Set(value)
}

// Plugins names the plugin types that may become labels; all others are “other”.
func (m *Metrics) Plugins(names []string) {
	known := make(map[string]bool, len(names))
	for _, n := range names {
		known[n] = true
	}
	m.plugins.Store(&known)
}

// Tenants says where to read the names of all tenants from now on; it is asked when
// somebody asks for metrics, once a minute at most. Until then no tenant is counted.
func (m *Metrics) Tenants(read func(ctx context.Context) (map[loom.TenantID]string, error), log *slog.Logger) {
	m.tenants.asking.Lock()
	defer m.tenants.asking.Unlock()
	m.tenants.read, m.tenants.log = read, log
}

// AttemptEnded counts an attempt. Outcome is its status, or “late” when its result
// no longer counted; how long it took is kept of those that ran to their end, and for
// the tenant of all.
func (m *Metrics) AttemptEnded(tenant loom.TenantID, action loom.TaskAction, plugin, outcome string, took time.Duration) {
	m.tenants.add(tenant, outcome, took)
	if known := m.plugins.Load(); plugin != "" && (known == nil || !(*known)[plugin]) {
		plugin = "other"
	}
	m.tasks.WithLabelValues(string(action), plugin, outcome).Inc()
	if outcome == string(loom.AttemptComplete) || outcome == string(loom.AttemptFailed) {
		m.taskSeconds.WithLabelValues(string(action), plugin).Observe(took.Seconds())
	}
}

// Hop takes the time from when a task was due until its attempt began.
func (m *Metrics) Hop(wait time.Duration) { m.hops.Observe(max(wait, 0).Seconds()) }

// Snoozed counts a delivery that found no free worker.
func (m *Metrics) Snoozed() { m.snoozes.Inc() }

// Committed takes the size of a transaction and how long it took; what is “start”
// or “end”.
func (m *Metrics) Committed(what string, tasks int, took time.Duration) {
	m.commitTasks.WithLabelValues(what).Observe(float64(tasks))
	m.commitSeconds.WithLabelValues(what).Observe(took.Seconds())
}

// Slots says where to read the slots of the provisioner from now on.
func (m *Metrics) Slots(read func() (used, assigned, capacity int)) { m.slots.Store(&read) }

// Connected counts an SSH connection that was tried.
func (m *Metrics) Connected(outcome string) { m.connects.WithLabelValues(outcome).Inc() }

// Logged counts bytes of task logs.
func (m *Metrics) Logged(bytes int) { m.logBytes.Add(float64(bytes)) }

// OperationEnded counts an operation.
func (m *Metrics) OperationEnded(action loom.ClusterAction, status loom.OperationStatus) {
	m.operations.WithLabelValues(string(action), string(status)).Inc()
}

// Checked counts a check of a node.
func (m *Metrics) Checked(outcome string) { m.nodeChecks.WithLabelValues(outcome).Inc() }

// Watched notes how many nodes this process checks, how many of them late, and whether it is
// in doubt of what it sees.
func (m *Metrics) Watched(nodes, late int, doubt bool) {
	m.watched.Set(float64(nodes))
	m.late.Set(float64(late))
	value := 0.0
	if doubt {
		value = 1
	}
	m.doubt.WithLabelValues("process").Set(value)
}

// Decided counts a repair that Loom began by itself, or one that it holds.
func (m *Metrics) Decided(i loom.Incident) {
	switch i.Decision {
	case loom.RepairBegun:
		m.repairs.WithLabelValues(string(i.Kind.Repair())).Inc()
	case loom.RepairHeld:
		reason, _, _ := strings.Cut(i.Reason, ":")
		m.held.WithLabelValues(reason).Inc()
	case loom.RepairAsked, loom.RepairAccepted, loom.RepairDeclined:
	}
}

// Delivered counts a try of a delivery.
func (m *Metrics) Delivered(status loom.DeliveryStatus) {
	m.deliveries.WithLabelValues(string(status)).Inc()
}

// Solved takes how long a layout was searched for.
func (m *Metrics) Solved(took time.Duration) { m.solver.Observe(took.Seconds()) }
