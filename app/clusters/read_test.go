package clusters_test

import (
	"slices"
	"testing"
	"time"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/planner"
)

// attempts inserts tries of task 1 of an operation with a log of n lines for the
// newest.
func (b *bundle) attempts(ref loom.OperationRef, n int) {
	b.t.Helper()
	b.db.MustExec(`
INSERT INTO attempts (task_id, number, process_id, status, code, message, stdout, stderr, started_at, ended_at)
SELECT t.id, k, 'host-00000001', CASE k WHEN 1 THEN 'failed' WHEN 2 THEN 'interrupted' ELSE 'running' END, k, 'try ' || k, 'out', 'err',
       now() + k * interval '1 s', CASE WHEN k < 3 THEN now() + k * interval '1 s' END
FROM tasks t JOIN operations o ON o.id = t.operation_id, generate_series(1, 3) k
WHERE o.cluster_id = $1 AND o.number = $2 AND t.number = 1`, int64(ref.Cluster), ref.Number)
	b.db.MustExec(`UPDATE tasks SET attempt = 3, status = 'running', message = 'try 3' WHERE number = 1 AND cluster_id = $1`, int64(ref.Cluster))
	b.db.MustExec(`
INSERT INTO task_logs (task_id, attempt, seq, operation_id, at, stream, text)
SELECT t.id, 3, s, t.operation_id, now(), 'stdout', 'line ' || s FROM tasks t, generate_series(1, $2) s WHERE t.cluster_id = $1 AND t.number = 1`,
		int64(ref.Cluster), n)
}

func TestOperationsTasksAndLogs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 3)
	b.attempts(ref, 30)

	operations, err := b.clusters.Operations(b.ctx, b.ana(), ref.Cluster)
	if err != nil || len(operations) != 1 || operations[0].Ref != ref || operations[0].RequestedBy != "ana" {
		t.Fatalf("%+v, %v", operations, err)
	}
	total := operations[0].Progress().Total
	tasks, err := b.clusters.Tasks(b.ctx, b.ana(), ref, clusters.TaskFilter{})
	if err != nil || len(tasks) != total || total == 0 {
		t.Fatalf("%d tasks of %d, %v", len(tasks), total, err)
	}
	creates, err := b.clusters.Tasks(b.ctx, b.ana(), ref, clusters.TaskFilter{Action: loom.ActionCreate})
	if err != nil || len(creates) != 3 {
		t.Errorf("%d creates, %v", len(creates), err)
	}
	running, err := b.clusters.Tasks(b.ctx, b.ana(), ref, clusters.TaskFilter{Statuses: []loom.TaskStatus{loom.TaskRunning}, Node: tasks[0].Node})
	if err != nil || len(running) != 1 || running[0].Ref.Number != 1 || running[0].Attempt != 3 {
		t.Errorf("%+v, %v", running, err)
	}
	_, err = b.clusters.Tasks(b.ctx, b.ana(), ref, clusters.TaskFilter{Statuses: []loom.TaskStatus{"x"}})
	wantKind(t, err, loom.Invalid)
	_, err = b.clusters.Tasks(b.ctx, b.ana(), ref, clusters.TaskFilter{Action: "x"})
	wantKind(t, err, loom.Invalid)

	// The last task waits for others, some of them behind a gate.
	plan, byNumber, err := b.clusters.PlanOf(b.ctx, b.ana(), ref)
	if err != nil || len(byNumber) != total || len(plan.Gates) == 0 {
		t.Fatalf("%d tasks, %d gates, %v", len(byNumber), len(plan.Gates), err)
	}
	var behind bool
	orders := planner.Dependencies(plan)
	for n := 1; n <= total; n++ {
		v, err := b.clusters.Task(b.ctx, b.ana(), loom.TaskRef{Operation: ref, Number: n})
		if err != nil {
			t.Fatal(err)
		}
		if want := orders[n-1]; !slices.Equal(v.DependsOn, want.DependsOn) || !slices.Equal(v.Behind, want.Behind) {
			t.Errorf("task %d waits for %v and %v, planned %+v", n, v.DependsOn, v.Behind, want)
		}
		behind = behind || len(v.Behind) > 0
		for _, next := range v.Next {
			after, err := b.clusters.Task(b.ctx, b.ana(), loom.TaskRef{Operation: ref, Number: next})
			if err != nil || !slices.Contains(after.DependsOn, n) && len(after.Behind) == 0 {
				t.Errorf("task %d follows %d but waits for %v, %v", next, n, after.DependsOn, err)
			}
		}
	}
	if !behind {
		t.Error("no task is behind a gate")
	}

	one := loom.TaskRef{Operation: ref, Number: 1}
	v, err := b.clusters.Task(b.ctx, b.ana(), one)
	if err != nil || len(v.Attempts) != 3 || v.Attempts[0].Status != loom.AttemptFailed || v.Attempts[2].Process != "host-00000001" {
		t.Errorf("%+v, %v", v.Attempts, err)
	}
	for _, c := range []struct {
		in          clusters.LogInput
		first, last int
		more        bool
	}{
		{clusters.LogInput{}, 1, 30, false},
		{clusters.LogInput{Limit: 10}, 1, 10, true},
		{clusters.LogInput{After: 10, Limit: 20}, 11, 30, false},
		{clusters.LogInput{Tail: 5}, 26, 30, true},
		{clusters.LogInput{Before: 11, Limit: 4}, 7, 10, true},
		{clusters.LogInput{After: 3, Before: 6}, 4, 5, false},
		{clusters.LogInput{Attempt: 1}, 0, 0, false},
	} {
		lines, more, err := b.clusters.Log(b.ctx, b.ana(), one, c.in)
		first, last := 0, 0
		if len(lines) > 0 {
			first, last = lines[0].Seq, lines[len(lines)-1].Seq
		}
		if err != nil || first != c.first || last != c.last || more != c.more {
			t.Errorf("%+v: %d to %d, more %v, %v", c.in, first, last, more, err)
		}
	}
	_, _, err = b.clusters.Log(b.ctx, b.ana(), one, clusters.LogInput{Limit: 5001})
	wantKind(t, err, loom.Invalid)

	cluster, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	node, err := b.clusters.NodeRecord(b.ctx, b.ana(), ref.Cluster, tasks[0].Node)
	actions := node.Actions
	if err != nil || node.Number != 1000 || len(actions) != 3 || actions[0].Status != "failed" || actions[2].Status != "in_progress" || !actions[2].Ended.IsZero() {
		t.Errorf("%+v, %v", node, err)
	}
	if got := cluster.Nodes[0].Actions; len(got) != 3 || got[0].Task != one || got[0].Stdout != "out" {
		t.Errorf("%+v", got)
	}

	for _, n := range []int{0, -1, total + 1} {
		_, err := b.clusters.Task(b.ctx, b.ana(), loom.TaskRef{Operation: ref, Number: n})
		wantKind(t, err, loom.NotFound)
		_, _, err = b.clusters.Log(b.ctx, b.ana(), loom.TaskRef{Operation: ref, Number: n}, clusters.LogInput{})
		wantKind(t, err, loom.NotFound)
	}
	for _, n := range []int{0, -1, 2} {
		_, err := b.clusters.Operation(b.ctx, b.ana(), loom.OperationRef{Cluster: ref.Cluster, Number: n})
		wantKind(t, err, loom.NotFound)
	}
	_, err = b.clusters.NodeRecord(b.ctx, b.ana(), ref.Cluster, "nobody")
	wantKind(t, err, loom.NotFound)
}

func TestClusterViewSaysWhatIsAllowedAndWhatIsNewer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil || v.Allowed[loom.ChangeDelete] != "Operation 1 (create) is running." || v.NewerTemplate != 0 {
		t.Fatalf("%v, %v", v.Allowed, err)
	}
	b.finish(ref.Cluster, loom.ClusterActive)
	b.save(b.tenant, loom.KindTemplate, siteTemplate())
	b.db.MustExec(`UPDATE nodes SET ipaddresses = '{"access_v4": "10.0.0.9"}' WHERE cluster_id = $1`, int64(ref.Cluster))
	v, err = b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil || v.Allowed[loom.ChangeDelete] != "" || v.NewerTemplate != 2 || v.Template.Version != 1 {
		t.Fatalf("%v, newer %d, %v", v.Allowed, v.NewerTemplate, err)
	}
	found := false
	for _, links := range v.NodeLinks {
		found = found || slices.Contains(links, loom.Link{Label: "Page", URL: "http://10.0.0.9/"})
	}
	if !found {
		t.Errorf("links %v", v.NodeLinks)
	}
	actions, err := b.clusters.Actions(b.ctx, b.ana(), ref.Cluster)
	if err != nil || actions[loom.ChangeLease] != "" {
		t.Errorf("%v, %v", actions, err)
	}
}

func TestChangeExpiryAndEdit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	leased := siteTemplate()
	leased.Administration.Lease = loom.LeaseRule{Initial: 8 * 3_600_000, Max: 24 * 3_600_000, Step: 6 * 3_600_000}
	b.save(b.tenant, loom.KindTemplate, leased)
	ref := b.create(b.ana(), 2)
	_, err := b.clusters.ChangeExpiry(b.ctx, b.ana(), ref.Cluster, time.Now().Add(time.Hour))
	wantKind(t, err, loom.Invalid) // pending
	b.finish(ref.Cluster, loom.ClusterActive)
	v, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil || v.Lease.Rule != "step" {
		t.Fatalf("%+v, %v", v.Lease, err)
	}
	_, err = b.clusters.ChangeExpiry(b.ctx, b.ana(), ref.Cluster, v.Created.Add(15*time.Hour))
	wantKind(t, err, loom.Invalid)
	changed, err := b.clusters.ChangeExpiry(b.ctx, b.ana(), ref.Cluster, v.Lease.Latest)
	if err != nil || changed.Revision != v.Revision+1 {
		t.Fatal(err)
	}
	again, err := b.clusters.Cluster(b.ctx, b.ana(), ref.Cluster)
	if err != nil || !again.Expires.Equal(v.Lease.Latest) {
		t.Errorf("expires %v, %v", again.Expires, err)
	}
	_, err = b.clusters.ChangeExpiry(b.ctx, b.ana(), ref.Cluster, time.Time{})
	wantKind(t, err, loom.Invalid)

	text := "for the demo"
	edited, err := b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Description: &text, Labels: map[string]string{"a": "b"}})
	if err != nil || edited.Description != text || edited.Labels["a"] != "b" || !edited.Expires.Equal(v.Lease.Latest) {
		t.Errorf("%+v, %v", edited, err)
	}
	bad := "\x00"
	_, err = b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Description: &bad})
	wantKind(t, err, loom.Invalid)
	if n := b.count(`SELECT count(*) FROM audit WHERE verb = 'update' AND kind = 'cluster'`); n != 2 {
		t.Errorf("%d audit entries", n)
	}
	b.finish(ref.Cluster, loom.ClusterTerminated)
	_, err = b.clusters.Edit(b.ctx, b.ana(), ref.Cluster, clusters.EditInput{Description: &text})
	wantKind(t, err, loom.Conflict)
}
