package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/app/store"
)

// incidents describes the incidents of the cluster in the order in which they began: host, kind, service,
// and "ended" for those that are over.
func (w *world) incidents() []string {
	w.t.Helper()
	list, err := w.fleet.Incidents(context.Background(), ana, fleet.IncidentsInput{Cluster: w.cluster})
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, i := range list.Items {
		text := i.Hostname + " " + string(i.Kind) + " " + i.Service
		if !i.Ended.IsZero() {
			text += " ended"
		}
		out = append(out, strings.Join(strings.Fields(text), " "))
	}
	slices.Reverse(out)
	return out
}

func (w *world) expectIncidents(want ...string) {
	w.t.Helper()
	if got := w.incidents(); !slices.Equal(got, want) {
		w.t.Errorf("incidents: %q, want %q", got, want)
	}
}

// down is a look at a node that does not answer.
func (w *world) down(node int) loom.HealthSeen {
	seen := w.seen(node, true, "")
	seen.Unreachable, seen.Services = true, nil
	return seen
}

// listed records a list of the provider that began so long ago.
func (w *world) listed(ago time.Duration, states map[int]loom.MachineState) {
	w.t.Helper()
	of := map[loom.NodeID]loom.TaggedMachine{}
	for n, s := range states {
		of[w.nodes[n]] = loom.TaggedMachine{State: s}
	}
	err := store.Exec(context.Background(), w.db.DB, func(tx *sqlx.Tx) error {
		return store.RecordListed(context.Background(), tx, of, time.Now().Add(-ago))
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestIncidents: an incident lasts from turning bad until well again, also over times of
// which nothing is known, and one of a machine changes its kind as more becomes known.
func TestIncidents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.record("p1", w.seen(0, true, ""), w.seen(1, true, ""))
	w.exec(`UPDATE node_health SET changed_at = now() - interval '1 hour'`)
	w.expectIncidents()
	w.record("p1", w.seen(0, false, "exit status 7"))
	w.expectIncidents("n1 service nginx")
	w.record("p1", w.seen(0, false, "exit status 8"))
	w.expectIncidents("n1 service nginx")
	if list, err := w.fleet.Incidents(context.Background(), ana, fleet.IncidentsInput{}); err != nil || list.Items[0].Message != "exit status 8" || list.Items[0].ClusterName != "shop" {
		t.Errorf("the incident: %+v, %v", list, err)
	}
	full := w.seen(0, false, "exit status 8")
	full.Disk = 95
	w.record("p1", full)
	w.expectIncidents("n1 service nginx", "n1 disk")
	w.exec(`UPDATE node_health SET seen_at = now() - interval '1 hour'`)
	if _, err := w.fleet.Judge(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.expectIncidents("n1 service nginx", "n1 disk") // nobody knows
	w.record("p1", w.seen(0, true, ""))
	w.expectIncidents("n1 service nginx ended", "n1 disk ended")

	refused := w.seen(1, true, "")
	refused.Refused, refused.Services = "The host key changed.", nil
	w.record("p1", refused)
	w.expectIncidents("n1 service nginx ended", "n1 disk ended", "n2 signin")
	w.record("p1", w.down(1))
	w.expectIncidents("n1 service nginx ended", "n1 disk ended", "n2 signin ended", "n2 unreachable")
	w.exec(`UPDATE node_health SET down_since = now() - interval '10 minutes' WHERE node_id = $1`, w.nodes[1])
	w.listed(0, map[int]loom.MachineState{1: loom.StateStopped})
	w.record("p1", w.down(1))
	w.expect(loom.HealthDegraded, loom.HealthHealthy, loom.HealthStopped)
	w.expectIncidents("n1 service nginx ended", "n1 disk ended", "n2 signin ended", "n2 stopped")
	w.exec(`UPDATE nodes SET state = 'deleted' WHERE id = $1`, w.nodes[1])
	if _, err := w.fleet.Judge(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.expectIncidents("n1 service nginx ended", "n1 disk ended", "n2 signin ended", "n2 stopped ended")
}

// TestListed: what a provider says counts only if it was asked after the machine stopped
// answering, and a machine is gone only after two lists a minute apart.
func TestListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	type said struct {
		ago   time.Duration
		state loom.MachineState
	}
	for _, c := range []struct {
		name string
		said []said
		want loom.HealthStatus
	}{
		{"no list", nil, loom.HealthUnreachable},
		{"running", []said{{time.Minute, loom.StateRunning}}, loom.HealthUnreachable},
		{"stopped", []said{{time.Minute, loom.StateStopped}}, loom.HealthStopped},
		{"stopped before", []said{{time.Hour, loom.StateStopped}}, loom.HealthUnreachable},
		{"neither", []said{{time.Minute, loom.StateOther}}, loom.HealthUnreachable},
		{"missing once", []said{{time.Minute, loom.StateMissing}}, loom.HealthUnreachable},
		{"missing twice in a row", []said{{5 * time.Minute, loom.StateMissing}, {time.Minute, loom.StateMissing}}, loom.HealthGone},
		{"missing twice at once", []said{{90 * time.Second, loom.StateMissing}, {time.Minute, loom.StateMissing}}, loom.HealthUnreachable},
		{"missing before it was down", []said{{time.Hour, loom.StateMissing}, {time.Minute, loom.StateMissing}}, loom.HealthUnreachable},
		{"there in between", []said{{5 * time.Minute, loom.StateMissing}, {3 * time.Minute, loom.StateRunning}, {150 * time.Second, loom.StateMissing}}, loom.HealthUnreachable},
		{"back again", []said{{5 * time.Minute, loom.StateMissing}, {3 * time.Minute, loom.StateMissing}, {time.Minute, loom.StateRunning}}, loom.HealthUnreachable},
	} {
		w.record("p1", w.seen(0, true, ""))
		w.record("p1", w.down(0))
		w.exec(`UPDATE node_health SET down_since = now() - interval '10 minutes', listed = '', listed_at = NULL, missing_since = NULL`)
		for _, s := range c.said {
			w.listed(s.ago, map[int]loom.MachineState{0: s.state})
		}
		w.record("p1", w.down(0))
		if h := w.health(); h.Nodes[0].Status != c.want || h.Nodes[0].Message == "" {
			t.Errorf("%s: %s (%s), want %s", c.name, h.Nodes[0].Status, h.Nodes[0].Message, c.want)
		}
	}
}

// TestAskProviders: a provider is asked for its list once machines of it do not answer, and
// not twice in a minute.
func TestAskProviders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	asked := func(want int) {
		t.Helper()
		if _, err := w.fleet.Judge(context.Background()); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := w.db.Get(&n, `SELECT count(*) FROM provider_requests WHERE purpose = 'sweep' AND provider_name = 'p' AND tenant_id = 't1'`); err != nil || n != want {
			t.Errorf("%d lists were asked for, %v; want %d", n, err, want)
		}
	}
	ended := func() {
		w.exec(`UPDATE provider_requests SET started_at = now(), ended_at = now(), created_at = now() - interval '2 minutes' WHERE ended_at IS NULL`)
	}
	w.record("p1", w.seen(0, true, ""), w.seen(1, true, ""))
	asked(0)
	w.record("p1", w.down(0))
	asked(1)
	asked(1)
	ended()
	w.exec(`UPDATE node_health SET down_since = now() - interval '9 minutes' WHERE node_id = $1`, w.nodes[0])
	w.listed(5*time.Minute, map[int]loom.MachineState{0: loom.StateMissing})
	asked(2) // a second list says whether it is gone
	ended()
	w.listed(0, map[int]loom.MachineState{0: loom.StateRunning})
	asked(2)
	w.listed(11*time.Minute, map[int]loom.MachineState{0: loom.StateRunning})
	asked(3)
	ended()
	// A repair that only an old list holds gets another one, after a minute.
	w.listed(2*time.Minute, map[int]loom.MachineState{0: loom.StateStopped})
	w.exec(`INSERT INTO incidents (tenant_id, cluster_id, node_id, kind, decision, reason) SELECT 't1', cluster_id, id, 'stopped', 'held', $2 FROM nodes WHERE id = $1`, w.nodes[0], "the cluster is protected")
	asked(3)
	w.exec(`UPDATE incidents SET decision = 'held', reason = $1 WHERE ended_at IS NULL`, loom.HeldByOldList)
	asked(4)
	ended()
	w.record("p1", w.seen(0, true, ""))
	asked(4)
}

// TestMaintenance: nothing that goes wrong meanwhile is an incident, and incidents that last
// end; what is still wrong afterward is a new one.
func TestMaintenance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	ctx := context.Background()
	w.record("p1", w.seen(0, true, ""), w.seen(1, true, ""))
	w.exec(`UPDATE node_health SET changed_at = now() - interval '1 hour'`)
	hour := time.Now().Add(time.Hour)
	ben := ana
	ben.User = "ben"
	for _, c := range []struct {
		name  string
		actor loom.Actor
		in    fleet.MaintenanceInput
		want  error
	}{
		{"somebody else's", ben, fleet.MaintenanceInput{Until: hour, Reason: "new disks"}, loom.NotFound},
		{"no end", ana, fleet.MaintenanceInput{Reason: "new disks"}, loom.Invalid},
		{"over", ana, fleet.MaintenanceInput{Until: time.Now().Add(-time.Second), Reason: "new disks"}, loom.Invalid},
		{"too long", ana, fleet.MaintenanceInput{Until: time.Now().Add(31 * 24 * time.Hour), Reason: "new disks"}, loom.Invalid},
		{"no reason", ana, fleet.MaintenanceInput{Until: hour}, loom.Invalid},
		{"long reason", ana, fleet.MaintenanceInput{Until: hour, Reason: strings.Repeat("x", 401)}, loom.Invalid},
		{"no such node", ana, fleet.MaintenanceInput{Until: hour, Reason: "new disks", Nodes: []loom.NodeID{"x"}}, loom.Invalid},
	} {
		if err := w.fleet.Maintain(ctx, c.actor, w.cluster, c.in); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	w.record("p1", w.seen(0, false, "down"))
	w.expectIncidents("n1 service nginx")
	if err := w.fleet.Maintain(ctx, ana, w.cluster, fleet.MaintenanceInput{Until: hour, Reason: "new disks", Nodes: w.nodes[:1]}); err != nil {
		t.Fatal(err)
	}
	h := w.health()
	if m := h.Maintained(w.nodes[0]); m == nil || m.Reason != "new disks" || m.By != "ana" || h.Maintained(w.nodes[1]) != nil {
		t.Errorf("the maintenance: %+v", h.Maintenance)
	}
	w.record("p1", w.seen(0, false, "down"), w.seen(1, false, "down"))
	w.expectIncidents("n1 service nginx ended", "n2 service nginx")
	w.expect(loom.HealthFailing, loom.HealthFailing, loom.HealthFailing) // it is seen all the same
	if err := w.fleet.EndMaintenance(ctx, ana, w.cluster, nil); err != nil {
		t.Fatal(err)
	}
	w.record("p1", w.seen(0, false, "down"))
	w.expectIncidents("n1 service nginx ended", "n2 service nginx", "n1 service nginx")

	if err := w.fleet.Maintain(ctx, ana, w.cluster, fleet.MaintenanceInput{Until: hour, Reason: "all"}); err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE maintenance SET until = now() - interval '1 s'`)
	w.record("p1", w.seen(1, false, "down"))
	w.expectIncidents("n1 service nginx ended", "n2 service nginx", "n1 service nginx") // it is over
	if _, err := w.fleet.Judge(ctx); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := w.db.Get(&left, `SELECT count(*) FROM maintenance`); err != nil || left > 0 {
		t.Errorf("%d are left, %v", left, err)
	}
}

// TestIncidentsWait: while an operation is paused or waits to be submitted, no incident begins.
func TestIncidentsWait(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"paused", "not_submitted"} {
		w := newWorld(t, 1)
		w.record("p1", w.seen(0, true, ""))
		w.exec(`UPDATE node_health SET changed_at = now() - interval '1 hour'`)
		w.exec(fmt.Sprintf(`INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by) VALUES ('t1', $1, 3, 'configure', '%s', 'ana')`, status), w.cluster)
		w.record("p1", w.seen(0, false, "down"))
		w.expectIncidents()
		w.exec(`UPDATE operations SET status = 'complete', ended_at = now()`)
		w.record("p1", w.seen(0, false, "down"))
		w.expectIncidents("n1 service nginx")
	}
}

// TestIncidentList: who sees which incidents, and the filters.
func TestIncidentList(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	ctx := context.Background()
	w.record("p1", w.seen(0, true, ""), w.seen(1, true, ""), w.seen(2, true, ""))
	w.exec(`UPDATE node_health SET changed_at = now() - interval '1 hour'`)
	w.record("p1", w.seen(0, false, "down"))
	w.record("p1", w.down(1))
	w.record("p1", w.seen(0, true, ""))
	yes, no := true, false
	boss := loom.Actor{Tenant: "t1", User: "boss", Role: loom.RoleAdmin}
	ben := loom.Actor{Tenant: "t1", User: "ben", Role: loom.RoleUser}
	other := loom.Actor{Tenant: "t2", User: "ana", Role: loom.RoleAdmin}
	for _, c := range []struct {
		name  string
		actor loom.Actor
		in    fleet.IncidentsInput
		want  int
	}{
		{"the owner", ana, fleet.IncidentsInput{}, 2},
		{"an administrator", boss, fleet.IncidentsInput{}, 2},
		{"somebody else", ben, fleet.IncidentsInput{}, 0},
		{"another tenant", other, fleet.IncidentsInput{}, 0},
		{"those that last", ana, fleet.IncidentsInput{Open: &yes}, 1},
		{"those that are over", ana, fleet.IncidentsInput{Open: &no}, 1},
		{"a kind", ana, fleet.IncidentsInput{Kinds: []loom.IncidentKind{loom.IncidentUnreachable}}, 1},
		{"none of the kind", ana, fleet.IncidentsInput{Kinds: []loom.IncidentKind{loom.IncidentGone}}, 0},
		{"since tomorrow", ana, fleet.IncidentsInput{Since: time.Now().Add(24 * time.Hour)}, 0},
		{"a page", ana, fleet.IncidentsInput{Page: loom.Page{Limit: 1}}, 1},
	} {
		if list, err := w.fleet.Incidents(ctx, c.actor, c.in); err != nil || len(list.Items) != c.want || c.in.Limit == 1 && list.Next == "" {
			t.Errorf("%s: %d incidents, next %q, %v; want %d", c.name, len(list.Items), list.Next, err, c.want)
		}
	}
	if _, err := w.fleet.Incidents(ctx, ben, fleet.IncidentsInput{Cluster: w.cluster}); !errors.Is(err, loom.NotFound) {
		t.Errorf("of somebody else's cluster: %v", err)
	}
}

// TestHealthHooks: hooks that ask for it hear of the health of a cluster, once a minute, and of the
// last change only.
func TestHealthHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5)
	w.exec(`INSERT INTO hooks (tenant_id, name, url, events, templates) VALUES
		('t1', 'all', 'https://a', '{health}', '{}'), ('t1', 'operations', 'https://b', '{start,success,failure}', '{}'),
		('t1', 'others', 'https://c', '{health}', '{other}'), ('t1', 'off', 'https://d', '{health}', '{}')`)
	w.exec(`UPDATE hooks SET enabled = false WHERE name = 'off'`)
	deliveries := func(want ...string) {
		t.Helper()
		var got []string
		if err := w.db.Select(&got, `SELECT h.name || ' ' || (d.notice->'Health'->>'From') || ' to ' || (d.notice->'Health'->>'To') || ', ' || jsonb_array_length(coalesce(nullif(d.notice->'Health'->'Incidents', 'null'), '[]'))
			|| CASE WHEN d.next_at > now() THEN ', later' ELSE '' END || CASE WHEN EXISTS (SELECT FROM river_job r WHERE (r.args->>'delivery_id')::bigint = d.id) THEN '' ELSE ', lost' END
			FROM hook_deliveries d JOIN hooks h ON h.id = d.hook_id ORDER BY d.id`); err != nil || !slices.Equal(got, want) {
			t.Errorf("deliveries: %q, %v; want %q", got, err, want)
		}
	}
	for n := range 5 {
		w.record("p1", w.seen(n, true, ""))
	}
	deliveries("all unknown to healthy, 0")
	w.exec(`UPDATE hook_deliveries SET status = 'delivered', ended_at = now() - interval '2 minutes'`)
	w.exec(`UPDATE node_health SET changed_at = now() - interval '1 hour'`)
	w.record("p1", w.seen(0, false, "exit status 7"))
	deliveries("all unknown to healthy, 0", "all healthy to degraded, 1")
	w.exec(`UPDATE hook_deliveries SET status = 'delivered', ended_at = now(), tries = 1 WHERE status = 'waiting'`)
	w.record("p1", w.seen(0, true, ""))
	deliveries("all unknown to healthy, 0", "all healthy to degraded, 1", "all degraded to healthy, 0, later")
	w.exec(`UPDATE hook_deliveries SET tries = 1 WHERE status = 'waiting'`) // an endpoint that is away hears of the last change only
	w.record("p1", w.seen(0, false, "exit status 7"))
	deliveries("all unknown to healthy, 0", "all healthy to degraded, 1", "all healthy to degraded, 1, later")
}
