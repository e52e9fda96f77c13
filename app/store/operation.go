package store

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/jobs"
)

// operationColumns are the columns of operationRow, for statements that lock or
// insert; reads for people count tasks as well (operation_read.go).
const operationColumns = `id, tenant_id, cluster_id, number, action, status, message, requested_by, on_failure,
	aborted, concerns, retries, start IS NOT NULL AS mends, after IS NOT NULL AS undone, created_at, started_at, ended_at`

type operationRow struct {
	ID          int64        `db:"id"`
	TenantID    string       `db:"tenant_id"`
	ClusterID   int64        `db:"cluster_id"`
	Number      int          `db:"number"`
	Action      string       `db:"action"`
	Status      string       `db:"status"`
	Message     string       `db:"message"`
	RequestedBy string       `db:"requested_by"`
	OnFailure   string       `db:"on_failure"`
	Aborted     bool         `db:"aborted"`
	Concerns    int          `db:"concerns"`
	Retries     bool         `db:"retries"`
	Mends       bool         `db:"mends"`
	Undone      bool         `db:"undone"`
	CreatedAt   time.Time    `db:"created_at"`
	StartedAt   sql.NullTime `db:"started_at"`
	EndedAt     sql.NullTime `db:"ended_at"`
}

func (r *operationRow) operation() loom.Operation {
	return loom.Operation{
		Row: loom.OperationID(r.ID), Ref: loom.OperationRef{Cluster: loom.ClusterID(r.ClusterID), Number: r.Number},
		Tenant: loom.TenantID(r.TenantID), Action: loom.ClusterAction(r.Action), Status: loom.OperationStatus(r.Status),
		Message: r.Message, RequestedBy: loom.UserID(r.RequestedBy), Created: r.CreatedAt, Started: r.StartedAt.Time,
		Ended: r.EndedAt.Time, OnFailure: r.OnFailure, Aborted: r.Aborted, Concerns: r.Concerns, Retries: r.Retries, Mends: r.Mends, Undone: r.Undone, Tasks: map[loom.TaskStatus]int{},
	}
}

// StopChannel is the NOTIFY channel that tells provisioners to look at once for
// attempts to stop.
const StopChannel = "loom_stop"

const lockByRef = `
SELECT ` + operationColumns + ` FROM operations
WHERE tenant_id = $1 AND cluster_id = $2 AND number = $3 FOR NO KEY UPDATE`

// LockOperation locks an operation of a tenant.
func LockOperation(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, ref loom.OperationRef) (loom.Operation, error) {
	var row operationRow
	if err := tx.GetContext(ctx, &row, lockByRef, tenant, ref.Cluster, ref.Number); err != nil {
		return loom.Operation{}, wrap(err, "lock operation %s", ref)
	}
	return row.operation(), nil
}

// FailOperation makes a held operation failing and drops all that waits in it;
// the first message stays. Where nothing runs any more its end is enqueued.
func FailOperation(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, message string, aborted bool) error {
	_, err := tx.ExecContext(ctx, `UPDATE operations SET status = 'failing', message = $2, aborted = $3 WHERE id = $1`, op.Row, cleanText(message), aborted)
	if err != nil {
		return wrap(err, "fail operation %s", op.Ref)
	}
	op.Status, op.Message, op.Aborted = loom.OperationFailing, message, aborted
	if _, err := tx.ExecContext(ctx, `SELECT loom_drop($1)`, op.Row); err != nil {
		return wrap(err, "drop what waits in operation %s", op.Ref)
	}
	if err := InsertEvents(ctx, tx, operationEvents(op)...); err != nil {
		return err
	}
	if aborted {
		if _, err := tx.ExecContext(ctx, `SELECT pg_notify($1, '')`, StopChannel); err != nil {
			return wrap(err, "tell provisioners to stop")
		}
	}
	return EndIfIdle(ctx, tx, op)
}

// EndIfIdle enqueues the end of a held failing operation in which nothing runs.
func EndIfIdle(ctx context.Context, tx *sqlx.Tx, op *loom.Operation) error {
	var running bool
	err := tx.GetContext(ctx, &running, `SELECT EXISTS (SELECT FROM running_tasks WHERE operation_id = $1)`, op.Row)
	if err != nil {
		return wrap(err, "look whether operation %s is idle", op.Ref)
	}
	if running {
		return nil
	}
	return Enqueue(ctx, tx, jobs.EndOperation{OperationID: int64(op.Row)})
}

// What River delivered and nobody has started is left to loom_start.
const pauseJobs = `
SELECT loom_deliver(array_agg(t.id), false) FROM nodes n JOIN tasks t ON t.id = n.task_id AND t.status = 'ready' WHERE n.cluster_id = $1`

// PauseOperation lets nothing more of a held operation start. Running tasks
// finish and what they free waits.
func PauseOperation(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, message string) error {
	if err := setOperation(ctx, tx, op, loom.OperationPaused, message); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, pauseJobs, op.Ref.Cluster)
	return wrap(err, "hold back the River jobs of operation %s", op.Ref)
}

// ResumeOperation lets a held, paused operation go on.
func ResumeOperation(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, message string) error {
	if err := setOperation(ctx, tx, op, loom.OperationRunning, message); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `SELECT loom_promote((SELECT array_agg(id) FROM nodes WHERE cluster_id = $1))`, op.Ref.Cluster)
	return wrap(err, "promote the tasks of operation %s", op.Ref)
}

func setOperation(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, status loom.OperationStatus, message string) error {
	if _, err := tx.ExecContext(ctx, `UPDATE operations SET status = $2, message = $3 WHERE id = $1`, op.Row, string(status), cleanText(message)); err != nil {
		return wrap(err, "make operation %s %s", op.Ref, status)
	}
	op.Status, op.Message = status, message
	return InsertEvents(ctx, tx, operationEvents(op)...)
}

// Ending is what decides how a held operation ends.
type Ending struct {
	Operation loom.Operation
	// Done says that the plan's end gate is open.
	Done bool
	// Running says that some task runs.
	Running bool
	// Ends are the distinct pairs of a task's status and the code of an attempt
	// that did not succeed; Tried is false where there is no such attempt. Read
	// for failing operations and those that came to their end past a failure; of one
	// that takes back what it did, the tasks that do that.
	Ends []TaskEnd
	// MachinesExist says that some node of the cluster has a provider id.
	MachinesExist bool
	// Before is what the cluster was before the operation, "" for a new one.
	Before loom.ClusterStatus
	// Empty says that the layout of the cluster has no node.
	Empty bool
}

// Failed reports whether a task was given up.
func (e *Ending) Failed() bool {
	return slices.ContainsFunc(e.Ends, func(t TaskEnd) bool { return t.Status == loom.TaskFailed })
}

// TaskEnd is how far some task came, and the code of one failed try of it.
type TaskEnd struct {
	Status loom.TaskStatus
	Tried  bool
	Code   int
}

const taskEnds = `
SELECT DISTINCT t.status, a.code IS NOT NULL AS tried, coalesce(a.code, 0) AS code
FROM tasks t
LEFT JOIN attempts a ON a.task_id = t.id AND a.status IN ('failed', 'interrupted', 'aborted')
WHERE t.operation_id = $1 AND NOT t.gate AND t.undo = $2`

// LockEndingAllTenants locks the cluster of an operation and then the operation,
// and reads what decides whether and how it ends.
func LockEndingAllTenants(ctx context.Context, tx *sqlx.Tx, id loom.OperationID) (Ending, error) {
	var e Ending
	if _, err := tx.ExecContext(ctx, `SELECT 1 FROM clusters WHERE id = (SELECT cluster_id FROM operations WHERE id = $1) FOR NO KEY UPDATE`, id); err != nil {
		return e, wrap(err, "lock the cluster of operation %d", id)
	}
	var err error
	if e.Operation, err = LockOperationAllTenants(ctx, tx, id); err != nil {
		return e, err
	}
	var gate struct {
		Done    bool   `db:"done"`
		Running bool   `db:"running"`
		Before  string `db:"before"`
		Empty   bool   `db:"empty"`
	}
	err = tx.GetContext(ctx, &gate, `
SELECT coalesce((SELECT g.status = 'complete' FROM tasks g WHERE g.id = o.end_gate), false) AS done,
	EXISTS (SELECT FROM running_tasks t WHERE t.operation_id = o.id) AS running,
	coalesce((SELECT c.settled_status FROM clusters c WHERE c.id = o.cluster_id), '') AS before,
	-- In the order of an index: an EXISTS reads all nodes of everybody.
	(SELECT n.number FROM nodes n WHERE n.cluster_id = o.cluster_id AND NOT n.leaving ORDER BY n.number LIMIT 1) IS NULL AS empty
FROM operations o WHERE o.id = $1`, id)
	if err != nil {
		return e, wrap(err, "read the end gate of operation %s", e.Operation.Ref)
	}
	e.Done, e.Running, e.Empty, e.Before = gate.Done, gate.Running, gate.Empty, loom.ClusterStatus(gate.Before)
	// Some go on behind or beside what failed, which their message tells, and are judged
	// at their end.
	passed := e.Operation.Status == loom.OperationRunning && e.Done && e.Operation.Message != ""
	if e.Operation.Status != loom.OperationFailing && !passed || e.Running {
		return e, nil
	}
	var ends []struct {
		Status string `db:"status"`
		Tried  bool   `db:"tried"`
		Code   int    `db:"code"`
	}
	if err := tx.SelectContext(ctx, &ends, taskEnds, id, e.Operation.Undone); err != nil {
		return e, wrap(err, "read how the tasks of operation %s ended", e.Operation.Ref)
	}
	for _, end := range ends {
		e.Ends = append(e.Ends, TaskEnd{loom.TaskStatus(end.Status), end.Tried, end.Code})
	}
	err = tx.GetContext(ctx, &e.MachinesExist, `
SELECT EXISTS (SELECT FROM nodes WHERE cluster_id = $1 AND coalesce(results->>'providerid', '') <> '')`, e.Operation.Ref.Cluster)
	return e, wrap(err, "look for machines of cluster %s", e.Operation.Ref.Cluster)
}

// EndOperation gives a held operation and its held cluster their final state.
// The wiped secrets of a deleted cluster are gone for good.
func EndOperation(ctx context.Context, tx *sqlx.Tx, op *loom.Operation, status loom.OperationStatus, cluster loom.ClusterStatus, message string, wipe bool) error {
	_, err := tx.ExecContext(ctx, `UPDATE operations SET status = $2, message = $3, ended_at = clock_timestamp() WHERE id = $1`, op.Row, string(status), cleanText(message))
	if err != nil {
		return wrap(err, "end operation %s", op.Ref)
	}
	op.Status, op.Message = status, message
	_, err = tx.ExecContext(ctx, `UPDATE clusters SET status = $3, revision = revision + 1 WHERE tenant_id = $1 AND id = $2`, op.Tenant, op.Ref.Cluster, string(cluster))
	if err != nil {
		return wrap(err, "make cluster %s %s", op.Ref.Cluster, cluster)
	}
	if wipe {
		if err := wipeSecrets(ctx, tx, op.Tenant, op.Ref.Cluster); err != nil {
			return err
		}
	}
	if err := wakeDelete(ctx, tx, op); err != nil {
		return err
	}
	if err := noticeEnd(ctx, tx, op); err != nil {
		return err
	}
	if err := wakeWatchers(ctx, tx); err != nil { // what they knew of its nodes is out of date
		return err
	}
	if err := TellOwner(ctx, tx, op.Tenant, op.Ref.Cluster, op.RequestedBy, op.Ref.Cluster.String()+"/"+strconv.Itoa(op.Ref.Number)); err != nil {
		return err
	}
	events := append(operationEvents(op), loom.Event{Tenant: op.Tenant, Topic: "tenant"})
	return InsertEvents(ctx, tx, events...)
}
