package execution_test

import (
	"slices"
	"testing"

	"loom/app/execution"
	"loom/app/loom"
)

// finish records a success and gives the numbers of the tasks that began with it.
func (w *world) finish(key execution.AttemptKey, room map[loom.TenantID]int) (begun []int, ends execution.Ends) {
	w.t.Helper()
	ends, err := w.ops.FinishTasks(ctx, "p1", []execution.Finished{{Key: key}}, room)
	if err != nil {
		w.t.Fatal(err)
	}
	if !ends.Accepted[key.Task] {
		w.t.Fatalf("the end of task %d was refused", key.Task)
	}
	for _, t := range ends.Taken {
		var number int
		if err := w.db.Get(&number, `SELECT number FROM tasks WHERE id = $1`, t.Key.Task); err != nil {
			w.t.Fatal(err)
		}
		begun = append(begun, number)
	}
	slices.Sort(begun)
	return begun, ends
}

const begunTask = `SELECT concat_ws(' ', t.status, t.remaining, t.attempt, t.process_id, t.started_at IS NOT NULL, a.number, a.status, a.process_id,
	r.state, r.attempt, r.attempted_by[array_upper(r.attempted_by, 1)], r.attempted_at IS NOT NULL, n.task_id = t.id, n.state)
	FROM tasks t JOIN attempts a ON a.task_id = t.id JOIN river_job r ON r.id = t.river_job_id JOIN nodes n ON n.id = t.node_id WHERE t.number = $1`

func TestNextTaskBeginsWithTheEndOfAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm, loom.ActionInstall)
	begun, ends := w.finish(w.deliver(1), map[loom.TenantID]int{"t1": 1, "t2": 9})
	if !slices.Equal(begun, []int{2}) || ends.Taken[0].Tenant != "t1" || ends.Taken[0].Key.Attempt != 1 || ends.At.IsZero() {
		t.Fatalf("%v began: %+v", begun, ends)
	}
	w.expect("running 0 1 p1 t 1 running p1 pending 0 f t creating", begunTask, 2)
	w.expect("complete", `SELECT status FROM tasks WHERE number = 1`)
	if spec, err := w.ops.Spec(ctx, ends.Taken[0].Key); err != nil || spec.Action != loom.ActionConfirm || spec.Hostname != "shop-1" || spec.HardwareSettings["flavor"] != "s" {
		t.Errorf("%+v, %v", spec, err)
	}
	// River brings the same task as well, or its first answer got lost: it began once.
	if held, err := w.ops.HeldAttempts(ctx, "p1"); err != nil || len(held) != 1 || held[0].Key != ends.Taken[0].Key || held[0].Tenant != ends.Taken[0].Tenant {
		t.Errorf("p1 holds %+v, %v", held, err)
	}
	if again, _, err := w.ops.StartTasks(ctx, "p2", []execution.AttemptKey{{Task: ends.Taken[0].Key.Task, Attempt: 2}}); err != nil || len(again) != 0 {
		t.Errorf("another process began it: %v, %v", again, err)
	}
	// Without room it is delivered.
	if begun, _ = w.finish(ends.Taken[0].Key, map[loom.TenantID]int{"t1": 0}); begun != nil {
		t.Errorf("%v began without room", begun)
	}
	w.expect("ready 0 available", `SELECT concat_ws(' ', t.status, t.remaining, r.state) FROM tasks t JOIN river_job r ON r.id = t.river_job_id WHERE t.number = 3`)
}

func TestNothingBeginsWhereItMustNot(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"the operation is paused": `UPDATE operations SET status = 'paused'`,
		"the operation fails":     `UPDATE operations SET status = 'failing'`,
		"the lease is over":       `UPDATE processes SET expires_at = now() - interval '1 second'`,
		"the process is gone":     `DELETE FROM processes`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
			key := w.deliver(1)
			w.exec(change)
			if begun, _ := w.finish(key, map[loom.TenantID]int{"t1": 5}); begun != nil {
				t.Errorf("%v began", begun)
			}
			w.expect("ready 0", `SELECT concat_ws(' ', status, attempt) FROM tasks WHERE number = 2`)
			w.expect("0", `SELECT count(*) FROM attempts WHERE status = 'running'`)
		})
	}
}

// TestRiverDeliversWhatIsRunning: River's row says nothing of a task that began with the
// end of another one. Whatever River does with it, the task runs once, and a later try
// has a number that was never used.
func TestRiverDeliversWhatIsRunning(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"it is pending":        `UPDATE river_job SET state = 'pending'`,
		"it waits for a retry": `UPDATE river_job SET state = 'scheduled', attempt = 7`,
		"it is delivered":      `UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{p2}'`,
		"it is closed":         `UPDATE river_job SET state = 'completed', finalized_at = now()`,
		"it is gone":           `DELETE FROM river_job`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.exec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('p2', 'provisioner', 'h', now() + interval '1 hour')`)
			w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
			key := w.deliver(1)
			w.exec(change)
			begun, ends := w.finish(key, map[loom.TenantID]int{"t1": 5})
			if !slices.Equal(begun, []int{2}) || ends.Taken[0].Key.Attempt != 1 {
				t.Fatalf("%v began: %+v", begun, ends)
			}
			for _, attempt := range []int{1, 2, 8} {
				if again, _, err := w.ops.StartTasks(ctx, "p2", []execution.AttemptKey{{Task: ends.Taken[0].Key.Task, Attempt: attempt}}); err != nil || len(again) != 0 {
					t.Errorf("attempt %d began beside it: %v, %v", attempt, again, err)
				}
			}
			w.expect("1", `SELECT count(*) FROM running_tasks`)
			// Its process is lost: it is delivered again, under a number of its own.
			w.exec(`DELETE FROM processes WHERE id = 'p1'`)
			w.exec(`SELECT loom_reap()`)
			w.exec(`SELECT loom_reconcile(id) FROM operations`)
			w.expect("ready available interrupted 1", `SELECT concat_ws(' ', t.status, r.state, a.status, count(*) OVER ()) FROM tasks t
				JOIN river_job r ON r.id = t.river_job_id JOIN attempts a ON a.task_id = t.id WHERE t.number = 2 AND r.attempt >= t.attempt`)
		})
	}
}

// TestWhatIsReadyAndRunsIsListed: the lists of ready and of running tasks follow them
// wherever they go.
func TestWhatIsReadyAndRunsIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	listed := func(want string) {
		t.Helper()
		w.expect(want, `SELECT concat_ws(' ', (SELECT string_agg(t.number::text, ',' ORDER BY t.number) FROM ready_tasks r JOIN tasks t ON t.id = r.task_id AND t.node_id = r.node_id),
			'|', (SELECT string_agg(t.number::text, ',' ORDER BY t.number) FROM running_tasks t))`)
		w.expect("0", `SELECT count(*) FROM (SELECT id FROM tasks WHERE status = 'ready') t FULL JOIN (SELECT task_id FROM ready_tasks UNION ALL SELECT task_id FROM backlog) r ON r.task_id = t.id WHERE t.id IS NULL OR r.task_id IS NULL`)
		w.expect("0", `SELECT count(*) FROM (SELECT id FROM tasks WHERE status = 'running') t FULL JOIN running_tasks r ON r.id = t.id WHERE t.id IS NULL OR r.id IS NULL`)
	}
	listed("1,3 |")
	first, second := w.deliver(1), w.deliver(3)
	listed("| 1,3")
	w.finish(first, map[loom.TenantID]int{"t1": 1})
	listed("| 2,3")
	w.finish(second, nil)
	listed("4 | 2")
	w.exec(`DELETE FROM processes`)
	w.exec(`SELECT loom_reap()`)
	listed("2,4 |")
	w.exec(`SELECT loom_drop(id) FROM operations`)
	listed("|")
}

// TestWhatWaitsGoesFirst: tasks on the tenant's queue are not passed by those that a
// process could begin at once; of others' operations they keep a worker free.
func TestWhatWaitsGoesFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		room   int
		want   []int
	}{
		"of the same operation":         {``, 1, []int{3}},
		"enough room for all":           {``, 5, []int{2, 3, 5}},
		"of another tenant":             {`UPDATE river_job SET queue = 'tenant_t2' WHERE state = 'available'`, 1, []int{2}},
		"of another operation":          {`INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at) SELECT 'available', 'tenant_t1', 'run_task', '{"task_id": 0}', 1000, now() - interval '1 hour'`, 1, nil},
		"of another, and there is more": {`INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at) SELECT 'available', 'tenant_t1', 'run_task', '{"task_id": 0}', 1000, now() - interval '1 hour'`, 2, []int{3}},
		"less urgent":                   {`UPDATE river_job SET priority = 4 WHERE state = 'available'`, 1, []int{2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3)
			w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
			key := w.deliver(1)
			if c.change != "" {
				w.exec(c.change)
			}
			if begun, _ := w.finish(key, map[loom.TenantID]int{"t1": c.room}); !slices.Equal(begun, c.want) {
				t.Errorf("%v began, want %v", begun, c.want)
			}
			for _, number := range c.want {
				w.expect("running 0 1 p1 t 1 running p1 pending 0 f t creating", begunTask, number)
			}
			w.expect("0", `SELECT count(*) FROM tasks t JOIN river_job r ON r.id = t.river_job_id WHERE r.state = 'running' OR t.status = 'running' AND r.state <> 'pending'`)
		})
	}
}

// TestNodeTakesTheMoreUrgentTask: what was ready before and what becomes ready compete
// by the length of what is behind them.
func TestNodeTakesTheMoreUrgentTask(t *testing.T) {
	t.Parallel()
	for _, rank := range []int{1, 9} {
		w := newWorld(t, 1)
		plan := w.chain(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
		plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: 3, Node: w.nodes[0], Service: "web", Action: loom.ActionInstall, Level: 1, Rank: rank})
		plan.Edges = []loom.Edge{{From: 1, To: 2}, {From: 2, To: 4}, {From: 3, To: 4}}
		plan.Tasks[0].Rank, plan.Tasks[1].Rank = 20, 5
		if _, err := w.insert(plan); err != nil {
			t.Fatal(err)
		}
		want := []int{2}
		if rank > 5 {
			want = []int{3}
		}
		if begun, _ := w.finish(w.deliver(1), map[loom.TenantID]int{"t1": 5}); !slices.Equal(begun, want) {
			t.Errorf("with rank %d %v began, want %v", rank, begun, want)
		}
		w.expect("1", `SELECT count(*) FROM tasks WHERE status = 'ready' AND remaining = 0`)
	}
}
