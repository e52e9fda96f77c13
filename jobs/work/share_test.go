package work

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"loom/app/loom"
	"loom/app/processes"
)

func provisionerAt(id, host string, only loom.TenantID) processes.LiveProcess {
	return processes.LiveProcess{Process: loom.Process{ID: loom.ProcessID(id), Host: host}, OnlyTenant: only}
}

// TestShare: each node has one watcher; a process that leaves moves its own nodes only, and
// those of a tenant and of a host stay there.
func TestShare(t *testing.T) {
	t.Parallel()
	live := []processes.LiveProcess{provisionerAt("a", "h1", ""), provisionerAt("b", "h2", ""), provisionerAt("c", "h3", "")}
	count := map[loom.ProcessID]int{}
	for i := range 3000 {
		n := loom.HealthNode{Node: loom.NodeID(fmt.Sprintf("node-%d", i)), Tenant: "t"}
		of := watcherOf(n, live)
		count[of]++
		if left := watcherOf(n, live[:2]); of != "c" && left != of {
			t.Fatalf("node %d moved from %s to %s when c left", i, of, left)
		}
	}
	for _, id := range []loom.ProcessID{"a", "b", "c"} {
		if count[id] < 800 {
			t.Errorf("%s watches %d of 3000", id, count[id])
		}
	}
	draining := provisionerAt("d", "h4", "")
	draining.Draining = true
	for name, c := range map[string]struct {
		node loom.HealthNode
		live []processes.LiveProcess
		want loom.ProcessID
	}{
		"the tenant's own":      {loom.HealthNode{Node: "n", Tenant: "t"}, append(live, provisionerAt("own", "h5", "t")), "own"},
		"not another tenant's":  {loom.HealthNode{Node: "n", Tenant: "u"}, []processes.LiveProcess{provisionerAt("own", "h5", "t")}, ""},
		"on its host":           {loom.HealthNode{Node: "n", LocalHost: "h2"}, live, "b"},
		"its host has none":     {loom.HealthNode{Node: "n", LocalHost: "h9"}, live, ""},
		"not one that is going": {loom.HealthNode{Node: "n"}, []processes.LiveProcess{draining}, ""},
	} {
		if got := watcherOf(c.node, c.live); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestDoubt: a process that suspects more than three nodes, and more than a fifth of those
// that answer, is in doubt until it is less.
func TestDoubt(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		suspects, reached int
		want              bool
	}{{0, 0, false}, {3, 0, false}, {4, 0, true}, {4, 19, true}, {4, 20, false}, {5, 20, true}, {20, 100, false}, {21, 100, true}} {
		h := &health{p: &Provisioner{}, log: slog.New(slog.DiscardHandler), nodes: map[loom.NodeID]*watched{}}
		for i := range c.suspects + c.reached {
			w := &watched{reached: now}
			if i < c.suspects {
				w.failures = 1
			}
			h.nodes[loom.NodeID(fmt.Sprint(i))] = w
		}
		if h.judgeDoubt(now); h.doubt != c.want {
			t.Errorf("%d suspects, %d reached: in doubt %v", c.suspects, c.reached, h.doubt)
		}
	}
}

// TestPlan: when a node is looked at next, and the interval that pages show.
func TestPlan(t *testing.T) {
	t.Parallel()
	now := time.Now()
	check := func(interval int) loom.ServiceCheck {
		return loom.ServiceCheck{TCP: &loom.TCPCheck{Port: 1}, Interval: interval}.WithDefaults()
	}
	for name, c := range map[string]struct {
		nodes    int
		services []loom.ServiceLook
		failed   string
		least    time.Duration
		asked    int
		next     time.Duration
		interval time.Duration
	}{
		"no service":           {1, nil, "", 0, 0, time.Minute, time.Minute},
		"nothing is checked":   {1, []loom.ServiceLook{{Name: "a", Status: loom.HealthUnchecked}}, "", 0, 0, time.Minute, time.Minute},
		"the shortest":         {1, []loom.ServiceLook{{Name: "a", Check: check(30)}, {Name: "b", Check: check(300)}}, "", 0, 0, 30 * time.Second, 30 * time.Second},
		"soon after a failure": {1, []loom.ServiceLook{{Name: "a", Check: check(300)}}, "a", 0, 0, 15 * time.Second, 300 * time.Second},
		"many nodes":           {4000, []loom.ServiceLook{{Name: "a", Check: check(60)}}, "", 0, 0, 100 * time.Second, 100 * time.Second},
		"somebody asked":       {1, []loom.ServiceLook{{Name: "a", Check: check(60)}}, "", 0, 2, 5 * time.Second, 60 * time.Second},
		"the last of those":    {1, []loom.ServiceLook{{Name: "a", Check: check(60)}}, "", 0, 1, 60 * time.Second, 60 * time.Second},
		"the template's":       {1, []loom.ServiceLook{{Name: "a", Check: check(60)}}, "", 10 * time.Minute, 0, 10 * time.Minute, 10 * time.Minute},
	} {
		h := &health{p: &Provisioner{HealthRate: 40}, nodes: map[loom.NodeID]*watched{}}
		for i := range c.nodes {
			h.nodes[loom.NodeID(fmt.Sprint(i))] = &watched{}
		}
		e := looked{look: &loom.HealthLook{Services: c.services, Least: c.least}, seen: loom.HealthSeen{Services: map[string]loom.ServiceSeen{}}}
		for _, s := range c.services {
			e.seen.Services[s.Name] = loom.ServiceSeen{Checked: s.Status == "", Passed: s.Name != c.failed}
		}
		w := &watched{asked: c.asked}
		h.plan(w, &e, now)
		if next := w.nextLook.Sub(now); next != c.next || e.seen.Interval != c.interval {
			t.Errorf("%s: next in %s every %s, want %s and %s", name, next, e.seen.Interval, c.next, c.interval)
		}
	}
}
