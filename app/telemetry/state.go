package telemetry

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"loom/app/loom"
)

const (
	// stateAge is how long an answer of the database is good.
	stateAge = 5 * time.Second
	// stateTimeout bounds the reading of all of it.
	stateTimeout = 10 * time.Second
	// stateTenants is how many tenants have their name shown; the others are summed up
	// under otherTenants, which no tenant can be called.
	stateTenants = 50
	otherTenants = "(others)"
)

// describe returns the description of a metric without an instrument of its own.
func describe(name string) *prometheus.Desc {
	f := family(name)
	return prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
}

// slotCollector tells of the slots of a provisioner, once there is one.
type slotCollector struct{ m *Metrics }

var slotDescs = [3]*prometheus.Desc{describe("loom_slots_used"), describe("loom_slots_assigned"), describe("loom_slots_capacity")}

// Describe names the metrics.
func (slotCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range slotDescs {
		ch <- d
	}
}

// Collect reads the slots.
func (c slotCollector) Collect(ch chan<- prometheus.Metric) {
	read := c.m.slots.Load()
	if read == nil {
		return
	}
	used, assigned, capacity := (*read)()
	for i, n := range []int{used, assigned, capacity} {
		ch <- prometheus.MustNewConstMetric(slotDescs[i], prometheus.GaugeValue, float64(n))
	}
}

// stateCollector reads the state of the installation when somebody asks, at most
// once in stateAge.
type stateCollector struct {
	read  func(ctx context.Context) (loom.Figures, error)
	log   *slog.Logger
	descs map[string]*prometheus.Desc

	mu      sync.Mutex
	at      time.Time
	figures loom.Figures
	errors  int
}

func newStateCollector(read func(ctx context.Context) (loom.Figures, error), log *slog.Logger) *stateCollector {
	c := &stateCollector{read: read, log: log, descs: map[string]*prometheus.Desc{}}
	for _, f := range Families {
		if f.From == "state" {
			c.descs[f.Name] = describe(f.Name)
		}
	}
	return c
}

// Describe names the metrics.
func (c *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, name := range slices.Sorted(maps.Keys(c.descs)) {
		ch <- c.descs[name]
	}
}

// current returns the figures; those who ask while they are being read wait for the
// same answer.
func (c *stateCollector) current() (loom.Figures, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && time.Since(c.at) < stateAge {
		return c.figures, c.errors
	}
	ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	var err error
	if c.figures, err = c.read(ctx); err != nil {
		c.errors++
		c.log.Warn("part of the state could not be read for metrics", "error", err.Error())
	}
	c.at = time.Now()
	return c.figures, c.errors
}

// Collect tells what is known.
func (c *stateCollector) Collect(ch chan<- prometheus.Metric) {
	f, errors := c.current()
	gauge := func(name string, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(c.descs[name], prometheus.GaugeValue, value, labels...)
	}
	ch <- prometheus.MustNewConstMetric(c.descs["loom_state_errors_total"], prometheus.CounterValue, float64(errors))
	for _, q := range fewTenants(f.Queues) {
		gauge("loom_queue_depth", float64(q.Waits), q.Tenant)
		gauge("loom_queue_oldest_seconds", q.Oldest.Seconds(), q.Tenant)
	}
	for status, n := range f.Clusters {
		gauge("loom_clusters", float64(n), string(status))
	}
	if f.Health != nil {
		for status, n := range f.Health.Nodes {
			gauge("loom_nodes", float64(n), string(status))
		}
		for _, kind := range loom.IncidentKinds {
			gauge("loom_incidents_open", float64(f.Health.Incidents[kind]), string(kind))
		}
		for status, n := range f.Health.Clusters {
			gauge("loom_clusters_health", float64(n), string(status))
		}
	}
	if f.Rollouts != nil {
		for status, n := range f.Rollouts.Rollouts {
			gauge("loom_rollouts", float64(n), string(status))
		}
		for status, n := range f.Rollouts.Clusters {
			gauge("loom_rollout_clusters", float64(n), string(status))
		}
	}
	for _, p := range f.Processes {
		gauge("loom_processes", float64(p.Count), p.Kind)
		gauge("loom_process_lease_age_seconds", p.LeaseAge.Seconds(), p.Kind)
	}
	if f.LeasesEnding != nil {
		gauge("loom_leases_ending", float64(*f.LeasesEnding))
	}
	if w := f.Workers; w != nil {
		gauge("loom_workers_capacity", float64(w.Capacity))
		gauge("loom_workers_wanted", float64(w.Wanted))
		gauge("loom_workers_assigned", float64(w.Assigned))
		gauge("loom_workers_busy", float64(w.Busy))
	}
	if d := f.Database; d != nil {
		gauge("loom_database_connections", float64(d.Connections))
		gauge("loom_database_oldest_transaction_seconds", d.OldestTransaction.Seconds())
	}
	if f.Hooks != nil {
		gauge("loom_hook_deliveries_waiting", float64(f.Hooks.Waiting))
	}
}

// fewTenants keeps the longest queues and sums up the others.
func fewTenants(queues []loom.QueueLength) []loom.QueueLength {
	if len(queues) <= stateTenants {
		return queues
	}
	others := loom.QueueLength{Tenant: otherTenants}
	for _, q := range queues[stateTenants:] {
		others.Waits += q.Waits
		others.Oldest = max(others.Oldest, q.Oldest)
	}
	return append(slices.Clone(queues[:stateTenants]), others)
}
