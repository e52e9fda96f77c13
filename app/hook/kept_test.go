package hook_test

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"loom/app/hook"
	"loom/app/loom"
)

// TestDeliveriesAreBounded: a hook keeps 64 MiB of notices, the newest: neither operations
// nor replays fill the database. What an operation waits for stays.
func TestDeliveriesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h, _ := w.create(admin, hook.Input{URL: "https://ci.example/", LegacyBody: true})
	other, _ := w.create(admin, hook.Input{URL: "https://ci.example/", LegacyBody: true, Templates: []string{"else"}})
	id := w.cluster("t1", loom.ClusterPending)
	random := make([]byte, 400_000) // so that it does not get smaller by compression
	rand.Read(random)
	w.exec(`UPDATE clusters SET config = jsonb_build_object('large', $1::text)`, hex.EncodeToString(random))
	w.begin("t1", id, loom.ClusterCreate)
	first := w.log(admin, h)[0]
	if size := w.text(`SELECT pg_column_size(notice) > 400000 FROM hook_deliveries WHERE id = $1`, int64(first.ID)); size != "true" {
		t.Fatal("the notice is not large")
	}
	copies := `INSERT INTO hook_deliveries (hook_id, tenant_id, operation_id, event, notice, status, blocking, ended_at)
		SELECT $1, 't1', operation_id, event, notice, $3, $4, CASE WHEN $3 <> 'waiting' THEN now() END FROM hook_deliveries, generate_series(1, $2) WHERE id = $5`
	w.exec(copies, int64(other.ID), 1, "delivered", false, int64(first.ID)) // of another hook
	w.exec(copies, int64(h.ID), 1, "waiting", true, int64(first.ID))        // asked
	w.exec(copies, int64(h.ID), 200, "delivered", false, int64(first.ID))
	w.exec(`UPDATE hook_deliveries SET status = 'delivered', ended_at = now() WHERE id = $1`, int64(first.ID))
	last := w.text(`SELECT max(id) FROM hook_deliveries WHERE hook_id = $1`, int64(h.ID))
	var number int64
	if _, err := fmt.Sscan(last, &number); err != nil {
		t.Fatal(err)
	}
	again, err := w.hooks.Replay(ctx, admin, h.ID, loom.DeliveryID(number))
	w.must(err)
	if kept := w.text(`SELECT sum(pg_column_size(notice)) BETWEEN 60 << 20 AND 66 << 20 FROM hook_deliveries WHERE hook_id = $1`, int64(h.ID)); kept != "true" {
		t.Errorf("a hook keeps %s bytes", w.text(`SELECT sum(pg_column_size(notice)) FROM hook_deliveries WHERE hook_id = $1`, int64(h.ID)))
	}
	if w.text(`SELECT count(*) FROM hook_deliveries WHERE id = $1`, int64(again.ID)) != "1" || w.text(`SELECT count(*) FROM hook_deliveries WHERE blocking AND hook_id = $1`, int64(h.ID)) != "1" {
		t.Error("the newest, or what an operation waits for, is gone")
	}
	if w.text(`SELECT count(*) FROM hook_deliveries WHERE hook_id = $1`, int64(other.ID)) != "1" {
		t.Error("another hook lost its deliveries")
	}
}

// TestHooksWithTheOldBodyAreFew: each keeps a whole cluster for each event.
func TestHooksWithTheOldBodyAreFew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := hook.Input{Name: "x", URL: "https://ci.example/", LegacyBody: true}
	var last loom.Hook
	for range 10 {
		last, _ = w.create(admin, in)
	}
	if _, _, err := w.hooks.Create(ctx, admin, in); !errors.Is(err, loom.Exhausted) {
		t.Errorf("the 11th: %v", err)
	}
	plain := in
	plain.LegacyBody = false
	one, _ := w.create(admin, plain)
	if _, err := w.hooks.Put(ctx, admin, one.ID, in); !errors.Is(err, loom.Exhausted) {
		t.Errorf("the 11th by a change: %v", err)
	}
	if _, err := w.hooks.Put(ctx, admin, last.ID, in); err != nil {
		t.Errorf("the 10th stays: %v", err)
	}
}
