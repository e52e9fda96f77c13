package catalog

import (
	"context"
	"errors"
	"slices"

	"loom/app/loom"
	"loom/app/store"
)

// KindCluster is the kind of a Use by a cluster.
const KindCluster loom.EntityKind = "cluster"

// Use is one place where an entry is used: the place in another entry, as a JSON
// pointer, or a cluster, whose Name is its id and whose Field is "".
type Use struct {
	Kind  loom.EntityKind
	Name  string
	Field string
}

// DeleteTelling is Delete, and counts the other entries of the actor's tenant that
// name what is gone by that. Errors: as Delete.
func (c *Catalog) DeleteTelling(ctx context.Context, actor loom.Actor, kind loom.EntityKind, name string, version int) (dangling int, err error) {
	names := map[string]bool{name: true}
	entry, _, err := c.Entry(ctx, actor, kind, name, 0)
	switch {
	case err == nil:
		if s, ok := entry.(*loom.Service); ok {
			names = offers(*s)
		}
	case !errors.Is(err, loom.NotFound):
		return 0, err
	}
	if err := c.Delete(ctx, actor, kind, name, version); err != nil || entry == nil {
		return 0, err
	}
	f, err := c.finder(ctx, c.db, actor.Tenant, loom.TenantKinds)
	if err != nil {
		return 0, err
	}
	f.index()
	for _, entries := range f.entries {
		for _, user := range entries {
			if err := ctx.Err(); err != nil {
				return dangling, err
			}
			if slices.ContainsFunc(references(user), func(r reference) bool {
				return r.kind == kind && (r.name == name || r.provided && names[r.name]) && !f.there(r)
			}) {
				dangling++
			}
		}
	}
	return dangling, nil
}

// Uses lists where an entry is used: in the newest versions of the tenant's other
// entries, a service also under the names that it provides, and by live clusters
// made from it that the actor may see. NotFound.
func (c *Catalog) Uses(ctx context.Context, actor loom.Actor, kind loom.EntityKind, name string) ([]Use, error) {
	entry, _, err := c.Entry(ctx, actor, kind, name, 0)
	if err != nil {
		return nil, err
	}
	stored, err := c.newest(ctx, actor, loom.TenantKinds...)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	if s, ok := entry.(*loom.Service); ok {
		names = offers(*s)
	}
	uses, err := namedBy(ctx, stored, kind, name, names)
	if err != nil {
		return nil, err
	}
	clusters, err := store.ClustersMadeFrom(ctx, c.db, actor.Tenant, store.SeenBy(actor), kind, name)
	for _, id := range clusters {
		uses = append(uses, Use{Kind: KindCluster, Name: id.String()})
	}
	return uses, err
}

// namedBy lists where entries name one of a kind, kind by kind; provided are names under which it
// is found as well.
func namedBy(ctx context.Context, stored []store.StoredEntry, kind loom.EntityKind, name string, provided map[string]bool) ([]Use, error) {
	byKind := map[loom.EntityKind][]Use{}
	for _, s := range stored {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		user := s.Entry.Meta().Name
		if s.Kind == kind && user == name {
			continue // an entry that names itself
		}
		for _, r := range references(s.Entry) {
			if r.kind == kind && (r.name == name || r.provided && provided[r.name]) {
				byKind[s.Kind] = append(byKind[s.Kind], Use{Kind: s.Kind, Name: user, Field: r.field})
			}
		}
	}
	uses := []Use{}
	for _, k := range loom.TenantKinds {
		uses = append(uses, byKind[k]...)
	}
	return uses, nil
}
