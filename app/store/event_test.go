package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
	"loom/app/testkit"
)

// TestEventsAreReadOnceInAnyOrder reads from snapshot to snapshot while transactions
// overtake each other: each event comes exactly once, as soon as it is committed.
func TestEventsAreReadOnceInAnyOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := testkit.NewDatabase(t)
	begin := func(id string) *sqlx.Tx {
		t.Helper()
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tx.Rollback() }) //nolint:errcheck // committed, or the test failed
		if err := store.InsertEvents(ctx, tx, loom.Event{Tenant: "a", Topic: "t", IDs: []string{id}}, loom.Event{Tenant: "b", Topic: "t", IDs: []string{"foreign"}},
			loom.Event{Tenant: "a", Topic: "u", IDs: []string{"unwanted"}}); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	at, err := store.EventPlaceAllTenants(ctx, db.DB)
	if err != nil {
		t.Fatal(err)
	}
	start := at
	wanted := []store.EventTopic{{Tenant: "a", Topic: "t"}, {Tenant: "a", Topic: "quiet"}}
	read := func(want ...string) {
		t.Helper()
		news, err := store.NewEventsAllTenants(ctx, db.DB, at, wanted, 3)
		if err != nil || news.Lost {
			t.Fatalf("%+v, %v", news, err)
		}
		at = news.At
		var got []string
		for _, e := range news.Events {
			if e.Tenant != "a" || e.Topic != "t" || len(news.Events) != 1 {
				t.Errorf("read %+v", news.Events)
			}
			got = append(got, e.IDs...)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
	}
	read()
	slow, slower := begin("slow"), begin("slower")
	quick := begin("quick")
	read()
	commitAll := func(all ...*sqlx.Tx) {
		t.Helper()
		for _, tx := range all {
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	commitAll(quick)
	read("quick")
	commitAll(begin("next"), slow)
	read("next", "slow")
	read()
	if err := slower.Rollback(); err != nil {
		t.Fatal(err)
	}
	read()
	commitAll(begin("last"))
	read("last")

	// Whoever knows no more than the oldest open transaction gets all from there on.
	for limit, ids := range map[int]int{4: 4, 3: 0} {
		news, err := store.NewEventsAllTenants(ctx, db.DB, store.EventPlaceAt(start.Server, start.Oldest()), wanted, limit)
		if err != nil || news.Lost || len(news.Events) != 1 || len(news.Events[0].IDs) != ids {
			t.Errorf("with at most %d ids: %+v, %v", limit, news, err)
		}
	}
	// Numbers of another server, and those that nobody has reached, are no places.
	for name, place := range map[string]store.EventPlace{
		"another server": store.EventPlaceAt("1.1", start.Oldest()), "the future": store.EventPlaceAt(start.Server, 1<<62+5),
	} {
		if news, err := store.NewEventsAllTenants(ctx, db.DB, place, wanted, 1); err != nil || !news.Lost {
			t.Errorf("%s: %+v, %v", name, news, err)
		}
	}
}

// TestEventsOfARestoredDatabase has events with numbers from the future: they do not
// come up, they make no cursor old, and they are trimmed.
func TestEventsOfARestoredDatabase(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := testkit.NewDatabase(t)
	db.MustExec(`INSERT INTO events (tenant_id, topic, ids, xid, created_at)
		SELECT 'a', 't', ARRAY['restored'], '4000000000000000000', now() - interval '2 hours' FROM generate_series(1, 3)`)
	at, err := store.EventPlaceAllTenants(ctx, db.DB)
	if err != nil {
		t.Fatal(err)
	}
	wanted := []store.EventTopic{{Tenant: "a", Topic: "t"}}
	for _, trimmed := range []int64{3, 0} {
		trims, err := store.InTx(ctx, db.DB, func(tx *sqlx.Tx) (int64, error) { return store.TrimEventsAllTenants(ctx, tx, 3600e9) })
		if err != nil || trims != trimmed {
			t.Errorf("trimmed %d, %v", trims, err)
		}
		if err := store.Exec(ctx, db.DB, func(tx *sqlx.Tx) error {
			return store.InsertEvents(ctx, tx, loom.Event{Tenant: "a", Topic: "t", IDs: []string{fmt.Sprint(trimmed)}})
		}); err != nil {
			t.Fatal(err)
		}
		news, err := store.NewEventsAllTenants(ctx, db.DB, at, wanted, 10)
		if err != nil || news.Lost || len(news.Events) != 1 || !slices.Equal(news.Events[0].IDs, []string{fmt.Sprint(trimmed)}) {
			t.Errorf("%+v, %v", news, err)
		}
		at = news.At
	}
}
