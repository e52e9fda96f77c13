package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"loom/app/clusters"
	"loom/app/failpoint"
	"loom/app/loom"
	"loom/app/testkit"
)

// lockedBuffer takes what several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// shortSoak is a soak of this test program on databases of the test.
func shortSoak(t *testing.T, seed uint64, points, lanes, nodes int) (*soak, *lockedBuffer) {
	t.Helper()
	var dsns []string
	for range lanes {
		dsns = append(dsns, testkit.NewDatabase(t).DSN)
	}
	out := &lockedBuffer{}
	return &soak{points: points, lanes: lanes, nodes: nodes, seed: seed, out: out, environ: append(os.Environ(), "LOOM_TEST_ACT_AS_LOOM=1"),
		dsn: func(_ context.Context, lane int) (string, error) { return dsns[lane], nil }}, out
}

// TestSoak is a short piece of `make soak`: the same faults each time, though what
// they hit depends on the host.
func TestSoak(t *testing.T) {
	t.Parallel()
	s, out := shortSoak(t, 20, 24, 2, 6)
	if err := s.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if s.count < s.points || s.lives < 2 {
		t.Errorf("it ended early:\n%s", out.String())
	}
}

// TestSoakSeesWhatIsWrong: a soak that finds nothing must be able to.
func TestSoakSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s, out := shortSoak(t, 1, 1, 1, 2)
	s.struck, s.ended = map[string]int{}, map[string]int{}
	lane, err := s.newLane(t.Context(), 0)
	defer func() {
		if err := lane.end(); err != nil {
			t.Error(err)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	lane.life = 1
	ref, err := lane.Clusters.Create(t.Context(), lane.actor, soakCluster("seen", lane.url, "token", 2))
	if err != nil {
		t.Fatal(err)
	}
	shape, _, err := lane.read(t.Context(), ref.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	step := soakStep{kind: loom.ChangeCreate, nodes: 2, shape: shape, change: clusters.ChangeInput{Batch: 1}}
	if err := lane.settle(t.Context(), ref, step); err != nil || len(s.failures) > 0 {
		t.Fatalf("%v\n%s", err, out.String())
	}
	op, err := lane.Clusters.Operation(t.Context(), lane.actor, ref)
	if err != nil {
		t.Fatal(err)
	}
	db := lane.System.DB
	for _, c := range []struct{ what, query, want string }{
		{"a task that is not over", `UPDATE tasks SET status = 'ready' WHERE id = (SELECT min(id) FROM tasks WHERE NOT gate)`, "is still ready"},
		{"a task without a complete attempt", `UPDATE attempts SET status = 'failed' WHERE task_id = (SELECT min(id) FROM tasks WHERE NOT gate)`, "with 0 complete attempts"},
		{"another provider id", `UPDATE nodes SET results = results || '{"providerid": "other"}' WHERE number = 1000`, `provider id "other"`},
		{"another machine", `UPDATE nodes SET incarnation = 5 WHERE number = 1001`, "has the key"},
		{"a node without a machine", `INSERT INTO nodes (id, cluster_id, tenant_id, number, incarnation, state, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators) SELECT gen_random_uuid(), cluster_id, tenant_id, 1099, 1, 'ready', hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators
			FROM nodes WHERE number = 1000`, "has no machine"},
		{"a service that is not started", `UPDATE nodes SET service_states = '{}' WHERE number = 1001`, "state of soak-app"},
		{"another release", `UPDATE clusters SET services = replace(services::text, '"release": "1"', '"release": "2"')::jsonb`, "on the machine of node 1000"},
		{"another version", `UPDATE clusters SET services = jsonb_set(services, '{soak-app,version}', '7')`, "the services have the versions"},
		{"other hardware", `UPDATE nodes SET hardwaretype = 'soak-large' WHERE number = 1000`, `has the hardware "soak-large"`},
		{"a batch that is too large", `UPDATE tasks SET action = 'stop' WHERE action = 'install'`, "2 nodes were down at once"},
		{"an attempt that the machine never saw", `UPDATE attempts SET number = 99 WHERE task_id = (SELECT max(id) FROM tasks WHERE NOT gate)`, "attempt 99 counts"},
		{"an order that was not kept", `UPDATE attempts SET started_at = started_at - interval '1 hour' WHERE task_id = (SELECT max(id) FROM tasks WHERE NOT gate)`, "on which it depends"},
	} {
		tx, err := db.Beginx()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(c.query); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		// Looked at in the transaction, which is rolled back.
		wrong, err := lane.look(t.Context(), tx, op, step)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err != nil || !strings.Contains(strings.Join(wrong, "\n"), c.want) {
			t.Errorf("%s: %v, %v", c.what, wrong, err)
		}
	}
}

func TestSoakDraw(t *testing.T) {
	t.Parallel()
	for _, freeze := range []bool{true, false} {
		first, second := newSoakDraw(7, 1, freeze), newSoakDraw(7, 1, freeze)
		seen := map[string]bool{}
		for range 400 {
			faults := first.next(loom.ProcessProvisioner)
			if again := second.next(loom.ProcessProvisioner); again != faults {
				t.Fatalf("one seed gives %s and %s", faults, again)
			}
			if err := failpoint.Check(faults); err != nil {
				t.Fatal(err)
			}
			one, _, _ := strings.Cut(faults, ",")
			parts := strings.Split(one, ":")
			seen[parts[0]+" "+parts[2]] = true
			if !strings.HasSuffix(faults, ":kill") {
				t.Errorf("%s does not end with a kill", faults)
			}
		}
		for _, p := range soakTargets[loom.ProcessProvisioner] {
			for action, want := range map[failpoint.Action]bool{failpoint.Kill: true, failpoint.Cut: true, failpoint.Freeze: freeze} {
				if seen[fmt.Sprintf("%s %s", p.name, action)] != want {
					t.Errorf("freeze %v: %s at %s: %v, want %v", freeze, action, p.name, !want, want)
				}
			}
		}
	}
}

// TestSoakRollouts is a short piece of `loom soak --rollouts`: processes fail and people change clusters
// while rollouts run.
func TestSoakRollouts(t *testing.T) {
	t.Parallel()
	s, out := shortSoak(t, 2, 12, 1, 10)
	s.rollouts, s.fleet, s.hasty, s.admin = true, 4, true, testkit.NewDatabase(t).DSN
	if err := s.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log(out.String())
	if s.rolledOut == 0 {
		t.Errorf("no rollout ended:\n%s", out.String())
	}
}

// TestSoakHealth is a short piece of `loom soak --health`: machines and processes fail, and what Loom
// repairs by itself is judged.
func TestSoakHealth(t *testing.T) {
	t.Parallel()
	s, out := shortSoak(t, 3, 8, 1, 5)
	s.health, s.series, s.patience, s.admin = true, 3, 40*time.Second, testkit.NewDatabase(t).DSN
	if err := s.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log(out.String())
	if s.repairs == 0 {
		t.Errorf("Loom repaired nothing, so the faults prove nothing:\n%s", out.String())
	}
}
