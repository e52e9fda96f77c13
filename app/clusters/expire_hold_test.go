package clusters_test

import (
	"testing"

	"loom/app/loom"
)

// TestNoOperationOutlivesALease: at the end of a lease an operation that is paused, or that
// began after the end, is aborted and the cluster is to be deleted; one that began before the
// end and runs is waited for, and so is the delete itself.
func TestNoOperationOutlivesALease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		what, operation string
		aborted         bool
	}{
		{"paused", `status = 'paused', created_at = now() - interval '1 h'`, true},
		{"begun after the end", `created_at = now()`, true},
		{"begun before the end", `created_at = now() - interval '1 h'`, false},
		{"the delete, begun after the end", `created_at = now(), action = 'cluster_delete'`, false},
	} {
		id := b.create(b.ana(), 2).Cluster
		b.db.MustExec(`UPDATE clusters SET created_at = now() - interval '2 h', expires_at = now() - interval '10 min' WHERE id = $1`, int64(id))
		b.db.MustExec(`UPDATE operations SET `+c.operation+` WHERE cluster_id = $1`, int64(id))
		b.expire()
		v := b.cluster(id)
		if got := v.Latest.Status == loom.OperationFailing || v.Latest.Status == loom.OperationAborted; got != c.aborted {
			t.Errorf("%s: the operation is %s", c.what, v.Latest.Status)
		}
		if got := v.DeleteWanted != ""; got != c.aborted {
			t.Errorf("%s: deleted afterwards: %v", c.what, got)
		}
	}
}
