package hook_test

import (
	"errors"
	"net/http"
	"testing"

	"loom/app/hook"
	"loom/app/loom"
)

// Endpoints of one tenant that never answer hold up the hooks of nobody else, and replays
// end somewhere.
func TestSlowHooksHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loopback...)
	over := make(chan struct{})
	slow := newEndpoint(t, func(http.ResponseWriter, int) { <-over })
	t.Cleanup(func() { close(over) })
	var last loom.Hook
	for range 2 * hook.Calls {
		last, _ = w.create(admin, hook.Input{URL: slow.URL, Events: startOnly})
	}
	quick := newEndpoint(t, nil)
	w.create(foreign, hook.Input{URL: quick.URL, Events: startOnly, Blocking: true})
	w.runs(loom.TaskResult{})
	w.begin("t1", w.cluster("t1", loom.ClusterPending), loom.ClusterCreate)
	w.eventually("the slow endpoints are called", func() bool { return len(slow.got()) == hook.Calls/4 })
	other := w.cluster("t2", loom.ClusterPending)
	op := w.begin("t2", other, loom.ClusterCreate)
	w.becomes(op, loom.OperationComplete)
	if n := len(slow.got()); n > hook.Calls/4 {
		t.Errorf("%d endpoints of one tenant are called at once", n)
	}

	notice := w.log(admin, last)[0].ID
	for range 19 {
		_, err := w.hooks.Replay(ctx, admin, last.ID, notice)
		w.must(err)
	}
	if _, err := w.hooks.Replay(ctx, admin, last.ID, notice); !errors.Is(err, loom.Exhausted) {
		t.Errorf("the 21st notice that waits: %v", err)
	}
}
