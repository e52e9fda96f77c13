package store

import (
	"context"
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
}

// CatalogSort is the order of a list of catalog entries.
type CatalogSort string

// The orders; the first is the default.
const (
	CatalogByName       CatalogSort = "name"
	CatalogByUpdateTime CatalogSort = "-updateTime"
)

// catalogListHead gives the newest versions that match. The orders below page
// through them: $5 (time) and $6 (name) are the keys of the cursor, $7 the limit.
const catalogListHead = `
WITH newest AS (
	SELECT DISTINCT ON (name) kind, name, version, body, created_at, created_by FROM catalog_versions
	WHERE tenant_id = $1 AND kind = $2
	ORDER BY name, version DESC
), matching AS (
	SELECT kind, name, version, body, created_at, created_by FROM newest
	WHERE ($3 = '' OR NOT EXISTS (
		SELECT FROM regexp_split_to_table(lower($3), '\s+') AS word
		WHERE word <> '' AND position(word IN lower(concat_ws(' ', name, body->>'label', body->>'description'))) = 0))
	AND ($4::boolean IS NULL OR coalesce((body->>'deprecated')::boolean, false) = $4)
)`

const catalogListTail = ` SELECT kind, version, body, created_at, created_by FROM matching WHERE $5::timestamptz IS NOT NULL AND `

var catalogListOrders = map[CatalogSort]map[bool]string{ // forwards?
	CatalogByName: {
		true:  `($6 = '' OR name > $6) ORDER BY name LIMIT $7`,
		false: `($6 = '' OR name < $6) ORDER BY name DESC LIMIT $7`,
	},
	CatalogByUpdateTime: {
		true:  `($6 = '' OR (created_at, name) < ($5, $6)) ORDER BY created_at DESC, name DESC LIMIT $7`,
		false: `($6 = '' OR (created_at, name) > ($5, $6)) ORDER BY created_at, name LIMIT $7`,
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
	if err := sqlx.SelectContext(ctx, q, &rows, catalogListHead+catalogListTail+order, tenant, kind, f.Q, f.Deprecated, at, name, max); err != nil {
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
	err = sqlx.GetContext(ctx, q, &total, catalogListHead+` SELECT count(*) FROM matching`, tenant, kind, f.Q, f.Deprecated)
	return entries, more, total, wrap(err, "count %s", kind)
}
