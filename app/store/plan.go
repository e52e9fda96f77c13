package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
	"loom/jobs"
)

// NewOperation is what InsertPlan needs to know beside the plan.
type NewOperation struct {
	Tenant      loom.TenantID
	Cluster     loom.ClusterID
	Action      loom.ClusterAction
	RequestedBy loom.UserID
	// OnFailure is loom.OnFailureKeep or loom.OnFailureUndo; "" counts as keep.
	OnFailure string
	// Before is the layout before the operation, nil for a create.
	Before *loom.Snapshot
	// Concerns is the number of the operation that this one retries or rolls back.
	Concerns int
	// Retries says that it goes on with what is left of that one.
	Retries bool
	// Start is the layout at its start where it mends the operation that it concerns, nil
	// for others.
	Start *loom.Snapshot
	// Request is kept while it waits for hooks, and when they refuse it.
	Request []byte
	// Skipped are numbers of tasks that somebody leaves out from the start; nothing in
	// the plan waits for them.
	Skipped map[int]Skip
}

const takeOperationNumber = `
UPDATE clusters SET latest_operation = latest_operation + 1, status = 'pending'
WHERE tenant_id = $1 AND id = $2
RETURNING latest_operation`

const insertOperation = `
INSERT INTO operations (tenant_id, cluster_id, number, action, status, requested_by, on_failure, levels, end_gate, started_at, before, concerns, retries, start, request)
VALUES ($1, $2, $3, $4, $9::text, $5, $6, $7, $8, CASE WHEN $9 = 'running' THEN now() END, $10, $11, $12, $13, CASE WHEN $9 <> 'running' THEN $14::jsonb END)
RETURNING ` + operationColumns

// analyzeFrom is the number of tasks from which fresh statistics pay at once.
const analyzeFrom = 10_000

// InsertPlan stores an operation with its whole plan and lets it run: tasks,
// gates, edges and one pending River job per task, then the first task of each
// node is promoted. Hooks hear of its start; where one of them has to agree first,
// the operation is not submitted yet (BeginIfAgreed). The caller holds the cluster row, which becomes pending and
// takes the next operation number; nodes are there already. A plan without tasks
// ends at once.
//
// It answers Conflict while another operation of the cluster has not ended, and
// Invalid for a plan whose parts contradict each other.
func InsertPlan(ctx context.Context, tx *sqlx.Tx, in NewOperation, plan loom.Plan) (loom.Operation, error) {
	if in.OnFailure == "" {
		in.OnFailure = loom.OnFailureKeep
	}
	remaining, err := countDependencies(&plan, in.Skipped)
	if err != nil {
		return loom.Operation{}, err
	}
	var number int
	if err := tx.GetContext(ctx, &number, takeOperationNumber, in.Tenant, in.Cluster); err != nil {
		return loom.Operation{}, wrap(err, "take the next operation number of cluster %s", in.Cluster)
	}
	told, err := hooksFor(ctx, tx, in.Tenant, in.Cluster, in.Action, 0, loom.HookStart)
	if err != nil {
		return loom.Operation{}, err
	}
	status := loom.OperationRunning
	told, waits := blockingOnly(told)
	if waits {
		status = loom.OperationNotSubmitted
	}
	rows, err := reserveIDs(ctx, tx, "tasks_id_seq", len(plan.Tasks)+len(plan.Gates))
	if err != nil {
		return loom.Operation{}, err
	}
	before, err := encodeSnapshot(in.Before)
	if err != nil {
		return loom.Operation{}, err
	}
	start, err := encodeSnapshot(in.Start)
	if err != nil {
		return loom.Operation{}, err
	}
	var row operationRow
	err = tx.GetContext(ctx, &row, insertOperation, in.Tenant, in.Cluster, number, in.Action, in.RequestedBy,
		in.OnFailure, plan.Levels(), rows[plan.EndVertex()-1], string(status), before, in.Concerns, in.Retries, start, nullable(in.Request))
	if err != nil {
		return loom.Operation{}, wrap(err, "insert operation %d of cluster %s", number, in.Cluster)
	}
	river, err := reserveIDs(ctx, tx, "river_job_id_seq", len(plan.Tasks))
	if err != nil {
		return loom.Operation{}, err
	}
	if err := insertRiverJobs(ctx, tx, in.Tenant, river, rows[:len(plan.Tasks)]); err != nil {
		return loom.Operation{}, err
	}
	if err := copyTasks(ctx, tx, row, &plan, remaining, rows, river); err != nil {
		return loom.Operation{}, err
	}
	if err := copyEdges(ctx, tx, &plan, rows); err != nil {
		return loom.Operation{}, err
	}
	if len(plan.Tasks) >= analyzeFrom {
		if _, err := tx.ExecContext(ctx, `ANALYZE tasks, task_edges, river_job, nodes`); err != nil {
			return loom.Operation{}, wrap(err, "analyze after a plan of %d tasks", len(plan.Tasks))
		}
	}
	if err := leaveOut(ctx, tx, row.ID, in.Skipped); err != nil {
		return loom.Operation{}, err
	}
	if err := promoteFirst(ctx, tx, &plan, remaining); err != nil {
		return loom.Operation{}, err
	}
	op := row.operation()
	op.Tasks = map[loom.TaskStatus]int{}
	for i := range plan.Tasks {
		if _, skipped := in.Skipped[i+1]; skipped {
			op.Tasks[loom.TaskSkipped]++
		} else {
			op.Tasks[taskStart(remaining[i])]++
		}
	}
	if err := insertNotices(ctx, tx, &op, loom.HookStart, told); err != nil {
		return loom.Operation{}, err
	}
	if remaining[plan.EndVertex()-1] == 0 && !waits {
		if err := Enqueue(ctx, tx, jobs.EndOperation{OperationID: int64(row.ID)}); err != nil {
			return loom.Operation{}, err
		}
	}
	return op, InsertEvents(ctx, tx, operationEvents(&op)...)
}

// taskStart is the status in which a task begins its life.
func taskStart(remaining int) loom.TaskStatus {
	if remaining == 0 {
		return loom.TaskReady
	}
	return loom.TaskBlocked
}

// countDependencies gives the open dependencies of each vertex and checks that
// the plan is what it claims to be: numbers in order, edges between vertices, an
// end gate, no other gate that waits for nothing.
func countDependencies(plan *loom.Plan, skipped map[int]Skip) ([]int, error) {
	if len(plan.Gates) == 0 {
		return nil, loom.NewError(loom.Invalid, "A plan has at least the gate that is its end.")
	}
	end := plan.EndVertex()
	remaining := make([]int, end)
	for i, t := range plan.Tasks {
		if t.Number != i+1 || t.Node == "" {
			return nil, loom.NewError(loom.Invalid, "Task %d of the plan has the number %d and the node “%s”; it needs its own number and a node.", i+1, t.Number, t.Node)
		}
	}
	for _, e := range plan.Edges {
		if e.From < 1 || e.From > end || e.To < 1 || e.To > end || e.From == e.To {
			return nil, loom.NewError(loom.Invalid, "The plan has an edge from %d to %d, but its vertices are 1 to %d.", e.From, e.To, end)
		}
		if e.From > len(plan.Tasks) && e.To > len(plan.Tasks) {
			return nil, loom.NewError(loom.Invalid, "The plan has gate %d behind gate %d; gates join tasks only.", e.To, e.From)
		}
		if _, left := skipped[e.From]; left {
			return nil, loom.NewError(loom.Invalid, "Vertex %d of the plan waits for task %d, which is left out.", e.To, e.From)
		}
		remaining[e.To-1]++
	}
	for v := len(plan.Tasks) + 1; v < end; v++ {
		if remaining[v-1] == 0 {
			return nil, loom.NewError(loom.Invalid, "Gate %d of the plan waits for nothing.", v)
		}
	}
	if len(plan.Tasks) > len(skipped) && remaining[end-1] == 0 {
		return nil, loom.NewError(loom.Invalid, "The end of the plan waits for nothing although there are %d tasks.", len(plan.Tasks))
	}
	return remaining, nil
}

// copyTasks stores tasks and gates; remaining, rows are by vertex, river by task. The
// gates of a plan that takes back are part of that.
func copyTasks(ctx context.Context, tx *sqlx.Tx, op operationRow, plan *loom.Plan, remaining []int, rows, river []int64) error {
	return copyIn(ctx, tx, "tasks", []string{"id", "operation_id", "tenant_id", "cluster_id", "gate", "number", "node_id", "service",
		"action", "action_order", "level", "rank", "critical", "status", "remaining", "river_job_id", "old", "undo"}, func(add func(...any) error) error {
		for i, t := range plan.Tasks {
			err := add(rows[i], op.ID, op.TenantID, op.ClusterID, false, t.Number, string(t.Node), t.Service, string(t.Action),
				t.Action.Order(), t.Level, t.Rank, t.Critical, string(taskStart(remaining[i])), remaining[i], river[i], t.Old, t.Undo)
			if err != nil {
				return err
			}
		}
		for i, g := range plan.Gates {
			v := len(plan.Tasks) + i
			status := loom.TaskBlocked
			if remaining[v] == 0 {
				status = loom.TaskComplete
			}
			err := add(rows[v], op.ID, op.TenantID, op.ClusterID, true, 0, nil, g.Service, string(g.Action),
				0, 0, 0, false, string(status), remaining[v], nil, false, len(plan.Tasks) > 0 && plan.Tasks[0].Undo)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func copyEdges(ctx context.Context, tx *sqlx.Tx, plan *loom.Plan, rows []int64) error {
	if len(plan.Edges) == 0 {
		return nil
	}
	return copyIn(ctx, tx, "task_edges", []string{"from_task", "to_task"}, func(add func(...any) error) error {
		for _, e := range plan.Edges {
			if err := add(rows[e.From-1], rows[e.To-1]); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyIn streams rows into a table through COPY.
func copyIn(ctx context.Context, tx *sqlx.Tx, table string, columns []string, rows func(add func(...any) error) error) error {
	stmt, err := tx.PrepareContext(ctx, fmt.Sprintf("COPY %s (%s) FROM STDIN", table, strings.Join(columns, ", ")))
	if err != nil {
		return wrap(err, "begin to copy into %s", table)
	}
	err = rows(func(values ...any) error {
		_, err := stmt.ExecContext(ctx, values...)
		return err
	})
	if err == nil {
		_, err = stmt.ExecContext(ctx)
	}
	if closeErr := stmt.Close(); err == nil {
		err = closeErr
	}
	return wrap(err, "copy into %s", table)
}

// promoteFirst gives every node its first task.
func promoteFirst(ctx context.Context, tx *sqlx.Tx, plan *loom.Plan, remaining []int) error {
	seen := map[loom.NodeID]bool{}
	var nodes []string
	for i, t := range plan.Tasks {
		if remaining[i] == 0 && !seen[t.Node] {
			seen[t.Node] = true
			nodes = append(nodes, string(t.Node))
		}
	}
	if len(nodes) == 0 {
		if len(plan.Tasks) > 0 {
			return loom.NewError(loom.Invalid, "Every task of the plan waits for another; it has a circle.")
		}
		return nil
	}
	return promote(ctx, tx, nodes)
}

func promote(ctx context.Context, tx *sqlx.Tx, nodes []string) error {
	_, err := tx.ExecContext(ctx, `SELECT loom_promote($1::uuid[])`, pq.Array(nodes))
	return wrap(err, "promote the tasks of %d nodes", len(nodes))
}

// operationEvents tell open pages that an operation changed.
func operationEvents(op *loom.Operation) []loom.Event {
	cluster := op.Ref.Cluster.String()
	return []loom.Event{
		{Tenant: op.Tenant, Topic: "clusters", IDs: []string{cluster}},
		{Tenant: op.Tenant, Topic: "cluster:" + cluster},
		{Tenant: op.Tenant, Topic: fmt.Sprintf("op:%s/%d", cluster, op.Ref.Number)},
	}
}

const leaveOutTasks = `
WITH skip AS (
	SELECT * FROM unnest($2::int[], $3::text[], $4::text[]) AS s (number, skipped_by, reason)
), skipped AS (
	UPDATE tasks t SET status = 'skipped', skipped_by = s.skipped_by, skip_reason = s.reason, ended_at = clock_timestamp()
	FROM skip s WHERE t.operation_id = $1 AND NOT t.gate AND t.number = s.number
	RETURNING t.river_job_id
)
UPDATE river_job r SET state = 'cancelled', finalized_at = now() FROM skipped s WHERE r.id = s.river_job_id`

// leaveOut marks tasks of a new plan as skipped.
func leaveOut(ctx context.Context, tx *sqlx.Tx, operation int64, skipped map[int]Skip) error {
	if len(skipped) == 0 {
		return nil
	}
	var numbers []int64
	var by, reasons []string
	for number, s := range skipped {
		numbers, by, reasons = append(numbers, int64(number)), append(by, string(s.By)), append(reasons, cleanText(s.Reason))
	}
	_, err := tx.ExecContext(ctx, leaveOutTasks, operation, pq.Array(numbers), pq.Array(by), pq.Array(reasons))
	return wrap(err, "skip %d tasks", len(skipped))
}

// nullable is JSON to store, nil for none.
func nullable(data []byte) any {
	if len(data) == 0 {
		return nil
	}
	return cleanJSON(data)
}

const taskReadColumns = `t.id, t.gate, t.number, coalesce(t.node_id::text, '') AS node_id, coalesce(n.number, 0) AS node_number,
       coalesce(n.hostname, '') AS hostname, t.service, t.action, t.level, t.rank, t.critical, t.old, t.undo, t.status,
       t.status = 'ready' AND t.code <> 0 AS again, t.attempt,
       t.message, t.skipped_by, t.skip_reason, t.started_at, t.ended_at`

// Tasks first, by number, then gates in the order in which they were stored,
// the end gate last: the vertex order of loom.Plan. What takes back comes last.
const planByOperation = `
SELECT ` + taskReadColumns + `,
       ARRAY(SELECT e.from_task FROM task_edges e WHERE e.to_task = t.id) AS before
FROM operations o JOIN tasks t ON t.operation_id = o.id LEFT JOIN nodes n ON n.id = t.node_id
WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3
ORDER BY t.gate, t.number, t.id = o.end_gate, t.id`

// PlanByOperation rebuilds the plan of an operation from its stored tasks and
// edges, with each task as it is now, by number. Tasks that a retry added are
// part of it. An operation that does not exist gives an empty plan.
func PlanByOperation(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, op loom.Operation) (loom.Plan, map[int]loom.Task, error) {
	var rows []taskReadRow
	if err := sqlx.SelectContext(ctx, q, &rows, planByOperation, tenant, int64(op.Ref.Cluster), op.Ref.Number); err != nil {
		return loom.Plan{}, nil, wrap(err, "read the plan of operation %s", op.Ref)
	}
	plan := loom.Plan{Action: op.Action}
	tasks := make(map[int]loom.Task, len(rows))
	vertex := make(map[int64]int, len(rows))
	for i, r := range rows {
		vertex[r.ID] = i + 1
		if r.Gate {
			plan.Gates = append(plan.Gates, loom.Gate{Service: r.Service, Action: loom.TaskAction(r.Action)})
			continue
		}
		tasks[r.Number] = r.task(op.Ref)
		plan.Tasks = append(plan.Tasks, loom.PlanTask{
			Number: r.Number, Node: loom.NodeID(r.NodeID), NodeNumber: r.NodeNumber, Service: r.Service,
			Action: loom.TaskAction(r.Action), Level: r.Level, Rank: r.Rank, Critical: r.Critical,
			Old: r.Old, Undo: r.Undo,
		})
	}
	for _, r := range rows {
		for _, from := range r.Before {
			if v, ok := vertex[from]; ok {
				plan.Edges = append(plan.Edges, loom.Edge{From: v, To: vertex[r.ID]})
			}
		}
	}
	loom.SortEdges(plan.Edges)
	return plan, tasks, nil
}
