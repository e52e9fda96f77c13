package hook_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"loom/app/hook"
	"loom/app/loom"
)

var startOnly = []loom.HookEvent{loom.HookStart}

func (w *world) message(op loom.Operation) string {
	w.t.Helper()
	return w.text(`SELECT message FROM operations WHERE id = $1`, int64(op.Row))
}

func TestBlockingHooksAgree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	first, second, plain := newEndpoint(t, status(204)), newEndpoint(t, nil), newEndpoint(t, nil)
	asked, _ := w.create(admin, hook.Input{URL: first.URL, Events: startOnly, Blocking: true})
	w.create(super, hook.Input{URL: second.URL, Blocking: true, Global: true})
	w.create(admin, hook.Input{URL: plain.URL})
	id := w.cluster("t1", loom.ClusterPending)
	op := w.begin("t1", id, loom.ClusterCreate)
	if op.Status != loom.OperationNotSubmitted || !op.Started.IsZero() {
		t.Fatalf("the operation is %s, started %s", op.Status, op.Started)
	}
	if n := w.text(`SELECT count(*) FROM river_job WHERE kind = 'run_task' AND state = 'pending'`); n != "2" {
		t.Errorf("%s tasks are held back, want 2", n)
	}
	if n := w.text(`SELECT count(*) FROM hook_deliveries`); n != "2" {
		t.Errorf("%s hooks are asked, want 2", n)
	}
	// One agrees, the other has not been asked yet.
	w.must(w.ops.RecordDelivery(ctx, w.log(admin, asked)[0].ID, loom.DeliveryOutcome{Status: loom.DeliveryDelivered, Sent: true, Code: 204}))
	if _, err := w.ops.ReconcileHooks(ctx); err != nil || w.text(`SELECT status FROM operations`) != "not_submitted" {
		t.Fatalf("it began with one of two answers: %v", err)
	}
	w.runs(loom.TaskResult{})
	w.becomes(op, loom.OperationComplete)
	w.clusterIs(id, loom.ClusterActive)
	w.eventually("all notices", func() bool { return len(second.got()) == 2 && len(plain.got()) == 2 })
	if got := second.got()[0].object(t)["operation"].(map[string]any); got["status"] != "not_submitted" {
		t.Errorf("asked with %v", got)
	}
	if plain.events() != "start success " && plain.events() != "success start " {
		t.Errorf("the plain hook heard of %s", plain.events())
	}
}

func TestBlockingHooksRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	e := newEndpoint(t, func(w http.ResponseWriter, _ int) {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"reason": "Freeze until Monday."}`)
	})
	h, _ := w.create(admin, hook.Input{Name: "freeze", URL: e.URL, Blocking: true, Events: []loom.HookEvent{loom.HookStart}})
	heard := newEndpoint(t, nil)
	w.create(admin, hook.Input{URL: heard.URL})
	w.runs(loom.TaskResult{})
	id := w.cluster("t1", loom.ClusterPending)
	op := w.begin("t1", id, loom.ClusterCreate)
	w.becomes(op, loom.OperationFailed)
	w.clusterIs(id, loom.ClusterTerminated)
	if m := w.message(op); m != "The hook “freeze” refused: Freeze until Monday." {
		t.Errorf("the message is %q", m)
	}
	if d := w.log(admin, h)[0]; d.Status != loom.DeliveryRefused || d.Code != 409 || d.Error != "Freeze until Monday." {
		t.Errorf("the delivery is %+v", d)
	}
	w.eventually("the failure is told", func() bool { return heard.events() == "failure " })
	for _, before := range []loom.ClusterStatus{loom.ClusterActive, loom.ClusterInconsistent} {
		id := w.cluster("t1", before)
		op := w.begin("t1", id, loom.ClusterDelete)
		w.becomes(op, loom.OperationFailed)
		w.clusterIs(id, before)
		if n := w.text(`SELECT count(*) FROM nodes WHERE cluster_id = $1 AND task_id IS NOT NULL`, int64(id)); n != "0" {
			t.Errorf("%s nodes are still held", n)
		}
		// The next operation may begin.
		w.begin("t1", id, loom.ClusterDelete)
	}
	if n := w.text(`SELECT count(*) FROM attempts`); n != "0" {
		t.Errorf("%s tasks were tried", n)
	}
}

func TestBlockingHooksThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]loom.OperationStatus{loom.OnTimeoutGo: loom.OperationComplete, loom.OnTimeoutRefuse: loom.OperationFailed} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, loopback...)
			e := newEndpoint(t, status(http.StatusServiceUnavailable))
			h, _ := w.create(admin, hook.Input{Name: "gate", URL: e.URL, Blocking: true, OnTimeout: policy, Events: startOnly})
			id := w.cluster("t1", loom.ClusterActive)
			op := w.begin("t1", id, loom.StopServices)
			w.runs(loom.TaskResult{})
			w.eventually("a try", func() bool { return w.log(admin, h)[0].Tries >= 1 })
			if d := w.log(admin, h)[0]; d.Status != loom.DeliveryWaiting {
				t.Fatalf("after the first try: %+v", d)
			}
			w.exec(`UPDATE hook_deliveries SET created_at = created_at - interval '1 minute'`)
			w.due(0)
			w.becomes(op, want)
			w.clusterIs(id, loom.ClusterActive)
			if d := w.log(admin, h)[0]; d.Status != loom.DeliveryFailed {
				t.Errorf("the delivery is %+v", d)
			}
			if m := w.message(op); want == loom.OperationFailed && (!strings.Contains(m, "“gate”") || !strings.Contains(m, "503")) {
				t.Errorf("the message is %q", m)
			}
		})
	}
}

func TestAbortWhileAHookIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	e := newEndpoint(t, nil)
	h, _ := w.create(admin, hook.Input{URL: e.URL, Blocking: true, Events: startOnly})
	for before, after := range map[loom.ClusterStatus]loom.ClusterStatus{loom.ClusterPending: loom.ClusterTerminated, loom.ClusterActive: loom.ClusterActive} {
		id := w.cluster("t1", before)
		action := loom.ClusterDelete
		if before == loom.ClusterPending {
			action = loom.ClusterCreate
		}
		op := w.begin("t1", id, action)
		owner := member
		aborted, err := w.ops.Abort(ctx, owner, op.Ref)
		if err != nil || aborted.Status != loom.OperationFailing {
			t.Fatalf("abort: %s, %v", aborted.Status, err)
		}
		w.must(w.ops.EndOperation(ctx, op.Row))
		w.becomes(op, loom.OperationAborted)
		w.clusterIs(id, after)
	}
	w.runs(loom.TaskResult{})
	w.eventually("nobody is asked any more", func() bool {
		return w.text(`SELECT count(*) FROM hook_deliveries WHERE status = 'waiting'`) == "0"
	})
	if d := w.log(admin, h)[0]; d.Status != loom.DeliveryFailed || d.Tries != 0 || len(e.got()) != 0 {
		t.Errorf("%d calls; %+v", len(e.got()), d)
	}
}

func TestAnOperationOutlivesItsHookAndItsScheduler(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	e := newEndpoint(t, nil)
	gone, _ := w.create(admin, hook.Input{URL: e.URL, Blocking: true, Events: startOnly, Templates: []string{"site"}})
	first := w.begin("t1", w.cluster("t1", loom.ClusterPending), loom.ClusterCreate)
	w.must(w.hooks.Delete(ctx, admin, gone.ID))
	w.create(admin, hook.Input{URL: e.URL, Blocking: true, Events: startOnly})
	second := w.begin("t1", w.cluster("t1", loom.ClusterPending), loom.ClusterCreate)
	// A scheduler was killed while it asked.
	w.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{dead-00000000}' WHERE kind = 'deliver_hook'`)
	w.runs(loom.TaskResult{})
	w.becomes(first, loom.OperationComplete)
	w.becomes(second, loom.OperationComplete)
	if n := len(e.got()); n != 1 {
		t.Errorf("%d hooks were asked, want the one that is left", n)
	}
}

func TestASlowHookHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	release := make(chan struct{})
	slow := newEndpoint(t, func(http.ResponseWriter, int) { <-release })
	t.Cleanup(func() { close(release) })
	w.hooks = hook.New(w.db.DB, w.ring, hook.Options{Reach: loom.Reach{Networks: loom.Named(loopback...)}, Timeout: 50 * time.Millisecond,
		Body: func(loom.Notice, loom.Delivery, string) ([]byte, error) { return []byte("{}"), nil }})
	h, _ := w.create(admin, hook.Input{URL: slow.URL, Events: startOnly})
	w.begin("t1", w.cluster("t1", loom.ClusterPending), loom.ClusterCreate)
	id := w.log(admin, h)[0].ID
	outcome, ok, err := w.hooks.Send(ctx, id)
	if err != nil || !ok || outcome.Status != loom.DeliveryWaiting || outcome.Error != "The endpoint did not answer in time." || outcome.After <= 0 {
		t.Errorf("%+v, %t, %v", outcome, ok, err)
	}
}

func TestARefusedConfigIsTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	e := newEndpoint(t, status(http.StatusConflict))
	w.create(admin, hook.Input{Name: "freeze", URL: e.URL, Blocking: true, Events: startOnly})
	id := w.cluster("t1", loom.ClusterActive)
	w.exec(`INSERT INTO config_revisions (tenant_id, cluster_id, revision, config, author, operation) SELECT tenant_id, id, 1, config, 'ana', 0 FROM clusters`)
	was := w.text(`SELECT config FROM clusters`)
	w.exec(`UPDATE clusters SET config = '{"port": 81}'`)
	op := w.begin("t1", id, loom.ClusterConfigure)
	w.exec(`INSERT INTO config_revisions (tenant_id, cluster_id, revision, config, author, operation) SELECT tenant_id, id, 2, config, 'ana', $1 FROM clusters`, op.Ref.Number)
	w.runs(loom.TaskResult{})
	w.becomes(op, loom.OperationFailed)
	w.clusterIs(id, loom.ClusterActive)
	if got := w.text(`SELECT config FROM clusters`); got != was {
		t.Errorf("the config is %s, was %s", got, was)
	}
	if n := w.text(`SELECT count(*) FROM config_revisions`); n != "1" {
		t.Errorf("%s configs are kept", n)
	}
}
