package execution_test

import (
	"testing"

	"loom/app/execution"
	"loom/app/loom"
)

// TestBigBatchesTellOnce: more than 100 tasks are told of without their ids, with
// their cluster and the list of clusters.
func TestBigBatchesTellOnce(t *testing.T) {
	t.Parallel()
	const n = 101
	w := newWorld(t, n)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	finished := make([]execution.Finished, n)
	for i := range finished {
		finished[i].Key = w.deliver(i + 1)
	}
	w.exec(`DELETE FROM events`)
	if accepted, err := w.ops.CompleteTasks(ctx, finished); err != nil || len(accepted) != n {
		t.Fatal(len(accepted), err)
	}
	w.expect("cluster:00000001 0, clusters 1, op:00000001/1 0", `SELECT string_agg(topic || ' ' || cardinality(ids), ', ' ORDER BY topic) FROM events`)
	w.expect("1", `SELECT count(DISTINCT tenant_id)::text FROM events e JOIN clusters c USING (tenant_id)`)
}
