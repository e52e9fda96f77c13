package execution_test

import (
	"errors"
	"strings"
	"testing"

	"loom/app/execution"
	"loom/app/loom"
)

func TestNodeFactsAndStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm, loom.ActionBootstrap, loom.ActionInstall, loom.ActionStart)
	w.expect("planned", `SELECT state FROM nodes`)
	key := w.deliver(1)
	w.expect("creating", `SELECT state FROM nodes`)
	if err := w.ops.StoreFact(ctx, key, map[string]any{"providerid": "m1", "hostname": "no"}); err != nil {
		t.Fatal(err)
	}
	if !w.complete(key, loom.TaskResult{Result: map[string]any{"ssh-auth": map[string]any{"user": "root"}, "gone": 1}}) {
		t.Fatal("refused")
	}
	w.complete(w.deliver(2), loom.TaskResult{Hostname: "real.lab", Addresses: map[string]string{"access_v4": "192.0.2.1"}, Result: map[string]any{"gone": nil, "nodes": "no"}, Message: "up\x00"})
	w.expect("creating", `SELECT state FROM nodes`)
	w.complete(w.deliver(3), loom.TaskResult{})
	w.expect("ready", `SELECT state FROM nodes`)
	w.expect(`real.lab {"access_v4": "192.0.2.1"} {"ssh-auth": {"user": "root"}, "providerid": "m1"}`, `SELECT hostname || ' ' || ipaddresses::text || ' ' || results::text FROM nodes`)
	w.complete(w.deliver(4), loom.TaskResult{})
	w.expect(`{"web": "installed"}`, `SELECT service_states::text FROM nodes`)
	last := w.deliver(5)
	if !w.complete(last, loom.TaskResult{}) || w.complete(last, loom.TaskResult{}) {
		t.Error("a result counts once")
	}
	w.expect(`{"web": "started"}`, `SELECT service_states::text FROM nodes`)
	if n := w.end(); n != 1 {
		t.Errorf("the end was enqueued %d times", n)
	}
	w.expect("complete", `SELECT status FROM operations`)
	w.expect("active", `SELECT status FROM clusters`)
	w.expect("true", `SELECT (bool_and(task_id IS NULL))::text FROM nodes`)

	sealed, err := w.ring.Seal("t1", "cluster:"+w.cluster.String(), "api_key", loom.NewSecret("x"))
	if err != nil {
		t.Fatal(err)
	}
	w.exec(`INSERT INTO secrets (tenant_id, entity, field, sealed) VALUES ('t1', $1, 'api_key', $2)`, "cluster:"+w.cluster.String(), sealed)
	w.plan(loom.ClusterDelete, loom.ActionDelete)
	w.exec(`UPDATE tasks SET number = 99 WHERE action = 'delete'`)
	key = w.deliver(99)
	w.expect("deleting", `SELECT state FROM nodes`)
	w.complete(key, loom.TaskResult{Result: map[string]any{"providerid": nil, "ssh-auth": nil}})
	w.end()
	w.expect("deleted 2 {} {} {}", `SELECT state || ' ' || incarnation || ' ' || ipaddresses::text || ' ' || results::text || ' ' || service_states::text FROM nodes`)
	w.expect("terminated", `SELECT status FROM clusters`)
	w.expect("0", `SELECT count(*)::text FROM secrets`)
	w.expect("true", `SELECT (count(*) > 3)::text FROM events WHERE topic = 'op:' || loom_pad((SELECT id FROM clusters)) || '/1'`)
}

func TestDeliveriesThatAreNotDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	key := w.deliver(1)
	// The same question again finds the same attempt; another process has no part in it.
	if begun, _, err := w.ops.StartTasks(ctx, "p1", []execution.AttemptKey{key}); err != nil || len(begun) != 1 {
		t.Errorf("asked again: %v, %v", begun, err)
	}
	w.exec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('p2', 'provisioner', 'h', now() + interval '1 hour')`)
	if begun, _, err := w.ops.StartTasks(ctx, "p2", []execution.AttemptKey{{Task: key.Task, Attempt: 2}}); err != nil || len(begun) != 0 {
		t.Errorf("a second delivery: %v, %v", begun, err)
	}
	w.expect("1 running", `SELECT attempt || ' ' || status FROM tasks WHERE number = 1`)
	// Nobody would find the attempts of a process without a lease.
	w.exec(`UPDATE processes SET expires_at = now() - interval '1 second'`)
	if _, begun := w.fetch(3); begun {
		t.Error("a process without a lease began a task")
	}
	w.expect("ready available", `SELECT t.status || ' ' || r.state FROM tasks t JOIN river_job r ON r.id = t.river_job_id WHERE t.number = 3`)
	w.exec(`UPDATE processes SET expires_at = now() + interval '1 hour'`)
	// A number that River took back is never used twice.
	w.exec(`UPDATE tasks SET attempt = 5 WHERE number = 3`)
	if _, begun := w.fetch(3); begun {
		t.Error("an attempt number was used twice")
	}
	if key := w.deliver(3); key.Attempt != 6 {
		t.Errorf("the next attempt is %d, want 6", key.Attempt)
	}
}

func TestFailedConfirmMakesTheMachineAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm, loom.ActionBootstrap)
	w.complete(w.deliver(1), loom.TaskResult{Result: map[string]any{"providerid": "m1"}})
	for round := range 2 {
		w.fail(w.deliver(2), loom.TaskResult{Status: 1, Message: "no ssh", Stderr: strings.Repeat("é", 3000)})
		w.expect("blocked pending", `SELECT t.status || ' ' || r.state FROM tasks t JOIN river_job r ON r.id = t.river_job_id WHERE t.number = 2`)
		w.complete(w.deliver(4+2*round), loom.TaskResult{Result: map[string]any{"providerid": nil}})
		w.complete(w.deliver(5+2*round), loom.TaskResult{Result: map[string]any{"providerid": "m2"}})
	}
	w.expect("3", `SELECT incarnation::text FROM nodes`)
	w.expect("[snipped] 2057", `SELECT left(stderr, 9) || ' ' || length(stderr) FROM attempts WHERE status = 'failed' LIMIT 1`)
	w.fail(w.deliver(2), loom.TaskResult{Status: 1, Message: "no ssh"})
	w.end()
	w.expect("failed: Confirm on node 1000 failed 3 times: no ssh", `SELECT status || ': ' || message FROM operations`)
	w.expect("incomplete failed", `SELECT c.status || ' ' || n.state FROM clusters c JOIN nodes n ON n.cluster_id = c.id`)
	w.expect("dropped cancelled", `SELECT t.status || ' ' || r.state FROM tasks t JOIN river_job r ON r.id = t.river_job_id WHERE t.number = 3`)
}

func TestNothingMadeTerminates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.plan(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	no := false
	first, second := w.deliver(1), w.deliver(3)
	w.fail(first, loom.TaskResult{Status: 201, Message: "bad key", Retryable: &no})
	if n := w.end(); n != 0 {
		t.Errorf("%d ends enqueued while a task runs", n)
	}
	w.fail(second, loom.TaskResult{Status: 201, Message: "bad key"})
	w.end()
	w.expect("true", `SELECT (status = 'failed' AND message LIKE 'unable to create nodes, check provider settings: %bad key')::text FROM operations`)
	w.expect("terminated", `SELECT status FROM clusters`)
}

func TestLateCreateTellsOfItsMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	late := w.deliver(1)
	w.fail(late, loom.TaskResult{Interrupted: true, Message: "lost"})
	key := w.deliver(1)
	if recorded, err := w.ops.FailTask(ctx, late, loom.TaskResult{Status: 1, Result: map[string]any{"providerid": "m9", "x": 1}}); err != nil || recorded {
		t.Errorf("a late failure: %t, %v", recorded, err)
	}
	w.expect(`{"providerid": "m9"}`, `SELECT results::text FROM nodes`)
	w.expect("interrupted -1", `SELECT status || ' ' || code FROM attempts WHERE number = 1`)
	if err := w.ops.StoreFact(ctx, late, map[string]any{"y": 1}); !errors.Is(err, loom.Conflict) {
		t.Errorf("a late fact: %v", err)
	}
	if !w.complete(key, loom.TaskResult{}) {
		t.Error("the attempt that holds the task was refused")
	}
}

func TestInterruptedTooOften(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	var key execution.AttemptKey
	for range 9 {
		key = w.deliver(1)
		w.fail(key, loom.TaskResult{Interrupted: true})
	}
	if n, err := w.ops.FailInterrupted(ctx, []loom.TaskID{key.Task}); err != nil || n != 0 {
		t.Errorf("given up after 9: %d, %v", n, err)
	}
	// The tenth time its process is lost.
	w.deliver(1)
	w.exec(`DELETE FROM processes`)
	w.exec(`SELECT loom_reap()`)
	if n, err := w.ops.FailInterrupted(ctx, []loom.TaskID{key.Task}); err != nil || n != 1 {
		t.Errorf("given up after 10: %d, %v", n, err)
	}
	w.end()
	w.expect("failed", `SELECT status FROM operations`)
}

func TestOverdueAttemptsFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	late, early := w.deliver(1), w.deliver(2)
	w.exec(`UPDATE attempts SET started_at = now() - interval '661 seconds' WHERE task_id = $1`, late.Task)
	w.exec(`UPDATE attempts SET started_at = now() - interval '650 seconds' WHERE task_id = $1`, early.Task)
	if n, err := w.ops.FailOverdue(ctx); err != nil || n != 1 {
		t.Errorf("%d overdue, %v", n, err)
	}
	w.expect("ready scheduled", `SELECT t.status || ' ' || r.state FROM tasks t JOIN river_job r ON r.id = t.river_job_id WHERE t.id = $1`, late.Task)
	if w.complete(late, loom.TaskResult{}) {
		t.Error("the late result counts")
	}
}

func TestReconcilerPutsThingsRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.plan(loom.ClusterCreate, loom.ActionCreate)
	if n, err := w.ops.Reconcile(ctx); err != nil || n != 0 {
		t.Fatalf("with nothing wrong: %d, %v", n, err)
	}
	w.exec(`UPDATE river_job SET state = 'completed', finalized_at = now(), attempt = 1 WHERE args->>'task_id' = (SELECT id::text FROM tasks WHERE number = 1)`)
	w.exec(`DELETE FROM river_job WHERE args->>'task_id' = (SELECT id::text FROM tasks WHERE number = 2)`)
	w.exec(`UPDATE nodes SET task_id = NULL WHERE number = 1002`)
	w.exec(`UPDATE river_job SET state = 'pending' WHERE args->>'task_id' = (SELECT id::text FROM tasks WHERE number IN (3))`)
	if n, err := w.ops.Reconcile(ctx); err != nil || n == 0 {
		t.Fatalf("reconciled %d, %v", n, err)
	}
	for n := range 4 {
		w.complete(w.deliver(n+1), loom.TaskResult{})
	}
	w.exec(`DELETE FROM river_job WHERE kind = 'end_operation'`)
	if n, err := w.ops.Reconcile(ctx); err != nil || n != 1 {
		t.Fatalf("the lost end: %d, %v", n, err)
	}
	if n, err := w.ops.Reconcile(ctx); err != nil || n != 0 {
		t.Fatalf("once more: %d, %v", n, err)
	}
	w.end()
	w.expect("complete", `SELECT status FROM operations`)
}

func TestPausedOperationEndsAfterResuming(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	op := w.plan(loom.ClusterCreate, loom.ActionCreate)
	actor := loom.Actor{Tenant: "t1", User: "ana", Role: loom.RoleUser}
	key := w.deliver(1)
	if _, err := w.ops.Pause(ctx, actor, op.Ref); err != nil {
		t.Fatal(err)
	}
	w.complete(key, loom.TaskResult{})
	w.end()
	w.expect("paused", `SELECT status FROM operations`)
	if _, err := w.ops.Resume(ctx, actor, op.Ref); err != nil {
		t.Fatal(err)
	}
	w.end()
	w.expect("complete", `SELECT status FROM operations`)
	if got, err := w.ops.Abort(ctx, actor, op.Ref); err != nil || got.Status != loom.OperationComplete {
		t.Errorf("aborting what has ended: %v, %v", got.Status, err)
	}
	readOnly := actor
	readOnly.Scopes = []loom.Scope{loom.ScopeRead}
	if _, err := w.ops.Pause(ctx, readOnly, op.Ref); !errors.Is(err, loom.Forbidden) {
		t.Errorf("with a token that may read only: %v", err)
	}
	w.expect("2", `SELECT count(*)::text FROM audit`)
}

func TestInsertPlanRefusesNonsense(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	good := w.chain(loom.ClusterCreate, loom.ActionCreate, loom.ActionConfirm)
	for name, spoil := range map[string]func(p *loom.Plan){
		"no end":          func(p *loom.Plan) { p.Gates = nil },
		"wrong number":    func(p *loom.Plan) { p.Tasks[1].Number = 7 },
		"no node":         func(p *loom.Plan) { p.Tasks[0].Node = "" },
		"edge to nowhere": func(p *loom.Plan) { p.Edges[0].To = 99 },
		"edge to itself":  func(p *loom.Plan) { p.Edges[0].To = p.Edges[0].From },
		"gate behind a gate": func(p *loom.Plan) {
			p.Gates = append(p.Gates, loom.Gate{})
			p.Edges = append(p.Edges, loom.Edge{From: 3, To: 4})
		},
		"end too early": func(p *loom.Plan) { p.Edges = p.Edges[:1] },
		"circle":        func(p *loom.Plan) { p.Edges = append(p.Edges, loom.Edge{From: 2, To: 1}) },
	} {
		plan := good
		plan.Tasks = append([]loom.PlanTask{}, good.Tasks...)
		plan.Edges = append([]loom.Edge{}, good.Edges...)
		spoil(&plan)
		if _, err := w.insert(plan); !errors.Is(err, loom.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	op, err := w.insert(good)
	if err != nil || op.Ref.Number != 1 || op.Tasks[loom.TaskReady] != 1 || op.Tasks[loom.TaskBlocked] != 1 {
		t.Fatalf("%+v, %v", op, err)
	}
	if _, err := w.insert(good); !errors.Is(err, loom.Conflict) {
		t.Errorf("a second operation: %v", err)
	}
	w.expect(`available tenant_t1 run_task 1000`, `SELECT state || ' ' || queue || ' ' || kind || ' ' || max_attempts FROM river_job ORDER BY id LIMIT 1`)
}
