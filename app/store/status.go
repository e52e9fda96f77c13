package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/jobs"
)

// DatabaseStatus is what the database says of itself.
type DatabaseStatus struct {
	Version string `db:"version"`
	// Size of the database in bytes.
	Size int64     `db:"size"`
	Now  time.Time `db:"now"`
	// Migration is the number of the last one that was applied, River the same of
	// River's own.
	Migration int64 `db:"migration"`
	River     int64 `db:"river"`
	// Resources and ResourceBytes are the versions of plugin resources that are kept.
	Resources     int   `db:"resources"`
	ResourceBytes int64 `db:"resource_bytes"`
	// Started is when PostgreSQL did.
	Started time.Time `db:"started"`
	// Leader is the River client that does the housekeeping, "" for none, LeaderSince when it
	// was elected.
	Leader      string    `db:"leader"`
	LeaderSince time.Time `db:"leader_since"`
	// Primary is false on a standby that is only read.
	Primary bool `db:"is_primary"`
}

const databaseStatus = `
SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS size, clock_timestamp() AS now, pg_postmaster_start_time() AS started, NOT pg_is_in_recovery() AS is_primary,
	coalesce((SELECT max(version_id) FROM goose_db_version WHERE is_applied), 0) AS migration,
	coalesce((SELECT max(version) FROM river_migration WHERE line = 'main'), 0) AS river,
	(SELECT count(*) FROM resources) AS resources, coalesce((SELECT sum(size_bytes) FROM resources), 0)::bigint AS resource_bytes,
	coalesce((SELECT leader_id FROM river_leader WHERE expires_at > now() LIMIT 1), '') AS leader,
	coalesce((SELECT elected_at FROM river_leader WHERE expires_at > now() LIMIT 1), to_timestamp(0)) AS leader_since`

// ReadDatabaseStatus asks the database how it is.
func ReadDatabaseStatus(ctx context.Context, q sqlx.ExtContext) (DatabaseStatus, error) {
	var s DatabaseStatus
	err := sqlx.GetContext(ctx, q, &s, databaseStatus)
	return s, wrap(err, "read the status of the database")
}

// ResourceBytes is what the plugin resources of a tenant take, all versions together.
func ResourceBytes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (int64, error) {
	var bytes int64
	err := sqlx.GetContext(ctx, q, &bytes, `SELECT coalesce(sum(size_bytes), 0)::bigint FROM resources WHERE tenant_id = $1`, tenant)
	return bytes, wrap(err, "add up the plugin resources of tenant %s", tenant)
}

// Condition is what hinders work in the whole installation.
type Condition struct {
	// Writable is false on a standby, and where nothing may be changed.
	Writable bool `db:"writable"`
	// Schedulers and Provisioners are those that hold their lease.
	Schedulers   int `db:"schedulers"`
	Provisioners int `db:"provisioners"`
	// Late is for how long the background work has been due that waits longest, in
	// seconds.
	Late float64 `db:"late"`
}

// Lateness is Late as a time span.
func (c Condition) Lateness() time.Duration { return time.Duration(c.Late * float64(time.Second)) }

// Leans on river_job_prioritized_fetching_index: only the head of the queue is read.
const condition = `
SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off' AS writable,
	(SELECT count(*) FROM processes WHERE kind = $1 AND expires_at > now()) AS schedulers,
	(SELECT count(*) FROM processes WHERE kind = $2 AND expires_at > now()) AS provisioners,
	coalesce((SELECT greatest(extract(epoch FROM now() - scheduled_at), 0) FROM river_job
		WHERE state = 'available' AND queue = $3 ORDER BY priority, scheduled_at, id LIMIT 1), 0)::float8 AS late`

// ReadCondition reads what hinders work, in a few microseconds of the database.
func ReadCondition(ctx context.Context, q sqlx.ExtContext) (Condition, error) {
	var c Condition
	err := sqlx.GetContext(ctx, q, &c, condition, loom.ProcessScheduler, loom.ProcessProvisioner, jobs.ControlQueue)
	return c, wrap(err, "read the condition of the installation")
}

const liveNodes = `
SELECT count(*) FROM nodes n JOIN clusters c ON c.id = n.cluster_id WHERE c.status <> 'terminated' AND n.state NOT IN ('planned', 'deleted')`

// LiveNodesAllTenants counts the nodes that have a machine, or are getting or losing it.
func LiveNodesAllTenants(ctx context.Context, q sqlx.ExtContext) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, liveNodes)
	return n, wrap(err, "count live nodes")
}

const lastActivity = `
SELECT t.id, max(a.created_at) AS at FROM unnest($1::text[]) AS t (id)
CROSS JOIN LATERAL (SELECT created_at FROM audit WHERE audit.tenant_id = t.id ORDER BY audit.id DESC LIMIT 1) a
GROUP BY t.id`

// LastActivityAllTenants reads when something was last done in tenants; those in which
// nothing ever was are left out.
func LastActivityAllTenants(ctx context.Context, q sqlx.ExtContext, ids []loom.TenantID) (map[loom.TenantID]time.Time, error) {
	var rows []struct {
		ID string    `db:"id"`
		At time.Time `db:"at"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, lastActivity, texts(ids)); err != nil {
		return nil, wrap(err, "read when %d tenants were last active", len(ids))
	}
	last := make(map[loom.TenantID]time.Time, len(rows))
	for _, r := range rows {
		last[loom.TenantID(r.ID)] = r.At
	}
	return last, nil
}
