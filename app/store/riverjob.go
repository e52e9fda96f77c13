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

// QueueState is how many River jobs of a queue are in a state.
type QueueState struct {
	Queue string `db:"queue"`
	State string `db:"state"`
	Count int    `db:"n"`
}

// Leans on river_job_prioritized_fetching_index (state, queue, ...); of each state
// the first 100,000 are counted.
const queueStates = `
SELECT s.state, r.queue, count(*) AS n
FROM unnest(ARRAY['available', 'running', 'scheduled', 'retryable', 'pending', 'discarded']) AS s (state)
CROSS JOIN LATERAL (SELECT queue FROM river_job WHERE river_job.state = s.state::river_job_state LIMIT 100000) r
GROUP BY 1, 2 ORDER BY 2, 1`

// QueueStatesAllTenants counts River jobs that are not done, by queue and state.
func QueueStatesAllTenants(ctx context.Context, q sqlx.ExtContext) ([]QueueState, error) {
	var states []QueueState
	err := sqlx.SelectContext(ctx, q, &states, queueStates)
	return states, wrap(err, "count River jobs by state")
}

// QueuePace is how many tasks and other River jobs were done in a stretch of time, and how
// long the tasks waited for a worker and ran: the middle and the 95th of a hundred, in
// seconds.
type QueuePace struct {
	// Stretch counts from 0, the oldest.
	Stretch int     `db:"stretch"`
	Tasks   int     `db:"tasks"`
	Others  int     `db:"others"`
	Wait50  float64 `db:"wait50"`
	Wait95  float64 `db:"wait95"`
	Run50   float64 `db:"run50"`
	Run95   float64 `db:"run95"`
}

// Leans on river_job_state_and_finalized_at_index. Of each stretch some tasks are measured: they waited from when
// they were due, in River's queue and for a worker of the process, until their attempt began.
const queuePace = `
WITH recent AS MATERIALIZED (
	SELECT id, kind, attempt, args, scheduled_at,
		width_bucket(extract(epoch FROM finalized_at), extract(epoch FROM now()) - $1::float8, extract(epoch FROM now()), $2::int) - 1 AS stretch
	FROM river_job
	WHERE state IN ('completed', 'discarded') AND finalized_at > now() - make_interval(secs => $1::float8) AND finalized_at <= now()
	ORDER BY finalized_at DESC LIMIT 100000
), placed AS (
	SELECT r.*, row_number() OVER (PARTITION BY r.stretch ORDER BY hashint8(r.id)) AS place FROM recent r WHERE r.kind = $3
), measured AS (
	SELECT p.stretch, greatest(extract(epoch FROM a.started_at - p.scheduled_at), 0)::float8 AS wait, extract(epoch FROM a.ended_at - a.started_at)::float8 AS run
	FROM placed p JOIN attempts a ON a.task_id = (p.args->>'task_id')::bigint AND a.number = p.attempt
	WHERE p.place <= 400
), timed AS (
	SELECT stretch, percentile_cont(0.5) WITHIN GROUP (ORDER BY wait) AS wait50, percentile_cont(0.95) WITHIN GROUP (ORDER BY wait) AS wait95,
		percentile_cont(0.5) WITHIN GROUP (ORDER BY run) AS run50, percentile_cont(0.95) WITHIN GROUP (ORDER BY run) AS run95
	FROM measured GROUP BY stretch
), counted AS (
	SELECT stretch, count(*) FILTER (WHERE kind = $3) AS tasks, count(*) FILTER (WHERE kind <> $3) AS others FROM recent GROUP BY stretch
)
SELECT stretch, tasks, others, coalesce(wait50, 0) AS wait50, coalesce(wait95, 0) AS wait95, coalesce(run50, 0) AS run50, coalesce(run95, 0) AS run95
FROM counted LEFT JOIN timed USING (stretch) ORDER BY stretch`

// QueuePaceAllTenants tells how tasks and other River jobs went lately, in stretches of
// equal length; those in which nothing was done are left out.
func QueuePaceAllTenants(ctx context.Context, q sqlx.ExtContext, since time.Duration, stretches int) ([]QueuePace, error) {
	var pace []QueuePace
	err := sqlx.SelectContext(ctx, q, &pace, queuePace, since.Seconds(), stretches, jobs.KindRunTask)
	return pace, wrap(err, "measure the pace of the queues")
}
