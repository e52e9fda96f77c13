package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"loom/app/loom"
	"loom/app/testkit/golden"
)

// figures are a state in which every part is known.
func figures() loom.Figures {
	three := 3
	return loom.Figures{
		Queues:       []loom.QueueLength{{Tenant: "acme", Waits: 7, Oldest: 90 * time.Second}},
		Clusters:     map[loom.ClusterStatus]int{loom.ClusterActive: 4},
		LeasesEnding: &three, Hooks: &loom.HookFigure{Waiting: 3},
		Health:    &loom.HealthFigure{Nodes: map[loom.HealthStatus]int{loom.HealthHealthy: 9}, Clusters: map[loom.HealthStatus]int{loom.HealthDegraded: 1}},
		Rollouts:  &loom.RolloutFigure{Rollouts: map[loom.RolloutStatus]int{loom.RolloutRunning: 1}, Clusters: map[loom.RolloutClusterStatus]int{loom.RolloutWaits: 4}},
		Processes: []loom.ProcessFigure{{Kind: loom.ProcessWeb, Count: 2, LeaseAge: 1500 * time.Millisecond}},
		Workers:   &loom.WorkerFigure{Capacity: 100, Wanted: 40, Assigned: 30, Busy: 20},
		Database:  &loom.DatabaseFigure{Connections: 12, OldestTransaction: 2 * time.Second},
	}
}

// exercised has a value in every family.
func exercised(t *testing.T, read func(context.Context) (loom.Figures, error)) *Metrics {
	t.Helper()
	m := NewMetrics()
	m.State(read, slog.New(slog.DiscardHandler))
	m.LeaseHeld(loom.ProcessScheduler, true)
	m.Plugins([]string{"local"})
	m.Tenants(tenantNames, slog.New(slog.DiscardHandler))
	m.AttemptEnded("t1", loom.ActionCreate, "local", string(loom.AttemptComplete), time.Second)
	m.Hop(2 * time.Millisecond)
	m.Snoozed()
	m.Committed("start", 3, time.Millisecond)
	m.Slots(func() (int, int, int) { return 1, 2, 3 })
	m.Connected("ok")
	m.Checked("passed")
	m.Decided(loom.Incident{Trouble: loom.Trouble{Kind: loom.IncidentService}, Decision: loom.RepairBegun})
	m.Decided(loom.Incident{Decision: loom.RepairHeld, Reason: "it cannot begin: whatever a provider says"})
	m.Watched(10, 1, false)
	m.Logged(10)
	m.OperationEnded(loom.ClusterCreate, loom.OperationComplete)
	m.Delivered(loom.DeliveryDelivered)
	m.Solved(time.Millisecond)
	return m
}

func tenantNames(context.Context) (map[loom.TenantID]string, error) {
	return map[loom.TenantID]string{"t1": "acme", "t2": "demo"}, nil
}

func steady(context.Context) (loom.Figures, error) { return figures(), nil }

// scrape returns the lines of an answer that begin with loom_.
func scrape(t *testing.T, m *Metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	lines := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, "loom_") {
			lines[name] = value
		}
	}
	return lines
}

// TestFamilies compares the table with what is really told: names, types, labels.
func TestFamilies(t *testing.T) {
	t.Parallel()
	found, err := exercised(t, steady).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(found).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "loom_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	told := map[string]string{}
	for _, f := range found {
		if !strings.HasPrefix(f.GetName(), "loom_") {
			continue
		}
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		told[f.GetName()] = fmt.Sprint(strings.ToLower(f.GetType().String()), labels, f.GetHelp())
	}
	for _, f := range Families {
		labels := slices.Sorted(slices.Values(f.Labels))
		if want := fmt.Sprint(f.Type, labels, f.Help); told[f.Name] != want {
			t.Errorf("%s is told as %q, the table says %q", f.Name, told[f.Name], want)
		}
		delete(told, f.Name)
	}
	for name := range told {
		t.Errorf("%s is told but not in the table", name)
	}
}

// TestDocument keeps the table in docs/metrics.md current.
func TestDocument(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../docs/metrics.md", "<!-- table -->\n", "<!-- end of table -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	want := before + begin + "\n" + markdown() + "\n" + end + after
	if want == string(text) {
		return
	}
	if !*golden.Update {
		t.Fatalf("%s is stale: go test ./app/telemetry -run TestDocument -update", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	m := exercised(t, steady)
	m.AttemptEnded("t1", loom.ActionInstall, "made-up-by-a-tenant", string(loom.AttemptInterrupted), time.Hour)
	m.AttemptEnded("t2", loom.ActionInstall, "", string(loom.AttemptFailed), time.Minute)
	m.LeaseHeld(loom.ProcessScheduler, false)
	m.Hop(-time.Second) // clocks of different transactions may cross
	got := scrape(t, m)
	for name, want := range map[string]string{
		`loom_tasks_total{action="create",outcome="complete",plugin="local"}`:     "1",
		`loom_tasks_total{action="install",outcome="interrupted",plugin="other"}`: "1",
		`loom_tasks_total{action="install",outcome="failed",plugin=""}`:           "1",
		`loom_task_seconds_count{action="create",plugin="local"}`:                 "1",
		`loom_task_seconds_sum{action="install",plugin=""}`:                       "60",
		`loom_task_seconds_count{action="install",plugin="other"}`:                "",
		`loom_tenant_tasks_total{outcome="complete",tenant="acme"}`:               "1",
		`loom_tenant_tasks_total{outcome="interrupted",tenant="acme"}`:            "1",
		`loom_tenant_tasks_total{outcome="failed",tenant="demo"}`:                 "1",
		`loom_tenant_task_seconds_total{tenant="acme"}`:                           "3601",
		`loom_hop_seconds_count`:                                                  "2",
		`loom_hop_seconds_sum`:                                                    "0.002",
		`loom_lease_held{kind="scheduler"}`:                                       "0",
		`loom_slots_assigned`:                                                     "2",
		`loom_commit_tasks_sum{what="start"}`:                                     "3",
		`loom_queue_depth{tenant="acme"}`:                                         "7",
		`loom_queue_oldest_seconds{tenant="acme"}`:                                "90",
		`loom_process_lease_age_seconds{kind="web"}`:                              "1.5",
		`loom_workers_busy`:                                                       "20",
		`loom_leases_ending`:                                                      "3",
		`loom_state_errors_total`:                                                 "0",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// TestStateIsReadSeldom lets many ask at once: the database is asked once.
func TestStateIsReadSeldom(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := 0
	m := NewMetrics()
	m.State(func(context.Context) (loom.Figures, error) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return figures(), nil
	}, slog.New(slog.DiscardHandler))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { scrape(t, m) })
	}
	all.Wait()
	if asked != 1 {
		t.Errorf("the database was asked %d times", asked)
	}
}

// TestStateThatCannotBeRead shows what is known and counts what went wrong.
func TestStateThatCannotBeRead(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	m.State(func(context.Context) (loom.Figures, error) {
		f := figures()
		f.Workers, f.Clusters, f.Health = nil, nil, nil
		return f, errors.New("away")
	}, slog.New(slog.DiscardHandler))
	got := scrape(t, m)
	if got["loom_state_errors_total"] != "1" || got["loom_database_connections"] != "12" {
		t.Errorf("told: %v", got)
	}
	for name := range got {
		if strings.HasPrefix(name, "loom_workers") || strings.HasPrefix(name, "loom_clusters") {
			t.Errorf("%s is told though nobody knows it", name)
		}
	}
}

// TestFewTenants bounds the series, whatever the number of tenants.
func TestFewTenants(t *testing.T) {
	t.Parallel()
	f := figures()
	f.Queues = nil
	for i := range 300 {
		f.Queues = append(f.Queues, loom.QueueLength{Tenant: fmt.Sprintf("t%d", i), Waits: 1000 - i, Oldest: time.Duration(i) * time.Second})
	}
	m := NewMetrics()
	m.State(func(context.Context) (loom.Figures, error) { return f, nil }, slog.New(slog.DiscardHandler))
	got := scrape(t, m)
	depths := slices.DeleteFunc(slices.Collect(maps.Keys(got)), func(n string) bool { return !strings.HasPrefix(n, "loom_queue_depth") })
	if len(depths) != stateTenants+1 {
		t.Errorf("%d tenants are told", len(depths))
	}
	sum := 0
	for i := stateTenants; i < 300; i++ {
		sum += 1000 - i
	}
	if got[`loom_queue_depth{tenant="(others)"}`] != fmt.Sprint(sum) || got[`loom_queue_oldest_seconds{tenant="(others)"}`] != "299" {
		t.Errorf("the others: %s, %s", got[`loom_queue_depth{tenant="(others)"}`], got[`loom_queue_oldest_seconds{tenant="(others)"}`])
	}
	if got[`loom_queue_depth{tenant="t0"}`] != "1000" || got[`loom_queue_depth{tenant="t299"}`] != "" {
		t.Error("the longest queues keep their names")
	}
}

// markdown is the table for docs/metrics.md.
func markdown() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | from | meaning |\n|---|---|---|---|---|\n")
	for _, f := range Families {
		labels := make([]string, len(f.Labels))
		for i, l := range f.Labels {
			labels[i] = "`" + l + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.Name, f.Type, strings.Join(labels, ", "), f.From, f.Help)
	}
	return b.String()
}
