package execution_test

import (
	"testing"

	"loom/app/loom"
)

// TestNodeTakesTheMoreUrgentTask: of what is ready on a node the task with the longest path
// behind it goes first, and the others wait for the node.
func TestNodeTakesTheMoreUrgentTask(t *testing.T) {
	t.Parallel()
	for rank, want := range map[int]string{1: "1 2 3", 9: "1 3 2"} {
		w := newWorld(t, 1)
		plan := w.chain(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
		plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: 3, Node: w.nodes[0], Service: "web", Action: loom.ActionInstall, Level: 1, Rank: rank})
		plan.Edges = []loom.Edge{{From: 1, To: 2}, {From: 2, To: 4}, {From: 3, To: 4}}
		plan.Tasks[0].Rank, plan.Tasks[1].Rank = 20, 5
		if _, err := w.insert(plan); err != nil {
			t.Fatal(err)
		}
		order := ""
		for range plan.Tasks {
			const held = `SELECT concat(count(*), ' ', min(t.number)) FROM river_job r JOIN tasks t ON t.river_job_id = r.id WHERE r.state = 'available'`
			number := int(w.text(held)[2] - '0')
			w.expect("1 "+string(rune('0'+number)), held)
			order += " " + string(rune('0'+number))
			w.complete(w.deliver(number), loom.TaskResult{})
		}
		if order[1:] != want {
			t.Errorf("with rank %d the order is%s, want %s", rank, order, want)
		}
	}
}

// TestRunningTasksAreListed: the view finds what runs, whatever becomes of it.
func TestRunningTasksAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	listed := func(want string) {
		t.Helper()
		w.expect(want, `SELECT coalesce(string_agg(t.number::text, ',' ORDER BY t.number), '') FROM running_tasks t`)
		w.expect(want, `SELECT coalesce(string_agg(t.number::text, ',' ORDER BY t.number), '') FROM tasks t WHERE t.status = 'running'`)
	}
	listed("")
	first, second := w.deliver(1), w.deliver(3)
	listed("1,3")
	w.complete(first, loom.TaskResult{})
	listed("3")
	w.complete(second, loom.TaskResult{})
	w.deliver(2)
	listed("2")
	w.exec(`DELETE FROM processes`)
	w.exec(`SELECT loom_reap()`)
	listed("")
	w.exec(`UPDATE operations SET status = 'failing'`)
	w.exec(`SELECT loom_drop(id) FROM operations`)
	listed("")
}

// TestRecordedTasksAreComplete: for River too, and its node goes on.
func TestRecordedTasksAreComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	key := w.deliver(1)
	if !w.complete(key, loom.TaskResult{}) {
		t.Fatal("a result was refused")
	}
	w.expect("complete completed", `SELECT t.status || ' ' || r.state FROM tasks t JOIN river_job r ON r.id = t.river_job_id WHERE t.id = $1`, int64(key.Task))
	// The node goes on with its next task.
	w.expect("ready available", `SELECT t.status || ' ' || r.state FROM nodes n JOIN tasks t ON t.id = n.task_id JOIN river_job r ON r.id = t.river_job_id
		WHERE n.id = (SELECT node_id FROM tasks WHERE id = $1)`, int64(key.Task))
	// A result that comes again is late, and the reconciler has nothing to put right.
	if w.complete(key, loom.TaskResult{}) {
		t.Error("recorded twice")
	}
	if n, err := w.ops.Reconcile(ctx); n != 0 || err != nil {
		t.Error("the reconciler touched", n, err)
	}
}

// TestAnswersOfRiverDoNotCount: what River's clients say of a task after its delivery changes
// nothing, unless the delivery is given back before it began.
func TestAnswersOfRiverDoNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	op := w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	answer := func(number int, state, want string) {
		t.Helper()
		tx := w.db.MustBegin()
		defer tx.Rollback() //nolint:errcheck // committed below
		tx.MustExec(`SET LOCAL loom.river = 'on'`)
		tx.MustExec(`UPDATE river_job SET state = $2::text::river_job_state, finalized_at = CASE WHEN $2 IN ('completed', 'discarded') THEN now() END
			WHERE id = (SELECT river_job_id FROM tasks WHERE number = $1) AND state = 'running'`, number, state)
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		w.expect(want, `SELECT r.state FROM river_job r JOIN tasks t ON t.river_job_id = r.id WHERE t.number = $1`, number)
		w.jobsAreTrue()
	}
	fetch := func() {
		w.exec(`UPDATE river_job SET state = 'running', attempt = attempt + 1, attempted_at = now(), attempted_by = '{p1}' WHERE state = 'available'`)
	}
	key := w.deliver(1)
	answer(1, "completed", "running")
	answer(1, "available", "running")
	w.complete(key, loom.TaskResult{})
	fetch()
	answer(2, "completed", "running") // of an earlier delivery
	answer(2, "scheduled", "scheduled")
	w.exec(`UPDATE river_job SET state = 'available' WHERE state = 'scheduled'`)
	fetch()
	if _, err := w.ops.Pause(ctx, ana, op.Ref); err != nil {
		t.Fatal(err)
	}
	answer(2, "available", "pending")
	w.exec(`UPDATE river_job SET state = 'running', attempt = attempt + 1, attempted_at = now() WHERE state = 'pending' AND id = (SELECT river_job_id FROM tasks WHERE number = 2)`)
	answer(2, "discarded", "pending")
}

// TestOldWorkIsLifted: jobs of busy clusters go last, but the oldest job of each queue goes first
// once it has waited for minutes.
func TestOldWorkIsLifted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	w.exec(`UPDATE river_job r SET priority = 2 + t.number % 3, scheduled_at = now() - make_interval(mins => 2 + 2 * t.number)
		FROM tasks t WHERE r.id = t.river_job_id`)
	const priorities = `SELECT string_agg(r.priority::text, ' ' ORDER BY t.number) FROM river_job r JOIN tasks t ON t.river_job_id = r.id`
	for _, want := range []string{"3 4 1", "3 1 1", "3 1 1"} {
		if _, err := w.ops.ReleaseRetries(ctx); err != nil {
			t.Fatal(err)
		}
		w.expect(want, priorities)
	}
}
