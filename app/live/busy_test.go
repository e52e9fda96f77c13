package live_test

import (
	"fmt"
	"testing"
	"time"

	"loom/app/loom"
)

// Twenty thousand events at once: followers hear of their topics, once each and
// soon; what they did not take does not grow, and holds nobody up.
func TestManyEventsAreCoalesced(t *testing.T) {
	t.Parallel()
	hub, db := startHub(t)
	quick, idle := subscribe(t, hub, "", "last"), subscribe(t, hub, "", "busy-1", "busy-2", "named")
	const insert = `INSERT INTO events (tenant_id, topic, ids)
		SELECT 'a', 'busy-' || n % 50, ARRAY[n::text] FROM generate_series(1, 20000) AS n`
	if _, err := db.Exec(insert); err != nil {
		t.Fatal(err)
	}
	var named []string
	for n := range 150 {
		named = append(named, fmt.Sprint("id-", n))
	}
	emit(t, db, loom.Event{Tenant: "a", Topic: "named", IDs: named}, loom.Event{Tenant: "a", Topic: "last", IDs: []string{"1"}})
	began := time.Now()
	collect(t, quick, "last", "1")
	t.Logf("heard %s after 20,000 events", time.Since(began).Round(time.Millisecond))
	// Again the same: what waits stays one signal for each topic.
	for n := range 3 {
		if _, err := db.Exec(insert); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		id := fmt.Sprint("round ", n)
		emit(t, db, loom.Event{Tenant: "a", Topic: "last", IDs: []string{id}})
		collect(t, quick, "last", id)
		t.Logf("heard %s after %d more", time.Since(began).Round(time.Millisecond), 20_000)
	}
	<-idle.Ready()
	signals := idle.Take()
	if len(signals) != 3 {
		t.Errorf("%d signals wait, want one for each topic: %+v", len(signals), signals)
	}
	for _, s := range signals {
		// Too many ids to name mean: anything may have changed.
		if want := map[string]int{"named": 150}[s.Topic]; len(s.IDs) != want || s.IDs == nil {
			t.Errorf("%s names %d ids, want %d", s.Topic, len(s.IDs), want)
		}
	}
}

// One event without ids says more than any number of ids of others.
func TestNoIDsMeanAnything(t *testing.T) {
	t.Parallel()
	hub, db := startHub(t)
	s, last := subscribe(t, hub, "", "t", "u"), subscribe(t, hub, "", "last")
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"1"}}, loom.Event{Tenant: "a", Topic: "u"})
	emit(t, db, loom.Event{Tenant: "a", Topic: "t"}, loom.Event{Tenant: "a", Topic: "last", IDs: []string{"1"}})
	collect(t, last, "last", "1")
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"2"}}, loom.Event{Tenant: "a", Topic: "last", IDs: []string{"2"}})
	collect(t, last, "last", "2")
	<-s.Ready()
	for _, signal := range s.Take() {
		if len(signal.IDs) != 0 {
			t.Errorf("%s names %v", signal.Topic, signal.IDs)
		}
	}
}
