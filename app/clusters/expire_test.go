package clusters_test

import (
	"errors"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
)

func TestExpireDeletesWhatIsOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	type kind struct {
		name    string
		status  loom.ClusterStatus
		change  string
		deleted bool
	}
	kinds := []kind{
		{"active", loom.ClusterActive, `expires_at = now() - interval '1 s'`, true},
		{"incomplete", loom.ClusterIncomplete, `expires_at = now() - interval '1 s'`, true},
		{"inconsistent", loom.ClusterInconsistent, `expires_at = now() - interval '1 s'`, true},
		{"terminated", loom.ClusterTerminated, `expires_at = now() - interval '1 s'`, false},
		{"pending", loom.ClusterPending, `expires_at = now() - interval '1 s'`, false},
		{"protected", loom.ClusterActive, `expires_at = now() - interval '1 s', protected = true`, false},
		{"not yet", loom.ClusterActive, `expires_at = now() + interval '1 h'`, false},
		{"never", loom.ClusterActive, `expires_at = NULL`, false},
		{"provider gone", loom.ClusterActive, `expires_at = now() - interval '1 s', provider_name = 'x'`, false},
	}
	made := make([]loom.ClusterID, len(kinds))
	for i, k := range kinds {
		made[i] = b.create(b.ana(), 2).Cluster
		if k.status != loom.ClusterPending {
			b.finish(made[i], k.status)
		}
		b.db.MustExec(`UPDATE clusters SET `+k.change+` WHERE id = $1`, int64(made[i]))
	}
	for range 2 { // the second call finds nothing more to do
		if err := b.clusters.Expire(b.ctx); err != nil {
			t.Fatal(err)
		}
	}
	for i, k := range kinds {
		n := b.count(`SELECT count(*) FROM operations WHERE cluster_id = $1 AND action = 'cluster_delete' AND requested_by = 'system'`, int64(made[i]))
		if (n == 1) != k.deleted || n > 1 {
			t.Errorf("%s: %d deletes", k.name, n)
		}
	}
}

// Twenty at once: one operation begins, the others hear that it runs.
func TestDeleteBeginsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	b.finish(ref.Cluster, loom.ClusterActive)
	wins := 0
	for _, err := range together(20, func(int) error {
		_, err := b.clusters.Delete(b.ctx, b.ana(), ref.Cluster, clusters.DeleteInput{})
		return err
	}) {
		if err == nil {
			wins++
		} else if !errors.Is(err, loom.Conflict) {
			t.Error(err)
		}
	}
	if wins != 1 || b.count(`SELECT count(*) FROM operations WHERE cluster_id = $1`, int64(ref.Cluster)) != 2 {
		t.Errorf("%d deletes began", wins)
	}
}
