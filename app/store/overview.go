package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
	"loom/jobs"
)

// What these read is shown to superadmins on pages; each is one statement,
// whatever the number of tenants, and its answer is bounded.

const quotaUses = `
SELECT t.id, t.max_clusters, t.max_nodes, coalesce(c.n, 0) AS clusters, coalesce(n.n, 0) AS nodes
FROM tenants t
LEFT JOIN LATERAL (SELECT count(*) AS n FROM clusters WHERE tenant_id = t.id AND status <> 'terminated') c ON true
LEFT JOIN LATERAL (SELECT count(*) AS n FROM nodes n JOIN clusters c ON c.id = n.cluster_id
	WHERE c.tenant_id = t.id AND c.status <> 'terminated' AND n.state <> 'deleted') n ON true
WHERE t.id = ANY ($1) AND t.deleted_at IS NULL`

// QuotaUsesAllTenants is QuotaUse of several tenants. Those that are not there are
// left out.
func QuotaUsesAllTenants(ctx context.Context, q sqlx.ExtContext, ids []loom.TenantID) (map[loom.TenantID]loom.QuotaUse, error) {
	var rows []struct {
		ID          string `db:"id"`
		MaxClusters int    `db:"max_clusters"`
		MaxNodes    int    `db:"max_nodes"`
		Clusters    int    `db:"clusters"`
		Nodes       int    `db:"nodes"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, quotaUses, texts(ids)); err != nil {
		return nil, wrap(err, "count what %d tenants use", len(ids))
	}
	uses := make(map[loom.TenantID]loom.QuotaUse, len(rows))
	for _, r := range rows {
		uses[loom.TenantID(r.ID)] = loom.QuotaUse{Clusters: r.Clusters, MaxClusters: r.MaxClusters, Nodes: r.Nodes, MaxNodes: r.MaxNodes}
	}
	return uses, nil
}

// maxLeftovers bounds the list of all tenants.
const maxLeftovers = 500

// LeftoversAllTenants lists the machines that deletes left behind and that may still
// be there, the oldest first, 500 at most.
func LeftoversAllTenants(ctx context.Context, q sqlx.ExtContext) ([]loom.Leftover, error) {
	var rows []leftoverRow
	err := sqlx.SelectContext(ctx, q, &rows, leftoverColumns+` WHERE l.ended_at IS NULL ORDER BY l.id LIMIT $1`, maxLeftovers)
	if err != nil {
		return nil, wrap(err, "list leftovers")
	}
	all := make([]loom.Leftover, len(rows))
	for i, r := range rows {
		all[i] = r.leftover()
	}
	return all, nil
}

// RiverJob is a row of the queues that belong to no tenant. Error is that of the
// newest attempt, Trace where it happened.
type RiverJob struct {
	ID          int64
	Queue       string
	Kind        string
	State       string
	Attempt     int
	MaxAttempts int
	// Args are JSON and hold ids only.
	Args         string
	Error, Trace string
	Due          time.Time
	Attempted    time.Time
}

// riverJobStates are those that are listed: what is done tells nothing, and there is
// much of it.
var riverJobStates = []string{"running", "available", "retryable", "scheduled", "discarded", "cancelled"}

// Leans on river_job_prioritized_fetching_index (state, queue, priority,
// scheduled_at, id), once for each state and queue.
const riverJobs = `
SELECT r.* FROM unnest($1::text[]) AS s (state) CROSS JOIN unnest($2::text[]) AS u (queue)
CROSS JOIN LATERAL (
	SELECT id, queue, kind, state::text AS state, attempt, max_attempts, args::text AS args, scheduled_at, attempted_at,
		coalesce(errors[array_upper(errors, 1)]->>'error', '') AS error, coalesce(errors[array_upper(errors, 1)]->>'trace', '') AS trace
	FROM river_job WHERE river_job.state = s.state::river_job_state AND river_job.queue = u.queue
	ORDER BY priority DESC, scheduled_at DESC, river_job.id DESC LIMIT $3
) AS r
ORDER BY r.id DESC LIMIT $4`

// RiverJobsAllTenants lists the newest River jobs of the queues that belong to no
// tenant, in one state or, for "", in any but completed; 200 at most.
func RiverJobsAllTenants(ctx context.Context, q sqlx.ExtContext, state string) ([]RiverJob, error) {
	states := riverJobStates
	if state != "" {
		states = []string{state}
	}
	const each, most = 100, 200
	var rows []struct {
		ID          int64        `db:"id"`
		Queue       string       `db:"queue"`
		Kind        string       `db:"kind"`
		State       string       `db:"state"`
		Attempt     int          `db:"attempt"`
		MaxAttempts int          `db:"max_attempts"`
		Args        string       `db:"args"`
		Scheduled   time.Time    `db:"scheduled_at"`
		Attempted   sql.NullTime `db:"attempted_at"`
		Error       string       `db:"error"`
		Trace       string       `db:"trace"`
	}
	queues := []string{jobs.ControlQueue, jobs.HookQueue, jobs.ProbeQueue}
	if err := sqlx.SelectContext(ctx, q, &rows, riverJobs, pq.Array(states), pq.Array(queues), each, most); err != nil {
		return nil, wrap(err, "list River jobs")
	}
	found := make([]RiverJob, len(rows))
	for i, r := range rows {
		found[i] = RiverJob{
			ID: r.ID, Queue: r.Queue, Kind: r.Kind, State: r.State, Attempt: r.Attempt, MaxAttempts: r.MaxAttempts, Args: r.Args,
			Error: r.Error, Trace: r.Trace, Due: r.Scheduled, Attempted: r.Attempted.Time,
		}
	}
	return found, nil
}

const retryRiverJob = `
UPDATE river_job SET state = 'available', scheduled_at = now(), finalized_at = NULL, max_attempts = greatest(max_attempts, attempt + 1)
WHERE id = $1 AND queue = ANY ($2) AND state IN ('retryable', 'scheduled', 'discarded', 'cancelled')
RETURNING queue, kind`

// RetryRiverJobAllTenants makes a River job of the schedulers' queues due at once
// and gives its kind. NotFound for one that runs, is done, or belongs to a task.
func RetryRiverJobAllTenants(ctx context.Context, tx *sqlx.Tx, id int64) (kind string, err error) {
	var row struct {
		Queue string `db:"queue"`
		Kind  string `db:"kind"`
	}
	if err := tx.GetContext(ctx, &row, retryRiverJob, id, pq.Array([]string{jobs.ControlQueue, jobs.HookQueue})); err != nil {
		return "", wrap(err, "retry River job %d", id)
	}
	return row.Kind, WakeQueues(ctx, tx, row.Queue)
}

// SentDelivery reads a delivery of a hook with the facts its body is made from.
// NotFound.
func SentDelivery(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, hook loom.HookID, id loom.DeliveryID) (loom.Delivery, loom.Notice, error) {
	var row struct {
		deliveryRow
		Notice []byte `db:"notice"`
	}
	err := sqlx.GetContext(ctx, q, &row, `SELECT `+deliveryColumns+`, d.notice FROM hook_deliveries d JOIN operations o ON o.id = d.operation_id
WHERE d.tenant_id = $1 AND d.hook_id = $2 AND d.id = $3`, tenant, int64(hook), int64(id))
	if err != nil {
		return loom.Delivery{}, loom.Notice{}, wrap(err, "read delivery %d", id)
	}
	notice, err := readNotice(row.Notice)
	return row.delivery(), notice, wrap(err, "read the notice of delivery %d", id)
}

// readNotice keeps numbers as they were written.
func readNotice(text []byte) (loom.Notice, error) {
	var n loom.Notice
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err := decoder.Decode(&n)
	return n, err
}
