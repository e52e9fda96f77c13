package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lib/pq"

	"loom/app/store"
	"loom/app/testkit"
)

// TestStandstill: who stands still inside a transaction loses it, and with it its
// locks, after a while that the DSN may name.
func TestStandstill(t *testing.T) {
	t.Parallel()
	made := testkit.NewDatabase(t)
	ctx := context.Background()
	db, err := store.Open(ctx, made.DSN, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var usual string
	if err := db.Get(&usual, `SHOW idle_in_transaction_session_timeout`); err != nil || usual != store.Standstill {
		t.Errorf("unless told otherwise: %q, %v", usual, err)
	}
	var cost, jit string
	if err := db.QueryRow(`SELECT current_setting('random_page_cost'), current_setting('jit')`).Scan(&cost, &jit); err != nil || cost != "1.1" || jit != "off" {
		t.Errorf("reads are weighed with %q, plans compiled: %q, %v", cost, jit, err)
	}
	short, err := store.Open(ctx, store.WithSetting(made.DSN, store.StandstillSetting, "100"), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer short.Close()
	if _, err := made.Exec(`INSERT INTO tenants (id, name, workers) VALUES ('t1', 'one', 1)`); err != nil {
		t.Fatal(err)
	}
	still, err := short.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer still.Rollback() //nolint:errcheck // its session ends
	if _, err := still.Exec(`UPDATE tenants SET workers = 2 WHERE id = 't1'`); err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if _, err := made.ExecContext(waiting, `UPDATE tenants SET workers = 3 WHERE id = 't1'`); err != nil {
		t.Fatalf("the lock of a transaction that stands still was not given up: %v", err)
	}
	_, err = still.Exec(`SELECT 1`)
	var refused *pq.Error
	if err == nil || errors.As(err, &refused) && !strings.Contains(refused.Message, "idle-in-transaction") {
		t.Errorf("the transaction goes on: %v", err)
	}
}

// TestWithSetting: what a DSN names itself, in either form and with blanks, has its way;
// what only sounds like it does not count.
func TestWithSetting(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"host=jitter dbname=loom":            "host=jitter dbname=loom jit=off",
		"host=db jit=on":                     "host=db jit=on",
		"host=db jit = on":                   "host=db jit = on",
		"host=db my_jit=on":                  "host=db my_jit=on jit=off",
		"postgres://db/loom":                 "postgres://db/loom?jit=off",
		"postgres://db/loom?jit=on&sslmode=": "postgres://db/loom?jit=on&sslmode=",
	} {
		if got := store.WithSetting(dsn, "jit", "off"); got != want {
			t.Errorf("%s became %s, want %s", dsn, got, want)
		}
	}
}
