package clusters_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

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

// TestPagesOfTasksCoverThePlan walks a plan by pages of every size in both
// directions, forward and back.
func TestPagesOfTasksCoverThePlan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 3)
	op, err := b.clusters.Operation(b.ctx, b.ana(), ref)
	if err != nil {
		t.Fatal(err)
	}
	total := op.Progress().Total
	for _, sort := range []string{"number", "-number"} {
		for limit := 1; limit <= total+1; limit++ {
			var numbers []int
			page := loom.Page{Sort: sort, Limit: limit}
			last := clusters.ListPage[clusters.TaskView]{}
			for more := true; more; more = last.Next != "" {
				page.After = last.Next
				if last, err = b.clusters.TaskPage(b.ctx, b.ana(), ref, clusters.TaskListInput{Page: page}); err != nil {
					t.Fatal(err)
				}
				for _, task := range last.Items {
					numbers = append(numbers, task.Ref.Number)
				}
			}
			back := slices.Clone(numbers[len(numbers)-len(last.Items):])
			for last.Prev != "" {
				last, err = b.clusters.TaskPage(b.ctx, b.ana(), ref, clusters.TaskListInput{Page: loom.Page{Sort: sort, Limit: limit, Before: last.Prev}})
				if err != nil {
					t.Fatal(err)
				}
				var part []int
				for _, task := range last.Items {
					part = append(part, task.Ref.Number)
				}
				back = append(part, back...)
			}
			if len(numbers) != total || !slices.Equal(numbers, back) || !slices.IsSortedFunc(numbers, func(x, y int) int {
				if sort == "number" {
					return x - y
				}
				return y - x
			}) {
				t.Fatalf("by %s and %d: %v, back %v", sort, limit, numbers, back)
			}
		}
	}
	_, err = b.clusters.TaskPage(b.ctx, b.ana(), ref, clusters.TaskListInput{Statuses: []loom.TaskStatus{"x"}})
	wantKind(t, err, loom.Invalid)
	_, err = b.clusters.OperationPage(b.ctx, b.ana(), ref.Cluster, clusters.OperationListInput{Actions: []loom.ClusterAction{"x"}})
	wantKind(t, err, loom.Invalid)
	one, err := b.clusters.OperationPage(b.ctx, b.ana(), ref.Cluster, clusters.OperationListInput{Statuses: []loom.OperationStatus{loom.OperationRunning}})
	if err != nil || len(one.Items) != 1 || one.Next != "" || one.Prev != "" || one.Items[0].Progress().Total != total {
		t.Errorf("%+v, %v", one, err)
	}
}

// The counts of an operation are the same whether they come from its groups or not, and
// lists of operations that know them from elsewhere have them too.
func TestCountsFromGroups(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 3)
	b.db.MustExec(`UPDATE tasks SET status = 'running' WHERE cluster_id = $1 AND number = 1`, int64(ref.Cluster))
	b.db.MustExec(`UPDATE tasks SET code = 1, attempt = 1 WHERE cluster_id = $1 AND number = 2 AND status = 'ready'`, int64(ref.Cluster))
	check := func(again int) {
		t.Helper()
		plain, err := b.clusters.Operation(b.ctx, b.ana(), ref)
		if err != nil {
			t.Fatal(err)
		}
		ctx := clusters.WithTaskGroups(clusters.WithReadCache(b.ctx))
		grouped, err := b.clusters.Operation(ctx, b.ana(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if len(plain.Tasks) == 0 || !maps.Equal(plain.Tasks, grouped.Tasks) || plain.Again != again || grouped.Again != again || plain.Waiting != grouped.Waiting {
			t.Errorf("counted: %v, %d again, %q; from groups: %v, %d again, %q; want %d again", plain.Tasks, plain.Again, plain.Waiting, grouped.Tasks, grouped.Again, grouped.Waiting, again)
		}
		page, err := b.clusters.OperationPage(ctx, b.ana(), ref.Cluster, clusters.OperationListInput{Page: loom.Page{Sort: "-number", Limit: 5}})
		if err != nil || len(page.Items) != 1 || !maps.Equal(page.Items[0].Tasks, plain.Tasks) {
			t.Errorf("the list has %v: %v", page.Items, err)
		}
	}
	check(1)
	groups, err := b.clusters.TaskGroups(b.ctx, b.ana(), ref)
	if err != nil {
		t.Fatal(err)
	}
	var running []int64
	for _, g := range groups {
		running = append(running, g.Running...)
	}
	if len(running) != 1 || running[0] != 1 {
		t.Errorf("tasks %v run, want 1", running)
	}
	b.finish(ref.Cluster, loom.ClusterActive)
	check(0)
}

func TestWhyAnOperationWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := b.create(b.ana(), 2)
	waits := func(want string) {
		t.Helper()
		op, err := b.clusters.Operation(b.ctx, b.ana(), ref)
		if err != nil {
			t.Fatal(err)
		}
		latest := b.cluster(ref.Cluster).Latest
		if op.Waiting != latest.Waiting || want == "" && op.Waiting != "" || !strings.Contains(op.Waiting, want) {
			t.Errorf("waits because %q, on the cluster %q; want %q", op.Waiting, latest.Waiting, want)
		}
	}
	b.db.MustExec(`UPDATE tenants SET workers = 0 WHERE id = 't1'`)
	waits("The tenant has no workers; a superadmin gives it some.")
	b.db.MustExec(`UPDATE tenants SET workers = 2 WHERE id = 't1'`)
	waits("No provisioner is up")
	b.db.MustExec(`INSERT INTO processes (id, kind, host, capacity, only_tenant, expires_at) VALUES ('p1', 'provisioner', 'h', 9, 't2', now() + interval '1 h')`)
	waits("No provisioner is up that works for the tenant.")
	b.db.MustExec(`UPDATE processes SET only_tenant = NULL`)
	waits("none to spare")
	b.db.MustExec(`INSERT INTO worker_assignments (tenant_id, process_id, workers) VALUES ('t1', 'p1', 2)`)
	waits("")
	b.db.MustExec(`UPDATE tasks SET status = 'failed' WHERE cluster_id = $1 AND number = 2`, int64(ref.Cluster))
	waits("A task failed. What does not wait for it is done first, then the operation ends.")
	b.db.MustExec(`UPDATE tasks SET status = 'ready' WHERE cluster_id = $1 AND number = 2`, int64(ref.Cluster))
	// Another operation of the tenant has both.
	other := b.create(b.ana(), 2)
	b.db.MustExec(`UPDATE tasks SET status = 'running' WHERE cluster_id = $1 AND status = 'ready'`, int64(other.Cluster))
	waits("All 2 workers of the tenant are busy with other tasks.")
	b.db.MustExec(`UPDATE worker_assignments SET workers = 1`)
	waits("The one worker of the tenant is busy with another task.")
	b.db.MustExec(`UPDATE tasks SET status = 'complete' WHERE cluster_id = $1 AND status = 'running'`, int64(other.Cluster))
	waits("")
	// A retry says when and after what.
	b.db.MustExec(`UPDATE tasks SET code = 1, message = 'no route to host', attempt = 1 WHERE cluster_id = $1 AND number = 1`, int64(ref.Cluster))
	b.db.MustExec(`UPDATE river_job SET state = 'scheduled', scheduled_at = '2030-01-02T03:04:05Z' WHERE id = (SELECT river_job_id FROM tasks WHERE cluster_id = $1 AND number = 1)`, int64(ref.Cluster))
	waits("Task 1, create on node 1000, is tried again at 03:04:05 UTC, after: no route to host")
	b.db.MustExec(`UPDATE tasks SET status = 'running' WHERE cluster_id = $1 AND action = 'create' AND status = 'ready' AND number > 1`, int64(ref.Cluster))
	waits("is tried again at 03:04:05 UTC")
	b.db.MustExec(`UPDATE operations SET status = 'paused' WHERE cluster_id = $1`, int64(ref.Cluster))
	waits("It is paused: 1 task that was begun still runs, nothing else starts until it is resumed.")
	b.db.MustExec(`UPDATE operations SET status = 'failing' WHERE cluster_id = $1`, int64(ref.Cluster))
	waits("It is ending: 1 task that was begun still runs.")
	b.db.MustExec(`UPDATE operations SET status = 'not_submitted' WHERE cluster_id = $1`, int64(ref.Cluster))
	waits("A hook has not agreed yet.")
	b.finish(ref.Cluster, loom.ClusterActive)
	waits("")
}

// Operations leave the cluster and each service on each node in the state that
// their tasks came to.
func TestStatesFollowTheTasks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.withStops()
	id := b.create(b.ana(), 2).Cluster
	b.runTasks("")
	started := map[string]loom.ServiceState{"base": loom.ServiceStarted, "db": loom.ServiceStarted, "web": loom.ServiceStarted}
	run := func(kind loom.ChangeKind, service string) {
		t.Helper()
		if _, err := b.clusters.Begin(b.ctx, b.ana(), clusters.PreviewInput{Cluster: id, Kind: kind, Service: service}); err != nil {
			t.Fatal(err)
		}
	}
	configure := func(restart bool) {
		t.Helper()
		if _, err := b.configure(b.ana(), id, clusters.ConfigureInput{Config: map[string]any{}, Restart: restart}, nil); err != nil {
			t.Fatal(err)
		}
	}
	is := func(what string, status loom.ClusterStatus, change map[string]loom.ServiceState) {
		t.Helper()
		want := maps.Clone(started)
		maps.Copy(want, change)
		v := b.cluster(id)
		if v.Status != status {
			t.Errorf("%s: the cluster is %s, want %s", what, v.Status, status)
		}
		for _, n := range v.Nodes {
			for _, name := range n.Services {
				if n.ServiceStates[name] != want[name] {
					t.Errorf("%s: %s on node %d is %s, want %s", what, name, n.Number, n.ServiceStates[name], want[name])
				}
			}
		}
	}
	is("create", loom.ClusterActive, nil)
	run(loom.ChangeStop, "web")
	b.runTasks("")
	is("stop web", loom.ClusterActive, map[string]loom.ServiceState{"web": loom.ServiceStopped})
	configure(false)
	b.runTasks("")
	is("configure leaves what is stopped", loom.ClusterActive, map[string]loom.ServiceState{"web": loom.ServiceStopped})
	run(loom.ChangeStart, "web")
	b.runTasks("")
	is("start web", loom.ClusterActive, nil)
	run(loom.ChangeStop, "db")
	b.runTasks(loom.ActionStop) // the first STOP, of web, which needs db
	is("a stop that fails", loom.ClusterInconsistent, map[string]loom.ServiceState{"web": loom.ServiceFailed})
	configure(true)
	b.runTasks("")
	is("configure gets out of it, to where the stop was to lead", loom.ClusterActive, map[string]loom.ServiceState{"db": loom.ServiceStopped, "web": loom.ServiceStopped})
	run(loom.ChangeStart, "")
	b.runTasks("")
	is("start all", loom.ClusterActive, nil)
	configure(true)
	b.runTasks(loom.ActionConfigure)
	if v := b.cluster(id); v.Status != loom.ClusterInconsistent || len(v.Config) != 0 {
		t.Errorf("after a configure that failed: %s, config %v", v.Status, v.Config)
	}
	if _, err := b.clusters.Delete(b.ctx, b.ana(), id, clusters.DeleteInput{}); err != nil {
		t.Fatal(err)
	}
	b.runTasks("")
	if v := b.cluster(id); v.Status != loom.ClusterTerminated {
		t.Errorf("deleted: %s", v.Status)
	}
}
