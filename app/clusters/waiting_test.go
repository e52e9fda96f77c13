package clusters_test

import (
	"strings"
	"testing"

	"loom/app/loom"
)

func TestWhyAnOperationWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	waits := func(want string) {
		t.Helper()
		op, err := b.clusters.Operation(b.ctx, b.ana(), ref)
		if err != nil {
			t.Fatal(err)
		}
		latest := b.cluster(ref.Cluster).Latest
		if op.Waiting != latest.Waiting || want == "" && op.Waiting != "" || !strings.Contains(op.Waiting, want) {
			t.Errorf("waits because %q, on the cluster %q; want %q", op.Waiting, latest.Waiting, want)
		}
	}
	b.db.MustExec(`UPDATE tenants SET workers = 0 WHERE id = 't1'`)
	waits("The tenant has no workers; a superadmin gives it some.")
	b.db.MustExec(`UPDATE tenants SET workers = 2 WHERE id = 't1'`)
	waits("No provisioner is up")
	b.db.MustExec(`INSERT INTO processes (id, kind, host, capacity, only_tenant, expires_at) VALUES ('p1', 'provisioner', 'h', 9, 't2', now() + interval '1 h')`)
	waits("No provisioner is up that works for the tenant.")
	b.db.MustExec(`UPDATE processes SET only_tenant = NULL`)
	waits("none to spare")
	b.db.MustExec(`INSERT INTO worker_assignments (tenant_id, process_id, workers) VALUES ('t1', 'p1', 2)`)
	waits("")
	b.db.MustExec(`UPDATE tasks SET status = 'failed' WHERE cluster_id = $1 AND number = 2`, int64(ref.Cluster))
	waits("A task failed. What does not wait for it is done first, then the operation ends.")
	b.db.MustExec(`UPDATE tasks SET status = 'ready' WHERE cluster_id = $1 AND number = 2`, int64(ref.Cluster))
	// Another operation of the tenant has both.
	other := b.create(b.ana(), 2)
	b.db.MustExec(`UPDATE tasks SET status = 'running' WHERE cluster_id = $1 AND status = 'ready'`, int64(other.Cluster))
	waits("All 2 workers of the tenant are busy with other tasks.")
	b.db.MustExec(`UPDATE worker_assignments SET workers = 1`)
	waits("The one worker of the tenant is busy with another task.")
	b.db.MustExec(`UPDATE tasks SET status = 'complete' WHERE cluster_id = $1 AND status = 'running'`, int64(other.Cluster))
	waits("")
	// A retry says when and after what.
	b.db.MustExec(`UPDATE tasks SET code = 1, message = 'no route to host', attempt = 1 WHERE cluster_id = $1 AND number = 1`, int64(ref.Cluster))
	b.db.MustExec(`UPDATE river_job SET state = 'scheduled', scheduled_at = '2030-01-02T03:04:05Z' WHERE id = (SELECT river_job_id FROM tasks WHERE cluster_id = $1 AND number = 1)`, int64(ref.Cluster))
	waits("Task 1, create on node 1000, is tried again at 03:04:05 UTC, after: no route to host")
	b.db.MustExec(`UPDATE tasks SET status = 'running' WHERE cluster_id = $1 AND action = 'create' AND status = 'ready' AND number > 1`, int64(ref.Cluster))
	waits("is tried again at 03:04:05 UTC")
	b.db.MustExec(`UPDATE operations SET status = 'paused' WHERE cluster_id = $1`, int64(ref.Cluster))
	waits("It is paused: 1 task that was begun still runs, nothing else starts until it is resumed.")
	b.db.MustExec(`UPDATE operations SET status = 'failing' WHERE cluster_id = $1`, int64(ref.Cluster))
	waits("It is ending: 1 task that was begun still runs.")
	b.db.MustExec(`UPDATE operations SET status = 'not_submitted' WHERE cluster_id = $1`, int64(ref.Cluster))
	waits("A hook has not agreed yet.")
	b.finish(ref.Cluster, loom.ClusterActive)
	waits("")
}
