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
	// workTenants is how many tenants the counters of a process name: as many as an
	// installation is made for. Those that come later are summed up under otherTenants.
	workTenants = 1000
	// namesAge is how long the names of tenants are good.
	namesAge = time.Minute
)

// tenantWork counts what a provisioner did for each tenant. It knows them by id; their
// names are looked up when somebody asks.
type tenantWork struct {
	mu sync.Mutex
	// done is by tenant, "" for all that came when there were workTenants.
	done map[loom.TenantID]*workDone
	read func(ctx context.Context) (map[loom.TenantID]string, error)
	log  *slog.Logger

	asking sync.Mutex
	asked  time.Time
	names  map[loom.TenantID]string
}

// workDone is what was done for one tenant.
type workDone struct {
	attempts map[string]int // by outcome
	seconds  float64
}

func newTenantWork() *tenantWork {
	return &tenantWork{done: map[loom.TenantID]*workDone{}}
}

var tenantTasksDesc, tenantSecondsDesc = describe("loom_tenant_tasks_total"), describe("loom_tenant_task_seconds_total")

// add counts an attempt.
func (w *tenantWork) add(tenant loom.TenantID, outcome string, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.done[tenant]
	if d == nil && len(w.done) >= workTenants {
		tenant = ""
		d = w.done[tenant]
	}
	if d == nil {
		d = &workDone{attempts: map[string]int{}}
		w.done[tenant] = d
	}
	d.attempts[outcome]++
	d.seconds += max(took, 0).Seconds()
}

// named returns the names of the tenants, those of before where they cannot be read.
func (w *tenantWork) named() map[loom.TenantID]string {
	w.asking.Lock()
	defer w.asking.Unlock()
	if w.read == nil || !w.asked.IsZero() && time.Since(w.asked) < namesAge {
		return w.names
	}
	w.mu.Lock()
	before := slices.Collect(maps.Keys(w.done))
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	names, err := w.read(ctx)
	if err != nil {
		w.log.Warn("the names of tenants could not be read for metrics", "error", err.Error())
		return w.names
	}
	w.names, w.asked = names, time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range before { // a tenant that is gone makes room, and its name may be another's
		if _, there := names[id]; !there && id != "" {
			delete(w.done, id)
		}
	}
	return names
}

// Describe names the metrics.
func (w *tenantWork) Describe(ch chan<- *prometheus.Desc) {
	ch <- tenantTasksDesc
	ch <- tenantSecondsDesc
}

// Collect collects what is known. A tenant whose name is not known yet comes later.
func (w *tenantWork) Collect(ch chan<- prometheus.Metric) {
	w.mu.Lock()
	idle := len(w.done) == 0
	w.mu.Unlock()
	if idle {
		return
	}
	names := w.named()
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, d := range w.done {
		name := names[id]
		if id == "" {
			name = otherTenants
		}
		if name == "" {
			continue
		}
		ch <- prometheus.MustNewConstMetric(tenantSecondsDesc, prometheus.CounterValue, d.seconds, name)
		for outcome, n := range d.attempts {
			ch <- prometheus.MustNewConstMetric(tenantTasksDesc, prometheus.CounterValue, float64(n), name, outcome)
		}
	}
}
