package processes

import (
	"testing"

	"loom/app/loom"
	"loom/app/store"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	const node = loom.NodeID("0c1d0000-0000-4000-8000-000000000001")
	now, before := loom.IdempotencyKey(node, 2), loom.IdempotencyKey(node, 1)
	for _, c := range []struct {
		name    string
		machine func(*loom.TaggedMachine)
		claim   func(*store.NodeClaim)
		want    machineClass
	}{
		{"the machine of a live node", nil, nil, claimed},
		{"of a live node that never heard its id", func(m *loom.TaggedMachine) { m.ID = "m2" }, func(n *store.NodeClaim) { n.Machine = "" }, claimed},
		{"an id that the node has, whatever its key", func(m *loom.TaggedMachine) { m.Key = before }, nil, claimed},
		{"a second one with the key", func(m *loom.TaggedMachine) { m.ID = "m2" }, nil, second},
		{"a second one while an operation runs", func(m *loom.TaggedMachine) { m.ID = "m2" }, func(n *store.NodeClaim) { n.Busy = true }, unsure},
		{"a second one that a retry of the CREATE may take", func(m *loom.TaggedMachine) { m.ID = "m2" }, func(n *store.NodeClaim) { n.Ready = false }, claimed},
		{"one with the key whose own machine is not listed", func(m *loom.TaggedMachine) { m.ID = "m3" }, nil, claimed},
		{"without a key", func(m *loom.TaggedMachine) { m.ID, m.Key = "m2", "" }, nil, claimed},
		{"the machine before", func(m *loom.TaggedMachine) { m.ID, m.Key = "m0", before }, nil, orphaned},
		{"the machine before, while an operation runs", func(m *loom.TaggedMachine) { m.ID, m.Key = "m0", before }, func(n *store.NodeClaim) { n.Busy = true }, unsure},
		{"of a node that is gone", nil, func(n *store.NodeClaim) { n.Gone = true }, orphaned},
		{"of a node that goes", nil, func(n *store.NodeClaim) { n.Gone, n.Busy = true, true }, unsure},
		{"of a node that another installation has", nil, func(n *store.NodeClaim) { *n = store.NodeClaim{} }, foreign},
		{"of another tenant", func(m *loom.TaggedMachine) { m.Tenant = "t2" }, func(n *store.NodeClaim) { n.Gone = true }, foreign},
		{"of another cluster", func(m *loom.TaggedMachine) { m.Cluster = "8" }, func(n *store.NodeClaim) { n.Gone = true }, foreign},
		{"without a cluster", func(m *loom.TaggedMachine) { m.Cluster = "" }, func(n *store.NodeClaim) { n.Gone = true }, foreign},
		{"without an id", func(m *loom.TaggedMachine) { m.ID = "" }, func(n *store.NodeClaim) { n.Gone = true }, foreign},
		{"of another provider's cluster", nil, func(n *store.NodeClaim) { n.Gone, n.Provider = true, "q" }, foreign},
	} {
		m := loom.TaggedMachine{ID: "m1", Node: node, Key: now, Cluster: "00000007", Tenant: "t1"}
		claim := &store.NodeClaim{Node: node, Cluster: 7, Provider: "p", Incarnation: 2, Machine: "m1", Ready: true}
		if c.machine != nil {
			c.machine(&m)
		}
		if c.claim != nil {
			if c.claim(claim); claim.Node == "" {
				claim = nil
			}
		}
		if got := classifyMachine("t1", "p", m, claim, m.ID != "m3"); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
