package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

const beginUndo = `
UPDATE operations SET status = 'rolling_back', after = $2, end_gate = coalesce($3, end_gate), levels = levels + $4,
	before = CASE WHEN $5 THEN $6::jsonb ELSE before END
WHERE id = $1`

const lastTask = `
SELECT coalesce(max(number), 0) AS number, coalesce(max(level), 0) AS level FROM tasks WHERE operation_id = $1 AND NOT gate`

// BeginUndo makes a held failing operation, of which nothing runs any more, take
// back what it did: the tasks of the plan join its own, with the numbers behind
// them, and their first ones can start. After is the layout that the operation was to
// lead to. A plan without tasks leaves nothing to wait for. One that mends another goes
// back to before that: its lineage says so.
func BeginUndo(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, of *loom.Lineage, after *loom.Snapshot, plan loom.Plan) error {
	remaining, err := countDependencies(&plan, nil)
	if err != nil {
		return err
	}
	var last struct {
		Number int `db:"number"`
		Level  int `db:"level"`
	}
	if err := tx.GetContext(ctx, &last, lastTask, op.Row); err != nil {
		return wrap(err, "count the tasks of operation %s", op.Ref)
	}
	rows, err := reserveIDs(ctx, tx, "tasks_id_seq", plan.EndVertex())
	if err != nil {
		return err
	}
	var end any
	if len(plan.Tasks) > 0 {
		end = rows[plan.EndVertex()-1]
	}
	body, err := encodeSnapshot(after)
	if err != nil {
		return err
	}
	before, err := encodeSnapshot(of.Goal)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, beginUndo, op.Row, body, end, plan.Levels(), of.First != nil, before); err != nil {
		return wrap(err, "begin to undo operation %s", op.Ref)
	}
	op.Status, op.Undone = loom.OperationRollingBack, true
	if len(plan.Tasks) > 0 {
		if err := appendTasks(ctx, tx, op, plan, remaining, rows, last.Number, last.Level); err != nil {
			return err
		}
	}
	return InsertEvents(ctx, tx, operationEvents(op)...)
}

func appendTasks(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, plan loom.Plan, remaining []int, rows []int64, number, level int) error {
	river, err := reserveIDs(ctx, tx, "river_job_id_seq", len(plan.Tasks))
	if err != nil {
		return err
	}
	if err := insertRiverJobs(ctx, tx, op.Tenant, river, rows[:len(plan.Tasks)]); err != nil {
		return err
	}
	shifted := plan
	shifted.Tasks = make([]loom.PlanTask, len(plan.Tasks))
	for i, t := range plan.Tasks {
		t.Number, t.Level, t.Undo = t.Number+number, t.Level+level, true
		shifted.Tasks[i] = t
	}
	row := operationRow{ID: int64(op.Row), TenantID: string(op.Tenant), ClusterID: int64(op.Ref.Cluster)}
	if err := copyTasks(ctx, tx, row, &shifted, remaining, rows, river); err != nil {
		return err
	}
	if err := copyEdges(ctx, tx, &plan, rows); err != nil {
		return err
	}
	if len(plan.Tasks) >= analyzeFrom {
		if _, err := tx.ExecContext(ctx, `ANALYZE tasks, task_edges, river_job, nodes`); err != nil {
			return wrap(err, "analyze after %d tasks that undo", len(plan.Tasks))
		}
	}
	return promoteFirst(ctx, tx, &plan, remaining)
}

// ConfigDiffers reports whether the config of a cluster is another one than config.
func ConfigDiffers(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID, config map[string]any) (bool, error) {
	other, err := json.Marshal(orEmpty(config))
	if err != nil {
		return false, fmt.Errorf("encode the config of cluster %s: %w", cluster, err)
	}
	var differs bool
	err = sqlx.GetContext(ctx, q, &differs, `SELECT config <> $3::jsonb FROM clusters WHERE tenant_id = $1 AND id = $2`, tenant, int64(cluster), string(other))
	return differs, wrap(err, "compare the configs of cluster %s", cluster)
}

// DropMade lets the nodes of a cluster that an undone create made be gone.
func DropMade(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID) error {
	_, err := tx.ExecContext(ctx, dropMade, tenant, int64(cluster), pq.Array([]string{}))
	return wrap(err, "drop the nodes of cluster %s", cluster)
}

const trimServices = `
UPDATE clusters c SET services = coalesce((
	SELECT jsonb_object_agg(s.key, s.value) FROM jsonb_each(c.services) s
	WHERE EXISTS (SELECT FROM nodes n WHERE n.cluster_id = c.id AND NOT n.leaving AND s.key = ANY (n.services))
	   OR NOT EXISTS (SELECT FROM nodes n WHERE n.cluster_id = c.id AND n.leaving AND s.key = ANY (n.services))), '{}')
WHERE c.tenant_id = $1 AND c.id = $2`

const dropLeft = `
WITH held AS (
    SELECT id FROM nodes WHERE tenant_id = $1 AND cluster_id = $2 AND leaving AND state <> 'deleted' AND coalesce(results->>'providerid', '') = ''
    ORDER BY id FOR UPDATE
)
UPDATE nodes n SET state = 'deleted' FROM held h WHERE n.id = h.id`

// TrimLayout lets nodes be gone that left and have no machine, and forgets the copies
// of services that only nodes have which left.
func TrimLayout(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID) error {
	if _, err := tx.ExecContext(ctx, dropLeft, tenant, int64(cluster)); err != nil {
		return wrap(err, "drop nodes that left cluster %s", cluster)
	}
	_, err := tx.ExecContext(ctx, trimServices, tenant, int64(cluster))
	return wrap(err, "forget services that left cluster %s", cluster)
}

// A machine that an operation failed on is as good as before once that is undone.
const settleNodes = `
WITH held AS (
    SELECT n.id, coalesce((SELECT jsonb_object_agg(s.key, s.value) FROM jsonb_each(n.service_states) s WHERE s.key = ANY (n.services)), '{}') AS states
    FROM nodes n WHERE n.tenant_id = $1 AND n.cluster_id = $2 AND NOT n.leaving ORDER BY n.id FOR UPDATE OF n
)
UPDATE nodes n SET service_states = h.states,
    state = CASE WHEN $3 AND n.state = 'failed' AND coalesce(n.results->>'providerid', '') <> '' THEN 'ready' ELSE n.state END
FROM held h WHERE n.id = h.id AND (n.service_states <> h.states OR $3 AND n.state = 'failed')`

// SettleNodes forgets what is known of services that the nodes of a held cluster do
// not have any more. Undone says that what failed on them was taken back.
func SettleNodes(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, cluster loom.ClusterID, undone bool) error {
	_, err := tx.ExecContext(ctx, settleNodes, tenant, int64(cluster), undone)
	return wrap(err, "settle the nodes of cluster %s", cluster)
}

const nodesWithMachine = `
SELECT id::text FROM nodes WHERE tenant_id = $1 AND cluster_id = $2 AND coalesce(results->>'providerid', '') <> ''`

// NodesWithMachine gives the nodes of a cluster of which a machine is known.
func NodesWithMachine(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, cluster loom.ClusterID) (map[loom.NodeID]bool, error) {
	var ids []loom.NodeID
	if err := sqlx.SelectContext(ctx, q, &ids, nodesWithMachine, tenant, int64(cluster)); err != nil {
		return nil, wrap(err, "look for machines of cluster %s", cluster)
	}
	have := make(map[loom.NodeID]bool, len(ids))
	for _, id := range ids {
		have[id] = true
	}
	return have, nil
}

const snapshotAfter = `SELECT after FROM operations WHERE tenant_id = $1 AND cluster_id = $2 AND number = $3`

// SnapshotAfter reads the layout that an operation was to lead to, which is kept of
// those that began to undo; nil for others. NotFound.
func SnapshotAfter(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (*loom.Snapshot, error) {
	return readSnapshot(ctx, q, snapshotAfter, tenant, ref)
}

// LineageOf reads the lineage of an operation that is idle, and which
// was to lead to after.
func LineageOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, op loom.Operation, after loom.Snapshot) (*loom.Lineage, error) {
	plans, op, err := plansOf(ctx, q, tenant, op)
	if err != nil {
		return nil, err
	}
	l := &loom.Lineage{Plans: plans, After: after}
	if !op.Mends {
		if l.Goal, err = SnapshotBefore(ctx, q, tenant, op.Ref); err == nil && l.Goal != nil {
			l.Before = *l.Goal
		}
		return l, err
	}
	start, err := SnapshotStart(ctx, q, tenant, op.Ref)
	if err != nil {
		return nil, err
	}
	l.Before = *start
	l.Before.Nodes = slices.DeleteFunc(l.Before.Nodes, func(n loom.Node) bool { return n.Leaving })
	first, err := OperationByRef(ctx, q, tenant, loom.OperationRef{Cluster: op.Ref.Cluster, Number: op.Concerns})
	if err != nil {
		return nil, err
	}
	if l.First, err = LineageOf(ctx, q, tenant, first, l.Before); err != nil {
		return nil, err
	}
	l.Goal = l.First.Goal
	return l, nil
}

// maxRetried bounds how many operations may retry one another.
const maxRetried = 1000

// PlansOf reads the plan of an operation and, behind it, those of the operations that it
// retries.
func PlansOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, op loom.Operation) ([]loom.StoredPlan, error) {
	plans, _, err := plansOf(ctx, q, tenant, op)
	return plans, err
}

// plansOf also returns the operation that was retried first.
func plansOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, op loom.Operation) (plans []loom.StoredPlan, first loom.Operation, err error) {
	for range maxRetried {
		plan, states, err := PlanByOperation(ctx, q, tenant, op)
		if err != nil {
			return nil, op, err
		}
		plans = append(plans, loom.StoredPlan{Plan: plan, States: states})
		if !op.Retries {
			break
		}
		if op, err = OperationByRef(ctx, q, tenant, loom.OperationRef{Cluster: op.Ref.Cluster, Number: op.Concerns}); err != nil {
			return nil, op, err
		}
	}
	return plans, op, nil
}
