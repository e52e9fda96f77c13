package work

import (
	"fmt"
	"testing"
	"time"

	"loom/app/loom"
)

// TestPace: of 10,000 nodes each is looked at in turn, and between looks gives a sign of life
// once a minute; a look that is urgent waits for no other.
func TestPace(t *testing.T) {
	t.Parallel()
	const nodes = 10_000
	p := &Provisioner{}
	p.HealthRate = 40
	h := &health{p: p, nodes: map[loom.NodeID]*watched{}}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	heard, seen := map[loom.NodeID]time.Time{}, map[loom.NodeID]int{}
	for i := range nodes {
		id := loom.NodeID(fmt.Sprintf("n%04d", i))
		first := begin.Add(time.Duration(i) * time.Second / 40)
		h.nodes[id] = &watched{node: loom.HealthNode{Node: id}, nextLook: first, nextPing: first}
	}
	for second := range 1_000 {
		now := begin.Add(time.Duration(second) * time.Second)
		urgent := h.nodes[loom.NodeID(fmt.Sprintf("n%04d", second))]
		urgent.urgent, urgent.nextLook = true, now
		looks, pings := h.due(now, time.Second)
		if len(looks) > 40 || len(pings) > maxPings || len(looks) == 0 || looks[0] != urgent {
			t.Fatalf("second %d: %d looks, %d signs of life, or the urgent one is not the first", second, len(looks), len(pings))
		}
		for _, w := range looks {
			seen[w.node.Node]++
			w.urgent, w.nextLook = false, now.Add(nodes/40*time.Second)
		}
		for _, w := range append(looks, pings...) {
			if before := heard[w.node.Node]; seen[w.node.Node] > 0 && !before.IsZero() && now.Sub(before) > time.Minute {
				t.Fatalf("second %d: %s was last heard of %s ago", second, w.node.Node, now.Sub(before))
			}
			heard[w.node.Node], w.nextPing = now, now.Add(h.pingEvery())
		}
		for _, w := range pings { // without a look there was no connection to ask on
			h.pings++
			h.take(looked{node: w.node.Node, ping: true, alive: seen[w.node.Node] > 0, kept: seen[w.node.Node] > 0}, now)
		}
		if at := 300; second == at && len(seen) < nodes {
			t.Fatalf("after %d s only %d nodes were looked at", at, len(seen))
		}
	}
	for id := range h.nodes {
		if n := seen[id]; n < 3 {
			t.Errorf("%s was looked at %d times", id, n)
		}
	}
}

// TestFailingIsLookedAtSoon: the check after a failure comes within 15 s, however many nodes
// there are, and goes before others until it is clear that the failure lasts; a missing sign
// of life leaves the place of whoever waits for a look.
func TestFailingIsLookedAtSoon(t *testing.T) {
	t.Parallel()
	p := &Provisioner{}
	p.HealthRate = 40
	h := &health{p: p, nodes: map[loom.NodeID]*watched{}}
	for i := range 10_000 {
		h.nodes[loom.NodeID(fmt.Sprint(i))] = &watched{}
	}
	w := h.nodes["7"]
	now := time.Now()
	check := loom.ServiceCheck{Command: "x"}.WithDefaults()
	for i, c := range []struct {
		passed, urgent bool
		next           time.Duration
	}{
		{true, false, 250 * time.Second}, {false, true, 15 * time.Second}, {false, true, 15 * time.Second}, {false, false, 15 * time.Second},
		{true, false, 250 * time.Second}, {false, true, 15 * time.Second},
	} {
		h.looks++
		h.take(looked{node: "7", look: &loom.HealthLook{Services: []loom.ServiceLook{{Name: "nginx", Check: check}}},
			seen: loom.HealthSeen{Services: map[string]loom.ServiceSeen{"nginx": {Check: check, Checked: true, Passed: c.passed}}}}, now)
		if w.urgent != c.urgent || w.nextLook.Sub(now) != c.next {
			t.Errorf("look %d: urgent %v, the next one after %s; want %v and %s", i, w.urgent, w.nextLook.Sub(now), c.urgent, c.next)
		}
	}
	w.nextLook = now.Add(-time.Second)
	h.pings++
	h.take(looked{node: "7", ping: true}, now)
	if !w.nextLook.Equal(now.Add(-time.Second)) {
		t.Errorf("the look that was due is due at %s", w.nextLook)
	}
}
