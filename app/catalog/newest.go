package catalog

import (
	"context"

	"loom/app/loom"
)

// Newest returns the newest version that the actor sees of every entry of some kinds of his
// tenant, by name: what a form offers for choosing. It is one query. Kinds of
// plugin types are global; ask PluginTypes for them.
func (c *Catalog) Newest(ctx context.Context, actor loom.Actor, kinds ...loom.EntityKind) (map[loom.EntityKind][]loom.Entry, error) {
	for _, kind := range kinds {
		if _, err := readTenant(actor, kind); err != nil {
			return nil, err
		}
		if kind.Global() {
			return nil, loom.NewError(loom.NotFound, "A %s belongs to no tenant.", kind.Word())
		}
	}
	stored, err := c.newest(ctx, actor, kinds...)
	if err != nil {
		return nil, err
	}
	found := make(map[loom.EntityKind][]loom.Entry, len(kinds))
	for _, s := range stored {
		found[s.Kind] = append(found[s.Kind], s.Entry)
	}
	return found, nil
}
