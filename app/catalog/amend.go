package catalog

import (
	"context"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"loom/app/loom"
	"loom/app/store"
)

// AmendInput changes what several entries of a kind have in common. Entries are their names
// with the versions that were shown.
type AmendInput struct {
	Entries map[string]int
	// Label are labels to set, Unlabel keys of labels to remove.
	Label   map[string]string
	Unlabel []string
	// Deprecated, unless nil, deprecates them or offers them again.
	Deprecated *bool
}

// Amend saves the next version of each entry that changes by it, in one transaction, and gives
// their names. Errors: those of Save; none of them is changed then.
func (c *Catalog) Amend(ctx context.Context, actor loom.Actor, kind loom.EntityKind, in AmendInput) ([]string, error) {
	tenant, err := writeTenant(actor, kind)
	if err != nil {
		return nil, err
	}
	return store.InTx(ctx, c.db, func(tx *sqlx.Tx) ([]string, error) {
		var changed []string
		for _, name := range slices.Sorted(maps.Keys(in.Entries)) {
			stored, err := store.CatalogEntry(ctx, tx, tenant, kind, name, 0)
			if err != nil {
				return nil, err
			}
			version := in.Entries[name]
			if stored.Version == version && !in.apply(stored.Entry.Meta()) {
				continue
			}
			entry, fields, err := normalize(kind, stored.Entry)
			if err == nil {
				err = loom.InvalidFields(fields)
			}
			if err != nil {
				return nil, fixError(EntryName{kind, name}, err)
			}
			if _, err := c.put(ctx, tx, actor, tenant, kind, entry, SaveInput{Expected: &version, OnlyThere: true, AsNewest: true}); err != nil {
				return nil, fixError(EntryName{kind, name}, err)
			}
			changed = append(changed, name)
		}
		return changed, nil
	})
}

// apply changes an entry, and reports whether anything changed.
func (in AmendInput) apply(meta *loom.Base) bool {
	labels := maps.Clone(meta.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, in.Label)
	for _, key := range in.Unlabel {
		delete(labels, key)
	}
	deprecated := meta.Deprecated
	if in.Deprecated != nil {
		deprecated = *in.Deprecated
	}
	changed := deprecated != meta.Deprecated || !maps.Equal(labels, meta.Labels)
	meta.Labels, meta.Deprecated = labels, deprecated
	return changed
}
