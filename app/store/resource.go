package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

type resourceRow struct {
	Kind        string    `db:"kind"`
	Plugin      string    `db:"plugin"`
	Type        string    `db:"type"`
	Name        string    `db:"name"`
	Version     int       `db:"version"`
	Live        bool      `db:"live"`
	Slated      bool      `db:"slated"`
	SizeBytes   int64     `db:"size_bytes"`
	SHA256      string    `db:"sha256"`
	Format      string    `db:"format"`
	Permissions string    `db:"permissions"`
	Object      string    `db:"object"`
	Sealed      bool      `db:"sealed"`
	CreatedAt   time.Time `db:"created_at"`
	CreatedBy   string    `db:"created_by"`
}

func (r resourceRow) resource() loom.Resource {
	return loom.Resource{
		ResourceRef: loom.ResourceRef{Kind: r.Kind, Plugin: r.Plugin, Type: r.Type, Name: r.Name},
		Version:     r.Version, Live: r.Live, Slated: r.Slated, Size: r.SizeBytes, SHA256: r.SHA256, Format: r.Format,
		Permissions: r.Permissions, Object: r.Object, Sealed: r.Sealed, Created: r.CreatedAt, Author: loom.UserID(r.CreatedBy),
	}
}

const nextResourceNumber = `
INSERT INTO resource_numbers AS n (tenant_id, kind, plugin, type, name, highest) VALUES ($1, $2, $3, $4, $5, 1)
ON CONFLICT (tenant_id, kind, plugin, type, name) DO UPDATE SET highest = n.highest + 1
RETURNING highest`

// NextResourceNumber takes the next version number of a resource; a number is
// never given twice, whatever becomes of it.
func NextResourceNumber(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, ref loom.ResourceRef) (int, error) {
	var n int
	err := tx.GetContext(ctx, &n, nextResourceNumber, tenant, ref.Kind, ref.Plugin, ref.Type, ref.Name)
	return n, wrap(err, "number a version of %s", ref.Name)
}

// raiseResourceNumber keeps numbers from being given again after a copy.
const raiseResourceNumber = `
INSERT INTO resource_numbers AS n (tenant_id, kind, plugin, type, name, highest) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant_id, kind, plugin, type, name) DO UPDATE SET highest = greatest(n.highest, excluded.highest)`

// RaiseResourceNumber says that the numbers of a resource up to n are used.
func RaiseResourceNumber(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, ref loom.ResourceRef, n int) error {
	_, err := tx.ExecContext(ctx, raiseResourceNumber, tenant, ref.Kind, ref.Plugin, ref.Type, ref.Name, n)
	return wrap(err, "number versions of %s", ref.Name)
}

const insertResource = `
INSERT INTO resources (tenant_id, kind, plugin, type, name, version, live, slated, size_bytes, sha256, format, permissions, object, sealed, created_by, live_since)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, CASE WHEN $7 THEN now() END)
RETURNING created_at`

// InsertResource makes an uploaded version known; its object lies in the bucket.
func InsertResource(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, r loom.Resource) (loom.Resource, error) {
	err := tx.GetContext(ctx, &r.Created, insertResource, tenant, r.Kind, r.Plugin, r.Type, r.Name, r.Version, r.Live, r.Slated,
		r.Size, r.SHA256, r.Format, r.Permissions, r.Object, r.Sealed, r.Author)
	return r, wrap(err, "insert version %d of %s", r.Version, r.Name)
}

const resourcesOf = `
SELECT kind, plugin, type, name, version, live, slated, size_bytes, sha256, format, permissions, object, sealed, created_at, created_by
FROM resources
WHERE tenant_id = $1 AND ($2 = '' OR kind = $2) AND ($3 = '' OR plugin = $3) AND ($4 = '' OR type = $4) AND ($5 = '' OR name = $5)
ORDER BY kind, plugin, type, name, version`

// Resources lists the versions of the resources that ref names; its empty parts
// mean any. By name, then version.
func Resources(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, ref loom.ResourceRef) ([]loom.Resource, error) {
	return resources(ctx, q, resourcesOf, tenant, ref.Kind, ref.Plugin, ref.Type, ref.Name)
}

// LockResources is Resources of one name, and keeps others from changing them.
func LockResources(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, ref loom.ResourceRef) ([]loom.Resource, error) {
	return resources(ctx, tx, resourcesOf+` FOR UPDATE`, tenant, ref.Kind, ref.Plugin, ref.Type, ref.Name)
}

func resources(ctx context.Context, q sqlx.ExtContext, query string, args ...any) ([]loom.Resource, error) {
	var rows []resourceRow
	if err := sqlx.SelectContext(ctx, q, &rows, query, args...); err != nil {
		return nil, wrap(err, "list resources")
	}
	list := make([]loom.Resource, len(rows))
	for i, r := range rows {
		list[i] = r.resource()
	}
	return list, nil
}

// liveResources reads set number and members in one statement, so that they
// belong together.
const liveResources = `
SELECT t.resource_set, r.kind IS NOT NULL AS there, coalesce(r.kind, '') AS kind, coalesce(r.plugin, '') AS plugin, coalesce(r.type, '') AS type,
	coalesce(r.name, '') AS name, coalesce(r.version, 0) AS version, coalesce(r.live, false) AS live, coalesce(r.slated, false) AS slated,
	coalesce(r.size_bytes, 0) AS size_bytes, coalesce(r.sha256, '') AS sha256, coalesce(r.format, '') AS format,
	coalesce(r.permissions, '') AS permissions, coalesce(r.object, '') AS object, coalesce(r.sealed, false) AS sealed,
	coalesce(r.created_at, t.created_at) AS created_at, coalesce(r.created_by, '') AS created_by
FROM tenants t LEFT JOIN resources r ON r.tenant_id = t.id AND r.live
WHERE t.id = $1
ORDER BY r.kind, r.plugin, r.type, r.name`

// LiveResources gives the number of the tenant's last sync and the resources that
// it made live. NotFound for an unknown tenant.
func LiveResources(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (set int, live []loom.Resource, err error) {
	var rows []struct {
		resourceRow
		Set   int  `db:"resource_set"`
		There bool `db:"there"`
	}
	if err := sqlx.SelectContext(ctx, q, &rows, liveResources, tenant); err != nil {
		return 0, nil, wrap(err, "read live resources")
	}
	if len(rows) == 0 {
		return 0, nil, loom.NewError(loom.NotFound, "There is no such tenant.")
	}
	for _, r := range rows {
		if r.There {
			live = append(live, r.resource())
		}
	}
	return rows[0].Set, live, nil
}

// unslateOthers goes before slateResource: at most one version is slated.
const unslateOthers = `
UPDATE resources SET slated = false
WHERE tenant_id = $1 AND kind = $2 AND plugin = $3 AND type = $4 AND name = $5 AND version <> $6 AND slated`

const slateResource = `
UPDATE resources SET slated = $7
WHERE tenant_id = $1 AND kind = $2 AND plugin = $3 AND type = $4 AND name = $5 AND version = $6`

// SlateResource stages a version, which unstages all others, or with slated
// false recalls it.
func SlateResource(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, ref loom.ResourceRef, version int, slated bool) error {
	if slated {
		if _, err := tx.ExecContext(ctx, unslateOthers, tenant, ref.Kind, ref.Plugin, ref.Type, ref.Name, version); err != nil {
			return wrap(err, "unstage versions of %s", ref.Name)
		}
	}
	_, err := tx.ExecContext(ctx, slateResource, tenant, ref.Kind, ref.Plugin, ref.Type, ref.Name, version, slated)
	return wrap(err, "stage version %d of %s", version, ref.Name)
}

// DeleteResources deletes one version of a name, or all with version 0.
func DeleteResources(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, ref loom.ResourceRef, version int) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM resources WHERE tenant_id = $1 AND kind = $2 AND plugin = $3 AND type = $4 AND name = $5 AND ($6 = 0 OR version = $6)`,
		tenant, ref.Kind, ref.Plugin, ref.Type, ref.Name, version)
	return wrap(err, "delete versions of %s", ref.Name)
}

const syncResources = `
UPDATE resources SET live = slated, live_since = CASE WHEN slated THEN now() ELSE live_since END
WHERE tenant_id = $1 AND live <> slated AND ($2 = '' OR kind = $2 AND plugin = $3 AND type = $4 AND name = $5) AND ($6 = 0 OR version = $6)`

// SyncResources makes what is slated live, and what is not no longer: of the resource of a tenant
// that ref names, or of a version of it; of all with the zero ref. The caller has locked the
// tenant. It gives the number of the set, which is a new one only if something changed.
func SyncResources(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, ref loom.ResourceRef, version int) (set int, changed int, err error) {
	result, err := tx.ExecContext(ctx, syncResources, tenant, ref.Kind, ref.Plugin, ref.Type, ref.Name, version)
	if err != nil {
		return 0, 0, wrap(err, "sync resources")
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, 0, err
	}
	step := 0
	if n > 0 {
		step = 1
	}
	err = tx.GetContext(ctx, &set, `UPDATE tenants SET resource_set = resource_set + $2 WHERE id = $1 RETURNING resource_set`, tenant, step)
	return set, int(n), wrap(err, "number the set of resources")
}

// ResourceObjectsAllTenants lists the keys of all objects that a row of a living
// tenant knows, for the sweep of the bucket.
func ResourceObjectsAllTenants(ctx context.Context, q sqlx.ExtContext) ([]string, error) {
	var keys []string
	err := sqlx.SelectContext(ctx, q, &keys, `SELECT r.object FROM resources r JOIN tenants t ON t.id = r.tenant_id WHERE t.deleted_at IS NULL`)
	return keys, wrap(err, "list objects")
}

// NewResourceSet gives the tenant's set of resources a new number and makes what
// is slated live, also when no flag changes.
func NewResourceSet(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) (int, error) {
	set, changed, err := SyncResources(ctx, tx, tenant, loom.ResourceRef{}, 0)
	if err != nil || changed > 0 {
		return set, err
	}
	err = tx.GetContext(ctx, &set, `UPDATE tenants SET resource_set = resource_set + 1 WHERE id = $1 RETURNING resource_set`, tenant)
	return set, wrap(err, "number the set of resources")
}

// ResourceNameFilter narrows the list of plugin resources; empty fields do not filter. Q
// are words to be found in name, plugin or type.
type ResourceNameFilter struct {
	Q, Kind, Plugin, Type string
	Status                loom.ResourceStatus
}

// ResourceSorts lists what plugin resources can be sorted by, the default first: by
// plugin, type and name.
var ResourceSorts = []string{"plugin", "-plugin", "name", "-name", "-createTime", "createTime"}

type resourceSummaryRow struct {
	resourceRow
	LiveVersion   int `db:"live_version"`
	SlatedVersion int `db:"slated_version"`
	Versions      int `db:"versions"`
}

func (r resourceSummaryRow) summary() loom.ResourceSummary {
	return loom.ResourceSummary{Resource: r.resource(), LiveVersion: r.LiveVersion, SlatedVersion: r.SlatedVersion, Versions: r.Versions}
}

// resourceNames has a row for each name, with its newest version; a filter of the tenant
// reaches into the grouping.
const resourceNames = `(
	SELECT tenant_id, kind, plugin, type, name, max(version) AS newest, count(*) AS versions,
		coalesce(max(version) FILTER (WHERE live), 0) AS live_version, coalesce(max(version) FILTER (WHERE slated), 0) AS slated_version
	FROM resources GROUP BY tenant_id, kind, plugin, type, name) s
JOIN resources r ON r.tenant_id = s.tenant_id AND r.kind = s.kind AND r.plugin = s.plugin AND r.type = s.type AND r.name = s.name AND r.version = s.newest`

var resourceKeyset = keyset{
	columns: `r.kind, r.plugin, r.type, r.name, r.version, r.live, r.slated, r.size_bytes, r.sha256, r.format, r.permissions, r.object, r.sealed, r.created_at, r.created_by,
	s.live_version, s.slated_version, s.versions`,
	from: resourceNames, id: `(s.kind || '/' || s.plugin || '/' || s.type || '/' || s.name) COLLATE "C"`, idKind: "text",
	sorts: map[string]sortColumn{
		"plugin":     {`(s.plugin || '/' || s.type || '/' || s.name) COLLATE "C"`, "s.plugin || '/' || s.type || '/' || s.name", "text"},
		"name":       {`s.name COLLATE "C"`, "s.name", "text"},
		"createTime": byCreation("r"),
	},
}

// resourceStatus is what a resource as a whole has that status by
// (loom.ResourceSummary.Status).
var resourceStatus = map[loom.ResourceStatus]string{
	loom.ResourceInactive: "s.live_version = 0 AND s.slated_version = 0",
	loom.ResourceStaged:   "s.slated_version <> 0 AND s.slated_version <> s.live_version",
	loom.ResourceActive:   "s.live_version <> 0 AND s.slated_version = s.live_version",
	loom.ResourceRecalled: "s.live_version <> 0 AND s.slated_version = 0",
}

// ResourcePage reads a page of the plugin resources of a tenant, one for each name. Invalid
// for an unknown sort and for a cursor of another list.
func ResourcePage(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, f ResourceNameFilter, p loom.Page) (found []loom.ResourceSummary, next, prev string, err error) {
	var b binder
	conditions, err := allWords(&b, f.Q, "s.name", "s.plugin", "s.type")
	if err != nil {
		return nil, "", "", err
	}
	conditions = append([]string{"s.tenant_id = " + b.add(tenant)}, conditions...)
	for _, c := range []struct{ column, value string }{{"s.kind", f.Kind}, {"s.plugin", f.Plugin}, {"s.type", f.Type}} {
		if c.value != "" {
			conditions = append(conditions, c.column+" = "+b.add(c.value))
		}
	}
	if is := resourceStatus[f.Status]; is != "" {
		conditions = append(conditions, "("+is+")")
	}
	type row struct {
		resourceSummaryRow
		pageKeys
	}
	rows, next, prev, err := readKeyset[row](ctx, q, resourceKeyset, conditions, &b, f, p, ResourceSorts...)
	for _, r := range rows {
		found = append(found, r.summary())
	}
	return found, next, prev, err
}

const resourcesWaiting = `
SELECT count(*) FILTER (WHERE coming) AS coming, count(*) FILTER (WHERE NOT coming) AS going
FROM (SELECT bool_or(slated) AS coming FROM resources WHERE tenant_id = $1 AND (live OR slated)
	GROUP BY kind, plugin, type, name HAVING bool_or(live <> slated)) n`

// ResourcesWaiting counts the resources that the next sync of a tenant puts a version of in use,
// and those that it takes out of use.
func ResourcesWaiting(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (in, out int, err error) {
	var n struct {
		In  int `db:"coming"`
		Out int `db:"going"`
	}
	err = sqlx.GetContext(ctx, q, &n, resourcesWaiting, tenant)
	return n.In, n.Out, wrap(err, "count what waits for a sync")
}

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
