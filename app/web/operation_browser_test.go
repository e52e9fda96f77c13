//go:build browser

package web_test

import (
	"net/http/httptest"
	"testing"

	"loom/app/loom"
	"loom/app/testkit/browser"
	"loom/views/route"
)

// The ways to look at an operation and a cluster have no fault that a scan for
// accessibility finds, in light and dark, and nothing is wider than a narrow window.
func TestPlanPagesAreForEverybody(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop-front", 4)
	w.runSome(op, 9, 3)
	w.log(loom.TaskRef{Operation: op, Number: 3}, "stderr", "E: \x1b[31munable to locate\x1b[0m <package>")
	server := httptest.NewServer(w.handler)
	t.Cleanup(server.CloseClientConnections)
	b := browser.New(t, browser.Options{})
	hands := b.Keyboard()
	b.Open(server.URL + "/login?tenant=acme")
	hands.Fill("the user name", "input[name=user]", "ana")
	hands.Fill("the password", "input[name=password]", "correct horse battery ana")
	hands.Activate("sign in", "form[action='/login'] button[type=submit]")
	b.Wait("the home page", func() bool { return b.URL() == server.URL+"/" })
	for _, at := range []string{route.OperationTimeline(op), route.OperationGraph(op) + "?group=on&by=service", route.OperationLog(op), route.Task(loom.TaskRef{Operation: op, Number: 3}),
		route.ClusterNodes(op.Cluster) + "?view=sets", route.ClusterTab(op.Cluster, "services"), route.ClusterTab(op.Cluster, "config") + "?macros=expanded&revision=1"} {
		b.Open(server.URL + at)
		b.Inspect(at)
		b.Size(320)
		b.Open(server.URL + at)
		if faults := b.Faults("target-size"); len(faults) > 0 {
			t.Errorf("%s, narrow: %q", at, faults)
		}
		if p := b.Page(); p.Overflow > 0 {
			t.Errorf("%s is wider than a window of 320 px by %d", at, p.Overflow)
		}
		b.Size(1280)
	}
	// Focus on a task lifts what lies before and behind it; leaving the picture ends that.
	b.Open(server.URL + route.OperationGraph(op))
	b.WaitFor(".c-dag[data-ready]")
	runOn(b, `document.querySelector(".c-dag a.dag-node").focus()`)
	b.WaitFor(".c-dag > svg.has-focus .dag-node.is-lit")
	b.WaitFor(".has-focus .dag-edge.is-lit")
	runOn(b, `document.activeElement.blur()`)
	b.WaitGone(".c-dag > svg.has-focus")
	if complaints := b.Complaints(); len(complaints) != 0 {
		t.Errorf("the browser complains: %q", complaints)
	}
}
