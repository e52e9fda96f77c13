package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// ResourceFetch is the newest set of plugin resources that a host has fetched.
type ResourceFetch struct {
	Host string    `db:"host"`
	Set  int       `db:"set"`
	Time time.Time `db:"fetched_at"`
}

const noteFetch = `
INSERT INTO resource_fetches AS f (tenant_id, host, set) VALUES ($1, $2, $3)
ON CONFLICT (tenant_id, host) DO UPDATE SET set = excluded.set, fetched_at = now() WHERE f.set < excluded.set`

// NoteResourceFetch notes that a host has a set of a tenant; an older one than it
// had changes nothing.
func NoteResourceFetch(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, host string, set int) error {
	_, err := q.ExecContext(ctx, noteFetch, tenant, host, set)
	return wrap(err, "note that %s has set %d", host, set)
}

// ResourceFetches lists what hosts have fetched for a tenant, those of the last 30
// days, by name; 100 at most.
func ResourceFetches(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) ([]ResourceFetch, error) {
	var fetches []ResourceFetch
	err := sqlx.SelectContext(ctx, q, &fetches, `SELECT host, set, fetched_at FROM resource_fetches
WHERE tenant_id = $1 AND fetched_at > now() - interval '30 days' ORDER BY host LIMIT 100`, tenant)
	return fetches, wrap(err, "list who fetched plugin resources")
}
