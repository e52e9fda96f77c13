package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/jobs"
)

// sweepRow has the fields of loom.Sweep.
type sweepRow struct {
	Tenant     loom.TenantID `db:"tenant_id"`
	TenantName string        `db:"tenant_name"`
	Provider   string        `db:"provider_name"`
	Asked      *time.Time    `db:"asked"`
	Started    bool          `db:"started"`
	Last       *time.Time    `db:"last"`
	Failure    string        `db:"failure"`
	Found      int           `db:"found"`
}

const openSweep = `r.purpose = 'sweep' AND ` + openRequest

const sweepsOf = `
SELECT p.tenant_id, t.name AS tenant_name, p.provider_name, o.created_at AS asked, o.started_at IS NOT NULL AS started,
	l.ended_at AS last, coalesce(l.failure, '') AS failure,
	(SELECT count(*) FROM orphans x WHERE x.tenant_id = p.tenant_id AND x.provider_name = p.provider_name) AS found
FROM p JOIN tenants t ON t.id = p.tenant_id AND t.deleted_at IS NULL
LEFT JOIN LATERAL (SELECT r.created_at, r.started_at FROM provider_requests r
	WHERE r.tenant_id = p.tenant_id AND r.provider_name = p.provider_name AND ` + openSweep + ` ORDER BY r.id DESC LIMIT 1) o ON true
LEFT JOIN LATERAL (SELECT r.ended_at, r.failure FROM provider_requests r
	WHERE r.tenant_id = p.tenant_id AND r.provider_name = p.provider_name AND r.purpose = 'sweep' AND r.ended_at IS NOT NULL ORDER BY r.id DESC LIMIT 1) l ON true
ORDER BY t.name, p.provider_name`

// SweepOf reads what is known of the looks at one provider of a tenant.
func SweepOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, provider string) (loom.Sweep, error) {
	var s sweepRow
	err := sqlx.GetContext(ctx, q, &s, `WITH p AS (SELECT $1::text AS tenant_id, $2::text AS provider_name)`+sweepsOf, tenant, provider)
	return loom.Sweep(s), wrap(err, "read the looks at provider %s", provider)
}

// SweepsAllTenants reads what is known of the looks at all providers that are looked at
// (see SweepTargetsAllTenants) or were.
func SweepsAllTenants(ctx context.Context, q sqlx.ExtContext, recent time.Duration) ([]loom.Sweep, error) {
	var rows []sweepRow
	err := sqlx.SelectContext(ctx, q, &rows, `WITH p AS (`+mayHaveMachines+`
	UNION
	SELECT r.tenant_id, r.provider_name FROM provider_requests r WHERE r.purpose = 'sweep')`+sweepsOf, recent.Seconds())
	all := make([]loom.Sweep, len(rows))
	for i, r := range rows {
		all[i] = loom.Sweep(r)
	}
	return all, wrap(err, "read the looks at providers")
}

const lockSweep = `SELECT pg_advisory_xact_lock(hashtextextended('sweep:' || $1 || '/' || $2, 0))`

const requestSweep = `
INSERT INTO provider_requests (tenant_id, provider_name, purpose, requested_by)
SELECT $1, $2, 'sweep', $3
WHERE NOT EXISTS (SELECT FROM provider_requests r WHERE r.tenant_id = $1 AND r.provider_name = $2 AND ` + openSweep + `)
RETURNING id`

// RequestSweep asks provisioners to look for forgotten machines at a provider, with the
// River job for it; false while that is under way already.
func RequestSweep(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, provider string, by loom.UserID) (bool, error) {
	if _, err := tx.ExecContext(ctx, lockSweep, tenant, provider); err != nil {
		return false, wrap(err, "lock the looks at provider %s", provider)
	}
	var ids []int64
	if err := tx.SelectContext(ctx, &ids, requestSweep, tenant, provider, by); err != nil || len(ids) == 0 {
		return false, wrap(err, "ask for a look at provider %s", provider)
	}
	return true, Enqueue(ctx, tx, jobs.ProbeProvider{RequestID: ids[0], Slow: true})
}

// Orphans lists the machines at a provider that nobody uses, by id.
func Orphans(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, provider string) ([]loom.Orphan, error) {
	return orphans(ctx, q, ` WHERE o.tenant_id = $1 AND o.provider_name = $2 ORDER BY o.id`, tenant, provider)
}
