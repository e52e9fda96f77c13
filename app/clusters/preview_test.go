package clusters_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/store"
)

func TestPreviewExpires(t *testing.T) {
	t.Parallel()
	b := setupWith(t, clusters.Options{PreviewLife: time.Millisecond})
	v := b.preview(b.ana(), request(3))
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := b.clusters.PreviewByID(b.ctx, b.ana(), v.ID)
		if errors.Is(err, loom.NotFound) {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("still there: %v", err)
		}
	}
	_, err := b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	wantKind(t, err, loom.NotFound)
	wantKind(t, b.clusters.Discard(b.ctx, b.ana(), v.ID), loom.NotFound)
}

func TestExpiredPreviewsAreTrimmed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	kept, gone := b.preview(b.ana(), request(2)), b.preview(b.ana(), request(3))
	b.db.MustExec(`UPDATE previews SET expires_at = now() - interval '2 days' WHERE id = $1`, gone.ID)
	trimmed, err := store.InTx(b.ctx, b.db.DB, func(tx *sqlx.Tx) (int64, error) {
		return store.TrimPreviewsAllTenants(b.ctx, tx, 24*time.Hour)
	})
	if err != nil || trimmed != 1 {
		t.Errorf("%d trimmed, %v", trimmed, err)
	}
	if _, err := b.clusters.PreviewByID(b.ctx, b.ana(), kept.ID); err != nil {
		t.Error(err)
	}
}

func TestDiscardAndWrongHash(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.preview(b.ana(), request(3))
	_, err := b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: v.ID, Hash: "other"})
	wantKind(t, err, loom.Conflict)
	_, err = b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: v.ID})
	wantKind(t, err, loom.Invalid)
	_, err = b.clusters.Apply(b.ctx, b.ana(), clusters.ApplyInput{ID: "not-a-uuid", Hash: v.Hash})
	wantKind(t, err, loom.NotFound)
	if err := b.clusters.Discard(b.ctx, b.ana(), v.ID); err != nil {
		t.Fatal(err)
	}
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	wantKind(t, err, loom.NotFound)
	_, err = b.clusters.Preview(b.ctx, b.ana(), clusters.PreviewInput{Kind: "dance"})
	wantKind(t, err, loom.Invalid)
	// A body that was tampered with is not executed.
	v = b.preview(b.ana(), request(3))
	b.db.MustExec(`UPDATE previews SET body = jsonb_set(body, '{new,lease}', '5') WHERE id = $1`, v.ID)
	_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
	wantKind(t, err, loom.Conflict)
}

// Previews of a release that stored them otherwise are gone.
func TestPreviewsOfAnotherRelease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, body := range []string{`{"create": {"input": {"Name": "web"}, "nodes": []}}`, `{"live": {"kind": "start"}}`, `{}`, `{"kind": "create", "services": 5}`} {
		v := b.preview(b.ana(), request(3))
		b.db.MustExec(`UPDATE previews SET body = $2 WHERE id = $1`, v.ID, body)
		_, err := b.clusters.PreviewByID(b.ctx, b.ana(), v.ID)
		wantKind(t, err, loom.NotFound)
		_, err = b.clusters.Apply(b.ctx, b.ana(), applyOf(v))
		wantKind(t, err, loom.NotFound)
		if message := loom.AsError(err).Message; !strings.Contains(message, "expired; compute it again") {
			t.Errorf("%s: %q", body, message)
		}
	}
}

// What such tasks took before is what they are expected to take.
func TestExpectedTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withStops()
	id := b.active(2)
	stop := clusters.PreviewInput{Kind: loom.ChangeStop, Cluster: id, Service: "web"}
	v, err := b.clusters.Preview(b.ctx, b.ana(), stop)
	if err != nil || v.Known {
		t.Fatalf("known %v from nothing, %v", v.Known, err)
	}
	ref, err := b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Cluster: id, Kind: loom.ChangeStop})
	if err != nil {
		t.Fatal(err)
	}
	b.db.MustExec(`UPDATE tasks SET attempt = 1 WHERE cluster_id = $1 AND NOT gate`, int64(id))
	b.db.MustExec(`INSERT INTO attempts (task_id, number, process_id, status, started_at, ended_at)
		SELECT id, 1, 'p', 'complete', now() - CASE service WHEN 'web' THEN interval '7 s' ELSE interval '100 s' END, now() FROM tasks WHERE cluster_id = $1 AND NOT gate`, int64(id))
	b.finish(ref.Cluster, loom.ClusterActive)
	v, err = b.clusters.Preview(b.ctx, b.ana(), stop)
	if err != nil || !v.Known || v.Expected.Round(time.Second) != 7*time.Second {
		t.Errorf("expected %v (%v), %v", v.Expected, v.Known, err)
	}
	// Another tenant's past says nothing.
	stranger := loom.Actor{Tenant: "t2", TenantName: "other", User: "admin", Role: loom.RoleAdmin, Via: "session"}
	if _, err := b.clusters.Preview(b.ctx, stranger, stop); err == nil {
		t.Error("a preview of a foreign cluster")
	}
}
