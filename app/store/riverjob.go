package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
	"loom/jobs"
)

// RiverJob is a row of River's table. Error is that of the newest attempt.
type RiverJob struct {
	ID          int64
	Queue       string
	Kind        string
	State       string
	Attempt     int
	MaxAttempts int
	// Args are JSON and hold ids only.
	Args  string
	Error string
	// Due is when it is, or was, to be tried; Attempted, Ended are zero before that.
	Created, Due, Attempted, Ended time.Time
	// AttemptedBy are the clients that tried it.
	AttemptedBy []string
	// Errors are those of all attempts, the newest first; RiverJobAllTenants gives
	// them only.
	Errors []RiverError
	// Tenant is the name of the tenant whose queue it is on, Task what it runs there.
	Tenant string
	Task   loom.TaskRef
}

// RiverError is what went wrong in an attempt.
type RiverError struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`
	Error   string    `json:"error"`
	Trace   string    `json:"trace"`
}

// RiverJobFilter limits a list of River jobs; empty parts mean any. Queues must not
// be empty.
type RiverJobFilter struct {
	Queues, States []string
	Kind           string
	ID             int64
}

var riverJobKeyset = keyset{
	columns: `j.id, j.queue, j.kind, j.state::text AS state, j.attempt, j.max_attempts, j.args::text AS args, j.created_at, j.scheduled_at, j.attempted_at, j.finalized_at,
	coalesce(j.errors[array_upper(j.errors, 1)]->>'error', '') AS error, coalesce(j.attempted_by, '{}') AS attempted_by, '[]'::jsonb AS errors, '' AS tenant, 0::bigint AS cluster_id, 0 AS operation, 0 AS task`,
	from: "river_job j", id: "j.id", idKind: "bigint",
	sorts: map[string]sortColumn{"id": {"j.id", "j.id::text", "bigint"}},
}

type riverJobRow struct {
	pageKeys
	ID          int64          `db:"id"`
	Queue       string         `db:"queue"`
	Kind        string         `db:"kind"`
	State       string         `db:"state"`
	Attempt     int            `db:"attempt"`
	MaxAttempts int            `db:"max_attempts"`
	Args        string         `db:"args"`
	Created     time.Time      `db:"created_at"`
	Scheduled   time.Time      `db:"scheduled_at"`
	Attempted   sql.NullTime   `db:"attempted_at"`
	Finalized   sql.NullTime   `db:"finalized_at"`
	Error       string         `db:"error"`
	AttemptedBy pq.StringArray `db:"attempted_by"`
	Errors      []byte         `db:"errors"`
	Tenant      string         `db:"tenant"`
	Cluster     int64          `db:"cluster_id"`
	Operation   int            `db:"operation"`
	Task        int            `db:"task"`
}

func (r riverJobRow) job() RiverJob {
	j := RiverJob{ID: r.ID, Queue: r.Queue, Kind: r.Kind, State: r.State, Attempt: r.Attempt, MaxAttempts: r.MaxAttempts, Args: r.Args, Error: r.Error,
		Created: r.Created, Due: r.Scheduled, Attempted: r.Attempted.Time, Ended: r.Finalized.Time, AttemptedBy: r.AttemptedBy, Tenant: r.Tenant}
	if r.Task > 0 {
		j.Task = loom.TaskRef{Operation: loom.OperationRef{Cluster: loom.ClusterID(r.Cluster), Number: r.Operation}, Number: r.Task}
	}
	return j
}

// RiverJobsAllTenants reads a page of River jobs, the newest first. Invalid for a
// cursor of another list.
func RiverJobsAllTenants(ctx context.Context, q sqlx.ExtContext, f RiverJobFilter, p loom.Page) (found []RiverJob, next, prev string, err error) {
	var b binder
	conditions := []string{"j.queue = ANY (" + b.add(pq.Array(f.Queues)) + ")"}
	if len(f.States) > 0 {
		conditions = append(conditions, "j.state::text = ANY ("+b.add(pq.Array(f.States))+")")
	}
	if f.Kind != "" {
		conditions = append(conditions, "j.kind = "+b.add(f.Kind))
	}
	if f.ID != 0 {
		conditions = append(conditions, "j.id = "+b.add(f.ID))
	}
	rows, next, prev, err := readKeyset[riverJobRow](ctx, q, riverJobKeyset, conditions, &b, f, p, "-id")
	if err != nil {
		return nil, "", "", err
	}
	for _, r := range rows {
		found = append(found, r.job())
	}
	return found, next, prev, nil
}

const riverJob = `
SELECT j.id, j.queue, j.kind, j.state::text AS state, j.attempt, j.max_attempts, j.args::text AS args, j.created_at, j.scheduled_at, j.attempted_at, j.finalized_at,
	coalesce(j.errors[array_upper(j.errors, 1)]->>'error', '') AS error, coalesce(j.attempted_by, '{}') AS attempted_by, coalesce(to_jsonb(j.errors), '[]') AS errors,
	coalesce(n.name, '') AS tenant, coalesce(t.cluster_id, 0) AS cluster_id, coalesce(o.number, 0) AS operation, coalesce(t.number, 0) AS task
FROM river_job j
LEFT JOIN tenants n ON j.queue = 'tenant_' || n.id
LEFT JOIN tasks t ON j.kind = $2 AND t.id = (j.args->>'task_id')::bigint
LEFT JOIN operations o ON o.id = t.operation_id
WHERE j.id = $1`

// RiverJobAllTenants reads a River job with the errors of all its attempts, and the
// task it runs. NotFound.
func RiverJobAllTenants(ctx context.Context, q sqlx.ExtContext, id int64) (RiverJob, error) {
	var row riverJobRow
	if err := sqlx.GetContext(ctx, q, &row, riverJob, id, jobs.KindRunTask); err != nil {
		return RiverJob{}, wrap(err, "read River job %d", id)
	}
	j := row.job()
	if err := json.Unmarshal(row.Errors, &j.Errors); err != nil {
		return RiverJob{}, wrap(err, "read the errors of River job %d", id)
	}
	for a, b := 0, len(j.Errors)-1; a < b; a, b = a+1, b-1 {
		j.Errors[a], j.Errors[b] = j.Errors[b], j.Errors[a]
	}
	return j, nil
}

// ownQueues are those whose River jobs may be meddled with: those of tasks follow
// their operation.
var ownQueues = []string{jobs.ControlQueue, jobs.HookQueue}

const retryRiverJob = `
UPDATE river_job SET state = 'available', scheduled_at = now(), finalized_at = NULL, max_attempts = greatest(max_attempts, attempt + 1)
WHERE id = $1 AND queue = ANY ($2) AND state IN ('retryable', 'scheduled', 'discarded', 'cancelled')
RETURNING queue, kind`

const cancelRiverJob = `
UPDATE river_job SET state = 'cancelled', finalized_at = now()
WHERE id = $1 AND queue = ANY ($2) AND state IN ('available', 'pending', 'retryable', 'scheduled')
RETURNING queue, kind`

const deleteRiverJob = `
DELETE FROM river_job WHERE id = $1 AND queue = ANY ($2) AND state <> 'running' RETURNING queue, kind`

// RetryRiverJobAllTenants makes a River job of the schedulers' queues due at once
// and gives its kind. NotFound for one that runs, is done, or belongs to a task.
func RetryRiverJobAllTenants(ctx context.Context, tx *sqlx.Tx, id int64) (kind string, err error) {
	queue, kind, err := changeRiverJob(ctx, tx, retryRiverJob, "retry", id)
	if err != nil {
		return "", err
	}
	return kind, WakeQueues(ctx, tx, queue)
}

// CancelRiverJobAllTenants keeps a River job of the schedulers' queues from being
// tried, and gives its kind. NotFound for one that runs, is done, or belongs to a
// task.
func CancelRiverJobAllTenants(ctx context.Context, tx *sqlx.Tx, id int64) (kind string, err error) {
	_, kind, err = changeRiverJob(ctx, tx, cancelRiverJob, "cancel", id)
	return kind, err
}

// DeleteRiverJobAllTenants removes a River job of the schedulers' queues, and gives
// its kind. NotFound for one that runs or belongs to a task.
func DeleteRiverJobAllTenants(ctx context.Context, tx *sqlx.Tx, id int64) (kind string, err error) {
	_, kind, err = changeRiverJob(ctx, tx, deleteRiverJob, "delete", id)
	return kind, err
}

func changeRiverJob(ctx context.Context, tx *sqlx.Tx, query, verb string, id int64) (queue, kind string, err error) {
	var row struct {
		Queue string `db:"queue"`
		Kind  string `db:"kind"`
	}
	err = tx.GetContext(ctx, &row, query, id, pq.Array(ownQueues))
	return row.Queue, row.Kind, wrap(err, "%s River job %d", verb, id)
}
