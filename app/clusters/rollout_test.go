package clusters_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

// fleetBundle is a fleet of clusters whose service web can be updated.
type fleetBundle struct {
	*bundle
	*testing.T
	m   *mock
	ids []loom.ClusterID
}

// fleet makes a cluster for each number of nodes, then saves a newer version of web.
func fleet(t *testing.T, nodes ...int) *fleetBundle {
	t.Helper()
	b := setup(t)
	b.withRoles()
	f := &fleetBundle{bundle: b, T: t, m: b.mock()}
	for _, n := range nodes {
		f.ids = append(f.ids, b.create(b.ana(), n).Cluster)
	}
	f.m.run(nil)
	b.renew("web")
	return f
}

func webRollout(change func(in *clusters.RolloutInput)) clusters.RolloutInput {
	in := clusters.RolloutInput{Fleet: updateAll(), Settings: loom.DefaultRolloutSettings()}
	in.Fleet.Change.Change.Entries = []store.EntryVersion{{Kind: loom.KindService, Name: "web"}}
	in.Settings.Pause = 0
	if change != nil {
		change(&in)
	}
	return in
}

// rollOut makes a rollout and starts it.
func (f *fleetBundle) rollOut(in clusters.RolloutInput) int {
	f.Helper()
	v, err := f.clusters.MakeRollout(f.ctx, f.admin(), in)
	if err != nil {
		f.Fatal(err)
	}
	if v.Status != loom.RolloutReady {
		f.Fatalf("a new rollout is %s", v.Status)
	}
	if _, err := f.clusters.StartRollout(f.ctx, f.admin(), v.Number, clusters.StartInput{Hash: v.Hash, Replace: true}); err != nil {
		f.Fatal(err)
	}
	return v.Number
}

// turn is a turn of a scheduler.
func (f *fleetBundle) turn() {
	f.Helper()
	f.db.MustExec(`UPDATE rollouts SET next_at = now() WHERE next_at IS NOT NULL`)
	if err := f.clusters.AdvanceRollouts(f.ctx); err != nil {
		f.Fatal(err)
	}
}

// at says how far a rollout is: "running 1: done 1, waiting 2".
func (f *fleetBundle) at(number int, want string) {
	f.Helper()
	v, err := f.clusters.Rollout(f.ctx, f.admin(), number)
	if err != nil {
		f.Fatal(err)
	}
	var parts []string
	for _, s := range loom.RolloutClusterStatuses {
		if n := v.Clusters(s); n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", s, n))
		}
	}
	slices.Sort(parts)
	if got := fmt.Sprintf("%s %d: %s", v.Status, v.Wave, strings.Join(parts, ", ")); got != want {
		f.Fatalf("the rollout is at %q, want %q (%s)", got, want, v.Why)
	}
}

func (f *fleetBundle) why(number int, want string) {
	f.Helper()
	if v, err := f.clusters.Rollout(f.ctx, f.admin(), number); err != nil || !strings.Contains(v.Why, want) {
		f.Errorf("the rollout says %q (%v), want %q", v.Why, err, want)
	}
}

// health says how a cluster is, as its checks would.
func (f *fleetBundle) health(id loom.ClusterID, is loom.HealthStatus) {
	f.Helper()
	f.db.MustExec(`INSERT INTO cluster_health (cluster_id, tenant_id, status) VALUES ($1, 't1', $2) ON CONFLICT (cluster_id) DO UPDATE SET status = $2`, int64(id), string(is))
}

func (f *fleetBundle) note(number int, id loom.ClusterID, want string) {
	f.Helper()
	list, err := f.clusters.RolloutClusters(f.ctx, f.admin(), number, store.RolloutClusterFilter{}, loom.Page{})
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range list.Items {
		if c.Cluster == id {
			if !strings.Contains(c.Note, want) {
				f.Errorf("cluster %s says %q, want %q", id, c.Note, want)
			}
			return
		}
	}
	f.Errorf("cluster %s is not in rollout %d", id, number)
}

// TestRolloutGoesInWaves: the smallest cluster comes first, no more clusters run at the same time
// than the settings allow, and nothing else changes.
func TestRolloutGoesInWaves(t *testing.T) {
	t.Parallel()
	f := fleet(t, 3, 2, 3, 3)
	other := f.ids[3]
	f.db.MustExec(`UPDATE clusters SET services = jsonb_set(services, '{web,version}', '3') WHERE id = $1`, int64(other))
	n := f.rollOut(webRollout(func(in *clusters.RolloutInput) { in.Settings.Concurrency = 1 }))
	f.at(n, "running 1: waiting 3")
	f.turn()
	f.at(n, "running 1: running 1, waiting 2")
	if op := f.latest(f.ids[1]); op.Action != loom.ClusterUpdate || op.RequestedBy != "admin" {
		t.Errorf("the smallest cluster has operation %+v", op)
	}
	f.turn()
	f.at(n, "running 1: running 1, waiting 2")
	f.m.run(nil)
	f.turn()
	for _, want := range []string{"running 2: done 1, running 1, waiting 1", "running 3: done 2, running 1", "complete 3: done 3"} {
		f.at(n, want)
		f.m.run(nil)
		f.turn()
	}
	for _, id := range f.ids[:3] {
		f.m.serving(id, map[string]int{"web": 3})
	}
	if op := f.latest(other); op.Ref.Number != 1 {
		t.Errorf("the cluster that is up to date has operation %d", op.Ref.Number)
	}
	var via string
	if err := f.db.Get(&via, `SELECT via FROM audit WHERE verb = 'update' AND after->>'action' = 'cluster_update' LIMIT 1`); err != nil || via != fmt.Sprint("rollout ", n) {
		t.Errorf("the audit log says via %q, %v", via, err)
	}
}

// TestRolloutStops once more clusters fail than may; a cluster that is mended meanwhile is done
// after the resume, and the rollout can be rolled back.
func TestRolloutStops(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 3, 3)
	n := f.rollOut(webRollout(nil))
	f.turn()
	f.m.run(nil)
	f.turn()
	f.at(n, "running 2: done 1, running 1, waiting 1")
	f.m.run(fault(loom.ActionInstall, "web"))
	f.turn()
	f.at(n, "stopped 2: done 1, failed 1, waiting 1")
	f.why(n, "1 cluster failed.")
	f.turn()
	if op := f.latest(f.ids[2]); op.Ref.Number != 1 {
		t.Error("a stopped rollout begins operations")
	}
	failed := f.latest(f.ids[1])
	if _, err := f.retryOf(f.ana(), failed.Ref, clusters.ChangeInput{}); err != nil {
		t.Fatal(err)
	}
	f.m.run(nil)
	if _, err := f.clusters.ResumeRollout(f.ctx, f.admin(), n); err != nil {
		t.Fatal(err)
	}
	f.turn()
	f.turn()
	f.at(n, "running 3: done 2, running 1")
	f.m.run(nil)
	f.turn()
	f.at(n, "complete 3: done 3")
	for _, id := range f.ids {
		f.m.serving(id, map[string]int{"web": 3})
	}
	// One of them has a later operation.
	f.runs(loom.ChangeRestart, f.ids[0], "")
	f.m.run(nil)
	back := f.rollOut(clusters.RolloutInput{Fleet: clusters.FleetInput{Change: clusters.PreviewInput{Kind: loom.ChangeRollback}, Rollout: n}, Settings: webRollout(nil).Settings})
	f.note(back, f.ids[0], "Operation 3 came after operation 2.")
	for range 4 {
		f.turn()
		f.m.run(nil)
	}
	f.turn()
	f.at(back, "complete 2: done 2, skipped 1")
	for _, id := range f.ids[1:] {
		f.m.serving(id, map[string]int{"web": 2})
	}
}

// TestResumedRolloutReturnsToEarlierWaves: a cluster that failed in a wave that was allowed to go on
// gets another turn once the rollout, which stopped in a later wave, is resumed.
func TestResumedRolloutReturnsToEarlierWaves(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 3, 3)
	n := f.rollOut(webRollout(func(in *clusters.RolloutInput) { in.Settings.MaxFailed = 1 }))
	f.turn()
	f.m.run(fault(loom.ActionInstall, "web"))
	f.turn()
	f.at(n, "running 2: failed 1, running 1, waiting 1")
	failed := f.latest(f.ids[0])
	f.m.run(nil)
	if _, err := f.clusters.StopRollout(f.ctx, f.admin(), n); err != nil {
		t.Fatal(err)
	}
	f.starts(clusters.PreviewInput{Kind: loom.ChangeRollback, Cluster: f.ids[0], Change: clusters.ChangeInput{Operation: failed.Ref.Number}})
	f.m.run(nil)
	if _, err := f.clusters.ResumeRollout(f.ctx, f.admin(), n); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		f.turn()
		f.m.run(nil)
	}
	f.turn()
	f.at(n, "complete 3: done 3")
}

// TestResumedRolloutJudgesEarlierWaves: a cluster of an earlier wave that gets another turn belongs to the
// present wave, which ends only if that cluster is well too, measured by its health before the rollout.
func TestResumedRolloutJudgesEarlierWaves(t *testing.T) {
	t.Parallel()
	for _, now := range []loom.HealthStatus{loom.HealthFailing, loom.HealthDegraded, loom.HealthUnknown, loom.HealthHealthy} {
		t.Run(string(now), func(t *testing.T) {
			t.Parallel()
			f := fleet(t, 2, 3, 3)
			f.health(f.ids[0], loom.HealthHealthy)
			n := f.rollOut(webRollout(func(in *clusters.RolloutInput) { in.Settings.MaxFailed = 1 }))
			f.turn()
			f.m.run(fault(loom.ActionInstall, "web"))
			f.turn()
			f.at(n, "running 2: failed 1, running 1, waiting 1")
			f.health(f.ids[0], loom.HealthFailing)
			failed := f.latest(f.ids[0])
			f.m.run(nil)
			if _, err := f.clusters.StopRollout(f.ctx, f.admin(), n); err != nil {
				t.Fatal(err)
			}
			f.starts(clusters.PreviewInput{Kind: loom.ChangeRollback, Cluster: f.ids[0], Change: clusters.ChangeInput{Operation: failed.Ref.Number}})
			f.m.run(nil)
			f.db.MustExec(`UPDATE rollouts SET settings = settings || '{"maxFailed": 0}'`)
			if _, err := f.clusters.ResumeRollout(f.ctx, f.admin(), n); err != nil {
				t.Fatal(err)
			}
			f.turn()
			f.at(n, "running 2: done 1, running 1, waiting 1")
			f.health(f.ids[0], now)
			f.m.run(nil)
			f.turn()
			switch now {
			case loom.HealthUnknown:
				f.at(n, "running 2: done 2, waiting 1")
				f.why(n, "until the health of")
			case loom.HealthHealthy:
				f.at(n, "running 3: done 2, running 1")
			default:
				f.at(n, "stopped 2: done 1, failed 1, waiting 1")
				f.note(n, f.ids[0], fmt.Sprintf("Its health became %s", now))
			}
		})
	}
}

// TestRolloutRefuses names what is wrong with a request, and with its start.
func TestRolloutRefuses(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 2)
	_, err := f.clusters.MakeRollout(f.ctx, f.ana(), webRollout(nil))
	wantKind(t, err, loom.Forbidden)
	bad := "colour:red"
	for field, in := range map[string]clusters.RolloutInput{
		"entries":              {Fleet: updateAll(role("web")), Settings: loom.DefaultRolloutSettings()},
		"resources":            {Fleet: clusters.FleetInput{Change: clusters.PreviewInput{Kind: loom.ChangeUpdate}, Files: true}, Settings: loom.DefaultRolloutSettings()},
		"settings.concurrency": webRollout(func(in *clusters.RolloutInput) { in.Settings.Concurrency = 0 }),
		"waves[0]":             webRollout(func(in *clusters.RolloutInput) { in.Waves = []loom.Wave{{}} }),
		"waves[1].q":           webRollout(func(in *clusters.RolloutInput) { in.Waves = []loom.Wave{{Rest: true}, {Q: &bad}} }),
		"request.rollout":      {Fleet: clusters.FleetInput{Change: clusters.PreviewInput{Kind: loom.ChangeRollback}}, Settings: loom.DefaultRolloutSettings()},
		"kind":                 {Fleet: clusters.FleetInput{Change: clusters.PreviewInput{Kind: loom.ChangeDelete}}, Settings: loom.DefaultRolloutSettings()},
	} {
		_, err := f.clusters.MakeRollout(f.ctx, f.admin(), in)
		if e := loom.AsError(err); e == nil || len(e.Fields) != 1 || e.Fields[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	_, err = f.clusters.MakeRollout(f.ctx, f.admin(), clusters.RolloutInput{Fleet: clusters.FleetInput{Change: clusters.PreviewInput{Kind: loom.ChangeRollback}, Rollout: 9}, Settings: loom.DefaultRolloutSettings()})
	wantKind(t, err, loom.NotFound)
	v, err := f.clusters.MakeRollout(f.ctx, f.admin(), webRollout(nil))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.clusters.StartRollout(f.ctx, f.admin(), v.Number, clusters.StartInput{Hash: "other"})
	wantKind(t, err, loom.Conflict)
	_, err = f.clusters.StartRollout(f.ctx, f.admin(), v.Number, clusters.StartInput{})
	wantKind(t, err, loom.Invalid)
	_, err = f.clusters.StartRollout(f.ctx, f.ana(), v.Number, clusters.StartInput{Hash: v.Hash})
	wantKind(t, err, loom.Forbidden)
	_, err = f.clusters.ContinueRollout(f.ctx, f.admin(), v.Number)
	wantKind(t, err, loom.Conflict)
	if _, err = f.clusters.StartRollout(f.ctx, f.admin(), v.Number, clusters.StartInput{Hash: v.Hash}); err != nil {
		t.Fatal(err)
	}
	_, err = f.clusters.StartRollout(f.ctx, f.admin(), v.Number, clusters.StartInput{Hash: v.Hash})
	wantKind(t, err, loom.Conflict)
	if _, err = f.clusters.AbortRollout(f.ctx, f.admin(), v.Number); err != nil {
		t.Fatal(err)
	}
	f.at(v.Number, "aborted 1: skipped 2")
	_, err = f.clusters.ResumeRollout(f.ctx, f.admin(), v.Number)
	wantKind(t, err, loom.Conflict)
	other := f.admin()
	other.Tenant = "t2"
	_, err = f.clusters.Rollout(f.ctx, other, v.Number)
	wantKind(t, err, loom.NotFound)
}

// TestRolloutStopsWithoutItsVersion: where the version that it brings is withdrawn or deleted, a
// rollout stops, says so, and goes on once the version is back.
func TestRolloutStopsWithoutItsVersion(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 3)
	n := f.rollOut(webRollout(nil))
	f.db.MustExec(`UPDATE catalog_versions SET released = false WHERE kind = 'services' AND name = 'web' AND version = 3`)
	f.turn()
	f.at(n, "stopped 1: waiting 2")
	f.why(n, "version 3")
	f.db.MustExec(`UPDATE catalog_versions SET released = true WHERE kind = 'services' AND name = 'web' AND version = 3`)
	if _, err := f.clusters.ResumeRollout(f.ctx, f.admin(), n); err != nil {
		t.Fatal(err)
	}
	f.turn()
	f.at(n, "running 1: running 1, waiting 1")
}

// TestRolloutThatReplacesIsAllowedByName: who starts it says that machines are replaced.
func TestRolloutThatReplacesIsAllowedByName(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2)
	f.save(f.tenant, loom.KindHardwareType, &loom.HardwareType{Base: loom.Base{Name: "small"}, ProviderMap: map[string]map[string]string{"lab": {"flavor": "s2"}}})
	v, err := f.clusters.MakeRollout(f.ctx, f.admin(), webRollout(func(in *clusters.RolloutInput) { in.Fleet.Change.Change.Entries = nil }))
	if err != nil || v.Replaced() != 2 {
		t.Fatalf("%d machines, %v", v.Replaced(), err)
	}
	_, err = f.clusters.StartRollout(f.ctx, f.admin(), v.Number, clusters.StartInput{Hash: v.Hash})
	if e := loom.AsError(err); e == nil || len(e.Fields) != 1 || e.Fields[0].Field != "replaceNodes" {
		t.Error(err)
	}
	if _, err := f.clusters.StartRollout(f.ctx, f.admin(), v.Number, clusters.StartInput{Hash: v.Hash, Replace: true}); err != nil {
		t.Error(err)
	}
}

// TestRolloutSkipsWhatDiffers: a cluster that changed since is skipped by name, one that is busy
// gets another turn, and one that is there already is done.
func TestRolloutSkipsWhatDiffers(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 3, 3, 3, 3)
	grown, busy, there, gone, moved := f.ids[0], f.ids[1], f.ids[2], f.ids[3], f.ids[4]
	n := f.rollOut(webRollout(func(in *clusters.RolloutInput) { in.Waves = []loom.Wave{{Rest: true}} }))
	f.starts(clusters.PreviewInput{Kind: loom.ChangeExpand, Cluster: grown, Change: clusters.ChangeInput{Machines: 4}})
	f.starts(clusters.PreviewInput{Kind: loom.ChangeUpgrade, Cluster: there, Change: clusters.ChangeInput{Services: []string{"web"}}})
	f.starts(clusters.PreviewInput{Kind: loom.ChangeDelete, Cluster: gone})
	f.m.run(nil)
	f.renew("web")
	f.starts(clusters.PreviewInput{Kind: loom.ChangeUpgrade, Cluster: moved, Change: clusters.ChangeInput{Services: []string{"web"}}})
	f.m.run(nil)
	f.starts(clusters.PreviewInput{Kind: loom.ChangeRestart, Cluster: busy})
	f.turn()
	f.at(n, "running 1: done 1, skipped 3, waiting 1")
	f.note(n, grown, "tasks now, not")
	f.note(n, gone, "deleted")
	f.note(n, moved, "would start from other versions")
	f.m.run(nil)
	f.turn()
	f.m.run(nil)
	f.turn()
	f.at(n, "complete 1: done 2, skipped 3")
	f.m.serving(busy, map[string]int{"web": 3})
	f.m.serving(moved, map[string]int{"web": 4})
}

// TestRolloutLeavesOutWhatAnotherChanges: a cluster on which the operation of another rollout runs
// is skipped.
func TestRolloutLeavesOutWhatAnotherChanges(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 3)
	f.rollOut(webRollout(func(in *clusters.RolloutInput) {
		in.Fleet.Q = "id:" + f.ids[0].String()
		in.Fleet.Change = clusters.PreviewInput{Kind: loom.ChangeRestart}
	}))
	f.turn()
	n := f.rollOut(webRollout(nil))
	f.at(n, "running 1: skipped 1, waiting 1")
	f.note(n, f.ids[0], "is running")
}

// TestRolloutNamesOthersOfItsClusters: clusters wait in one rollout at a time. A new one of them is refused
// with the rollouts that have them, and both remedies that it names work.
func TestRolloutNamesOthersOfItsClusters(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 2, 2, 2)
	only := func(ids ...loom.ClusterID) clusters.RolloutInput {
		return webRollout(func(in *clusters.RolloutInput) {
			var q []string
			for _, id := range ids {
				q = append(q, id.String())
			}
			in.Fleet.Q = "id:" + strings.Join(q, ",")
		})
	}
	first := f.rollOut(only(f.ids[0]))
	second, err := f.clusters.MakeRollout(f.ctx, f.admin(), only(f.ids[1], f.ids[2])) // nobody starts it
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.clusters.MakeRollout(f.ctx, f.admin(), webRollout(nil))
	wantKind(t, err, loom.Conflict)
	name := request(2).Name
	want := fmt.Sprintf("Rollout %d has %s. Rollout %d has %s and %s. A cluster is in one rollout at a time: abort rollouts %d and %d, wait for the end, or leave the named clusters out with a search such as -id:%s.",
		first, name, second.Number, name, name, first, second.Number, f.ids[0])
	if got := loom.AsError(err).Message; got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
	others := only(f.ids[:3]...)
	others.Fleet.Q = "-" + others.Fleet.Q
	n := f.rollOut(others)
	f.at(n, "running 1: waiting 1")
	for _, number := range []int{first, second.Number, n} {
		if _, err := f.clusters.AbortRollout(f.ctx, f.admin(), number); err != nil {
			t.Fatal(err)
		}
	}
	f.at(f.rollOut(webRollout(nil)), "running 1: waiting 4")
}

// TestRolloutThatAnotherForestalls: of two rollouts that take a cluster at the same moment, one is refused.
func TestRolloutThatAnotherForestalls(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 2)
	first := f.rollOut(webRollout(func(in *clusters.RolloutInput) { in.Fleet.Q = "id:" + f.ids[0].String() }))
	f.turn()
	f.m.run(fault(loom.ActionInstall, "web"))
	f.turn()
	f.at(first, "stopped 1: failed 1")
	f.starts(clusters.PreviewInput{Kind: loom.ChangeRollback, Cluster: f.ids[0], Change: clusters.ChangeInput{Operation: f.latest(f.ids[0]).Ref.Number}})
	f.m.run(nil)
	tx := f.db.MustBegin() // a resume that is about to commit
	defer tx.Rollback()    //nolint:errcheck // of a test that failed
	tx.MustExec(`UPDATE rollout_clusters SET status = 'waiting' WHERE cluster_id = $1`, int64(f.ids[0]))
	made := make(chan error, 1)
	go func() {
		_, err := f.clusters.MakeRollout(f.ctx, f.admin(), webRollout(nil))
		made <- err
	}()
	for f.count(`SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())`) == 0 {
		select {
		case err := <-made:
			t.Fatalf("nobody waited for the cluster: %v", err)
		default:
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	wantKind(t, <-made, loom.Conflict)
}

// TestRolloutWaitsForWhatBeganMeanwhile: an operation that begins while the turn of its cluster is being
// worked out makes the cluster busy, and its turn comes again.
func TestRolloutWaitsForWhatBeganMeanwhile(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2)
	n := f.rollOut(webRollout(nil))
	tx := f.db.MustBegin()
	defer tx.Rollback() //nolint:errcheck // of a test that failed
	tx.MustExec(`SELECT FROM rollout_clusters FOR UPDATE`)
	turned := make(chan error, 1)
	go func() { turned <- f.clusters.AdvanceRollouts(f.ctx) }()
	for f.count(`SELECT count(*) FROM pg_locks WHERE NOT granted AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())`) == 0 {
		select {
		case err := <-turned:
			t.Fatalf("nobody waited for the row: %v", err)
		default:
		}
	}
	f.starts(clusters.PreviewInput{Kind: loom.ChangeRestart, Cluster: f.ids[0]})
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-turned; err != nil {
		t.Fatal(err)
	}
	f.at(n, "running 1: waiting 1")
	f.m.run(nil)
	f.turn()
	f.at(n, "running 1: running 1")
}

// TestRolloutReplans: with replan a cluster that changed is changed all the same, unless the effect
// would be stronger.
func TestRolloutReplans(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 3)
	n := f.rollOut(webRollout(func(in *clusters.RolloutInput) {
		in.Waves, in.Settings.Changed = []loom.Wave{{Rest: true}}, loom.RolloutReplan
	}))
	f.starts(clusters.PreviewInput{Kind: loom.ChangeExpand, Cluster: f.ids[0], Change: clusters.ChangeInput{Machines: 4}})
	f.m.run(nil)
	f.turn()
	f.m.run(nil)
	f.turn()
	f.at(n, "complete 1: done 2")
	f.m.serving(f.ids[0], map[string]int{"web": 3})
}

// TestRolloutGivesUpOnBusyClusters after half an hour.
func TestRolloutGivesUpOnBusyClusters(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2)
	n := f.rollOut(webRollout(nil))
	f.starts(clusters.PreviewInput{Kind: loom.ChangeRestart, Cluster: f.ids[0]})
	f.turn()
	f.at(n, "running 1: waiting 1")
	f.db.MustExec(`UPDATE rollout_clusters SET tried_at = tried_at - interval '31 minutes'`)
	f.turn()
	f.turn()
	f.at(n, "complete 1: skipped 1")
}

// TestRolloutWaitsBetweenWaves: for the pause, for somebody, for a window, and for the health of
// what it changed.
func TestRolloutWaitsBetweenWaves(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 2, 2)
	n := f.rollOut(webRollout(func(in *clusters.RolloutInput) { in.Settings.Pause = 600 }))
	f.turn()
	f.m.run(nil)
	f.turn()
	f.turn()
	f.at(n, "running 1: done 1, waiting 2")
	f.why(n, "Wave 2 begins after the pause.")
	f.health(f.ids[0], loom.HealthUnknown)
	f.db.MustExec(`UPDATE rollouts SET wave_ended_at = wave_ended_at - interval '11 minutes'`)
	f.turn()
	f.why(n, "until the health of")
	f.db.MustExec(`UPDATE cluster_health SET status = 'healthy'`)
	f.db.MustExec(`UPDATE rollouts SET settings = settings || '{"confirm": true}'`)
	f.turn()
	f.why(n, "waits until somebody continues")
	if _, err := f.clusters.ContinueRollout(f.ctx, f.admin(), n); err != nil {
		t.Fatal(err)
	}
	f.db.MustExec(`UPDATE rollouts SET settings = settings || '{"windows": [{"days": [], "from": "00:00", "to": "00:01"}, {"days": [], "from": "12:00", "to": "12:01"}]}'`)
	f.turn()
	f.turn()
	if v, _ := f.clusters.Rollout(f.ctx, f.admin(), n); v.Clusters(loom.RolloutRuns) == 0 {
		f.why(n, "next window")
		if v.Until.IsZero() {
			t.Error("nobody says when the window opens")
		}
	}
	f.db.MustExec(`UPDATE rollouts SET settings = settings || '{"windows": []}'`)
	f.turn()
	f.at(n, "running 2: done 1, running 1, waiting 1")
	f.m.run(nil)
	f.health(f.ids[1], loom.HealthFailing)
	f.turn()
	f.at(n, "stopped 2: done 1, failed 1, waiting 1")
	f.note(n, f.ids[1], "Its health became failing")
}

// TestRolloutActsAsItsStarter: who is no longer an administrator starts nothing.
func TestRolloutActsAsItsStarter(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2)
	n := f.rollOut(webRollout(nil))
	f.db.MustExec(`UPDATE users SET role = 'user' WHERE tenant_id = 't1' AND id = 'admin'`)
	f.turn()
	f.at(n, "stopped 1: waiting 1")
	f.why(n, "admin, who started it, is no longer an administrator.")
	if op := f.latest(f.ids[0]); op.Ref.Number != 1 {
		t.Error("an operation began")
	}
}

// TestRolloutCountsAllFailures: operations that fail after a rollout stopped count too.
func TestRolloutCountsAllFailures(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 2)
	n := f.rollOut(webRollout(func(in *clusters.RolloutInput) { in.Waves = []loom.Wave{{Rest: true}} }))
	f.turn()
	f.db.MustExec(`UPDATE operations SET status = 'failed', ended_at = now() WHERE cluster_id = $1 AND number = 2`, int64(f.ids[0]))
	f.turn()
	f.why(n, "1 cluster failed.")
	f.db.MustExec(`UPDATE operations SET status = 'failed', ended_at = now() WHERE cluster_id = $1 AND number = 2`, int64(f.ids[1]))
	f.turn()
	f.at(n, "stopped 1: failed 2")
	f.why(n, "2 clusters failed.")
}

// TestAbortedRollout aborts the operations that run.
func TestAbortedRollout(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 2)
	n := f.rollOut(webRollout(nil))
	f.turn()
	if _, err := f.clusters.AbortRollout(f.ctx, f.admin(), n); err != nil {
		t.Fatal(err)
	}
	f.turn()
	f.m.run(nil)
	f.turn()
	f.at(n, "aborted 1: failed 1, skipped 1")
	if op := f.latest(f.ids[0]); !op.Aborted || !strings.Contains(op.Message, fmt.Sprintf("Aborted with rollout %d.", n)) {
		t.Errorf("the operation is %+v", op)
	}
	if n := f.count(`SELECT count(*) FROM rollouts WHERE next_at IS NOT NULL`); n > 0 {
		t.Error("a scheduler goes on looking at it")
	}
}

// TestSchedulersBeginOnce: any number of schedulers at the same time begin one operation on each
// cluster, and never more than may run.
func TestSchedulersBeginOnce(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 2, 2, 2, 2, 2)
	n := f.rollOut(webRollout(func(in *clusters.RolloutInput) {
		in.Settings.Concurrency, in.Waves = 2, []loom.Wave{{Rest: true}}
	}))
	for range 40 {
		f.db.MustExec(`UPDATE rollouts SET next_at = now() WHERE next_at IS NOT NULL`)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				// Whoever comes while another has it takes it again at once, as after a kill.
				f.db.MustExec(`UPDATE rollouts SET next_at = now() WHERE next_at IS NOT NULL`)
				if err := f.clusters.AdvanceRollouts(f.ctx); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if running := f.count(`SELECT count(*) FROM rollout_clusters WHERE status = 'running'`); running > 2 {
			t.Fatalf("%d clusters are changed at the same time", running)
		}
		f.m.run(nil)
	}
	f.at(n, "complete 1: done 6")
	if twice := f.count(`SELECT count(*) FROM operations WHERE action = 'cluster_update' AND number > 2`); twice > 0 {
		t.Errorf("%d clusters were changed twice", twice)
	}
}

// TestRolloutDoesWhatWasShown: for random edits over a fleet, the tasks that run on each cluster
// are those that the rollout showed, and clusters that it does not name stay as they are.
func TestRolloutDoesWhatWasShown(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2, 3, 3, 5)
	f.db.MustExec(`UPDATE clusters SET protected = true WHERE id = $1`, int64(f.ids[1]))
	r := rand.New(rand.NewPCG(5, 6))
	changed := 0
	for round := range 6 {
		edits := randomEdits(r, f.newestTemplate())
		in := clusters.RolloutInput{Fleet: updateAll(), Waves: []loom.Wave{{Rest: true}}, Settings: webRollout(nil).Settings}
		for _, e := range edits {
			f.save(f.tenant, kindOfEntry(e), e)
			in.Fleet.Change.Change.Entries = append(in.Fleet.Change.Change.Entries, store.EntryVersion{Kind: kindOfEntry(e), Name: e.Meta().Name})
		}
		v, err := f.clusters.MakeRollout(f.ctx, f.admin(), in)
		if errors.Is(err, loom.Conflict) {
			continue // nothing to do
		}
		if err != nil {
			t.Fatal(err)
		}
		before := map[loom.ClusterID]int{}
		for _, id := range f.ids {
			before[id] = f.latest(id).Ref.Number
		}
		if _, err := f.clusters.StartRollout(f.ctx, f.admin(), v.Number, clusters.StartInput{Hash: v.Hash, Replace: true}); err != nil {
			t.Fatal(err)
		}
		f.turn()
		f.m.run(nil)
		f.turn()
		list, err := f.clusters.RolloutClusters(f.ctx, f.admin(), v.Number, clusters.RolloutFilter{}, loom.Page{})
		if err != nil {
			t.Fatal(err)
		}
		shown := map[loom.ClusterID]loom.RolloutCluster{}
		for _, c := range list.Items {
			shown[c.Cluster] = c
		}
		for _, id := range f.ids {
			c, named := shown[id]
			op := f.latest(id)
			if !named || c.Status == loom.RolloutSkipped {
				if op.Ref.Number != before[id] {
					t.Errorf("round %d: cluster %s was changed", round, id)
				}
				continue
			}
			changed++
			var ran []struct {
				Action loom.TaskAction `db:"action"`
				N      int             `db:"n"`
			}
			if err := f.db.Select(&ran, `SELECT t.action, count(*) AS n FROM tasks t JOIN operations o ON o.id = t.operation_id WHERE o.cluster_id = $1 AND o.number = $2 AND NOT t.gate GROUP BY t.action`, int64(id), op.Ref.Number); err != nil {
				t.Fatal(err)
			}
			tasks := map[loom.TaskAction]int{}
			for _, row := range ran {
				tasks[row.Action] = row.N
			}
			if c.Status != loom.RolloutDone || op.Ref.Number != before[id]+1 || op.Status != loom.OperationComplete || !maps.Equal(tasks, c.Tasks) {
				t.Errorf("round %d: cluster %s is %s after operation %d (%s) with tasks %v, shown were %v", round, id, c.Status, op.Ref.Number, op.Status, tasks, c.Tasks)
			}
		}
	}
	if changed < 6 {
		t.Errorf("only %d clusters were changed", changed)
	}
}

// TestRolloutDoesNothingTwice: a cluster whose failed operation somebody retried is done once the
// rollout is resumed, whatever kind of change it is.
func TestRolloutDoesNothingTwice(t *testing.T) {
	t.Parallel()
	f := fleet(t, 2)
	n := f.rollOut(webRollout(nil))
	f.turn()
	f.m.run(nil)
	f.turn()
	f.at(n, "complete 1: done 1")
	for _, in := range []clusters.FleetInput{
		{Change: clusters.PreviewInput{Kind: loom.ChangeRollback}, Rollout: n},
		{Change: clusters.PreviewInput{Kind: loom.ChangeRestart}},
	} {
		second := f.rollOut(clusters.RolloutInput{Fleet: in, Settings: webRollout(nil).Settings})
		f.turn()
		f.m.run(fault(loom.ActionStart, "web"))
		f.turn()
		f.at(second, "stopped 1: failed 1")
		failed := f.latest(f.ids[0])
		if _, err := f.retryOf(f.ana(), failed.Ref, clusters.ChangeInput{}); err != nil {
			t.Fatal(err)
		}
		f.m.run(nil)
		if _, err := f.clusters.ResumeRollout(f.ctx, f.admin(), second); err != nil {
			t.Fatal(err)
		}
		f.turn()
		f.at(second, "complete 1: done 1")
		if op := f.latest(f.ids[0]); op.Ref.Number != failed.Ref.Number+1 {
			t.Errorf("%s: operation %d came after the retry", in.Change.Kind, op.Ref.Number)
		}
	}
}
