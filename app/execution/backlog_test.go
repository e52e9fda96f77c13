package execution_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"loom/app/loom"
)

// reserve lets River's queue hold n tasks where more are ready.
func (w *world) reserve(n int) {
	w.exec(fmt.Sprintf(`CREATE OR REPLACE FUNCTION loom_reserve(p_tenant text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT %d'`, n))
}

// queues compares the numbers of the tasks on River's queue and of those in the
// backlog, in their order, and looks that each ready task is listed once.
func (w *world) queues(river, backlog string) {
	w.t.Helper()
	w.expect(river, `SELECT coalesce(string_agg(t.number::text, ',' ORDER BY r.priority, r.scheduled_at, r.id), '') FROM river_job r JOIN tasks t ON t.river_job_id = r.id WHERE r.state = 'available'`)
	w.expect(backlog, `SELECT coalesce(string_agg(t.number::text, ',' ORDER BY b.priority, b.since, b.task_id), '') FROM backlog b JOIN tasks t ON t.id = b.task_id`)
	w.expect("", `SELECT coalesce(string_agg(t.number || ' ' || t.status, ', '), '')
		FROM tasks t LEFT JOIN backlog b ON b.task_id = t.id LEFT JOIN ready_tasks l ON l.task_id = t.id LEFT JOIN nodes n ON n.id = t.node_id LEFT JOIN river_job r ON r.id = t.river_job_id
		WHERE (b.task_id IS NOT NULL) <> t.in_backlog
		   OR (t.status = 'ready') <> ((b.task_id IS NOT NULL)::int + (l.task_id IS NOT NULL)::int = 1)
		   OR b.task_id IS NOT NULL AND (n.task_id IS DISTINCT FROM t.id OR r.state <> 'pending' OR b.operation_id <> t.operation_id AND b.operation_id <> 0 OR b.tenant_id <> t.tenant_id)`)
}

// TestBacklog: beyond its reserve River's queue is not filled; who ends tasks begins
// what waits in the order in which it became ready, and the scheduler brings what River
// lacks: what would come last.
func TestBacklog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.reserve(1)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	w.queues("1", "3,5,7")
	begun, ends := w.finish(w.deliver(1), map[loom.TenantID]int{"t1": 1})
	if !slices.Equal(begun, []int{3}) {
		t.Fatalf("%v began", begun)
	}
	w.queues("", "5,7,2")
	w.due()
	w.queues("2", "5,7")
	if begun, ends = w.finish(ends.Taken[0].Key, map[loom.TenantID]int{"t1": 5}); !slices.Equal(begun, []int{2, 4, 5, 7}) {
		t.Fatalf("%v began", begun)
	}
	w.queues("", "")
	for _, taken := range ends.Taken {
		if !w.complete(taken.Key, loom.TaskResult{}) {
			t.Errorf("the end of task %d was refused", taken.Key.Task)
		}
	}
	w.queues("6", "8")
	w.complete(w.deliver(6), loom.TaskResult{})
	w.due()
	w.queues("8", "")
	w.complete(w.deliver(8), loom.TaskResult{})
	w.end()
	w.expect("complete", `SELECT status FROM operations`)
}

// due does what the scheduler does every second.
func (w *world) due() {
	w.t.Helper()
	if _, err := w.ops.Due(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// TestBacklogWithoutEnds: where nobody ends tasks, because all of them failed or their
// process died, the scheduler sees to it that River has work.
func TestBacklogWithoutEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.reserve(1)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	w.deliver(1)
	w.queues("", "2,3")
	w.due()
	w.queues("3", "2")
	// What waits in the backlog is not missing on River's queue.
	w.reconcile(0)
	w.queues("3", "2")
}

// TestBacklogOfOperationsThatStop: who pauses, gives up or leaves out takes tasks out of
// the backlog; who goes on finds all of them.
func TestBacklogOfOperationsThatStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.reserve(1)
	op := w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	actor := loom.Actor{Tenant: "t1", User: "ana", Role: loom.RoleAdmin}
	w.queues("1", "3,5")
	if _, err := w.ops.Pause(ctx, actor, op.Ref); err != nil {
		t.Fatal(err)
	}
	w.queues("", "")
	w.due()
	w.queues("", "")
	if err := w.ops.Skip(ctx, actor, loom.TaskRef{Operation: op.Ref, Number: 3}, "made by hand"); err != nil {
		t.Fatal(err)
	}
	w.queues("", "")
	if _, err := w.ops.Resume(ctx, actor, op.Ref); err != nil {
		t.Fatal(err)
	}
	w.queues("1", "4,5")
	if _, err := w.ops.Abort(ctx, actor, op.Ref); err != nil {
		t.Fatal(err)
	}
	w.queues("", "")
	w.end()
	w.expect("aborted", `SELECT status FROM operations`)
}

// TestBacklogOfAnotherOperation: what has its turn but belongs to an operation that the
// one who ends tasks does not hold goes to River's queue.
func TestBacklogOfAnotherOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.reserve(1)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	key := w.deliver(1)
	w.exec(`UPDATE backlog_lots SET operation_id = 0 WHERE tasks[1] = (SELECT id FROM tasks WHERE number = 3)`)
	if begun, _ := w.finish(key, map[loom.TenantID]int{"t1": 1}); begun != nil {
		t.Errorf("%v began", begun)
	}
	w.queues("3", "5,2")
}

// TestBacklogOfWhatWasReady: a task that was ready before its node became free is listed
// once as well.
func TestBacklogOfWhatWasReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.reserve(1)
	plan := w.chain(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: 5, Node: w.nodes[0], Service: "web", Action: loom.ActionInstall, Level: 1, Rank: 9})
	plan.Edges = []loom.Edge{{From: 1, To: 2}, {From: 3, To: 4}, {From: 2, To: 6}, {From: 4, To: 6}, {From: 5, To: 6}}
	plan.Tasks[0].Rank = 20
	if _, err := w.insert(plan); err != nil {
		t.Fatal(err)
	}
	w.queues("1", "3")
	if begun, _ := w.finish(w.deliver(1), map[loom.TenantID]int{"t1": 0}); begun != nil {
		t.Fatalf("%v began", begun)
	}
	w.queues("", "3,5")
}

// TestBacklogOfMany: more tasks than a lot holds are begun and brought in their order,
// from the one end and from the other, wherever a lot is cut.
func TestBacklogOfMany(t *testing.T) {
	t.Parallel()
	const n = 230
	w := newWorld(t, n)
	w.exec(`UPDATE tenants SET workers = $1`, n)
	w.reserve(1)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	// The creates have the odd numbers.
	odd := func(from, to int) []int {
		var numbers []int
		for i := from; i <= to; i++ {
			numbers = append(numbers, 2*i-1)
		}
		return numbers
	}
	w.queues("1", list(odd(2, n)))
	begun, _ := w.finish(w.deliver(1), map[loom.TenantID]int{"t1": 150})
	if want := odd(2, 151); !slices.Equal(begun, want) {
		t.Fatalf("%v began, not %v", begun, want)
	}
	w.queues("", list(append(odd(152, n), 2)))
	w.reserve(60)
	w.due()
	w.queues(list(append(odd(172, n), 2)), list(odd(152, 171)))
	w.expect("1 20", `SELECT count(*) || ' ' || sum(cardinality(tasks)) FROM backlog_lots`)
}

func list(numbers []int) string {
	text := make([]string, len(numbers))
	for i, n := range numbers {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ",")
}
