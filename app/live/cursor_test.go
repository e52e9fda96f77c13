package live_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/live"
	"loom/app/loom"
	"loom/app/store"
	"loom/app/testkit"
)

func subscribe(t *testing.T, hub *live.Hub, cursor string, topics ...string) *live.Subscription {
	t.Helper()
	s, err := hub.Subscribe(context.Background(), "a", topics, cursor)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// begin inserts an event in a transaction that stays open.
func begin(t *testing.T, db *testkit.Database, topic, id string) *sqlx.Tx {
	t.Helper()
	tx, err := db.BeginTxx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() }) //nolint:errcheck // committed, or the test failed
	if err := store.InsertEvents(context.Background(), tx, loom.Event{Tenant: "a", Topic: topic, IDs: []string{id}}); err != nil {
		t.Fatal(err)
	}
	return tx
}

func commit(t *testing.T, tx *sqlx.Tx) {
	t.Helper()
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// wasReset takes until a reset comes.
func wasReset(t *testing.T, s *live.Subscription) live.Signal {
	t.Helper()
	for deadline := time.After(20 * time.Second); ; {
		select {
		case <-s.Ready():
			for _, signal := range s.Take() {
				if signal.Reset {
					return signal
				}
			}
		case <-deadline:
			t.Fatal("no reset")
		}
	}
}

func TestCursorBringsWhatWasMissed(t *testing.T) {
	t.Parallel()
	hub, db := startHub(t)
	first := subscribe(t, hub, "", "t")
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"1"}})
	signals := collect(t, first, "t", "1")
	first.Close()
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"2"}})
	again := subscribe(t, hub, signals[len(signals)-1].Cursor, "t")
	for _, s := range collect(t, again, "t", "2") {
		if s.Reset {
			t.Error("a fresh cursor gave a reset")
		}
	}
}

// An event with a lower id that commits after the cursor was handed out, while
// nobody listens, is heard on return: however the commits are ordered.
func TestLateCommitIsHeardOnReturn(t *testing.T) {
	t.Parallel()
	hub, db := startHub(t)
	first, witness := subscribe(t, hub, "", "t"), subscribe(t, hub, "", "t")
	slow := begin(t, db, "t", "slow")
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"quick"}})
	began := time.Now()
	signals := collect(t, first, "t", "quick") // the open transaction holds nothing back
	t.Logf("heard %s after its commit, with an older transaction open", time.Since(began).Round(time.Millisecond))
	first.Close()
	commit(t, slow)
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"later"}})
	collect(t, witness, "t", "slow", "later") // the hub has passed it on to all who are there
	collect(t, subscribe(t, hub, signals[len(signals)-1].Cursor, "t"), "t", "slow", "later")
}

// A client that comes back before anything happened knows where it was.
func TestCursorBeforeTheFirstSignal(t *testing.T) {
	t.Parallel()
	hub, db := startHub(t)
	first := subscribe(t, hub, "", "t")
	slow := begin(t, db, "t", "slow")
	cursor := first.Cursor()
	first.Close()
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"quick"}})
	commit(t, slow)
	collect(t, subscribe(t, hub, cursor, "t"), "t", "quick", "slow")
}

// A client that broke off between two signals of one call gets the second again.
func TestCursorBetweenSignalsOfOneTake(t *testing.T) {
	t.Parallel()
	hub, db := startHub(t)
	s := subscribe(t, hub, "", "t", "u")
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"0"}})
	collect(t, s, "t", "0")
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"1"}}, loom.Event{Tenant: "a", Topic: "u", IDs: []string{"1"}})
	<-s.Ready()
	// Both cursors are the same while an older transaction is open anywhere on the
	// server: the second, too, then names a place before it.
	signals := s.Take()
	if len(signals) != 2 {
		t.Fatalf("took %+v", signals)
	}
	collect(t, subscribe(t, hub, signals[0].Cursor, "t", "u"), signals[1].Topic, "1")
}

func TestCursorsThatAreNone(t *testing.T) {
	t.Parallel()
	hub, db := startHub(t)
	fresh := subscribe(t, hub, "", "t").Cursor()
	_, server, _ := strings.Cut(fresh, "@")
	// Plain numbers are of an earlier release; the others never were cursors, are of
	// another server or of the future of this one.
	for _, cursor := range []string{"0", "17", "nonsense", "@", "1@", "@" + server, "0@" + server, strconv.FormatUint(1<<32, 36) + "@" + server, strconv.FormatUint(1<<62+5, 36) + "@" + server, "zzzzzzzzzzzzz@" + server, "zz@1.1", fresh + "0", "0" + fresh[len("0"):] + ".9", "ZZZZZZZZZZZZZZZ" + fresh, "-1" + fresh} {
		s := subscribe(t, hub, cursor, "t")
		again := wasReset(t, s)
		emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"after " + cursor}})
		collect(t, subscribe(t, hub, again.Cursor, "t"), "t", "after "+cursor)
		collect(t, s, "t", "after "+cursor)
	}
}

// trimEvents trims as if two hours had gone by since all events but the pulse.
func trimEvents(t *testing.T, db *testkit.Database) {
	t.Helper()
	ctx := context.Background()
	err := store.Exec(ctx, db.DB, func(tx *sqlx.Tx) error {
		if _, err := tx.Exec(`UPDATE events SET created_at = created_at - interval '2 hours' WHERE ids <> '{pulse}'`); err != nil {
			return err
		}
		_, err := store.TrimEventsAllTenants(ctx, tx, time.Hour)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A hub that could not read for longer than events are kept tells all to load again.
func TestHubThatWasAwayGivesAReset(t *testing.T) {
	t.Parallel()
	db := testkit.NewDatabase(t)
	hub := live.New(db.DB, db.DSN, slog.New(slog.DiscardHandler))
	s := subscribe(t, hub, "", "t")
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"1"}})
	for left := 1; left > 0; { // what is unsettled stays for a moment
		trimEvents(t, db)
		if err := db.Get(&left, `SELECT count(*) FROM events`); err != nil {
			t.Fatal(err)
		}
	}
	run(t, hub)
	cursor := wasReset(t, s).Cursor
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"2"}})
	collect(t, s, "t", "2")
	for _, signal := range collect(t, subscribe(t, hub, cursor, "t"), "t", "2") {
		if signal.Reset {
			t.Error("the cursor of the reset gives another one")
		}
	}
}

// Deleting events that a client has not seen gives it a reset, and only then.
func TestTrimmedEventsGiveAReset(t *testing.T) {
	t.Parallel()
	hub, db := startHub(t)
	trim := func() { trimEvents(t, db) }
	s := subscribe(t, hub, "", "t")
	before := s.Cursor()
	open := begin(t, db, "t", "open")
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"1"}})
	collect(t, s, "t", "1")
	trim()
	trim()
	commit(t, open)
	trim() // what was open at the last trim stays until the next
	back := subscribe(t, hub, before, "t")
	for _, signal := range collect(t, back, "t", "open", "1") {
		if signal.Reset {
			t.Error("reset although nothing is missing")
		}
	}
	// Other databases of the server may keep numbers unsettled for a moment. Who is
	// there moves on with each event; in life an hour lies between two trims.
	for settled := false; !settled; {
		if err := db.Get(&settled, `SELECT bool_and(xid < pg_snapshot_xmin(pg_current_snapshot())) FROM events`); err != nil {
			t.Fatal(err)
		}
	}
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"pulse"}})
	collect(t, s, "t", "pulse")
	collect(t, back, "t", "pulse")
	for left := 1; left > 0; {
		trim()
		if err := db.Get(&left, `SELECT count(*) FROM events WHERE ids <> '{pulse}'`); err != nil {
			t.Fatal(err)
		}
	}
	wasReset(t, subscribe(t, hub, before, "t"))
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"2"}})
	for _, signal := range append(collect(t, s, "t", "2"), collect(t, back, "t", "2")...) {
		if signal.Reset {
			t.Error("who was there all the time got a reset")
		}
	}
}

// Writers commit in any order while a client breaks off and returns at any time:
// in the end it heard everything.
func TestNothingIsLostInAnyOrder(t *testing.T) {
	t.Parallel()
	hub, db := startHub(t)
	const writers, each = 4, 30
	var all []string
	for w := range writers {
		for n := range each {
			all = append(all, fmt.Sprintf("%d-%d", w, n))
		}
	}
	s := subscribe(t, hub, "", "t", "u")
	cursor := s.Cursor()
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 3))
			for n := range each {
				topics := []string{"t", "u"}
				topic := topics[r.IntN(2)]
				err := store.Exec(context.Background(), db.DB, func(tx *sqlx.Tx) error {
					err := store.InsertEvents(context.Background(), tx, loom.Event{Tenant: "a", Topic: topic, IDs: []string{fmt.Sprintf("%d-%d", w, n)}})
					if err == nil { // as long as this runs, others overtake it
						_, err = tx.Exec(`SELECT pg_sleep($1)`, r.Float64()/50)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	heard := map[string]bool{}
	r := rand.New(rand.NewPCG(1, 2))
	deadline := time.After(60 * time.Second)
	missing := func() int { return len(all) - len(heard) }
	for returns := 0; missing() > 0; returns++ {
		select {
		case <-s.Ready():
			signals := s.Take()
			// Some of them arrive; then the connection breaks.
			arrived := signals[:r.IntN(len(signals)+1)]
			for _, signal := range arrived {
				cursor = signal.Cursor
				for _, id := range signal.IDs {
					heard[id] = true
				}
			}
		case <-deadline:
			t.Fatalf("after %d returns %d are missing: %v", returns, missing(),
				slices.DeleteFunc(slices.Clone(all), func(id string) bool { return heard[id] }))
		}
		s.Close()
		s = subscribe(t, hub, cursor, "t", "u")
	}
	writing.Wait()
}
