package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"testing"
	"time"

	"loom/app/loom"
)

// worked counts one attempt of each of some tenants.
func worked(m *Metrics, from, to int) {
	for i := from; i < to; i++ {
		m.AttemptEnded(loom.TenantID(fmt.Sprint("t", i)), loom.ActionInstall, "", string(loom.AttemptComplete), time.Second)
	}
}

func manyNames(n int) map[loom.TenantID]string {
	names := map[loom.TenantID]string{}
	for i := range n {
		names[loom.TenantID(fmt.Sprint("t", i))] = fmt.Sprint("tenant", i)
	}
	return names
}

// TestTenantsAreBounded: however many there are, the number of series is not theirs.
func TestTenantsAreBounded(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	names := manyNames(workTenants + 100)
	m.Tenants(func(context.Context) (map[loom.TenantID]string, error) { return names, nil }, slog.New(slog.DiscardHandler))
	worked(m, 0, workTenants+100)
	worked(m, 0, 1)
	got := scrape(t, m)
	series, named := 0, fmt.Sprintf(`loom_tenant_tasks_total{outcome="complete",tenant="tenant%d"}`, workTenants-1)
	for name := range got {
		if len(name) > 12 && name[:12] == "loom_tenant_" {
			series++
		}
	}
	if series != 2*(workTenants+1) {
		t.Errorf("%d series", series)
	}
	for name, want := range map[string]string{
		`loom_tenant_tasks_total{outcome="complete",tenant="tenant0"}`: "2",
		named: "1",
		`loom_tenant_tasks_total{outcome="complete",tenant="(others)"}`: "100",
		`loom_tenant_task_seconds_total{tenant="(others)"}`:             "100",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// TestTenantsAreNamedWhenTheirNamesAreKnown: nothing is told under a wrong name, and
// nothing that was counted is lost for that.
func TestTenantsAreNamedWhenTheirNamesAreKnown(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	asked, away := 0, true
	names := manyNames(2)
	worked(m, 0, 1)
	const first, second = `loom_tenant_tasks_total{outcome="complete",tenant="tenant0"}`, `loom_tenant_tasks_total{outcome="complete",tenant="tenant1"}`
	if got := scrape(t, m); got[first] != "" {
		t.Errorf("told without a name: %v", got)
	}
	m.Tenants(func(context.Context) (map[loom.TenantID]string, error) {
		asked++
		if away {
			return nil, errors.New("the database is away")
		}
		return maps.Clone(names), nil
	}, slog.New(slog.DiscardHandler))
	if got := scrape(t, m); got[first] != "" || asked != 1 {
		t.Errorf("told without a name, asked %d times: %v", asked, got[first])
	}
	away = false
	worked(m, 0, 2)
	for range 3 {
		if got := scrape(t, m); got[first] != "2" || got[second] != "1" || asked != 2 {
			t.Errorf("%q, %q, asked %d times", got[first], got[second], asked)
		}
	}
	// A tenant that is gone is not told of any more, and leaves its place.
	delete(names, "t0")
	m.tenants.asking.Lock()
	m.tenants.asked = time.Now().Add(-namesAge)
	m.tenants.asking.Unlock()
	if got := scrape(t, m); got[first] != "" || got[second] != "1" || len(m.tenants.done) != 1 {
		t.Errorf("%q, %q, %d tenants", got[first], got[second], len(m.tenants.done))
	}
}
