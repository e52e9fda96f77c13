package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
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
	// Leader is the River client that does the housekeeping, "" for none, until
	// LeaderUntil.
	Leader      string    `db:"leader"`
	LeaderUntil time.Time `db:"leader_until"`
	// Primary is false on a standby that is only read.
	Primary bool `db:"is_primary"`
}

const databaseStatus = `
SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS size, clock_timestamp() AS now, NOT pg_is_in_recovery() AS is_primary,
	coalesce((SELECT max(version_id) FROM goose_db_version WHERE is_applied), 0) AS migration,
	coalesce((SELECT max(version) FROM river_migration WHERE line = 'main'), 0) AS river,
	(SELECT count(*) FROM resources) AS resources, coalesce((SELECT sum(size_bytes) FROM resources), 0)::bigint AS resource_bytes,
	coalesce((SELECT leader_id FROM river_leader WHERE expires_at > now() LIMIT 1), '') AS leader,
	coalesce((SELECT expires_at FROM river_leader WHERE expires_at > now() LIMIT 1), to_timestamp(0)) AS leader_until`

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
