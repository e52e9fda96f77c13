package web_test

import (
	"testing"

	"loom/app/loom"
	"loom/views/route"
)

// TestTaskShowsItsResult: what an attempt told of its node stands with its facts, what
// looks secret masked.
func TestTaskShowsItsResult(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 2)
	w.runSome(op, 1, 1)
	w.db.MustExec(`INSERT INTO attempts (task_id, number, process_id, status, facts, ended_at)
		SELECT id, 1, 'p1', 'complete', '{"providerid": "i-4711", "password": "hunter2"}', now() FROM tasks WHERE cluster_id = $1 AND number = 1 AND NOT gate
		ON CONFLICT (task_id, number) DO UPDATE SET facts = excluded.facts`, int64(op.Cluster))
	w.get("ana", route.TaskAttempt(loom.TaskRef{Operation: op, Number: 1}, 1)).is(200, "<strong>Result</strong>", "providerid", "i-4711").lacks("hunter2")
	w.get("ana", route.Task(loom.TaskRef{Operation: op, Number: 2})).is(200).lacks("<strong>Result</strong>")
}

// TestCountsOfQueuesAreFetchedAgain asks for the table as the page of queues does.
func TestCountsOfQueuesAreFetchedAgain(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	super := w.superCookie()
	w.get(super, route.SystemQueues()).is(200, `id="queue-states"`, "every 15s", "Tasks by tenant")
	w.part(super, route.SystemQueues(), "queue-states").is(200, `id="queue-states"`, "River jobs by queue").lacks("<h1>", "Tasks by tenant")
	w.part("ana", route.SystemQueues(), "queue-states").is(403)
}

// TestListKeepsAFilterThatNothingOffers: clusters outlive their template.
func TestListKeepsAFilterThatNothingOffers(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.get("ana", "/clusters?template=gone").is(200, `<option value="gone" selected>`, "Clear filters")
	w.get("ana", "/clusters?provider=lab").is(200, "Provider: lab", `<input type="hidden" name="provider" value="lab"`)
}
