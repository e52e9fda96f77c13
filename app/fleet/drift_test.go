package fleet_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/app/store"
)

// sums is a look at a node that summed the file of its service.
func (w *world) sums(node int, sum string) loom.HealthSeen {
	seen := w.seen(node, true, "")
	seen.SummedAt = seen.At
	nginx := seen.Services["nginx"]
	nginx.Files = loom.FileSums{"/etc/nginx.conf": sum}
	seen.Services["nginx"] = nginx
	return seen
}

// expectDrift compares what has drifted on a node.
func (w *world) expectDrift(node int, want ...string) {
	w.t.Helper()
	var got []string
	for _, d := range w.health().Nodes[node].Drift {
		got = append(got, d.Text())
		if d.Since.IsZero() {
			w.t.Errorf("%+v has no time", d)
		}
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("drift of node %d: %q, want %q", node, got, want)
	}
}

// ran records an operation that carried out an action of nginx on a node.
func (w *world) ran(node int, action loom.TaskAction) {
	w.t.Helper()
	w.exec(`WITH o AS (INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by, ended_at)
			SELECT 't1', $1, coalesce(max(number), 3) + 1, 'x', 'complete', 'ana', clock_timestamp() FROM operations WHERE cluster_id = $1 RETURNING id)
		INSERT INTO tasks (operation_id, tenant_id, cluster_id, number, node_id, service, action, status, ended_at) SELECT id, 't1', $1, 1, $2, 'nginx', $3, 'complete', clock_timestamp() FROM o`,
		w.cluster, w.nodes[node], action)
}

// TestDriftOfFiles: a file that is not as after its service was last configured is an
// incident until it is, or until the service is configured again.
func TestDriftOfFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.exec(`UPDATE clusters SET services = '{"nginx": {"name": "nginx", "provisioner": {"actions": {"configure": {}}}}}'`)
	const changed = "/etc/nginx.conf was changed."
	w.record("p1", w.sums(0, "a"), w.sums(1, "b"))
	w.record("p1", w.sums(0, "a"), w.sums(1, "b"))
	w.expect(loom.HealthHealthy, loom.HealthHealthy, loom.HealthHealthy)
	w.expectDrift(0)
	w.record("p1", w.sums(0, "x"))
	w.expect(loom.HealthDegraded, loom.HealthHealthy, loom.HealthHealthy)
	w.expectDrift(0, changed)
	w.expectIncidents("n1 drift nginx")
	d := w.health().Nodes[0].Drift[0]
	if d.Was != "a" || d.Now != "x" || d.Service != "nginx" || d.File != "/etc/nginx.conf" {
		t.Errorf("%+v", d)
	}
	// What sums no files, or reaches nothing, changes nothing of it; nor does another edit.
	w.record("p1", w.seen(0, true, ""))
	w.record("p1", w.sums(0, loom.SumUnknown))
	w.record("p1", w.down(0))
	w.expectDrift(0, changed)
	w.record("p1", w.sums(0, ""))
	w.expectDrift(0, "/etc/nginx.conf was removed.")
	w.expectIncidents("n1 drift nginx", "n1 unreachable ended")
	if again := w.health().Nodes[0].Drift[0]; !again.Since.Equal(d.Since) {
		t.Errorf("since %s, it was since %s", again.Since, d.Since)
	}
	// As it was.
	w.record("p1", w.sums(0, "a"))
	w.expect(loom.HealthHealthy)
	w.expectDrift(0)
	w.expectIncidents("n1 drift nginx ended", "n1 unreachable ended")
	// Maintenance, and a service that need not run.
	w.exec(`DELETE FROM incidents`)
	w.exec(`INSERT INTO maintenance (tenant_id, cluster_id, until, reason, by_user) VALUES ('t1', $1, now() + interval '1 hour', 'x', 'ana')`, w.cluster)
	w.record("p1", w.sums(0, "x"))
	w.expectDrift(0, changed)
	w.expectIncidents()
	w.exec(`DELETE FROM maintenance`)
	w.record("p1", w.seen(0, true, ""))
	w.expectIncidents("n1 drift nginx")
	off := w.seen(0, true, "")
	off.Services["nginx"] = loom.ServiceSeen{Status: loom.HealthOff}
	w.record("p1", off)
	w.expectDrift(0)
	w.expectIncidents("n1 drift nginx ended")
	// A restart does not make it right; CONFIGURE does, on that node.
	w.exec(`DELETE FROM incidents`)
	w.ran(0, loom.ActionStart)
	w.ran(1, loom.ActionConfigure)
	w.record("p1", w.sums(0, "x"))
	w.expectDrift(0, changed)
	w.ran(0, loom.ActionConfigure)
	w.record("p1", w.seen(0, true, ""))
	w.expectDrift(0, changed)
	w.record("p1", w.sums(0, "x"))
	w.expectDrift(0)
	w.expectIncidents("n1 drift nginx ended")
	w.record("p1", w.sums(0, "a"))
	w.expectDrift(0, changed)
	// Sums that began before CONFIGURE ended are not what it left.
	early := w.sums(0, "a")
	early.SummedAt = time.Now().Add(-time.Minute)
	w.ran(0, loom.ActionConfigure)
	w.record("p1", early)
	w.record("p1", w.sums(0, "c"))
	w.expectDrift(0)
	// Where a service has no CONFIGURE, START sets it up.
	w.exec(`UPDATE clusters SET services = '{}'`)
	w.record("p1", w.sums(0, "d"))
	w.expectDrift(0, changed)
	w.ran(0, loom.ActionStart)
	w.record("p1", w.sums(0, "d"))
	w.expectDrift(0)
	// Another machine is compared with nothing of this one.
	w.record("p1", w.sums(0, "e"))
	w.expectDrift(0, changed)
	w.exec(`UPDATE nodes SET incarnation = 2 WHERE id = $1`, w.nodes[0])
	another := w.seen(0, true, "")
	another.Incarnation = 2
	w.record("p1", another)
	w.expectDrift(0)
	w.exec(`UPDATE nodes SET state = 'deleted'`)
	if _, err := w.fleet.Judge(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := w.count(`SELECT count(*) FROM node_files`); n != 0 {
		t.Errorf("%d sums of machines that are gone", n)
	}
}

// TestDriftOfMachines: what a provider lists is held against its first list after CREATE.
func TestDriftOfMachines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	lists := func(m loom.TaggedMachine) {
		t.Helper()
		err := store.Exec(context.Background(), w.db.DB, func(tx *sqlx.Tx) error {
			return store.RecordListed(context.Background(), tx, map[loom.NodeID]loom.TaggedMachine{w.nodes[0]: m}, time.Now())
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	small := loom.TaggedMachine{State: loom.StateRunning, Flavor: "small", Image: "debian", Addresses: []string{"10.0.0.2", "10.0.0.1"}}
	w.record("p1", w.seen(0, true, ""))
	lists(small)
	w.record("p1", w.seen(0, true, ""))
	w.expectDrift(0)
	large := small
	large.Flavor, large.Addresses = "large", []string{"10.0.0.1", "10.0.0.2"}
	lists(large)
	w.record("p1", w.seen(0, true, ""))
	w.expect(loom.HealthDegraded, loom.HealthHealthy)
	w.expectDrift(0, "Its size is large, it was small.")
	w.expectIncidents("n1 drift")
	// A machine that is stopped, or a provider that says less, changes nothing of that.
	stopped := small
	stopped.State = loom.StateStopped
	lists(stopped)
	lists(loom.TaggedMachine{State: loom.StateMissing})
	lists(loom.TaggedMachine{State: loom.StateRunning})
	w.record("p1", w.seen(0, true, ""))
	w.expectDrift(0, "Its size is large, it was small.")
	large.Image, large.Addresses = "other", []string{"10.0.0.9"}
	lists(large)
	w.record("p1", w.seen(0, true, ""))
	w.expectDrift(0, "Its size is large, it was small.", "Its image is other, it was debian.", "Its addresses are 10.0.0.9, they were 10.0.0.1, 10.0.0.2.")
	lists(small)
	w.record("p1", w.seen(0, true, ""))
	w.expectDrift(0)
	w.expectIncidents("n1 drift ended")
	// Another machine has a first list of its own.
	w.exec(`UPDATE nodes SET incarnation = 2`)
	lists(large) // before anybody looked at it
	another := w.seen(0, true, "")
	another.Incarnation = 2
	w.record("p1", another)
	lists(large)
	w.record("p1", another)
	w.expectDrift(0)
}

// TestReboot: a reboot that no operation can have been is shown until the next operation, or
// for a day.
func TestReboot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	boot := func(id string, operation int) {
		t.Helper()
		seen := w.seen(0, true, "")
		seen.BootID, seen.Operation = id, operation
		w.record("p1", seen)
	}
	operation := func(number int) { w.exec(`UPDATE clusters SET latest_operation = $1`, number) }
	const rebooted = "Rebooted, not by Loom."
	w.record("p1", w.seen(1, true, ""))
	boot("", 3)
	boot("one", 3)
	boot("one", 3)
	boot("", 3)
	w.expectDrift(0)
	boot("two", 3)
	w.expect(loom.HealthDegraded, loom.HealthHealthy, loom.HealthHealthy)
	w.expectDrift(0, rebooted)
	w.expectIncidents("n1 drift")
	boot("two", 3)
	w.record("p1", w.down(0))
	w.expectDrift(0, rebooted)
	// A day ends it, also while nothing else happens.
	w.exec(`UPDATE node_health SET changed_at = now() - interval '3 days', drift = jsonb_set(drift, '{0,since}', to_jsonb(now() - interval '23 hours 59 minutes')) WHERE drift <> '[]'`)
	boot("two", 3)
	w.expectDrift(0, rebooted)
	w.exec(`UPDATE node_health SET drift = jsonb_set(drift, '{0,since}', to_jsonb(now() - interval '24 hours 1 minute')) WHERE drift <> '[]'`)
	boot("two", 3)
	w.expectDrift(0)
	w.expectIncidents("n1 drift ended", "n1 unreachable ended")
	// An operation may reboot, and ends what is shown.
	boot("three", 3)
	w.expectDrift(0, rebooted)
	operation(4)
	boot("four", 4)
	w.expectDrift(0)
	boot("five", 4)
	w.expectDrift(0, rebooted)
	since := w.health().Nodes[0].Drift[0].Since
	w.exec(`UPDATE node_health SET changed_at = changed_at - interval '1 hour'`)
	boot("six", 4)
	w.expectDrift(0, rebooted)
	if again := w.health().Nodes[0].Drift[0].Since; !again.After(since) {
		t.Errorf("the second reboot was at %s, the first one at %s", again, since)
	}
	// While an operation works on the node, and right after it.
	changing := loom.HealthSeen{HealthNode: w.seen(0, true, "").HealthNode, At: time.Now()}
	changing.Changing, changing.Operation = true, 4
	w.record("p1", changing)
	boot("seven", 4)
	w.expectDrift(0)
	// Another machine booted by itself.
	w.exec(`UPDATE nodes SET incarnation = 2 WHERE id = $1`, w.nodes[0])
	another := w.seen(0, true, "")
	another.BootID, another.Incarnation, another.Operation = "eight", 2, 4
	w.record("p1", another)
	w.expectDrift(0)
	if list, err := w.fleet.Incidents(context.Background(), ana, fleet.IncidentsInput{Kinds: []loom.IncidentKind{loom.IncidentDrift}}); err != nil || len(list.Items) != 3 || list.Items[0].Message != rebooted {
		t.Errorf("incidents: %+v, %v", list.Items, err)
	}
}
