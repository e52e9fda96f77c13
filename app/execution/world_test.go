package execution_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/execution"
	"loom/app/loom"
	"loom/app/secret"
	"loom/app/store"
	"loom/app/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var ctx = context.Background()

// world is a tenant with a cluster of nodes and a process that may run tasks.
type world struct {
	t       *testing.T
	db      *testkit.Database
	ring    *secret.Ring
	ops     *execution.Operations
	cluster loom.ClusterID
	nodes   []loom.NodeID
}

const web = `{"web": {"name": "web", "provisioner": {"actions": {
	"install": {"type": "shell", "fields": {"script": "web.sh"}},
	"start": {"type": "shell", "fields": {"script": "web.sh", "args": "start"}}}}}}`

func newWorld(t *testing.T, nodes int) *world {
	t.Helper()
	ring, err := secret.ParseKeys(secret.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	db := testkit.NewDatabase(t)
	w := &world{t: t, db: db, ring: ring, ops: execution.New(db.DB, ring, execution.Options{})}
	w.exec(`INSERT INTO tenants (id, name, workers, resource_set) VALUES ('t1', 'demo', 10, 7)`)
	w.exec(`INSERT INTO users (tenant_id, id, ssh_keys) VALUES ('t1', 'ana', '{ssh-ed25519 AAAA ana}')`)
	w.exec(`INSERT INTO processes (id, kind, host, expires_at) VALUES ('p1', 'provisioner', 'h', now() + interval '1 hour')`)
	w.exec(`INSERT INTO catalog_versions (tenant_id, kind, name, version, body) VALUES ('t1', 'providers', 'lab', 1, '{"name": "lab", "providertype": "mock", "provisioner": {"zone": "z1", "user": "root"}}')`)
	if err := db.Get(&w.cluster, `INSERT INTO clusters (tenant_id, owner_id, name, status, template_name, template_version, template, provider_name, provider_fields, services, config, type_settings)
		VALUES ('t1', 'ana', 'shop', 'pending', 't', 1, '{}', 'lab', '{"user": "loom"}', $1,
		'{"hosts": "%host.service.web%", "db_password": "pa55word"}', '{"hardware": {"small": {"flavor": "s"}}, "image": {"deb": {"image": "d12", "suite": "bookworm"}}}') RETURNING id`, web); err != nil {
		t.Fatal(err)
	}
	if err := db.Select(&w.nodes, `INSERT INTO nodes (id, cluster_id, tenant_id, number, hostname, hardwaretype, imagetype, flavor, image, sshuser, services, automators)
		SELECT gen_random_uuid(), $1, 't1', 999 + i, 'shop-' || i, 'small', 'deb', 's', 'd12', 'root', '{web}', '{shell}' FROM generate_series(1, $2) AS i RETURNING id`, w.cluster, nodes); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Exec(query, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) text(query string, args ...any) string {
	w.t.Helper()
	var s string
	if err := w.db.Get(&s, query, args...); err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) expect(want, query string, args ...any) {
	w.t.Helper()
	if got := w.text(query, args...); got != want {
		w.t.Errorf("%s\n got %s\nwant %s", query, got, want)
	}
}

// chain is a plan with the same steps on every node.
func (w *world) chain(action loom.ClusterAction, steps ...loom.TaskAction) loom.Plan {
	plan := loom.Plan{Action: action, Gates: []loom.Gate{{}}}
	for _, node := range w.nodes {
		for i, step := range steps {
			service := "web"
			if step.OfNode() {
				service = ""
			}
			plan.Tasks = append(plan.Tasks, loom.PlanTask{Number: len(plan.Tasks) + 1, Node: node, Service: service, Action: step, Level: i + 1, Rank: len(steps) - i})
		}
	}
	end := plan.EndVertex()
	for n := range plan.Tasks {
		if (n+1)%len(steps) == 0 {
			plan.Edges = append(plan.Edges, loom.Edge{From: n + 1, To: end})
		} else {
			plan.Edges = append(plan.Edges, loom.Edge{From: n + 1, To: n + 2})
		}
	}
	return plan
}

func (w *world) insert(plan loom.Plan) (loom.Operation, error) {
	return store.InTx(ctx, w.db.DB, func(tx *sqlx.Tx) (loom.Operation, error) {
		return store.InsertPlan(ctx, tx, store.NewOperation{Tenant: "t1", Cluster: w.cluster, Action: plan.Action, RequestedBy: "ana"}, plan)
	})
}

func (w *world) plan(action loom.ClusterAction, steps ...loom.TaskAction) loom.Operation {
	w.t.Helper()
	op, err := w.insert(w.chain(action, steps...))
	if err != nil {
		w.t.Fatal(err)
	}
	w.jobsAreTrue()
	return op
}

// deliver does what River does: fetches the available job of the task with this
// number and begins its attempt.
func (w *world) deliver(number int) execution.AttemptKey {
	w.t.Helper()
	key, begun := w.fetch(number)
	if !begun {
		w.t.Fatalf("task %d did not begin", number)
	}
	return key
}

func (w *world) fetch(number int) (execution.AttemptKey, bool) {
	w.t.Helper()
	var key execution.AttemptKey
	err := w.db.Get(&key, `UPDATE river_job r SET state = 'running', attempt = r.attempt + 1, attempted_at = now(), attempted_by = array_append(r.attempted_by, 'p1')
		FROM tasks t WHERE t.number = $1 AND NOT t.gate AND r.id = t.river_job_id AND r.state = 'available' RETURNING t.id AS task_id, r.attempt`, number)
	if err != nil {
		w.t.Fatalf("task %d has no available River job: %v", number, err)
	}
	begun, _, err := w.ops.StartTasks(ctx, "p1", []execution.AttemptKey{key})
	if err != nil {
		w.t.Fatal(err)
	}
	w.jobsAreTrue()
	return key, len(begun) == 1
}

func (w *world) complete(key execution.AttemptKey, r loom.TaskResult) bool {
	w.t.Helper()
	accepted, err := w.ops.CompleteTasks(ctx, []execution.Finished{{Key: key, Result: r}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.jobsAreTrue()
	return accepted[key.Task]
}

// jobsAreTrue looks whether River's rows say of each task what is so.
func (w *world) jobsAreTrue() {
	w.t.Helper()
	wrong, err := testkit.WrongRiverJobs(ctx, w.db, time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, sentence := range wrong {
		w.t.Error(sentence)
	}
}

func (w *world) fail(key execution.AttemptKey, r loom.TaskResult) {
	w.t.Helper()
	recorded, err := w.ops.FailTask(ctx, key, r)
	if err != nil || !recorded {
		w.t.Fatalf("fail: %t, %v", recorded, err)
	}
	w.jobsAreTrue()
}

// end works the enqueued end_operation jobs.
func (w *world) end() int {
	w.t.Helper()
	var args []string
	if err := w.db.Select(&args, `UPDATE river_job SET state = 'completed', finalized_at = now() WHERE kind = 'end_operation' AND state = 'available' RETURNING args::text`); err != nil {
		w.t.Fatal(err)
	}
	for _, text := range args {
		var a struct {
			ID loom.OperationID `json:"operation_id"`
		}
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			w.t.Fatal(err)
		}
		if err := w.ops.EndOperation(ctx, a.ID); err != nil {
			w.t.Fatal(err)
		}
	}
	return len(args)
}
