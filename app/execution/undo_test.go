package execution_test

import (
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"

	"loom/app/execution"
	"loom/app/loom"
	"loom/app/store"
)

var no = false

// useless is a failure that trying again would not help.
var useless = loom.TaskResult{Status: 1, Message: "no room", Retryable: &no}

var making = []loom.TaskAction{loom.ActionCreate, loom.ActionConfirm, loom.ActionBootstrap, loom.ActionInstall, loom.ActionStart}

// undone stores a plan whose operation takes back what it did when it fails.
func (w *world) undone(before *loom.Snapshot, plan loom.Plan) loom.Operation {
	w.t.Helper()
	op, err := store.InTx(ctx, w.db.DB, func(tx *sqlx.Tx) (loom.Operation, error) {
		return store.InsertPlan(ctx, tx, store.NewOperation{
			Tenant: "t1", Cluster: w.cluster, Action: plan.Action, RequestedBy: "ana", OnFailure: loom.OnFailureUndo, Before: before,
		}, plan)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return op
}

// nextTasks returns the numbers of the tasks that may run now.
func (w *world) nextTasks() []int {
	w.t.Helper()
	var all []int
	err := w.db.Select(&all, `SELECT t.number FROM tasks t JOIN river_job r ON r.id = t.river_job_id JOIN operations o ON o.id = t.operation_id
		WHERE t.status = 'ready' AND r.state = 'available' AND o.ended_at IS NULL ORDER BY t.number`)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// succeed is the result of an action as the mock provider gives it.
func succeed(action string) loom.TaskResult {
	switch action {
	case "create":
		return loom.TaskResult{Result: map[string]any{"providerid": "m"}}
	case "delete":
		return loom.TaskResult{Result: map[string]any{"providerid": nil}}
	}
	return loom.TaskResult{}
}

// runAll completes whatever may run until nothing does, and ends what has ended.
func (w *world) runAll() {
	w.t.Helper()
	for {
		for {
			due := w.nextTasks()
			if len(due) == 0 {
				break
			}
			for _, number := range due {
				action := w.text(`SELECT t.action FROM tasks t JOIN operations o ON o.id = t.operation_id WHERE t.number = $1 AND o.ended_at IS NULL AND NOT t.gate`, number)
				w.complete(w.deliverOpen(number), succeed(action))
			}
		}
		if w.end() == 0 {
			return
		}
	}
}

// deliverOpen is deliver for a task of the operation that has not ended.
func (w *world) deliverOpen(number int) execution.AttemptKey {
	w.t.Helper()
	var key execution.AttemptKey
	err := w.db.Get(&key, `UPDATE river_job r SET state = 'running', attempt = r.attempt + 1, attempted_at = now(), attempted_by = array_append(r.attempted_by, 'p1')
		FROM tasks t JOIN operations o ON o.id = t.operation_id
		WHERE t.number = $1 AND NOT t.gate AND o.ended_at IS NULL AND r.id = t.river_job_id AND r.state = 'available' RETURNING t.id AS task_id, r.attempt`, number)
	if err != nil {
		w.t.Fatalf("task %d has no available River job: %v", number, err)
	}
	if begun, _, err := w.ops.StartTasks(ctx, "p1", []execution.AttemptKey{key}); err != nil || len(begun) != 1 {
		w.t.Fatalf("task %d did not begin: %v", number, err)
	}
	return key
}

// A create that fails half way with the policy undo deletes what it made.
func TestUndoneCreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.undone(nil, w.chain(loom.ClusterCreate, making...))
	for _, number := range []int{1, 2, 3, 4} { // all but START on the first node
		action := w.text(`SELECT action FROM tasks WHERE number = $1`, number)
		w.complete(w.deliver(number), succeed(action))
	}
	w.complete(w.deliver(6), succeed("create"))
	w.fail(w.deliver(7), loom.TaskResult{Interrupted: true})
	running := w.deliver(7)
	w.fail(w.deliver(5), useless)
	w.expect("failing", `SELECT status FROM operations`)
	if n := w.end(); n != 0 {
		t.Errorf("%d ends while a task runs", n)
	}
	w.complete(running, loom.TaskResult{})
	if w.end() == 0 {
		t.Fatal("nobody looks for the end")
	}
	w.expect("rolling_back pending", `SELECT o.status || ' ' || c.status FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	// What was dropped stays dropped; what takes back comes behind it.
	w.expect("8, 9, 10", `SELECT string_agg(number::text, ', ' ORDER BY number) FROM tasks WHERE status = 'dropped' AND NOT gate`)
	w.expect("11", `SELECT min(number)::text FROM tasks WHERE undo AND NOT gate`)
	// A second look, and one by the reconciler, finds it rolling back already.
	w.exec(`INSERT INTO river_job (state, queue, kind, args, max_attempts) SELECT 'available', 'control', 'end_operation', jsonb_build_object('operation_id', id), 25 FROM operations`)
	w.end()
	if n, err := w.ops.Reconcile(ctx); err != nil || n != 0 {
		t.Errorf("reconciled %d, %v", n, err)
	}
	w.runAll()
	w.expect("rolled_back terminated", `SELECT o.status || ' ' || c.status FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	w.expect("Start web on node 1000 failed, and trying again would not help: no room", `SELECT message FROM operations`)
	w.expect("deleted", `SELECT string_agg(DISTINCT state, ' ') FROM nodes`)
	w.expect("0", `SELECT count(*)::text FROM nodes WHERE results ? 'providerid'`)
	w.expect("delete", `SELECT string_agg(DISTINCT action, ' ' ORDER BY action) FROM tasks WHERE undo AND NOT gate AND service = ''`)
	w.expect("true", `SELECT (count(*) = 0)::text FROM river_job WHERE state NOT IN ('completed', 'cancelled', 'discarded')`)
}

// mayBecome are the ways of an operation.
var mayBecome = map[loom.OperationStatus][]loom.OperationStatus{
	loom.OperationNotSubmitted: {loom.OperationRunning, loom.OperationFailing, loom.OperationFailed, loom.OperationAborted},
	loom.OperationRunning:      {loom.OperationPaused, loom.OperationFailing, loom.OperationComplete},
	loom.OperationPaused:       {loom.OperationRunning, loom.OperationFailing},
	loom.OperationFailing:      {loom.OperationRollingBack, loom.OperationFailed, loom.OperationAborted, loom.OperationRolledBack},
	loom.OperationRollingBack:  {loom.OperationRolledBack, loom.OperationFailing, loom.OperationFailed},
}

// walked checks that operations only went the ways that statuses allow.
func (w *world) walked() {
	w.t.Helper()
	var ways []struct {
		From loom.OperationStatus `db:"was"`
		To   loom.OperationStatus `db:"became"`
	}
	if err := w.db.Select(&ways, `SELECT DISTINCT was, became FROM walked`); err != nil {
		w.t.Fatal(err)
	}
	for _, way := range ways {
		if !slices.Contains(mayBecome[way.From], way.To) {
			w.t.Errorf("an operation went from %s to %s", way.From, way.To)
		}
	}
}

// watched is a world that notes each change of an operation's status.
func watched(t *testing.T, nodes int) *world {
	t.Helper()
	w := newWorld(t, nodes)
	w.exec(`CREATE TABLE walked (was text, became text)`)
	w.exec(`CREATE FUNCTION walk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO walked VALUES (OLD.status, NEW.status); RETURN NULL; END $$`)
	w.exec(`CREATE TRIGGER walk AFTER UPDATE ON operations FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION walk()`)
	return w
}

var ana = loom.Actor{Tenant: "t1", User: "ana", Role: loom.RoleUser}

// undoing is a create of one node that fails at START and has begun to undo.
func undoing(t *testing.T) (*world, loom.Operation) {
	t.Helper()
	w := watched(t, 1)
	op := w.undone(nil, w.chain(loom.ClusterCreate, making...))
	for _, number := range []int{1, 2, 3, 4} {
		w.complete(w.deliver(number), succeed(w.text(`SELECT action FROM tasks WHERE number = $1`, number)))
	}
	w.fail(w.deliver(5), useless)
	w.end()
	w.expect("rolling_back", `SELECT status FROM operations`)
	return w, op
}

func TestUndoThatFailsForGood(t *testing.T) {
	t.Parallel()
	w, _ := undoing(t)
	next := w.nextTasks()
	if len(next) != 1 {
		t.Fatalf("%v may run", next)
	}
	w.fail(w.deliverOpen(next[0]), useless)
	w.end()
	w.expect("failed incomplete failed", `SELECT o.status || ' ' || c.status || ' ' || n.state FROM operations o JOIN clusters c ON c.id = o.cluster_id JOIN nodes n ON n.cluster_id = c.id`)
	w.expect("true", `SELECT (message LIKE 'Start web on node 1000 %: no room. It could not be undone: Delete on node 1000 %')::text FROM operations`)
	w.expect(`{"providerid": "m"}`, `SELECT results::text FROM nodes`)
	w.walked()
}

func TestAbortOfAnUndo(t *testing.T) {
	t.Parallel()
	w, op := undoing(t)
	for name, act := range map[string]func() (loom.Operation, error){
		"pause":  func() (loom.Operation, error) { return w.ops.Pause(ctx, ana, op.Ref) },
		"resume": func() (loom.Operation, error) { return w.ops.Resume(ctx, ana, op.Ref) },
	} {
		if got, err := act(); err != nil || got.Status != loom.OperationRollingBack {
			t.Errorf("%s: %s, %v", name, got.Status, err)
		}
	}
	running := w.deliverOpen(w.nextTasks()[0])
	if got, err := w.ops.Abort(ctx, ana, op.Ref); err != nil || got.Status != loom.OperationFailing {
		t.Fatalf("%s, %v", got.Status, err)
	}
	w.fail(running, loom.TaskResult{Aborted: true, Message: "stopped"})
	w.end()
	w.expect("failed incomplete", `SELECT o.status || ' ' || c.status FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	w.expect("true", `SELECT (message LIKE '%no room. The undo was aborted by ana.')::text FROM operations`)
	w.walked()
}

// An aborted operation is undone as one that failed, and the tasks that do so are not
// told to stop.
func TestAbortedIsUndone(t *testing.T) {
	t.Parallel()
	w := watched(t, 1)
	op := w.undone(nil, w.chain(loom.ClusterCreate, making...))
	w.complete(w.deliver(1), succeed("create"))
	running := w.deliver(2)
	if _, err := w.ops.Abort(ctx, ana, op.Ref); err != nil {
		t.Fatal(err)
	}
	w.fail(running, loom.TaskResult{Aborted: true})
	w.end()
	w.expect("rolling_back", `SELECT status FROM operations`)
	w.runAll()
	w.expect("rolled_back terminated Aborted by ana.", `SELECT o.status || ' ' || c.status || ' ' || o.message FROM operations o JOIN clusters c ON c.id = o.cluster_id`)
	w.walked()
}

// The process that undoes is lost: another one goes on.
func TestUndoSurvivesItsProcess(t *testing.T) {
	t.Parallel()
	w, _ := undoing(t)
	lost := w.deliverOpen(w.nextTasks()[0])
	w.exec(`UPDATE processes SET expires_at = now() - interval '1 second'`)
	w.exec(`SELECT loom_reap()`)
	w.exec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('p1', 'provisioner', 'h', now() + interval '1 hour')`)
	if n, err := w.ops.Reconcile(ctx); err != nil || n != 0 {
		t.Errorf("reconciled %d, %v", n, err)
	}
	again := w.deliverOpen(w.nextTasks()[0])
	if w.complete(lost, succeed("delete")) {
		t.Error("the result of the lost process counts")
	}
	w.complete(again, succeed("delete"))
	w.runAll()
	w.expect("rolled_back terminated deleted", `SELECT o.status || ' ' || c.status || ' ' || n.state FROM operations o JOIN clusters c ON c.id = o.cluster_id JOIN nodes n ON n.cluster_id = c.id`)
	w.walked()
}

// What began nothing has nothing to undo and is over at once.
func TestUndoOfNothing(t *testing.T) {
	t.Parallel()
	w := watched(t, 1)
	w.plan(loom.ClusterCreate, making...)
	w.runAll()
	w.expect("active", `SELECT status FROM clusters`)
	nodes, err := store.NodesByCluster(ctx, w.db, "t1", w.cluster)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := store.ClusterByID(ctx, w.db, "t1", w.cluster)
	if err != nil {
		t.Fatal(err)
	}
	before := loom.Snapshot{Nodes: nodes, Services: cluster.Services, Config: map[string]any{"a": 1}}
	op := w.undone(&before, w.chain(loom.AddServices, loom.ActionInstall))
	if _, err := w.ops.Abort(ctx, ana, op.Ref); err != nil {
		t.Fatal(err)
	}
	w.end()
	w.expect("rolled_back active", `SELECT o.status || ' ' || c.status FROM operations o JOIN clusters c ON c.id = o.cluster_id WHERE o.number = 2`)
	w.expect(`{"a": 1}`, `SELECT config::text FROM clusters`)
	w.walked()
}
