package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// Queueing is what an operation with tasks that are ready may wait for.
type Queueing struct {
	// Wanted are the workers that the tenant is to have, Dealt those that live
	// provisioners hold for it, Busy the tasks of the tenant that run.
	Wanted int `db:"wanted"`
	Dealt  int `db:"dealt"`
	Busy   int `db:"busy"`
	// Live are the provisioners that may work for the tenant.
	Live int `db:"live"`
	// Ready are the tasks of the operation that their nodes hold and that wait to be
	// taken, those that are due later not counted.
	Ready int `db:"ready"`
	// Paused says that nothing of the tenant begins until a superadmin says so.
	Paused bool `db:"paused"`
}

const queueing = `
SELECT t.workers AS wanted,
       (SELECT count(*) FROM processes p WHERE p.kind = $4 AND p.expires_at > now() AND (p.only_tenant IS NULL OR p.only_tenant = t.id)) AS live,
       (SELECT coalesce(sum(a.workers), 0) FROM worker_assignments a JOIN processes p ON p.id = a.process_id AND p.expires_at > now()
        WHERE a.tenant_id = t.id) AS dealt,
       (SELECT count(*) FROM operations o JOIN running_tasks b ON b.operation_id = o.id
        WHERE o.tenant_id = t.id AND o.status IN ('not_submitted', 'running', 'paused', 'failing', 'rolling_back')) AS busy,
       (SELECT count(*) FROM operations o JOIN nodes n ON n.cluster_id = o.cluster_id
        JOIN tasks h ON h.id = n.task_id AND h.operation_id = o.id AND h.status = 'ready' AND h.code = 0
        WHERE o.tenant_id = t.id AND o.cluster_id = $2 AND o.number = $3) AS ready,
       EXISTS (SELECT 1 FROM paused_tenants z WHERE z.tenant_id = t.id) AS paused
FROM tenants t WHERE t.id = $1`

// QueueingOf reads what an operation may wait for. NotFound for the tenant.
func QueueingOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (Queueing, error) {
	var found Queueing
	err := sqlx.GetContext(ctx, q, &found, queueing, tenant, int64(ref.Cluster), ref.Number, loom.ProcessProvisioner)
	return found, wrap(err, "read what operation %s waits for", ref)
}

// NextTry is a task that failed and is tried again.
type NextTry struct {
	Number     int    `db:"number"`
	NodeNumber int    `db:"node_number"`
	Action     string `db:"action"`
	Service    string `db:"service"`
	Hostname   string `db:"hostname"`
	Message    string `db:"message"`
	// Attempt is the number of the one that failed.
	Attempt int `db:"attempt"`
	// Error is the end of what that said on standard error.
	Error string    `db:"error"`
	At    time.Time `db:"scheduled_at"`
}

// A snooze is no retry: it keeps the code of the attempt before it, which is 0.
const nextTries = `
SELECT h.number, n.number AS node_number, coalesce(n.hostname, '') AS hostname, h.action, h.service, h.message, h.attempt, r.scheduled_at,
       coalesce((SELECT right(a.stderr, 1000) FROM attempts a WHERE a.task_id = h.id AND a.number = h.attempt), '') AS error
FROM operations o JOIN nodes n ON n.cluster_id = o.cluster_id
JOIN tasks h ON h.id = n.task_id AND h.operation_id = o.id AND h.status = 'ready' AND h.code <> 0
JOIN river_job r ON r.id = h.river_job_id AND r.state IN ('scheduled', 'available')
WHERE o.tenant_id = $1 AND o.cluster_id = $2 AND o.number = $3
ORDER BY r.scheduled_at, h.number LIMIT $4`

// NextTryOf reads the retry of an operation that is due first; ok is false when none
// is.
func NextTryOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef) (try NextTry, ok bool, err error) {
	rows, err := NextTriesOf(ctx, q, tenant, ref, 1)
	if err != nil || len(rows) == 0 {
		return NextTry{}, false, err
	}
	return rows[0], true, nil
}

// NextTriesOf reads the retries of an operation, at most limit, what is due first first.
func NextTriesOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.OperationRef, limit int) ([]NextTry, error) {
	var rows []NextTry
	err := sqlx.SelectContext(ctx, q, &rows, nextTries, tenant, int64(ref.Cluster), ref.Number, limit)
	return rows, wrap(err, "read the retries of operation %s", ref)
}
