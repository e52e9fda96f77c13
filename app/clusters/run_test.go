package clusters_test

import (
	"maps"
	"testing"

	"loom/app/clusters"
	"loom/app/execution"
	"loom/app/loom"
)

// runTasks carries out all that is due, as a provisioner and a scheduler do; tasks
// of the action fails end badly, and trying again does not help.
func (b *bundle) runTasks(fails loom.TaskAction) {
	b.t.Helper()
	b.runTasksBut(func(action loom.TaskAction, _ int) bool { return action == fails }, fails == "")
}

// runTasksBut is runTasks where those tasks end badly that fails says, by action and
// number of the node. All says that each task that is delivered begins.
func (b *bundle) runTasksBut(fails func(loom.TaskAction, int) bool, all bool) {
	b.t.Helper()
	ops := execution.New(b.db.DB, b.ring, execution.Options{})
	b.db.MustExec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('p1', 'provisioner', 'h', now() + interval '1 hour') ON CONFLICT DO NOTHING`)
	for {
		var due []struct {
			Task    loom.TaskID `db:"task_id"`
			Attempt int         `db:"attempt"`
			Action  string      `db:"action"`
			Node    int         `db:"node"`
		}
		err := b.db.Select(&due, `UPDATE river_job r SET state = 'running', attempt = r.attempt + 1, attempted_at = now(), attempted_by = array_append(r.attempted_by, 'p1')
			FROM tasks t JOIN nodes n ON n.id = t.node_id WHERE r.id = t.river_job_id AND r.state = 'available' RETURNING t.id AS task_id, r.attempt, t.action, n.number AS node`)
		if err != nil {
			b.t.Fatal(err)
		}
		if len(due) == 0 {
			break
		}
		for _, d := range due {
			key := execution.AttemptKey{Task: d.Task, Attempt: d.Attempt}
			begun, _, err := ops.StartTasks(b.ctx, "p1", []execution.AttemptKey{key})
			if err != nil || len(begun) == 0 && all {
				b.t.Fatalf("task %d did not begin: %v", d.Task, err)
			}
			if len(begun) == 0 {
				continue // dropped meanwhile
			}
			if fails(loom.TaskAction(d.Action), d.Node) {
				_, err = ops.FailTask(b.ctx, key, loom.TaskResult{Status: 1, Message: "no", Retryable: new(false)})
			} else {
				_, err = ops.CompleteTasks(b.ctx, []execution.Finished{{Key: key}})
			}
			if err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.endOperations()
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
		if _, err := b.clusters.RunServices(b.ctx, b.ana(), id, clusters.ServicesInput{Kind: kind, Service: service}); err != nil {
			t.Fatal(err)
		}
	}
	configure := func(restart bool) {
		t.Helper()
		if _, err := b.clusters.Configure(b.ctx, b.ana(), id, clusters.ConfigureInput{Config: map[string]any{}, Restart: restart}, nil); err != nil {
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
