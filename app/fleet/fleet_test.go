package fleet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/app/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// world is a cluster of ready nodes that run nginx, and a process that may record.
type world struct {
	t       *testing.T
	db      *testkit.Database
	fleet   *fleet.Fleet
	cluster loom.ClusterID
	nodes   []loom.NodeID
}

func newWorld(t *testing.T, nodes int) *world {
	t.Helper()
	db := testkit.NewDatabase(t)
	w := &world{t: t, db: db, fleet: fleet.New(db.DB)}
	w.exec(`INSERT INTO tenants (id, name) VALUES ('t1', 'demo'), ('superadmin', 'superadmin')`)
	w.exec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('p1', 'provisioner', 'h', now() + interval '1 hour'), ('late', 'provisioner', 'h', now() - interval '1 s')`)
	if err := db.Get(&w.cluster, `INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services, latest_operation)
		VALUES ('t1', 'ana', 'shop', 'active', 't', 1, '{}', 'p', '{}', '{}', 3) RETURNING id`); err != nil {
		t.Fatal(err)
	}
	if err := db.Select(&w.nodes, `INSERT INTO nodes (id, cluster_id, tenant_id, number, state, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
		SELECT gen_random_uuid(), $1, 't1', 999 + i, 'ready', 'n' || i, 'h', 'i', 'f', 'm', 'root', '{nginx}', '{}' FROM generate_series(1, $2) AS i RETURNING id`, w.cluster, nodes); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Exec(query, args...); err != nil {
		w.t.Fatal(err)
	}
}

// seen is a look at a node that found its service as said.
func (w *world) seen(node int, passed bool, message string) loom.HealthSeen {
	check := loom.ServiceCheck{Command: "x", Failures: 1, Passes: 1, Grace: 1}
	return loom.HealthSeen{
		HealthNode: loom.HealthNode{Node: w.nodes[node], Tenant: "t1", Cluster: w.cluster, Incarnation: 1, Operation: 3},
		At:         time.Now(), Interval: time.Minute, Load: loom.Load{CPU: 1, Memory: 2, Disk: 3},
		Services: map[string]loom.ServiceSeen{"nginx": {Check: check, Checked: true, Passed: passed, Message: message}},
	}
}

func (w *world) record(process loom.ProcessID, seen ...loom.HealthSeen) {
	w.t.Helper()
	if _, err := w.fleet.Record(context.Background(), process, seen); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) health() loom.ClusterHealth {
	w.t.Helper()
	h, err := w.fleet.Health(context.Background(), ana, w.cluster)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// expect compares the statuses of the cluster and of its nodes.
func (w *world) expect(cluster loom.HealthStatus, nodes ...loom.HealthStatus) {
	w.t.Helper()
	h := w.health()
	if h.Status != cluster {
		w.t.Errorf("the cluster is %q, want %q", h.Status, cluster)
	}
	for i, want := range nodes {
		if i >= len(h.Nodes) {
			w.t.Fatalf("only %d nodes are known", len(h.Nodes))
		}
		if got := h.Nodes[i]; got.Status != want {
			w.t.Errorf("node %d is %q (%s), want %q", i, got.Status, got.Message, want)
		}
	}
}

var ana = loom.Actor{Tenant: "t1", User: "ana", Role: loom.RoleUser}

// TestRecord: looks at nodes are recorded, and the health of the cluster follows from them.
func TestRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	if h := w.health(); h.Status != "" || len(h.Nodes) > 0 {
		t.Errorf("before anybody looked: %+v", h)
	}
	w.record("p1", w.seen(0, true, ""), w.seen(1, true, ""))
	w.expect(loom.HealthHealthy, loom.HealthHealthy, loom.HealthHealthy)
	// The grace of a second after the first look is over.
	w.exec(`UPDATE node_health SET changed_at = now() - interval '1 minute'`)
	w.record("p1", w.seen(0, false, "exit status 7"))
	w.expect(loom.HealthDegraded, loom.HealthFailing, loom.HealthHealthy)
	h := w.health()
	if n := h.Nodes[0]; n.Message != "nginx failing: exit status 7" || n.CPU != 1 || n.Memory != 2 || n.Disk != 3 || n.Services["nginx"].Status != loom.HealthFailing {
		t.Errorf("the failing node: %+v", n)
	}
	w.record("p1", w.seen(1, false, "exit status 7"))
	w.expect(loom.HealthFailing, loom.HealthFailing, loom.HealthFailing)
	w.record("p1", w.seen(0, true, ""), w.seen(1, true, ""))
	w.expect(loom.HealthHealthy, loom.HealthHealthy, loom.HealthHealthy)

	dead := w.seen(0, true, "")
	dead.Unreachable, dead.Services = true, nil
	w.record("p1", dead)
	w.expect(loom.HealthDegraded, loom.HealthUnreachable)
	dead.Doubted, dead.At = true, time.Now()
	w.record("p1", dead)
	w.expect(loom.HealthUnknown, loom.HealthUnknown)
	w.record("p1", w.seen(0, true, ""))
	w.expect(loom.HealthHealthy, loom.HealthHealthy)
}

// TestFences: results about another machine, an older operation, or by a process without a
// lease do not count, nor do those about a node that an operation is at work on.
func TestFences(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.record("p1", w.seen(0, true, ""))
	w.exec(`UPDATE node_health SET changed_at = now() - interval '1 minute'`)
	bad := w.seen(0, false, "broken")
	bad.Incarnation = 2
	w.record("p1", bad)
	bad.Incarnation, bad.Operation = 1, 2
	w.record("p1", bad)
	bad.Operation = 3
	w.record("late", bad)
	w.record("nobody", bad)
	w.exec(`WITH o AS (INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by) VALUES ('t1', $1, 3, 'configure', 'running', 'ana') RETURNING id),
		t AS (INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, node_id, action, status) SELECT id, 't1', $1, 1, $2, 'stop', 'ready' FROM o RETURNING id)
		UPDATE nodes SET task_id = (SELECT id FROM t) WHERE id = $2`, w.cluster, w.nodes[0])
	w.record("p1", bad)
	w.expect(loom.HealthHealthy, loom.HealthHealthy)
	nodes, err := w.fleet.Nodes(context.Background(), "")
	if err != nil || len(nodes) != 1 || !nodes[0].Changing || nodes[0].Operation != 3 {
		t.Fatalf("the node that changes: %+v, %v", nodes, err)
	}
	w.record("p1", loom.HealthSeen{HealthNode: nodes[0], At: time.Now()})
	w.expect(loom.HealthUnknown, loom.HealthChanging)
	// What a paused operation leaves alone is checked.
	w.exec(`UPDATE operations SET status = 'paused'`)
	w.record("p1", w.seen(0, true, ""))
	w.expect(loom.HealthHealthy, loom.HealthHealthy)
	// A failure right after the operation is within the grace.
	w.exec(`UPDATE operations SET status = 'complete'; UPDATE tasks SET status = 'complete'; UPDATE nodes SET task_id = NULL`)
	w.record("p1", w.seen(0, false, "starts"))
	w.expect(loom.HealthHealthy, loom.HealthHealthy)
	// Another machine knows nothing of the one before.
	w.exec(`UPDATE nodes SET incarnation = 2`)
	fresh := w.seen(0, false, "new")
	fresh.Incarnation, fresh.Services = 2, map[string]loom.ServiceSeen{"nginx": {}}
	w.record("p1", fresh)
	if s := w.health().Nodes[0].Services["nginx"]; s.Status != loom.HealthUnknown || s.Message != "" {
		t.Errorf("the service of another machine: %+v", s)
	}
}

// TestJudge: what nobody looks at becomes unknown, and what is gone is forgotten.
func TestJudge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.record("p1", w.seen(0, true, ""), w.seen(1, true, ""))
	judge := func(want int) {
		t.Helper()
		if n, err := w.fleet.Judge(context.Background()); err != nil || n != want {
			t.Errorf("%d nodes became unknown, %v; want %d", n, err, want)
		}
	}
	judge(0)
	w.exec(`UPDATE node_health SET seen_at = now() - interval '181 s' WHERE node_id = $1`, w.nodes[0])
	judge(1)
	judge(0)
	w.expect(loom.HealthUnknown, loom.HealthUnknown, loom.HealthHealthy)
	w.exec(`UPDATE nodes SET state = 'deleted' WHERE id = $1`, w.nodes[0])
	judge(0)
	w.expect(loom.HealthHealthy, loom.HealthHealthy)
	w.exec(`UPDATE nodes SET state = 'deleted'`)
	w.exec(`UPDATE clusters SET status = 'terminated'`)
	judge(0)
	var left int
	if err := w.db.Get(&left, `SELECT (SELECT count(*) FROM node_health) + (SELECT count(*) FROM cluster_health)`); err != nil || left != 0 {
		t.Errorf("%d rows are left, %v", left, err)
	}
}

// TestCheck: who may ask for a check, of what, and how often.
func TestCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	ctx := context.Background()
	ask := func(actor loom.Actor, nodes ...loom.NodeID) (int, error) {
		return w.fleet.Check(ctx, actor, w.cluster, nodes)
	}
	if _, err := ask(ana); !errors.Is(err, loom.Conflict) {
		t.Errorf("before anybody looked: %v", err)
	}
	w.record("p1", w.seen(0, true, ""), w.seen(1, true, ""))
	ben := ana
	ben.User = "ben"
	if _, err := ask(ben); !errors.Is(err, loom.NotFound) {
		t.Errorf("somebody else's cluster: %v", err)
	}
	if _, err := ask(ana, "7c0a3a1e-0000-4000-8000-000000000000"); !errors.Is(err, loom.Invalid) {
		t.Errorf("a node that is not there: %v", err)
	}
	if _, err := ask(ana, "x'; --"); !errors.Is(err, loom.Invalid) {
		t.Errorf("no id: %v", err)
	}
	if n, err := ask(ana, w.nodes[0]); n != 1 || err != nil {
		t.Errorf("one node: %d, %v", n, err)
	}
	if n, err := ask(ana); n != 1 || err != nil {
		t.Errorf("the other one: %d, %v", n, err)
	}
	if _, err := ask(ana); !errors.Is(err, loom.Throttled) {
		t.Errorf("again at once: %v", err)
	}
	nodes, err := w.fleet.Nodes(ctx, "t1")
	if err != nil || len(nodes) != 2 || nodes[0].WantedAt.IsZero() || nodes[1].WantedAt.IsZero() {
		t.Errorf("what provisioners learn: %+v, %v", nodes, err)
	}
	w.record("p1", w.seen(0, true, ""))
	if nodes, _ = w.fleet.Nodes(ctx, "t1"); !nodes[0].WantedAt.IsZero() || nodes[1].WantedAt.IsZero() {
		t.Errorf("after one check: %+v", nodes)
	}
}

// TestRecordStretched: where checks are hours apart, results one after the other are in a row
// all the same.
func TestRecordStretched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	begun := time.Now().Add(-12 * time.Hour)
	look := func(hours int, passed bool) {
		seen := w.seen(0, passed, "exit status 7")
		service := seen.Services["nginx"]
		service.Check.Failures, service.Check.Passes, service.Check.Interval = 2, 2, 60
		seen.Services["nginx"] = service
		seen.At, seen.Interval = begun.Add(time.Duration(hours)*time.Hour), 5*time.Hour
		w.record("p1", seen)
		w.exec(`UPDATE node_health SET changed_at = $1`, begun.Add(-time.Hour))
	}
	look(0, true)
	look(4, false)
	look(5, false)
	w.expect(loom.HealthFailing, loom.HealthFailing)
	look(6, true)
	w.expect(loom.HealthFailing, loom.HealthFailing)
	look(10, true)
	w.expect(loom.HealthHealthy, loom.HealthHealthy)
}
