package web_test

import (
	"slices"
	"strings"
	"testing"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/views/clusterview"
	"loom/views/route"
)

// tryAgain lets a task fail and wait half a minute for its next try.
func (w *clusterWorld) tryAgain(ref loom.TaskRef, message string) {
	id := int64(ref.Operation.Cluster)
	w.db.MustExec(`UPDATE tasks SET status = 'ready', attempt = 1, message = $3, code = 1, started_at = now() - interval '9 s', ended_at = NULL
		WHERE cluster_id = $1 AND number = $2 AND NOT gate`, id, ref.Number, message)
	w.db.MustExec(`INSERT INTO attempts (task_id, number, process_id, status, code, message, started_at, ended_at)
		SELECT id, 1, 'host-1a2b3c4d', 'failed', 1, message, started_at, now() FROM tasks WHERE cluster_id = $1 AND number = $2 AND NOT gate
		ON CONFLICT (task_id, number) DO UPDATE SET status = 'failed', code = 1, message = excluded.message, ended_at = excluded.ended_at`, id, ref.Number)
	w.db.MustExec(`UPDATE nodes n SET task_id = t.id FROM tasks t WHERE t.cluster_id = $1 AND t.number = $2 AND NOT t.gate AND n.id = t.node_id`, id, ref.Number)
	w.db.MustExec(`UPDATE river_job r SET state = 'scheduled', scheduled_at = now() + interval '30 s' FROM tasks t
		WHERE t.cluster_id = $1 AND t.number = $2 AND NOT t.gate AND r.id = t.river_job_id`, id, ref.Number)
}

// A task that failed and waits for its next try is not taken for one that never ran:
// everywhere it is being retried, and who looks is led to it and to its log.
func TestWhatIsTriedAgainIsSeen(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 2)
	w.runSome(op, 2, 2)
	one, two := loom.TaskRef{Operation: op, Number: 3}, loom.TaskRef{Operation: op, Number: 4}
	for _, ref := range []loom.TaskRef{one, two} {
		w.log(ref, "stderr", "unable to bind port 80")
		w.tryAgain(ref, "hello.sh exited with 1")
	}
	for _, at := range []string{route.OperationGraph(op), route.OperationTasks(op)} {
		page := w.get("ana", at).is(200, "2 complete, 2 retrying", "2 tasks are retried.", "Log of attempt 1", "(attempt 2). hello.sh exited with 1.", ">Retrying<")
		for _, ref := range []loom.TaskRef{one, two} {
			page.has(`href="`+route.Task(ref)+`"`, `href="`+route.TaskAttempt(ref, 1)+`#log"`)
		}
		page.lacks("The next attempt starts")
	}
	w.get("ana", route.OperationGraph(op)).is(200, "is-retry", "retrying, stage")
	w.get("ana", route.OperationGraph(op)+"?group=on").is(200, "is-retry")
	w.get("ana", route.OperationGraph(op)+"?status=failed").is(200, "is-retry").lacks("No task matches")
	w.get("ana", route.OperationTimeline(op)+"?by=step").is(200, "2 retrying")
	w.get("ana", route.Cluster(op.Cluster)).is(200, "2 tasks are retried.", `href="`+route.Task(two)+`"`)
	panel := w.get("ana", route.Task(one)).is(200, ">Retrying<", "The next attempt starts ", "(attempt 2).")
	tail, facts := strings.Index(panel.Body, "unable to bind port 80"), strings.Index(panel.Body, ">Plugin<")
	if tail < 0 || facts < 0 || tail > facts {
		t.Errorf("the end of the log is at %d, the facts at %d", tail, facts)
	}
	if n := strings.Count(panel.Body, `id="L1"`); n != 1 {
		t.Errorf("%d lines have the id L1", n)
	}
	w.part("ana", route.Task(one), clusterview.TaskSideID).is(200, "unable to bind port 80")
	w.get("eve", route.Task(one)).is(404)
}

// An administrator is led from a task that failed to the script that it ran.
func TestFailedTaskLeadsToItsScript(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	w.must(w.catalog.RegisterTypes(w.ctx, nil, []loom.PluginType{{Base: loom.Base{Name: "shell"}, ResourceTypes: map[string]loom.ResourceType{"scripts": {Format: "file"}}}}))
	script := loom.ResourceRef{Kind: string(loom.KindAutomatorType), Plugin: "shell", Type: "scripts", Name: "nginx.sh"}
	_, err := w.catalog.Upload(w.ctx, w.actor("admin"), script, strings.NewReader("exit 1"), 0)
	w.must(err)
	op := w.create("shop", 2)
	tasks, err := w.clusters.Tasks(w.ctx, w.actor("ana"), op, clusters.TaskFilter{})
	w.must(err)
	at := slices.IndexFunc(tasks, func(t loom.Task) bool { return t.Service == "nginx" })
	w.fail(tasks[at].Ref, "nginx.sh exited with 1")
	const edit = "Edit nginx.sh"
	w.get("admin", route.Task(tasks[at].Ref)).is(200, edit, "/admin/resources/show?kind=automatortypes&amp;name=nginx.sh&amp;plugin=shell&amp;task="+tasks[at].Ref.String()+"&amp;type=scripts")
	w.part("admin", route.Task(tasks[at].Ref), clusterview.TaskSideID).is(200, edit)
	w.get("ana", route.Task(tasks[at].Ref)).is(200).lacks(edit)
}

// Links to a service are there while it runs, whatever else is done to the cluster.
func TestLinksComeWithTheirServices(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	op := w.create("shop", 2)
	w.runSome(op, 4, 1)
	id := int64(op.Cluster)
	w.db.MustExec(`UPDATE nodes SET state = 'ready', ipaddresses = jsonb_build_object('access_v4', '10.77.1.' || (number - 990)) WHERE cluster_id = $1`, id)
	w.get("ana", route.Cluster(op.Cluster)).is(200, "Setting up", ">4 of 12 tasks").lacks("Web page", "Statistics", "<td>4 of 12")
	// A node says how far its services are, in each table and on its own page.
	v, err := w.clusters.Cluster(w.ctx, w.actor("ana"), op.Cluster)
	w.must(err)
	first := v.Nodes[0]
	w.db.MustExec(`UPDATE nodes SET services = (SELECT array_agg(s) FROM clusters c, jsonb_object_keys(c.services) AS s WHERE c.id = cluster_id),
		service_states = jsonb_build_object(services[1], 'started') WHERE id = $1`, first.ID)
	w.get("ana", route.ClusterNodes(op.Cluster)+"?view=flat").is(200, "Setting up")
	w.get("ana", route.ClusterNodes(op.Cluster)+"?view=sets").is(200, "Setting up")
	w.get("ana", route.Node(op.Cluster, first.ID)).is(200, "Setting up")
	w.db.MustExec(`UPDATE nodes SET service_states = (SELECT coalesce(jsonb_object_agg(s, 'started'), '{}') FROM unnest(services) AS s) WHERE cluster_id = $1`, id)
	w.get("ana", route.Cluster(op.Cluster)).is(200, "Web page", "Statistics", "Creating").lacks("Setting up")
	w.get("ana", route.ClusterNodes(op.Cluster)+"?view=flat").is(200, "Ready").lacks("Setting up · ")
	w.get("ana", route.ClusterNodes(op.Cluster)+"?view=flat&state=setting-up").is(200).lacks("loom@10.77.1.10")
	w.db.MustExec(`UPDATE nodes SET service_states = (SELECT coalesce(jsonb_object_agg(s, 'stopped'), '{}') FROM unnest(services) AS s) WHERE cluster_id = $1`, id)
	w.get("ana", route.Cluster(op.Cluster)).is(200).lacks("Web page", "Statistics")
}

// A node is ready only while what should run on it does: after a failure it says what
// does not, and a filter finds it. What was stopped on purpose is no failure, and is said.
func TestReadyMeansThatServicesServe(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	id := w.active("shop", 3)
	nodes := route.ClusterNodes(id) + "?view=flat"
	w.get("ana", nodes).is(200, "Checking…").lacks("Not ready")
	v := w.cluster(id)
	web := v.Nodes[slices.IndexFunc(v.Nodes, func(n loom.Node) bool { return slices.Contains(n.Services, "nginx") })]
	state := func(state string) {
		w.db.MustExec(`UPDATE nodes SET service_states = service_states || jsonb_build_object('nginx', $2::text) WHERE id = $1`, web.ID, state)
	}
	state("stopped")
	w.get("ana", route.Node(id, web.ID)).is(200, "<span>Stopped</span>").lacks("Not ready")
	for s, says := range map[string]string{"installed": "nginx not started", "absent": "nginx not installed"} {
		state(s)
		w.get("ana", route.Node(id, web.ID)).is(200, "Ready", "· "+says).lacks("Not ready")
	}
	state("failed")
	for _, at := range []string{nodes, nodes + "&state=not-ready", route.Node(id, web.ID), route.Cluster(id)} {
		w.get("ana", at).is(200, "Not ready")
	}
	w.get("ana", nodes+"&state=not-ready").is(200, "· nginx failed", shortName(web.Hostname)).lacks(">Ready<")
	w.db.MustExec(`UPDATE nodes SET state = 'failed' WHERE id = $1`, web.ID)
	w.get("ana", nodes+"&state=failed").is(200, "<span>Failed</span>", "· nginx failed")
	w.get("ana", nodes+"&state=ready").is(200).lacks(shortName(web.Hostname) + "<")
}
