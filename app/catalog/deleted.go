package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

// Deleted is an entry that was deleted and is not there again. Its versions are gone;
// what the newest one said is in the audit for as long as that is kept.
type Deleted struct {
	// ID tells it from others of the same name.
	ID    int64
	Entry loom.Entry
	By    loom.UserID
	Time  time.Time
	// Lost are the paths of values that the audit does not hold since they look secret;
	// the entry has them empty. Secrets of providers are gone as well, and not named.
	Lost []string
}

// MaxDeleted is how many deleted entries are listed at most.
const MaxDeleted = 200

// DeletedEntries lists what was deleted of a kind, the last first, at most MaxDeleted;
// q is looked for in name, label and description. Forbidden for who may not write.
func (c *Catalog) DeletedEntries(ctx context.Context, actor loom.Actor, kind loom.EntityKind, q string) ([]Deleted, error) {
	tenant, err := writeTenant(actor, kind)
	if err != nil {
		return nil, err
	}
	rows, err := store.DeletedCatalogEntries(ctx, c.db, tenant, kind, q, MaxDeleted)
	if err != nil {
		return nil, err
	}
	var found []Deleted
	for _, row := range rows {
		d, err := deletedOf(kind, row)
		if err != nil {
			continue // of a release that wrote it in another way; it cannot be offered
		}
		found = append(found, d)
	}
	return found, nil
}

// DeletedEntry is one of DeletedEntries, by its id, also where the name is there again.
// NotFound, Forbidden.
func (c *Catalog) DeletedEntry(ctx context.Context, actor loom.Actor, kind loom.EntityKind, id int64) (Deleted, error) {
	tenant, err := writeTenant(actor, kind)
	if err != nil {
		return Deleted{}, err
	}
	row, err := store.DeletedCatalogEntry(ctx, c.db, tenant, kind, id)
	if err != nil {
		return Deleted{}, err
	}
	return deletedOf(kind, row)
}

func deletedOf(kind loom.EntityKind, row store.DeletedEntry) (Deleted, error) {
	d := json.NewDecoder(bytes.NewReader(row.Body))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return Deleted{}, err
	}
	var lost []string
	body, err := json.Marshal(unmask(tree, "", &lost))
	if err != nil {
		return Deleted{}, err
	}
	entry, err := loom.ReadEntry(kind, body)
	if err != nil {
		return Deleted{}, err
	}
	return Deleted{ID: row.ID, Entry: entry, By: row.By, Time: row.Time, Lost: lost}, nil
}

// unmask empties what the audit masked and notes where that was.
func unmask(v any, path string, lost *[]string) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := key
			if path != "" {
				at = path + "." + key
			}
			v[key] = unmask(v[key], at, lost)
		}
	case []any:
		for i := range v {
			v[i] = unmask(v[i], fmt.Sprintf("%s[%d]", path, i), lost)
		}
	case string:
		if v == loom.NewSecret("").String() {
			*lost = append(*lost, path)
			return ""
		}
	}
	return v
}
