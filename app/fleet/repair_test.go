package fleet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/fleet"
	"loom/app/loom"
	"loom/app/store"
)

// begin begins repairs as the use case of clusters does, with operations that nobody works
// on; it keeps what it was asked for.
func (w *world) begin(asked *[]loom.Repair) func(context.Context, loom.Actor, loom.Repair, func(context.Context, *sqlx.Tx) error, func(context.Context, *sqlx.Tx, loom.OperationRef) error) (loom.OperationRef, error) {
	return func(ctx context.Context, actor loom.Actor, r loom.Repair, allow func(context.Context, *sqlx.Tx) error, begun func(context.Context, *sqlx.Tx, loom.OperationRef) error) (loom.OperationRef, error) {
		ref := loom.OperationRef{Cluster: r.Cluster}
		err := store.Exec(ctx, w.db.DB, func(tx *sqlx.Tx) error {
			if allow != nil {
				if err := allow(ctx, tx); err != nil {
					return err
				}
			}
			if err := tx.Get(&ref.Number, `UPDATE clusters SET latest_operation = latest_operation + 1, status = 'pending' WHERE id = $1 RETURNING latest_operation`, int64(r.Cluster)); err != nil {
				return err
			}
			if _, err := tx.Exec(`INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by) VALUES ($1, $2, $3, $4, 'running', $5)`,
				string(actor.Tenant), int64(r.Cluster), ref.Number, string(r.How.Action()), string(actor.User)); err != nil {
				return err
			}
			*asked = append(*asked, r)
			return begun(ctx, tx, ref)
		})
		return ref, err
	}
}

// broken is a world with a service that passed its check and fails now.
func broken(t *testing.T, nodes int) *world {
	t.Helper()
	w := newWorld(t, nodes)
	for n := range nodes {
		w.record("p1", w.seen(n, true, ""))
	}
	w.exec(`UPDATE node_health SET changed_at = now() - interval '1 hour'`)
	w.decide(0) // the first call only notes the time
	w.record("p1", w.seen(0, false, "exit status 7"))
	return w
}

// decide decides about repairs and compares how many begin.
func (w *world) decide(want int) []loom.Repair {
	w.t.Helper()
	var asked []loom.Repair
	if _, err := w.fleet.DecideRepairs(context.Background(), w.begin(&asked)); err != nil {
		w.t.Fatal(err)
	}
	if len(asked) != want {
		w.t.Errorf("%d repairs began, want %d: %+v", len(asked), want, asked)
	}
	return asked
}

// decided returns the decision about the newest incident.
func (w *world) decided() string {
	w.t.Helper()
	var text string
	if err := w.db.Get(&text, `SELECT decision || ' ' || reason || ' ' || decided_by || ' ' || coalesce(operation::text, '') FROM incidents ORDER BY id DESC LIMIT 1`); err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(strings.Fields(text), " ")
}

// TestDecideRepairs: an incident is asked about, or repaired once where the policy says so.
func TestDecideRepairs(t *testing.T) {
	t.Parallel()
	w := broken(t, 5)
	w.decide(0)
	if got := w.decided(); got != "asked" {
		t.Errorf("without a policy: %q", got)
	}
	w.exec(`UPDATE clusters SET template = '{"administration": {"repair": {"service": "tell"}}}'`)
	w.decide(0)
	if got := w.decided(); got != "" {
		t.Errorf("only told: %q", got)
	}
	w.exec(`UPDATE clusters SET repair = '{"service": "do"}'`)
	asked := w.decide(1)
	if want := (loom.Repair{Cluster: w.cluster, Node: w.nodes[0], How: loom.RepairByRestart, Service: "nginx"}); len(asked) == 1 && asked[0] != want {
		t.Errorf("began %+v, want %+v", asked[0], want)
	}
	if got := w.decided(); got != "begun system 4" {
		t.Errorf("begun: %q", got)
	}
	w.decide(0)
	w.exec(`UPDATE operations SET status = 'complete', ended_at = now() WHERE number = 4`)
	w.exec(`UPDATE clusters SET status = 'active'`)
	w.decide(0) // the repair did not help, and is not begun twice
	if got := w.decided(); got != "begun system 4" {
		t.Errorf("after the repair: %q", got)
	}
	if list := w.incidents(); len(list) != 1 {
		t.Errorf("incidents: %q", list)
	}
}

// TestRepairsAreHeld: facts of the database reach the rules that hold repairs.
func TestRepairsAreHeld(t *testing.T) {
	t.Parallel()
	do := `UPDATE clusters SET repair = '{"service": "do", "stopped": "do", "gone": "do"}'`
	earlier := `WITH o AS (INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by, ended_at)
		SELECT 't1', id, 1, 'repair_restart', 'complete', 'system', now() FROM clusters RETURNING number)
		INSERT INTO incidents (tenant_id, cluster_id, node_id, kind, service, since, ended_at, decision, decided_at, operation)
		SELECT 't1', n.cluster_id, n.id, 'service', 'nginx', now() - interval '2 hours', now() - interval '1 hour', 'begun', now() - interval '1 hour', 1 FROM nodes n, o WHERE n.number = 1000`
	for _, c := range []struct{ name, change, want string }{
		{"off in the tenant", `UPDATE tenants SET settings = '{"automaticRepairs": false}'`, "held automatic repairs are off"},
		{"off everywhere", `INSERT INTO tenants (id, name, settings) VALUES ('superadmin', 'superadmin', '{"automaticRepairs": false}') ON CONFLICT (id) DO UPDATE SET settings = excluded.settings`, "held automatic repairs are off"},
		{"no more today", `UPDATE tenants SET settings = '{"repairsPerDay": 0}'`, "held the tenant had all its repairs of a day"},
		{"paused", `INSERT INTO paused_tenants (tenant_id, paused_by) VALUES ('t1', 'root')`, "held the tenant is paused"},
		{"busy", `INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by) SELECT 't1', id, 3, 'cluster_configure', 'running', 'ana' FROM clusters`, "held the cluster is busy or not active"},
		{"incomplete", `UPDATE clusters SET status = 'incomplete'`, "held the cluster is busy or not active"},
		{"to be deleted", `UPDATE clusters SET delete_wanted_by = 'ana'`, "held the cluster is busy or not active"},
		{"ends soon", `UPDATE clusters SET expires_at = now() + interval '59 minutes'`, "held the cluster ends within an hour"},
		{"a provisioner in doubt", `UPDATE node_health SET status = 'unknown', down_since = now() WHERE node_id = (SELECT id FROM nodes WHERE number = 1004)`, "held many machines do not answer, so Loom doubts what it sees"},
		{"a list that failed", `INSERT INTO provider_requests (tenant_id, provider_name, purpose, requested_by, ended_at, failure) VALUES ('t1', 'p', 'sweep', 'system', now(), 'no')`, "held many machines do not answer, so Loom doubts what it sees"},
		{"nobody looks any longer", `UPDATE node_health SET status = 'unknown' WHERE node_id = (SELECT id FROM nodes WHERE number = 1000)`, "held nobody has looked at the node for too long"},
		{"many bad nodes", `UPDATE node_health SET status = 'failing' WHERE node_id IN (SELECT id FROM nodes WHERE number > 1003)`, "held too many nodes of the cluster are bad"},
		{"many unknown nodes", `UPDATE node_health SET status = 'unknown' WHERE node_id IN (SELECT id FROM nodes WHERE number > 1003); UPDATE node_health SET status = 'unknown' WHERE node_id IN (SELECT id FROM nodes WHERE number = 1002)`, "held too many nodes of the cluster are bad"},
		{"never passed", `UPDATE node_health SET changed_at = now()`, "held the check has not passed since the service changed"},
		{"the same again", earlier, "held the same went wrong within a day of its repair"},
		{"an outage elsewhere", `INSERT INTO incidents (tenant_id, cluster_id, node_id, kind) SELECT 't1', cluster_id, id, 'disk' FROM nodes WHERE number > 1002; UPDATE incidents SET ended_at = now() WHERE kind = 'disk'`, "held too much goes wrong at the provider"},
		{"nothing", `SELECT 1`, "begun system 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := broken(t, 5)
			w.exec(do)
			w.exec(c.change)
			begun := 0
			if c.want == "begun system 4" {
				begun = 1
			}
			w.decide(begun)
			var got string
			if err := w.db.Get(&got, `SELECT concat_ws(' ', decision, nullif(reason, ''), nullif(decided_by, ''), operation) FROM incidents WHERE ended_at IS NULL AND kind = 'service'`); err != nil || got != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// TestRepairsAfterAGap: what was seen before nobody decided for a while proves nothing.
func TestRepairsAfterAGap(t *testing.T) {
	t.Parallel()
	w := broken(t, 5)
	w.exec(`UPDATE clusters SET repair = '{"service": "do"}'`)
	w.fleet = fleet.New(w.db.DB)
	w.decide(0)
	if got := w.decided(); got != "held the last check is older than the last outage of Loom" {
		t.Errorf("after a restart: %q", got)
	}
	w.record("p1", w.seen(0, false, "exit status 7"))
	w.decide(1)
}

// TestReplacementsAreCertain: a machine is replaced only after a fresh list, started only if it is
// listed as stopped, and one that only does not answer is asked about.
func TestReplacementsAreCertain(t *testing.T) {
	t.Parallel()
	w := broken(t, 5)
	w.record("p1", w.seen(0, true, ""))
	w.exec(`UPDATE clusters SET repair = '{"stopped": "do", "gone": "do"}'`)
	w.record("p1", w.down(1))
	w.decide(0)
	if got := w.decided(); got != "asked" {
		t.Errorf("only unreachable: %q", got)
	}
	w.exec(`UPDATE node_health SET down_since = now() - interval '10 minutes' WHERE down_since IS NOT NULL`)
	w.listed(0, map[int]loom.MachineState{1: loom.StateStopped})
	w.record("p1", w.down(1))
	if got := w.decide(1); len(got) == 1 && (got[0].How != loom.RepairByReboot || got[0].Service != "") {
		t.Errorf("a stopped machine: %+v", got)
	}

	w = broken(t, 5)
	w.record("p1", w.seen(0, true, ""))
	w.exec(`UPDATE clusters SET repair = '{"gone": "do"}', protected = true`)
	w.record("p1", w.down(1))
	w.exec(`UPDATE node_health SET down_since = now() - interval '10 minutes' WHERE down_since IS NOT NULL`)
	w.listed(200*time.Second, map[int]loom.MachineState{1: loom.StateMissing})
	w.listed(100*time.Second, map[int]loom.MachineState{1: loom.StateMissing})
	w.record("p1", w.down(1))
	w.expect(loom.HealthDegraded, loom.HealthHealthy, loom.HealthGone)
	w.decide(0)
	if got := w.decided(); got != "held the last check is older than the last outage of Loom" {
		t.Errorf("an old list: %q", got)
	}
	w.listed(0, map[int]loom.MachineState{1: loom.StateMissing})
	w.decide(0)
	if got := w.decided(); got != "held the cluster is protected" {
		t.Errorf("protected: %q", got)
	}
	w.exec(`UPDATE clusters SET protected = false, services = '{"nginx": {"shrink": "refuse"}}'`)
	w.decide(0)
	if got := w.decided(); got != "held a service on the node may not shrink" {
		t.Errorf("data on the node: %q", got)
	}
	w.exec(`UPDATE clusters SET services = '{}'`)
	if got := w.decide(1); len(got) == 1 && got[0].How != loom.RepairByReplacement {
		t.Errorf("a machine that is gone: %+v", got)
	}
}

// TestAcceptAndDecline: who may say what becomes of an incident, and once.
func TestAcceptAndDecline(t *testing.T) {
	t.Parallel()
	w := broken(t, 5)
	w.record("p1", w.seen(1, false, "exit status 1"))
	w.record("p1", w.seen(2, false, "exit status 1")) // together they would begin in the order of their ids
	w.decide(0)
	ctx := context.Background()
	var ids []int64
	if err := w.db.Select(&ids, `SELECT id FROM incidents ORDER BY id`); err != nil || len(ids) != 3 {
		t.Fatal(ids, err)
	}
	var asked []loom.Repair
	begin := w.begin(&asked)
	ben, dora := ana, ana
	ben.User, dora.Tenant = "ben", "t2"
	for _, other := range []loom.Actor{ben, dora} {
		if _, err := w.fleet.Accept(ctx, other, ids[0], begin); !errors.Is(err, loom.NotFound) {
			t.Errorf("%s of %s accepts: %v", other.User, other.Tenant, err)
		}
		if err := w.fleet.Decline(ctx, other, ids[0]); !errors.Is(err, loom.NotFound) {
			t.Errorf("%s of %s declines: %v", other.User, other.Tenant, err)
		}
	}
	w.record("p1", w.seen(2, true, "")) // before an operation, which has results of earlier looks dropped
	ref, err := w.fleet.Accept(ctx, ana, ids[0], begin)
	if err != nil || ref.Number != 4 || len(asked) != 1 || asked[0].Service != "nginx" {
		t.Errorf("accepted: %v, %v, %+v", ref, err, asked)
	}
	if _, err := w.fleet.Accept(ctx, ana, ids[0], begin); !errors.Is(err, loom.Conflict) || !strings.Contains(err.Error(), "Operation 4 repairs this already.") {
		t.Errorf("twice: %v", err)
	}
	if err := w.fleet.Decline(ctx, ana, ids[0]); !errors.Is(err, loom.Conflict) {
		t.Errorf("declined after that: %v", err)
	}
	if err := w.fleet.Decline(ctx, ana, ids[1]); err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE clusters SET repair = '{"service": "do"}', status = 'active'`)
	w.exec(`UPDATE operations SET status = 'complete', ended_at = now()`)
	if _, err := w.fleet.Accept(ctx, ana, ids[2], begin); !errors.Is(err, loom.Conflict) || !strings.Contains(err.Error(), "over") {
		t.Errorf("what is over: %v", err)
	}
	w.decide(0) // declined is declined
	if _, err := w.fleet.Accept(ctx, ana, ids[1], begin); !errors.Is(err, loom.Conflict) || !strings.Contains(err.Error(), "ana declined") {
		t.Errorf("accepted after declining: %v", err)
	}
	var said int
	if err := w.db.Get(&said, `SELECT count(*) FROM audit WHERE verb = 'decline repair'`); err != nil || said != 1 {
		t.Errorf("%d entries of the audit, %v", said, err)
	}
}
