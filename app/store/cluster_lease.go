package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
)

type leaseRow struct {
	Tenant     string        `db:"tenant_id"`
	ID         int64         `db:"id"`
	Status     string        `db:"status"`
	Protected  bool          `db:"protected"`
	Expires    sql.NullTime  `db:"expires_at"`
	Reminded   sql.NullInt64 `db:"reminded"`
	StoppedFor sql.NullTime  `db:"stopped_for"`
	Next       sql.NullTime  `db:"next_at"`
	Problem    string        `db:"problem"`
	Left       bool          `db:"is_left"`
	Holds      bool          `db:"holds"`
	Now        time.Time     `db:"now"`
}

func (r leaseRow) end() loom.LeaseEnd {
	e := loom.LeaseEnd{Tenant: loom.TenantID(r.Tenant), Cluster: loom.ClusterID(r.ID), Status: loom.ClusterStatus(r.Status), Protected: r.Protected,
		Expires: r.Expires.Time, Reminded: loom.NotReminded, StoppedFor: r.StoppedFor.Time, Next: r.Next.Time, Problem: r.Problem, Left: r.Left, Holds: r.Holds}
	if r.Reminded.Valid {
		e.Reminded = int(r.Reminded.Int64)
	}
	return e
}

// What was done about another end of the lease counts no more, but that services
// were stopped then.
const leaseColumns = `
SELECT c.tenant_id, c.id, c.status, c.protected, c.expires_at, e.reminded, s.stopped_for, e.next_at, coalesce(e.problem, '') AS problem,
       EXISTS (SELECT FROM leftovers l WHERE l.cluster_id = c.id AND l.ended_at IS NULL) AS is_left, now() AS now,
       c.status = 'pending' AND EXISTS (SELECT FROM operations o WHERE o.cluster_id = c.id AND o.number = c.latest_operation
                                        AND (o.status = 'paused' OR o.created_at > c.expires_at AND o.action <> 'cluster_delete')) AS holds
FROM clusters c
LEFT JOIN lease_ends e ON e.cluster_id = c.id AND e.expires_at = c.expires_at
LEFT JOIN lease_ends s ON s.cluster_id = c.id`

// Leans on clusters_expiry, which leaves out terminated clusters.
const leaseEnds = leaseColumns + `
JOIN unnest($1::text[], $2::float8[]) AS t (tenant, ahead) ON t.tenant = c.tenant_id
WHERE c.expires_at IS NOT NULL AND c.status <> 'terminated' AND c.expires_at < now() + make_interval(secs => $3)
  AND c.expires_at < now() + make_interval(secs => t.ahead) AND (c.expires_at, c.id) > ($4, $5)
ORDER BY c.expires_at, c.id LIMIT $6`

// LeasePlace is a place in the order of ends of leases; the zero value is before
// the first.
type LeasePlace struct {
	Expires time.Time
	Cluster loom.ClusterID
}

// LeaseEndsAllTenants reads the clusters of the named tenants whose lease is over or
// ends within the time that is given with each, in the order of their ends, those
// behind after; now is the time by the database clock.
func LeaseEndsAllTenants(ctx context.Context, q sqlx.ExtContext, ahead map[loom.TenantID]time.Duration, after LeasePlace, limit int) (ends []loom.LeaseEnd, now time.Time, err error) {
	var tenants []string
	var seconds []float64
	longest := 0.0
	for tenant, d := range ahead {
		tenants, seconds = append(tenants, string(tenant)), append(seconds, d.Seconds())
		longest = max(longest, d.Seconds())
	}
	var rows []leaseRow
	err = sqlx.SelectContext(ctx, q, &rows, leaseEnds, pq.Array(tenants), pq.Array(seconds), longest, after.Expires, int64(after.Cluster), limit)
	if err != nil {
		return nil, now, wrap(err, "read clusters whose lease ends")
	}
	for _, r := range rows {
		ends, now = append(ends, r.end()), r.Now
	}
	return ends, now, nil
}

// LeaseEndOf reads what was done about the end of a cluster's lease, and the time by
// the database clock. NotFound.
func LeaseEndOf(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, id loom.ClusterID) (loom.LeaseEnd, time.Time, error) {
	var row leaseRow
	err := sqlx.GetContext(ctx, q, &row, leaseColumns+` WHERE c.tenant_id = $1 AND c.id = $2`, tenant, int64(id))
	return row.end(), row.Now, wrap(err, "read the lease of cluster %s", id)
}

const noteLease = `
INSERT INTO lease_ends AS e (cluster_id, tenant_id, expires_at)
SELECT id, tenant_id, expires_at FROM clusters WHERE tenant_id = $1 AND id = $2 AND expires_at = $3 AND status <> 'terminated'
ON CONFLICT (cluster_id) DO UPDATE SET
	reminded = CASE WHEN e.expires_at = excluded.expires_at THEN e.reminded END,
	tried_at = CASE WHEN e.expires_at = excluded.expires_at THEN e.tried_at END,
	next_at = CASE WHEN e.expires_at = excluded.expires_at THEN e.next_at END,
	problem = CASE WHEN e.expires_at = excluded.expires_at THEN e.problem ELSE '' END,
	expires_at = excluded.expires_at
RETURNING true`

// noteLeaseEnd makes the row about an end of a lease; false when the lease ends at
// another time by now.
func noteLeaseEnd(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID, expires time.Time) (bool, error) {
	var noted bool
	err := tx.GetContext(ctx, &noted, noteLease, tenant, int64(id), expires)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return noted, wrap(err, "note the end of the lease of cluster %s", id)
}

// LeaseReminded notes a reminder of an end of a lease, so many hours before it;
// false when the lease ends at another time by now.
func LeaseReminded(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID, expires time.Time, hours int) (bool, error) {
	noted, err := noteLeaseEnd(ctx, tx, tenant, id, expires)
	if err != nil || !noted {
		return false, err
	}
	_, err = tx.ExecContext(ctx, `UPDATE lease_ends SET reminded = $3 WHERE tenant_id = $1 AND cluster_id = $2`, tenant, int64(id), hours)
	return true, wrap(err, "note a reminder of the lease of cluster %s", id)
}

const leaseTried = `
UPDATE lease_ends SET tried_at = now(), next_at = now() + make_interval(secs => $4), problem = $5,
	stopped_for = CASE WHEN $3 THEN expires_at ELSE stopped_for END
WHERE tenant_id = $1 AND cluster_id = $2`

// LeaseTried notes that something is begun at an end of a lease, or why it could not
// be, and after how long it is tried again; stopped says that it is stopping the
// services. False when the lease ends at another time by now.
func LeaseTried(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, id loom.ClusterID, expires time.Time, stopped bool, again time.Duration, problem string) (bool, error) {
	noted, err := noteLeaseEnd(ctx, tx, tenant, id, expires)
	if err != nil || !noted {
		return false, err
	}
	_, err = tx.ExecContext(ctx, leaseTried, tenant, int64(id), stopped, again.Seconds(), cleanText(problem))
	return true, wrap(err, "note what happened at the end of the lease of cluster %s", id)
}
