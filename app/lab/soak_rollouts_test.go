package lab

import (
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

// TestSoakSeesWrongRollouts: each check of a rollout finds what it is there for in a history that was
// tampered with, says nothing else then, and finds nothing in what really happened.
func TestSoakSeesWrongRollouts(t *testing.T) {
	t.Parallel()
	s, out := shortSoak(t, 1, 0, 1, 1) // no fault
	s.rollouts, s.fleet = true, 4
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
	l := newSoakFleetLane(lane)
	l.life = 1
	if err := l.openBook(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Two waves of two clusters, two at the same time, and one may fail.
	two := 2
	in := clusters.RolloutInput{Waves: []loom.Wave{{Count: &two}, {Rest: true}}, Settings: loom.DefaultRolloutSettings()}
	in.Settings.Concurrency, in.Settings.MaxFailed, in.Settings.Pause = 2, 1, 0
	l.kind, l.settings, l.moves = loom.ChangeUpdate, in.Settings, map[loom.ClusterID]soakMove{}
	if l.target, err = l.release(t.Context(), []string{"soak-app"}, ""); err != nil {
		t.Fatal(err)
	}
	in.Fleet.Change.Kind = l.kind
	in.Fleet.Change.Change.Entries = []store.EntryVersion{{Kind: loom.KindService, Name: "soak-app", Version: l.target["soak-app"]}}
	number, err := l.make(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.drive(t.Context(), number); err != nil {
		t.Fatal(err)
	}
	if len(s.failures) > 0 {
		t.Fatalf("the rollout itself is wrong:\n%s", out.String())
	}
	first, last := l.ids[0], l.ids[3]

	// A rollout that begins all anew, as a scheduler would that does not count.
	const (
		anew  = `DELETE FROM soak_turns; UPDATE rollouts SET status = 'running'; UPDATE rollout_clusters SET status = 'waiting';`
		over  = `UPDATE rollout_clusters SET status = 'done'; UPDATE rollouts SET status = 'complete', wave = 2;`
		began = `UPDATE rollout_clusters SET status = 'running' WHERE place `
		ended = `UPDATE rollout_clusters SET status = 'done' WHERE status = 'running';`
		fails = `UPDATE rollout_clusters SET status = 'failed' WHERE place `
		again = `UPDATE rollout_clusters SET status = 'waiting' WHERE status IN ('failed', 'undone');`
	)
	for _, c := range []struct {
		what, query string
		change      func(c *soakCourse)
		want        string // "" for a history that is as it must be
	}{
		{"as it was", ``, nil, ""},
		{"two at the same time", anew + began + `<= 2;` + ended + began + `> 2;` + over, nil, ""},
		{"three at the same time", anew + began + `<= 3;` + ended + began + `> 3;` + over, nil, "3 clusters were changed at the same time, and 2 may be"},
		{"all one by one, and none ends", anew + began + `= 1;` + began + `= 2;` + began + `= 3;` + ended + began + `= 4;` + over, nil, "3 clusters were changed at the same time, and 2 may be"},
		{"three operations, of which the rollout forgot one", anew + began + `= 1;` + ended + `UPDATE operations SET status = 'running' WHERE action = 'cluster_update';` + began + `= 2;` + ended +
			`UPDATE operations SET status = 'complete' WHERE action = 'cluster_update';` + began + `> 2;` + over, nil, "4 clusters were changed at the same time, and 2 may be"},
		{"it goes on after one failed", anew + fails + `= 1;` + began + `= 2;` + ended + began + `> 2;` + ended + again + began + `= 1;` + over, nil, ""},
		{"it goes on after two failed", anew + fails + `<= 2;` + began + `= 3;` + again + began + `= 4;` + ended + began + `<= 2;` + over, nil, "began after 2 clusters had failed, and 1 may"},
		{"it goes on after one failed and one was undone", anew + fails + `= 1; UPDATE rollout_clusters SET status = 'undone' WHERE place = 2;` + began + `= 3;` + again + began + `= 4;` + ended + began + `<= 2;` + over, nil,
			"began after 2 clusters had failed, and 1 may"},
		{"the second wave begins within the first", anew + `UPDATE rollouts SET wave = 1;` + began + `IN (1, 3);` + ended + `UPDATE rollouts SET wave = 2;` + began + `IN (2, 4);` + over, nil, "of wave 2 began while the rollout was running in wave 1"},
		{"a stopped one goes on", anew + began + `<= 2;` + ended + `UPDATE rollouts SET status = 'stopped';` + began + `> 2;` + over, nil, "began while the rollout was stopped in wave 2"},
		{"a cluster that is left out begins", anew + began + `<= 2;` + ended + `UPDATE rollout_clusters SET wave = 0 WHERE place = 4;` + began + `> 2;` + `UPDATE rollout_clusters SET wave = 2 WHERE place = 4;` + over, nil, "of wave 0 began"},
		{"it is complete after two failed", `UPDATE rollout_clusters SET status = 'failed' WHERE place <= 2; UPDATE operations o SET status = 'failed' FROM rollout_clusters rc WHERE rc.cluster_id = o.cluster_id AND rc.operation = o.number AND rc.place <= 2`, nil,
			"it is complete although 2 clusters failed, and 1 may"},
		{"an operation in no turn", `DELETE FROM soak_turns WHERE operation = (SELECT max(operation) FROM soak_turns) AND cluster_id = (SELECT max(cluster_id) FROM soak_turns)`, nil, "whose turn it never was"},
		{"a turn without operation", `INSERT INTO soak_turns SELECT * FROM soak_turns WHERE cluster_id = (SELECT max(cluster_id) FROM soak_turns)`, nil, "had 2 turns and 1 operations"},
		{"the number of another operation", `UPDATE rollout_clusters SET operation = 1 WHERE place = 1`, nil, "names operation 1, and the last one was 2"},
		{"done without its operation", `UPDATE operations o SET status = 'failed' FROM rollout_clusters rc WHERE rc.cluster_id = o.cluster_id AND rc.operation = o.number AND rc.place = 1`, nil, "which is “failed”"},
		{"other tasks than shown", `UPDATE rollout_clusters SET tasks = '{"stop": 7}' WHERE place = 1`, nil, "and map[stop:7] was shown"},
		{"complete twice", ``, func(c *soakCourse) {
			c.began[first], c.turns[first] = append(c.began[first], c.began[first]...), append(c.turns[first], c.turns[first]...)
		}, "got another operation after operation 2 was complete"},
		{"skipped for no reason", ``, func(c *soakCourse) {
			m := c.members[last]
			m.Status, m.Operation = loom.RolloutSkipped, 0
			c.members[last] = m
			delete(c.began, last)
			delete(c.turns, last)
		}, `was skipped after its ""`},
		{"changed although it was deleted", ``, func(c *soakCourse) { l.moves[last], c.first[last] = soakDelete, true }, "must be skipped after its delete"},
	} {
		tx, err := l.System.DB.Beginx()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(c.query); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		course, err := l.course(t.Context(), tx, number)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if c.change != nil {
			c.change(course)
		}
		wrong := l.lookAtRollout(course)
		clear(l.moves)
		if (len(wrong) > 0) != (c.want != "") {
			t.Errorf("%s: found %q, want %q", c.what, wrong, c.want)
		}
		for _, text := range wrong {
			if !strings.Contains(text, c.want) {
				t.Errorf("%s: found %q as well", c.what, text)
			}
		}
	}
}

// TestSoakJudgesStops: a rollout stops by itself once more clusters failed than may, and not before.
func TestSoakJudgesStops(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		why                       string
		failures, failed, running int
		wrong                     bool
	}{
		"two failed":                      {"2 clusters failed, and 1 may.", 2, 2, 0, false},
		"somebody stopped it":             {"Stopped by admin.", 0, 0, 0, false},
		"what runs may still fail":        {"1 cluster failed.", 1, 1, 1, false},
		"one failed":                      {"1 cluster failed, and 1 may.", 1, 1, 0, true},
		"it counted one that did not":     {"2 clusters failed, and 1 may.", 2, 1, 0, true},
		"it counted one that failed once": {"2 clusters failed, and 1 may.", 1, 2, 0, true},
		"it does not say why":             {"", 2, 2, 0, true},
	} {
		s, _ := shortSoak(t, 1, 0, 0, 1)
		l := newSoakFleetLane(&soakLane{soak: s, actor: loom.Actor{User: loom.AdminUser}})
		v := clusters.RolloutView{Rollout: loom.Rollout{Status: loom.RolloutStopped, Why: c.why, Failures: c.failures}, Counts: []store.RolloutCount{
			{Wave: 1, Status: loom.RolloutFailed, Clusters: c.failed}, {Wave: 1, Status: loom.RolloutRuns, Clusters: c.running}}}
		v.Settings.MaxFailed = 1
		l.judgeStop(&v)
		if (len(s.failures) > 0) != c.wrong {
			t.Errorf("%s: found %q", what, s.failures)
		}
	}
}
