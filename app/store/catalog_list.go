package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

// CatalogFilter limits a list of catalog entries.
type CatalogFilter struct {
	// Q are words to be found in name, label or description, any case.
	Q          string
	Deprecated *bool
	// Names, unless nil, are the entries that may be listed.
	Names []string
	// Released lists entries in their newest released version, and none without one.
	Released bool
}

func (f CatalogFilter) names() any {
	if f.Names == nil {
		return nil
	}
	return textArray(f.Names)
}

// CatalogSort is the order of a list of catalog entries.
type CatalogSort string

// The orders; the first is the default.
const (
	CatalogByName       CatalogSort = "name"
	CatalogByUpdateTime CatalogSort = "-updateTime"
)

// catalogListHead gives the newest versions that match. The orders below page
// through them: $7 (time) and $8 (name) are the keys of the cursor, $9 the limit.
const catalogListHead = `
WITH newest AS (
	SELECT DISTINCT ON (name) kind, name, body, ` + versionColumns + ` FROM catalog_versions
	WHERE tenant_id = $1 AND kind = $2 AND (released OR NOT $6)
	ORDER BY name, version DESC
), matching AS (
	SELECT * FROM newest
	WHERE ($3 = '' OR NOT EXISTS (
		SELECT FROM regexp_split_to_table(lower($3), '\s+') AS word
		WHERE word <> '' AND position(word IN lower(concat_ws(' ', name, body->>'label', body->>'description'))) = 0))
	AND ($4::boolean IS NULL OR coalesce((body->>'deprecated')::boolean, false) = $4)
	AND ($5::text[] IS NULL OR name = ANY ($5))
)`

const catalogListTail = ` SELECT kind, body, ` + versionColumns + ` FROM matching WHERE $7::timestamptz IS NOT NULL AND `

var catalogListOrders = map[CatalogSort]map[bool]string{ // forwards?
	CatalogByName: {
		true:  `($8 = '' OR name > $8) ORDER BY name LIMIT $9`,
		false: `($8 = '' OR name < $8) ORDER BY name DESC LIMIT $9`,
	},
	CatalogByUpdateTime: {
		true:  `($8 = '' OR (created_at, name) < ($7, $8)) ORDER BY created_at DESC, name DESC LIMIT $9`,
		false: `($8 = '' OR (created_at, name) > ($7, $8)) ORDER BY created_at, name LIMIT $9`,
	},
}

// CatalogPage lists newest versions of a kind from a cursor on (name "" for the
// start), forwards or backwards, at most limit (negative: all), always in the
// list's own order; total counts all that match, more says whether rows are left
// in the direction of travel.
func CatalogPage(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, f CatalogFilter, sort CatalogSort,
	at time.Time, name string, forwards bool, limit int) (entries []StoredEntry, more bool, total int, err error) {
	order, ok := catalogListOrders[sort][forwards]
	if !ok {
		return nil, false, 0, loom.NewError(loom.Invalid, "Catalog entries are sorted by name or by -updateTime.")
	}
	if err := holdCatalog(ctx, q, tenant, kind); err != nil {
		return nil, false, 0, err
	}
	var max any // LIMIT NULL is no limit
	if limit >= 0 {
		max = limit + 1
	}
	var rows []catalogRow
	if err := sqlx.SelectContext(ctx, q, &rows, catalogListHead+catalogListTail+order, tenant, kind, f.Q, f.Deprecated, f.names(), f.Released, at, name, max); err != nil {
		return nil, false, 0, wrap(err, "list %s", kind)
	}
	if limit >= 0 && len(rows) > limit {
		rows, more = rows[:limit], true
	}
	if !forwards {
		slices.Reverse(rows)
	}
	if entries, err = convertCatalog(rows); err != nil {
		return nil, false, 0, err
	}
	err = sqlx.GetContext(ctx, q, &total, catalogListHead+` SELECT count(*) FROM matching`, tenant, kind, f.Q, f.Deprecated, f.names(), f.Released)
	return entries, more, total, wrap(err, "count %s", kind)
}

// FoundEntry names a catalog entry that a search found.
type FoundEntry struct {
	Kind loom.EntityKind `db:"kind"`
	Name string          `db:"name"`
}

// Bodies are looked into only where the name alone does not have all words.
const findCatalog = `
WITH words AS MATERIALIZED (
	SELECT word FROM regexp_split_to_table(lower($3), '\s+') AS word WHERE word <> ''
), newest AS (
	SELECT DISTINCT ON (kind, name) kind, name, body FROM catalog_versions
	WHERE tenant_id = $1 AND kind = ANY ($2::text[]) AND (released OR $4)
	ORDER BY kind, name, version DESC
)
SELECT n.kind, n.name FROM newest n
WHERE NOT EXISTS (SELECT FROM words w WHERE position(w.word IN lower(n.name)) = 0
		AND position(w.word IN lower(concat_ws(' ', n.name, n.body->>'label', n.body->>'description'))) = 0)
	AND ($4 OR NOT coalesce((n.body->>'deprecated')::boolean, false))
ORDER BY array_position($2::text[], n.kind), n.name LIMIT $5`

// FindCatalog gives the entries of several kinds that have all words of a text in name,
// label or description, any case: the first limit of them, kind by kind in the order of
// kinds and by name; deprecated and unreleased ones only where all are asked for.
func FindCatalog(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kinds []loom.EntityKind, text string, all bool, limit int) ([]FoundEntry, error) {
	var found []FoundEntry
	err := sqlx.SelectContext(ctx, q, &found, findCatalog, tenant, textArray(kinds), text, all, limit)
	return found, wrap(err, "search the catalog")
}

// DeletedEntry is a catalog entry that was deleted: its newest version, as the audit
// keeps it, with values of keys that look secret masked.
type DeletedEntry struct {
	// ID is that of the audit entry.
	ID   int64           `db:"id"`
	Name string          `db:"object"`
	By   loom.UserID     `db:"actor"`
	Time time.Time       `db:"created_at"`
	Body json.RawMessage `db:"before"`
}

// The row of a single version that was deleted has another object than the name.
const deletedEntries = `
SELECT d.id, d.object, d.actor, d.created_at, d.before FROM (
    SELECT DISTINCT ON (a.object) a.id, a.object, a.actor, a.created_at, a.before FROM audit a
    WHERE a.tenant_id = $1 AND a.kind = $2 AND a.verb = 'delete' AND a.result = 'ok' AND a.before->>'name' = a.object
      AND NOT EXISTS (SELECT FROM catalog_versions v WHERE v.tenant_id = $1 AND v.kind = $3 AND v.name = a.object)
    ORDER BY a.object, a.id DESC) AS d
WHERE $4 = '' OR position(lower($4) IN lower(concat_ws(' ', d.object, d.before->>'label', d.before->>'description'))) > 0
ORDER BY d.id DESC LIMIT $5`

const maxDeletedBytes = 8 << 20

// DeletedCatalogEntries lists the entries of a kind that were deleted and are not there
// again, the last deleted first, no more than fit into maxDeletedBytes; q is looked for in
// name, label and description.
func DeletedCatalogEntries(ctx context.Context, db sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, q string, limit int) ([]DeletedEntry, error) {
	found, _, err := selectBytes(ctx, db, maxDeletedBytes, func(d *DeletedEntry) int { return len(d.Body) }, deletedEntries, tenant, kind.Word(), kind, q, limit)
	return found, wrap(err, "list deleted %s", kind)
}

const deletedEntry = `
SELECT a.id, a.object, a.actor, a.created_at, a.before FROM audit a
WHERE a.tenant_id = $1 AND a.kind = $2 AND a.verb = 'delete' AND a.result = 'ok' AND a.before->>'name' = a.object AND a.id = $3`

// DeletedCatalogEntry is one of DeletedCatalogEntries. NotFound.
func DeletedCatalogEntry(ctx context.Context, db sqlx.ExtContext, tenant loom.TenantID, kind loom.EntityKind, id int64) (DeletedEntry, error) {
	var found DeletedEntry
	err := wrap(sqlx.GetContext(ctx, db, &found, deletedEntry, tenant, kind.Word(), id), "read a deleted %s", kind.Word())
	if errors.Is(err, loom.NotFound) {
		err = loom.NewError(loom.NotFound, "The audit log no longer has this deleted %s.", kind.Word())
	}
	return found, err
}

// clustersMadeFrom looks at the copies that clusters keep, so that what is
// deleted from the catalog is still found.
var clustersMadeFrom = `
SELECT id FROM clusters c
WHERE tenant_id = $1 AND status <> 'terminated' AND ` + seenBy("$2") + ` AND CASE $3
	WHEN 'clustertemplates' THEN template_name = $4
	WHEN 'partialtemplates' THEN coalesce(template->'includes', '[]') @> jsonb_build_array(jsonb_build_object('name', $4::text))
	WHEN 'providers' THEN provider_name = $4
	WHEN 'services' THEN jsonb_exists(services, $4)
	WHEN 'hardwaretypes' THEN jsonb_exists(coalesce(type_settings->'hardware', '{}'), $4)
	WHEN 'imagetypes' THEN jsonb_exists(coalesce(type_settings->'image', '{}'), $4)
	WHEN 'providertypes' THEN loom_provider(tenant_id, provider_name, '{}')->>'providertype' = $4
	WHEN 'automatortypes' THEN EXISTS (SELECT FROM nodes WHERE nodes.cluster_id = c.id AND nodes.state <> 'deleted' AND $4 = ANY (nodes.automators))
	ELSE false END
ORDER BY id`

// ClustersMadeFrom lists the clusters that are not terminated, are made from a catalog
// entry and are seen by a viewer; see SeenBy.
func ClustersMadeFrom(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, viewer Viewer, kind loom.EntityKind, name string) ([]loom.ClusterID, error) {
	var ids []loom.ClusterID
	err := sqlx.SelectContext(ctx, q, &ids, clustersMadeFrom, tenant, viewer, kind, name)
	return ids, wrap(err, "list clusters made from %s %s", kind, name)
}
