package execution_test

import (
	"slices"
	"testing"

	"loom/app/execution"
	"loom/app/loom"
)

// fill begins what waits, up to room tasks, and gives their numbers in order.
func (w *world) fill(process loom.ProcessID, room int) ([]int, execution.Ends) {
	w.t.Helper()
	ends, err := w.ops.Fill(ctx, process, map[loom.TenantID]int{"t1": room})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(ends.Accepted) != 0 {
		w.t.Errorf("%v ended", ends.Accepted)
	}
	var begun []int
	for _, taken := range ends.Taken {
		var n int
		if err := w.db.Get(&n, `SELECT number FROM tasks WHERE id = $1 AND status = 'running' AND attempt = $2 AND process_id = $3`,
			int64(taken.Key.Task), taken.Key.Attempt, string(process)); err != nil {
			w.t.Fatal(err)
		}
		begun = append(begun, n)
	}
	slices.Sort(begun)
	return begun, ends
}

// TestFill: a process with room begins what waits in the backlog, in its turn, and no more
// than it has room for.
func TestFill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.reserve(1)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	if begun, _ := w.fill("p1", 0); begun != nil {
		t.Errorf("without room %v began", begun)
	}
	first := w.deliver(1)
	w.queues("", "3,5,7")
	begun, ends := w.fill("p1", 2)
	if !slices.Equal(begun, []int{3, 5}) {
		t.Fatalf("%v began", begun)
	}
	w.queues("", "7")
	w.expect("creating 3, planned 1", `SELECT string_agg(state || ' ' || n, ', ' ORDER BY state) FROM (SELECT state, count(*) AS n FROM nodes GROUP BY state) AS s`)
	w.expect("3,5", `SELECT string_agg(ids.number, ',' ORDER BY ids.number) FROM (SELECT * FROM events ORDER BY id DESC LIMIT 3) AS e, unnest(e.ids) AS ids (number) WHERE e.topic LIKE 'op:%'`)
	for _, taken := range ends.Taken {
		if !w.complete(taken.Key, loom.TaskResult{}) {
			t.Errorf("the end of task %d was refused", taken.Key.Task)
		}
	}
	if begun, _ = w.fill("p1", 5); !slices.Contains(begun, 7) {
		t.Errorf("%v began", begun)
	}
	w.queues("", "")
	if begun, ends = w.fill("p1", 5); begun != nil || len(ends.Taken) != 0 {
		t.Errorf("of nothing %v began", begun)
	}
	if !w.complete(first, loom.TaskResult{}) {
		t.Error("the end of the first task was refused")
	}
}

// TestFillOfWhatMustNot: nothing begins for a process that is taken for dead, of a tenant
// whose queue is paused, and of an operation that stands still.
func TestFillOfWhatMustNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.reserve(1)
	op := w.plan(loom.ClusterCreate, loom.ActionCreate)
	nothing := func(why string, process loom.ProcessID) {
		t.Helper()
		if begun, _ := w.fill(process, 9); begun != nil {
			t.Errorf("%s: %v began", why, begun)
		}
	}
	nothing("a process nobody knows", "p7")
	w.exec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('p2', 'provisioner', 'h', now() - interval '1 second')`)
	nothing("a dead process", "p2")
	w.exec(`INSERT INTO paused_tenants (tenant_id, paused_by) VALUES ('t1', 'ana')`)
	nothing("a paused queue", "p1")
	w.exec(`DELETE FROM paused_tenants`)
	w.queues("1", "2,3,4")
	if _, err := w.ops.Pause(ctx, loom.Actor{Tenant: "t1", User: "ana", Role: loom.RoleAdmin}, op.Ref); err != nil {
		t.Fatal(err)
	}
	nothing("an operation that stands still", "p1")
}
