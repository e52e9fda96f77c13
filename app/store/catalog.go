package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"loom/app/loom"
	"loom/app/places"
)

// StoredEntry is a version of a catalog entry with who stored it, and when.
type StoredEntry struct {
	Kind  loom.EntityKind
	Entry loom.Entry
	loom.VersionInfo
}

// EntryDraft is a catalog entry that is not saved.
type EntryDraft struct {
	Kind  loom.EntityKind
	Entry loom.Entry
}

type catalogRow struct {
	Kind      string          `db:"kind"`
	Version   int             `db:"version"`
	Body      json.RawMessage `db:"body"`
	CreatedAt time.Time       `db:"created_at"`
	CreatedBy string          `db:"created_by"`
	Released  bool            `db:"released"`
	// Deprecation is a message to the owners of clusters on this version.
	Deprecation string `db:"deprecation"`
	Clusters    int    `db:"clusters"`
}

// versionColumns are those of catalogRow that a version has by itself.
const versionColumns = `version, created_at, created_by, released, deprecation`

func (r catalogRow) info() loom.VersionInfo {
	return loom.VersionInfo{Version: r.Version, Author: loom.UserID(r.CreatedBy), Time: r.CreatedAt,
		Released: r.Released, Deprecation: r.Deprecation, Clusters: r.Clusters}
}

// entry converts a row; the version of the row wins over that of the body.
func (r catalogRow) entry() (StoredEntry, error) {
	kind := loom.EntityKind(r.Kind)
	e, err := loom.ReadEntry(kind, r.Body)
	if err != nil {
		return StoredEntry{}, err
	}
	e.Meta().Version = r.Version
	return StoredEntry{Kind: kind, Entry: e, VersionInfo: r.info()}, nil
}

// lockCatalog shares the tenant's catalog with other writers of single names and
// keeps out an import, which takes it alone.
const lockCatalog = `SELECT pg_advisory_xact_lock_shared(hashtextextended('catalog:' || $1, 0))`

// lockCatalogName serialises the numbering of one name.
const lockCatalogName = `SELECT pg_advisory_xact_lock(hashtextextended('catalog:' || $1 || '/' || $2 || '/' || $3, 0))`

// LockCatalogName keeps others from storing versions of a name until the
// transaction ends, whether the name exists or not.
func LockCatalogName(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, kind loom.EntityKind, name string) error {
	if _, err := tx.ExecContext(ctx, lockCatalog, tenant); err != nil {
		return wrap(err, "lock the catalog")
	}
	_, err := tx.ExecContext(ctx, lockCatalogName, tenant, kind, name)
	return wrap(err, "lock %s %s", kind, name)
}

// ShareCatalogName keeps LockCatalogName of a name waiting until the transaction
// ends, side by side with others that share it: for a write that depends on what
// the newest version of the name says.
func ShareCatalogName(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, kind loom.EntityKind, name string) error {
	if _, err := tx.ExecContext(ctx, lockCatalog, tenant); err != nil {
		return wrap(err, "lock the catalog")
	}
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock_shared(hashtextextended('catalog:' || $1 || '/' || $2 || '/' || $3, 0))`, tenant, kind, name)
	return wrap(err, "hold %s %s", kind, name)
}

// LockCatalog keeps others from storing anything in the tenant's catalog until
// the transaction ends.
func LockCatalog(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('catalog:' || $1, 0))`, tenant)
	return wrap(err, "lock the catalog")
}

const catalogEntry = `
SELECT kind, body, ` + versionColumns + ` FROM catalog_versions
WHERE tenant_id = $1 AND kind = $2 AND name = $3 AND ($4 = 0 OR version = $4) AND (released OR NOT $5)
ORDER BY version DESC LIMIT 1`

// CatalogEntry reads one version, 0 for the newest, released or not. NotFound names kind and name.
func CatalogEntry(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, name string, version int) (StoredEntry, error) {
	return readCatalogEntry(ctx, q, tenant, kind, name, version, false)
}

// ReleasedCatalogEntry reads one version that is released, 0 for the newest of these. NotFound
// names kind and name.
func ReleasedCatalogEntry(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, name string, version int) (StoredEntry, error) {
	return readCatalogEntry(ctx, q, tenant, kind, name, version, true)
}

func readCatalogEntry(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, name string, version int, released bool) (StoredEntry, error) {
	var row catalogRow
	err := sqlx.GetContext(ctx, q, &row, catalogEntry, tenant, kind, name, version, released)
	if err = wrap(err, "read %s %s", kind, name); err != nil {
		if errors.Is(err, loom.NotFound) {
			if version != 0 {
				return StoredEntry{}, loom.NewError(loom.NotFound, "There is no version %d of the %s “%s”.", version, kind.Word(), name)
			}
			return StoredEntry{}, loom.NewError(loom.NotFound, "There is no %s “%s”.", kind.Word(), name)
		}
		return StoredEntry{}, err
	}
	return row.entry()
}

const newestCatalogEntries = `
SELECT DISTINCT ON (kind, name) kind, body, ` + versionColumns + ` FROM catalog_versions
WHERE tenant_id = $1 AND kind = ANY ($2) AND (released OR NOT $3)
ORDER BY kind, name, version DESC`

// NewestCatalogEntries reads the newest version of every entry of some kinds, released or not,
// by kind and name.
func NewestCatalogEntries(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kinds ...loom.EntityKind) ([]StoredEntry, error) {
	return readCatalogEntries(ctx, q, tenant, false, kinds...)
}

// ReleasedCatalogEntries reads the newest released version of every entry of some kinds, by kind
// and name: what clusters are made of.
func ReleasedCatalogEntries(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kinds ...loom.EntityKind) ([]StoredEntry, error) {
	return readCatalogEntries(ctx, q, tenant, true, kinds...)
}

func readCatalogEntries(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, released bool, kinds ...loom.EntityKind) ([]StoredEntry, error) {
	if err := holdCatalog(ctx, q, tenant, kinds...); err != nil {
		return nil, err
	}
	var rows []catalogRow
	err := sqlx.SelectContext(ctx, q, &rows, newestCatalogEntries, tenant, pq.Array(kinds), released)
	if err != nil {
		return nil, wrap(err, "read the catalog")
	}
	return convertCatalog(rows)
}

const catalogWeight = `
SELECT coalesce(sum(weight), 0) FROM (
	SELECT DISTINCT ON (kind, name) weight FROM catalog_versions
	WHERE tenant_id = $1 AND kind = ANY ($2)
	ORDER BY kind, name, version DESC) AS newest`

// CatalogWeight gives what the newest versions of some kinds take in memory: the bytes of
// their JSON, and so much more for each value.
func CatalogWeight(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kinds ...loom.EntityKind) (int64, error) {
	var weight int64
	err := sqlx.GetContext(ctx, q, &weight, catalogWeight, tenant, pq.Array(kinds))
	return weight, wrap(err, "weigh the catalog")
}

// WeighedEntry is the newest version of an entry with what it takes in memory.
type WeighedEntry struct {
	Kind   loom.EntityKind `db:"kind"`
	Name   string          `db:"name"`
	Weight int64           `db:"weight"`
}

const largestCatalogEntries = `
SELECT kind, name, weight FROM (
	SELECT DISTINCT ON (kind, name) kind, name, weight FROM catalog_versions
	WHERE tenant_id = $1 AND kind = ANY ($2)
	ORDER BY kind, name, version DESC) AS newest
ORDER BY weight DESC, kind, name LIMIT $3`

// LargestCatalogEntries lists the entries of some kinds that take most, the largest first.
func LargestCatalogEntries(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, limit int, kinds ...loom.EntityKind) ([]WeighedEntry, error) {
	var found []WeighedEntry
	err := sqlx.SelectContext(ctx, q, &found, largestCatalogEntries, tenant, pq.Array(kinds), limit)
	return found, wrap(err, "list the largest entries of the catalog")
}

// holdCatalog makes room for the newest versions of some kinds where a request reads them.
// Throttled.
func holdCatalog(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kinds ...loom.EntityKind) error {
	if !places.Counted(ctx) {
		return nil
	}
	weight, err := CatalogWeight(ctx, q, tenant, kinds...)
	if err != nil {
		return err
	}
	return places.Hold(ctx, weight)
}

func convertCatalog(rows []catalogRow) ([]StoredEntry, error) {
	entries := make([]StoredEntry, len(rows))
	for i, row := range rows {
		e, err := row.entry()
		if err != nil {
			return nil, err
		}
		entries[i] = e
	}
	return entries, nil
}

// Clusters keep versions of their template and of their services; they are counted in one go.
const catalogVersions = `
WITH used AS (
    SELECT CASE $2 WHEN 'clustertemplates' THEN c.template_version ELSE (c.services->$3->>'version')::int END AS version, count(*) AS clusters
    FROM clusters c
    WHERE c.tenant_id = $1 AND c.status <> 'terminated'
      AND CASE $2 WHEN 'clustertemplates' THEN c.template_name = $3 WHEN 'services' THEN c.service_names @> ARRAY[$3] ELSE false END
    GROUP BY 1)
SELECT ` + versionColumns + `, coalesce(used.clusters, 0) AS clusters
FROM catalog_versions v LEFT JOIN used USING (version)
WHERE tenant_id = $1 AND kind = $2 AND name = $3 AND (released OR NOT $4)
ORDER BY version DESC`

// CatalogVersions lists the versions of a name, newest first, only released ones where that is
// asked for: who saved each, and how many clusters are on it.
func CatalogVersions(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, name string, released bool) ([]loom.VersionInfo, error) {
	var rows []catalogRow
	if err := sqlx.SelectContext(ctx, q, &rows, catalogVersions, tenant, kind, name, released); err != nil {
		return nil, wrap(err, "read versions of %s %s", kind, name)
	}
	infos := make([]loom.VersionInfo, len(rows))
	for i, r := range rows {
		infos[i] = r.info()
	}
	return infos, nil
}

const setReleased = `
UPDATE catalog_versions SET released = $5
WHERE tenant_id = $1 AND kind = $2 AND name = $3 AND version = $4 AND released <> $5`

// SetReleased releases or withdraws a version, and reports whether that changed anything.
func SetReleased(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, kind loom.EntityKind, name string, version int, released bool) (bool, error) {
	return changesRow(ctx, tx, setReleased, "release %s %s version %d", tenant, kind, name, version, released)
}

const setDeprecation = `
UPDATE catalog_versions SET deprecation = $5
WHERE tenant_id = $1 AND kind = $2 AND name = $3 AND version = $4 AND deprecation <> $5`

// SetDeprecation gives a version a message to the owners of clusters on it, "" for none, and
// reports whether that changed anything.
func SetDeprecation(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, kind loom.EntityKind, name string, version int, message string) (bool, error) {
	return changesRow(ctx, tx, setDeprecation, "deprecate %s %s version %d", tenant, kind, name, version, message)
}

func changesRow(ctx context.Context, tx *sqlx.Tx, statement, what string, tenant loom.TenantID, kind loom.EntityKind, name string, version int, value any) (bool, error) {
	result, err := tx.ExecContext(ctx, statement, tenant, kind, name, version, value)
	if err != nil {
		return false, wrap(err, what, kind, name, version)
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// CatalogVersionNumber gives the highest version of a name, 0 when there is none.
func CatalogVersionNumber(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, name string) (int, error) {
	var n int
	err := sqlx.GetContext(ctx, q, &n, `SELECT coalesce(max(version), 0) FROM catalog_versions WHERE tenant_id = $1 AND kind = $2 AND name = $3`, tenant, kind, name)
	return n, wrap(err, "read the version of %s %s", kind, name)
}

// Numbers compare by value in jsonb, so 1e3 is the same as 1000. What Loom itself
// adds to a body does not count.
const catalogUnchanged = `
SELECT coalesce((
	SELECT released AND (body - 'version' - 'sealed') = ($4::jsonb - 'version' - 'sealed') FROM catalog_versions
	WHERE tenant_id = $1 AND kind = $2 AND name = $3 ORDER BY version DESC LIMIT 1
), false)`

// CatalogUnchanged reports whether the newest version of an entry is released and says the same
// as entry does, version and names of sealed fields left aside.
func CatalogUnchanged(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, entry loom.Entry) (bool, error) {
	body, err := json.Marshal(entry)
	if err != nil {
		return false, err
	}
	var same bool
	err = sqlx.GetContext(ctx, q, &same, catalogUnchanged, tenant, kind, entry.Meta().Name, string(body))
	return same, wrap(err, "compare %s %s", kind, entry.Meta().Name)
}

const insertCatalogVersion = `
INSERT INTO catalog_versions (tenant_id, kind, name, version, body, created_by, weight)
VALUES ($1, $2, $3, $4, $5, $6, $7)
RETURNING created_at`

// InsertCatalogVersion stores an entry as the version that its Meta says, released; the
// caller holds the lock of the name.
func InsertCatalogVersion(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, kind loom.EntityKind, entry loom.Entry, by loom.UserID) (loom.VersionInfo, error) {
	body, err := json.Marshal(entry)
	if err != nil {
		return loom.VersionInfo{}, err
	}
	meta := entry.Meta()
	info := loom.VersionInfo{Version: meta.Version, Author: by, Released: true}
	err = tx.GetContext(ctx, &info.Time, insertCatalogVersion, tenant, kind, meta.Name, meta.Version, string(body), by,
		len(body)+places.WeightOfValue*loom.JSONValues(body))
	return info, wrap(err, "store %s %s version %d", kind, meta.Name, meta.Version)
}

// DeleteCatalogVersions deletes one version of a name, or all with version 0, and
// says how many there were.
func DeleteCatalogVersions(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, kind loom.EntityKind, name string, version int) (int, error) {
	result, err := tx.ExecContext(ctx, `DELETE FROM catalog_versions WHERE tenant_id = $1 AND kind = $2 AND name = $3 AND ($4 = 0 OR version = $4)`,
		tenant, kind, name, version)
	if err != nil {
		return 0, wrap(err, "delete %s %s", kind, name)
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// DeleteCatalogBut deletes everything that a tenant stored, but for some providers.
func DeleteCatalogBut(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, providers []string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM catalog_versions WHERE tenant_id = $1 AND kind = ANY ($2) AND NOT (kind = 'providers' AND name = ANY ($3))`,
		tenant, pq.Array(loom.TenantKinds), pq.Array(append([]string{}, providers...)))
	return wrap(err, "delete the catalog")
}

// copyCatalog crosses from one tenant to another; numbering starts again.
const copyCatalog = `
INSERT INTO catalog_versions (tenant_id, kind, name, version, body, created_by, weight)
SELECT DISTINCT ON (kind, name) $2, kind, name, 1, jsonb_set(body, '{version}', '1'), $4, weight FROM catalog_versions
WHERE tenant_id = $1 AND kind = ANY ($3) AND released
ORDER BY kind, name, version DESC`

// CopyCatalogAllTenants copies the newest released version of every entry of some kinds
// to another tenant, as version 1. Sealed fields are not part of it.
func CopyCatalogAllTenants(ctx context.Context, tx *sqlx.Tx, from, to loom.TenantID, by loom.UserID, kinds ...loom.EntityKind) error {
	_, err := tx.ExecContext(ctx, copyCatalog, from, to, pq.Array(kinds), by)
	return wrap(err, "copy the catalog of %s", from)
}

// ProviderVersion is one version of a provider of some tenant.
type ProviderVersion struct {
	Tenant   loom.TenantID
	Provider loom.Provider
}

const providerVersions = `
SELECT tenant_id, kind, body, ` + versionColumns + ` FROM catalog_versions
WHERE kind = 'providers' AND body->>'providertype' = $1
ORDER BY tenant_id, name, version DESC
FOR UPDATE`

// ProviderVersionsAllTenants reads and locks all versions of all providers of a
// type, newest first for each name.
func ProviderVersionsAllTenants(ctx context.Context, tx *sqlx.Tx, providerType string) ([]ProviderVersion, error) {
	var rows []struct {
		catalogRow
		TenantID string `db:"tenant_id"`
	}
	if err := tx.SelectContext(ctx, &rows, providerVersions, providerType); err != nil {
		return nil, wrap(err, "read providers of type %s", providerType)
	}
	versions := make([]ProviderVersion, len(rows))
	for i, r := range rows {
		e, err := r.entry()
		if err != nil {
			return nil, err
		}
		versions[i] = ProviderVersion{Tenant: loom.TenantID(r.TenantID), Provider: *e.Entry.(*loom.Provider)}
	}
	return versions, nil
}

const imageNames = `
SELECT DISTINCT terms.value->>'image' FROM (
	SELECT DISTINCT ON (tenant_id, name) body FROM catalog_versions WHERE kind = 'imagetypes' ORDER BY tenant_id, name, version DESC
) newest, jsonb_each(newest.body->'providermap') terms
WHERE jsonb_typeof(newest.body->'providermap') = 'object' AND jsonb_typeof(terms.value) = 'object' AND terms.value->>'image' <> ''`

// ImagesAllTenants lists the images that image types name, for whatever provider.
func ImagesAllTenants(ctx context.Context, q sqlx.ExtContext) ([]string, error) {
	var images []string
	return images, wrap(sqlx.SelectContext(ctx, q, &images, imageNames), "list the images of all image types")
}

// ReplaceProviderVersion rewrites a stored version in place: the one exception to
// "every write is a new version", for taking out values that must be sealed.
func ReplaceProviderVersion(ctx context.Context, tx *sqlx.Tx, tenant loom.TenantID, p loom.Provider) error {
	body, err := json.Marshal(&p)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE catalog_versions SET body = $4 WHERE tenant_id = $1 AND kind = 'providers' AND name = $2 AND version = $3`,
		tenant, p.Name, p.Version, string(body))
	return wrap(err, "rewrite provider %s version %d", p.Name, p.Version)
}

// TemplateLookup finds the newest released parts of templates in a tenant's catalog, for
// loom.ResolveTemplate and loom.MergeTemplate.
func TemplateLookup(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) loom.TemplateLookup {
	return loom.TemplateLookup{
		Template: func(name string) (loom.Template, error) {
			return entryOf[loom.Template](ctx, q, tenant, loom.KindTemplate, name)
		},
		Partial: func(name string) (loom.PartialTemplate, error) {
			return entryOf[loom.PartialTemplate](ctx, q, tenant, loom.KindPartialTemplate, name)
		},
	}
}

// Provider reads the newest version of a provider, without its sealed fields.
// NotFound.
func Provider(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, name string) (loom.Provider, error) {
	return entryOf[loom.Provider](ctx, q, tenant, loom.KindProvider, name)
}

// ProviderType reads the newest version of a provider type. NotFound.
func ProviderType(ctx context.Context, q sqlx.ExtContext, name string) (loom.PluginType, error) {
	return entryOf[loom.PluginType](ctx, q, loom.SuperTenant, loom.KindProviderType, name)
}

// AutomatorType reads the newest version of an automator type. NotFound.
func AutomatorType(ctx context.Context, q sqlx.ExtContext, name string) (loom.PluginType, error) {
	return entryOf[loom.PluginType](ctx, q, loom.SuperTenant, loom.KindAutomatorType, name)
}

// Services reads the newest released version of all services of a tenant by name.
func Services(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID) (map[string]loom.Service, error) {
	list, err := ReleasedCatalogEntries(ctx, q, tenant, loom.KindService)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]loom.Service, len(list))
	for _, stored := range list {
		byName[stored.Entry.Meta().Name] = *stored.Entry.(*loom.Service)
	}
	return byName, nil
}

// entryOf reads a newest released version as its own type; T belongs to kind.
func entryOf[T any](ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, name string) (T, error) {
	var zero T
	stored, err := ReleasedCatalogEntry(ctx, q, tenant, kind, name, 0)
	if err != nil {
		return zero, err
	}
	return *any(stored.Entry).(*T), nil
}
