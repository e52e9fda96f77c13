package clusters_test

import (
	"fmt"
	"strings"

	"loom/app/clusters"
	"loom/app/execution"
	"loom/app/loom"
)

// step is a task that is about to run.
type step struct {
	Row     loom.TaskID `db:"task_id"`
	Attempt int         `db:"attempt"`
	Number  int         `db:"number"`
	Action  string      `db:"action"`
	Service string      `db:"service"`
	Node    int         `db:"node"`
	Undo    bool        `db:"undo"`
}

func (s step) String() string {
	undo := ""
	if s.Undo {
		undo = "undo "
	}
	return strings.TrimSpace(fmt.Sprintf("%s%s %d %s", undo, s.Action, s.Node, s.Service))
}

// mock is a provider and its machines as provisioners see them: it runs what is due,
// one task after the other, and fails what fails says. It keeps what ran well.
type mock struct {
	*bundle
	ops      *execution.Operations
	machines map[string]bool
	ran      []string
	// scripts, unless nil, are the versions of the scripts that actions run, by service.
	scripts map[string]int
	// files, unless nil, are the versions of the files that a step runs.
	files func(step) map[string]int
}

func (b *bundle) mock() *mock {
	b.db.MustExec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('p1', 'provisioner', 'h', now() + interval '1 hour') ON CONFLICT DO NOTHING`)
	return &mock{bundle: b, ops: execution.New(b.db.DB, b.ring, execution.Options{}), machines: map[string]bool{}}
}

// run carries out everything that is due, and what that makes due.
func (m *mock) run(fails func(step) bool) {
	m.t.Helper()
	m.ran = nil
	for round := 0; ; round++ {
		if round > 2000 {
			m.t.Fatal("it never ends")
		}
		var due []step
		err := m.db.Select(&due, `UPDATE river_job r SET state = 'running', attempt = r.attempt + 1, attempted_at = now(), attempted_by = array_append(r.attempted_by, 'p1')
			FROM (SELECT r.id FROM river_job r WHERE r.state IN ('available', 'scheduled') AND r.kind = 'run_task' ORDER BY r.id LIMIT 1) AS first, tasks t JOIN nodes n ON n.id = t.node_id
			WHERE r.id = first.id AND r.id = t.river_job_id RETURNING t.id AS task_id, r.attempt, t.number, t.action, t.service, n.number AS node, t.undo`)
		if err != nil {
			m.t.Fatal(err)
		}
		if len(due) == 0 {
			if m.endAll() == 0 {
				return
			}
			continue
		}
		m.one(due[0], fails != nil && fails(due[0]))
	}
}

func (m *mock) one(s step, fails bool) {
	m.t.Helper()
	key := execution.AttemptKey{Task: s.Row, Attempt: s.Attempt}
	begun, _, err := m.ops.StartTasks(m.ctx, "p1", []execution.AttemptKey{key})
	if err != nil {
		m.t.Fatal(err)
	}
	if len(begun) == 0 {
		return // dropped meanwhile
	}
	if fails {
		_, err = m.ops.FailTask(m.ctx, key, loom.TaskResult{Status: 1, Message: "no", Retryable: new(false)})
	} else {
		spec, specErr := m.ops.Spec(m.ctx, key)
		if specErr != nil {
			m.t.Fatalf("%s: %v", s, specErr)
		}
		var r loom.TaskResult
		machine := fmt.Sprint(spec.Node)
		switch s.Action {
		case "create":
			m.machines[machine] = true
			r.Result = map[string]any{"providerid": "m-" + machine}
		case "delete":
			delete(m.machines, machine)
			r.Result = map[string]any{"providerid": nil}
		default:
			if !m.machines[machine] {
				m.t.Errorf("%s runs without a machine", s)
			}
		}
		if version := m.scripts[s.Service]; version > 0 && loom.TaskAction(s.Action).SetsUp() {
			r.Files = map[string]int{"shell/scripts/" + s.Service + ".sh": version}
		}
		if m.files != nil {
			r.Files = m.files(s)
		}
		m.ran = append(m.ran, s.String())
		_, err = m.ops.CompleteTasks(m.ctx, []execution.Finished{{Key: key, Result: r}})
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// endAll works the jobs that look for ends.
func (m *mock) endAll() int {
	m.t.Helper()
	var ids []loom.OperationID
	if err := m.db.Select(&ids, `UPDATE river_job SET state = 'completed', finalized_at = now() WHERE kind = 'end_operation' AND state = 'available'
		RETURNING (args->>'operation_id')::bigint`); err != nil {
		m.t.Fatal(err)
	}
	for _, id := range ids {
		// Twice: the second look finds nothing to do.
		for range 2 {
			if err := m.ops.EndOperation(m.ctx, id); err != nil {
				m.t.Fatal(err)
			}
		}
	}
	return len(ids)
}

// records is the layout of a cluster as it is stored: services with their versions,
// config, and the nodes that are part of it.
func (b *bundle) records(id loom.ClusterID) string {
	b.t.Helper()
	var text string
	err := b.db.Get(&text, `SELECT jsonb_pretty(jsonb_build_object('config', c.config,
		'services', (SELECT jsonb_object_agg(s.key, s.value->'version') FROM jsonb_each(c.services) s),
		'nodes', (SELECT jsonb_agg(jsonb_build_array(n.number, n.hardwaretype, n.imagetype, n.flavor, n.services, n.automators) ORDER BY n.number)
			FROM nodes n WHERE n.cluster_id = c.id AND NOT n.leaving)))
		FROM clusters c WHERE c.id = $1`, int64(id))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// latest reads the newest operation of a cluster.
func (b *bundle) latest(id loom.ClusterID) loom.Operation {
	b.t.Helper()
	_, op, err := b.clusters.Latest(b.ctx, b.ana(), id)
	if err != nil || op == nil {
		b.t.Fatal(err)
	}
	return *op
}

// ended checks how the newest operation and its cluster ended.
func (b *bundle) ended(id loom.ClusterID, status loom.OperationStatus, cluster loom.ClusterStatus) {
	b.t.Helper()
	op, c := b.latest(id), b.cluster(id)
	if op.Status != status || c.Status != cluster {
		b.t.Fatalf("operation %d is %s (%s) and the cluster %s, want %s and %s", op.Ref.Number, op.Status, op.Message, c.Status, status, cluster)
	}
}

func (b *bundle) starts(in clusters.PreviewInput) loom.OperationRef {
	b.t.Helper()
	ref, err := b.clusters.Begin(b.ctx, b.ana(), in)
	if err != nil {
		b.t.Fatal(err)
	}
	return ref
}

// fault fails the tasks of an action, of a service where one is named.
func fault(action loom.TaskAction, service string) func(step) bool {
	return func(s step) bool {
		return !s.Undo && s.Action == string(action) && (service == "" || s.Service == service)
	}
}

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

// serving checks that a cluster is active with all services started on ready nodes, in
// the versions named.
func (m *mock) serving(id loom.ClusterID, versions map[string]int) {
	m.t.Helper()
	m.ended(id, loom.OperationComplete, loom.ClusterActive)
	c := m.cluster(id)
	for name, version := range versions {
		if have := c.Services[name].Version; have != version {
			m.t.Errorf("%s has version %d, want %d", name, have, version)
		}
	}
	for _, n := range c.Nodes {
		if n.State != loom.NodeReady || len(n.ServiceStates) != len(n.Services) {
			m.t.Errorf("node %d is %s with %v of %v; %s", n.Number, n.State, n.ServiceStates, n.Services, strings.Join(m.ran, ", "))
		}
		for _, name := range n.Services {
			if n.ServiceStates[name] != loom.ServiceStarted {
				m.t.Errorf("%s on node %d is %s; %s", name, n.Number, n.ServiceStates[name], strings.Join(m.ran, ", "))
			}
		}
	}
}

// refuse lets the hook that is asked say no.
func (m *mock) refuse(why string) {
	m.t.Helper()
	var delivery int64
	if err := m.db.Get(&delivery, `SELECT max(id) FROM hook_deliveries WHERE blocking AND status = 'waiting'`); err != nil {
		m.t.Fatal(err)
	}
	if err := m.ops.RecordDelivery(m.ctx, loom.DeliveryID(delivery), loom.DeliveryOutcome{Status: loom.DeliveryRefused, Refusal: why}); err != nil {
		m.t.Fatal(err)
	}
	m.endAll()
}
