package live_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/live"
	"loom/app/loom"
	"loom/app/store"
	"loom/app/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func startHub(t *testing.T) (*live.Hub, *testkit.Database) {
	t.Helper()
	db := testkit.NewDatabase(t)
	hub := live.New(db.DB, db.DSN, slog.New(slog.DiscardHandler))
	run(t, hub)
	return hub, db
}

// run runs a hub until the test ends.
func run(t *testing.T, hub *live.Hub) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- hub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func emit(t *testing.T, db *testkit.Database, events ...loom.Event) {
	t.Helper()
	err := store.Exec(context.Background(), db.DB, func(tx *sqlx.Tx) error {
		return store.InsertEvents(context.Background(), tx, events...)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// collect takes signals until one of the topic has all ids.
func collect(t *testing.T, s *live.Subscription, topic string, ids ...string) []live.Signal {
	t.Helper()
	deadline := time.After(20 * time.Second)
	var all []live.Signal
	seen := map[string]bool{}
	for {
		select {
		case <-s.Ready():
			for _, sig := range s.Take() {
				all = append(all, sig)
				if sig.Topic == topic {
					for _, id := range sig.IDs {
						seen[id] = true
					}
				}
			}
			if !slices.ContainsFunc(ids, func(id string) bool { return !seen[id] }) {
				return all
			}
		case <-deadline:
			t.Fatalf("signals %v never held %s %v", all, topic, ids)
		}
	}
}

func TestSubscribersHearTheirTopicsOnly(t *testing.T) {
	t.Parallel()
	hub, db := startHub(t)
	ctx := context.Background()
	mine, err := hub.Subscribe(ctx, "a", []string{"clusters"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	emit(t, db, loom.Event{Tenant: "b", Topic: "clusters", IDs: []string{"foreign"}},
		loom.Event{Tenant: "a", Topic: "tenant"},
		loom.Event{Tenant: "a", Topic: "clusters", IDs: []string{"1", "2"}})
	for _, s := range collect(t, mine, "clusters", "1", "2") {
		if s.Topic != "clusters" || slices.Contains(s.IDs, "foreign") {
			t.Errorf("heard %+v", s)
		}
	}
}

// A transaction that took its event id early and commits late must still be heard.
func TestLateCommitIsHeard(t *testing.T) {
	t.Parallel()
	hub, db := startHub(t)
	ctx := context.Background()
	s, err := hub.Subscribe(ctx, "a", []string{"t"}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	slow, err := db.BeginTxx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.InsertEvents(ctx, slow, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"slow"}}); err != nil {
		t.Fatal(err)
	}
	emit(t, db, loom.Event{Tenant: "a", Topic: "t", IDs: []string{"quick"}})
	collect(t, s, "t", "quick")
	if err := slow.Commit(); err != nil {
		t.Fatal(err)
	}
	collect(t, s, "t", "slow")
}

func TestLogFollowersAreWoken(t *testing.T) {
	t.Parallel()
	hub, db := startHub(t)
	wake, end := hub.FollowLog(7)
	defer end()
	if _, err := db.Exec(`SELECT pg_notify($1, '7')`, store.LogChannel); err != nil {
		t.Fatal(err)
	}
	select {
	case <-wake:
	case <-time.After(20 * time.Second):
		t.Fatal("not woken")
	}
}
