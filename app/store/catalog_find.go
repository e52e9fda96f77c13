package store

import (
	"context"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
)

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
	WHERE tenant_id = $1 AND kind = ANY ($2::text[])
	ORDER BY kind, name, version DESC
)
SELECT n.kind, n.name FROM newest n
WHERE NOT EXISTS (SELECT FROM words w WHERE position(w.word IN lower(n.name)) = 0
		AND position(w.word IN lower(concat_ws(' ', n.name, n.body->>'label', n.body->>'description'))) = 0)
	AND ($4 OR NOT coalesce((n.body->>'deprecated')::boolean, false))
ORDER BY array_position($2::text[], n.kind), n.name LIMIT $5`

// FindCatalog gives the entries of several kinds that have all words of a text in name,
// label or description, any case: the first limit of them, kind by kind in the order of
// kinds and by name, deprecated ones only where that is asked for.
func FindCatalog(ctx context.Context, q sqlx.ExtContext, tenant loom.TenantID, kinds []loom.EntityKind, text string, deprecated bool, limit int) ([]FoundEntry, error) {
	var found []FoundEntry
	err := sqlx.SelectContext(ctx, q, &found, findCatalog, tenant, textArray(kinds), text, deprecated, limit)
	return found, wrap(err, "search the catalog")
}
