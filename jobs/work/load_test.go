package work

import (
	"testing"
	"time"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/app/testkit"
)

// TestRecordLoad: what looks saw within a step is one point, and none where they saw nothing.
func TestRecordLoad(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	db.MustExec(`INSERT INTO tenants (id, name) VALUES ('t1', 'demo')`)
	db.MustExec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('p1', 'provisioner', 'h', now() + interval '1 hour')`)
	var cluster loom.ClusterID
	if err := db.Get(&cluster, `INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services)
		VALUES ('t1', 'ana', 'shop', 'active', 't', 1, '{}', 'p', '{}', '{}') RETURNING id`); err != nil {
		t.Fatal(err)
	}
	var ids []loom.NodeID
	if err := db.Select(&ids, `INSERT INTO nodes (id, cluster_id, tenant_id, number, state, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
		SELECT gen_random_uuid(), $1, 't1', 999 + i, 'ready', 'n' || i, 'h', 'i', 'f', 'm', 'root', '{}', '{}' FROM generate_series(1, 3) AS i RETURNING id`, cluster); err != nil {
		t.Fatal(err)
	}
	p := &Provisioner{}
	p.Fleet, p.HealthRate = fleet.New(db.DB), 40
	h := &health{p: p, process: "p1", log: p.logger(), nodes: map[loom.NodeID]*watched{}}
	for _, id := range ids {
		h.nodes[id] = &watched{node: loom.HealthNode{Node: id, Tenant: "t1", Cluster: cluster, Incarnation: 1}}
	}
	now := time.Now()
	saw := func(node int, load loom.Load) {
		h.looks++
		seen := loom.HealthSeen{HealthNode: h.nodes[ids[node]].node, Load: load}
		h.take(looked{node: ids[node], look: &loom.HealthLook{HealthNode: seen.HealthNode}, seen: seen}, now)
	}
	expect := func(node int, want ...loom.Load) {
		t.Helper()
		got, err := h.p.Fleet.Load(t.Context(), loom.Actor{Tenant: "t1", User: "ana", Role: loom.RoleUser}, cluster, ids[node])
		for n := len(got.CPU); n > 0 && got.CPU[n-1] < 0; n-- { // a step has ended since
			got.CPU = got.CPU[:n-1]
		}
		if err != nil || len(got.CPU) != len(want) {
			t.Fatalf("node %d: %+v, %v; want %v", node, got, err, want)
		}
		for i, w := range want {
			if got := (loom.Load{CPU: got.CPU[i], Memory: got.Memory[i], Disk: got.Disk[i]}); got != w {
				t.Errorf("node %d, point %d: %+v, want %+v", node, i, got, w)
			}
		}
	}
	record := func() {
		t.Helper()
		if err := h.recordLoad(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	saw(0, loom.Load{CPU: 10, Memory: 50, Disk: -1})
	saw(0, loom.Load{CPU: 30, Memory: 50, Disk: -1})
	saw(1, loom.NoLoad)
	record()
	expect(0, loom.Load{CPU: 20, Memory: 50, Disk: -1})
	expect(1)
	expect(2)
	db.MustExec(`UPDATE node_load SET slot = slot - 1`)
	record() // nothing was seen since
	expect(0, loom.Load{CPU: 20, Memory: 50, Disk: -1})
	// Of a machine that was replaced meanwhile, nothing counts.
	saw(0, loom.Load{CPU: 90, Memory: 90, Disk: 90})
	saw(2, loom.Load{CPU: 1, Memory: 1, Disk: 1})
	db.MustExec(`UPDATE nodes SET incarnation = 2 WHERE id = $1`, ids[0])
	record()
	expect(0)
	expect(2, loom.Load{CPU: 1, Memory: 1, Disk: 1})
}

// TestSumsAreDue: files are summed once an hour, by a look that reached the machine.
func TestSumsAreDue(t *testing.T) {
	t.Parallel()
	w := &watched{node: loom.HealthNode{Node: "n1"}}
	h := &health{p: &Provisioner{}, nodes: map[loom.NodeID]*watched{"n1": w}}
	now := time.Now()
	for i, c := range []struct {
		seen loom.HealthSeen
		want time.Time
	}{
		{loom.HealthSeen{}, time.Time{}},
		{loom.HealthSeen{Unreachable: true}, time.Time{}},
		{loom.HealthSeen{SummedAt: now}, now.Add(time.Hour)},
		{loom.HealthSeen{}, now.Add(time.Hour)},
	} {
		h.take(looked{node: "n1", look: &loom.HealthLook{}, seen: c.seen}, now)
		if !w.nextSums.Equal(c.want) {
			t.Errorf("look %d: next at %s, want %s", i, w.nextSums, c.want)
		}
	}
}
