package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// SecretStamp says who stored a sealed value, and when.
type SecretStamp struct {
	By   loom.UserID
	Time time.Time
}

// SecretStamps tells of the sealed values of an entity, by field, without them.
func SecretStamps(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, entity string) (map[string]SecretStamp, error) {
	var rows []struct {
		Field string    `db:"field"`
		By    string    `db:"updated_by"`
		Time  time.Time `db:"updated_at"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, `SELECT field, updated_by, updated_at FROM secrets WHERE tenant_id = $1 AND entity = $2`, tenant, entity); err != nil {
		return nil, wrap(err, "read who set the secrets of %s", entity)
	}
	stamps := make(map[string]SecretStamp, len(rows))
	for _, r := range rows {
		stamps[r.Field] = SecretStamp{By: loom.UserID(r.By), Time: r.Time}
	}
	return stamps, nil
}

// ProbeOutcome is how the newest probe of a provider went; Open says that one has not ended.
type ProbeOutcome struct {
	Provider string    `db:"provider_name"`
	Open     bool      `db:"open"`
	OK       bool      `db:"ok"`
	Time     time.Time `db:"at"`
}

const probeOutcomes = `
SELECT DISTINCT ON (provider_name) provider_name, ended_at IS NULL AS open, coalesce((probe->>'OK')::boolean, false) AS ok, coalesce(ended_at, created_at) AS at FROM provider_requests
WHERE tenant_id = $1 AND purpose = 'probe'
ORDER BY provider_name, ended_at IS NULL DESC, id DESC`

// ProbeOutcomes reads how the newest probes of all providers of a tenant went; those never
// probed are left out.
func ProbeOutcomes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) ([]ProbeOutcome, error) {
	var rows []ProbeOutcome
	err := sqlx.SelectContext(ctx, q, &rows, probeOutcomes, tenant)
	return rows, wrap(err, "read how probes went")
}

const newestProbes = `
SELECT DISTINCT ON (provider_name) provider_name, probe, ended_at FROM provider_requests
WHERE tenant_id = $1 AND purpose = 'probe' AND ended_at IS NOT NULL AND probe IS NOT NULL
ORDER BY provider_name, id DESC`

// NewestProbes reads the newest answers of all providers of a tenant, by name;
// those never probed are left out.
func NewestProbes(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (map[string]loom.Probe, error) {
	var rows []struct {
		Provider string    `db:"provider_name"`
		Probe    []byte    `db:"probe"`
		Ended    time.Time `db:"ended_at"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, newestProbes, tenant); err != nil {
		return nil, wrap(err, "read the newest probes")
	}
	probes := make(map[string]loom.Probe, len(rows))
	for _, r := range rows {
		var p loom.Probe
		if err := json.Unmarshal(r.Probe, &p); err != nil {
			return nil, fmt.Errorf("read the newest probe of provider %s: %w", r.Provider, err)
		}
		p.Time = r.Ended
		probes[r.Provider] = p
	}
	return probes, nil
}

const trimDrafts = `DELETE FROM secrets WHERE entity >= 'draft:' AND entity < 'draft;' AND updated_at < now() - make_interval(secs => $1)`

// DraftEntity is the entity under which a draft of a user is kept, sealed.
func DraftEntity(user loom.UserID, subject string) string {
	return fmt.Sprintf("draft:%d:%s:%s", len(user), user, subject)
}

// TrimDraftsAllTenants deletes drafts that nobody touched for as long as age.
func TrimDraftsAllTenants(ctx context.Context, q sqlx.ExtContext, age time.Duration) error {
	_, err := q.ExecContext(ctx, trimDrafts, age.Seconds())
	return wrap(err, "trim drafts")
}

const trimImports = `DELETE FROM secrets WHERE entity >= 'import:' AND entity < 'import;' AND updated_at < now() - make_interval(secs => $1)`

// ImportEntity is the entity under which what a user uploaded for an import is kept, sealed.
func ImportEntity(user loom.UserID) string { return "import:" + string(user) }

// TrimImportsAllTenants deletes uploads that were not imported for as long as age.
func TrimImportsAllTenants(ctx context.Context, q sqlx.ExtContext, age time.Duration) error {
	_, err := q.ExecContext(ctx, trimImports, age.Seconds())
	return wrap(err, "trim uploads for imports")
}

const draftRow = `SELECT sealed, updated_at FROM secrets WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND updated_at > now() - make_interval(secs => $4)`

// Draft reads a sealed draft that was touched less than age ago. NotFound.
func Draft(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, entity, field string, age time.Duration) (sealed []byte, saved time.Time, err error) {
	var row struct {
		Sealed []byte    `db:"sealed"`
		Saved  time.Time `db:"updated_at"`
	}
	err = sqlx.GetContext(ctx, q, &row, draftRow, tenant, entity, field, age.Seconds())
	return row.Sealed, row.Saved, wrap(err, "read a draft")
}
