package store

import (
	"database/sql/driver"

	"github.com/lib/pq"

	"loom/app/loom"
)

// Viewer is whose clusters a list shows: those that User owns, and those that are shared with
// him. The zero Viewer sees all of the tenant.
type Viewer struct {
	User loom.UserID
	// Clusters and Templates are those of which, or of whose clusters, he sees what others own.
	Clusters  []loom.ClusterID
	Templates []string
}

// SeesAll reports whether nothing of the tenant is hidden.
func (v Viewer) SeesAll() bool { return v.User == "" }

// Value returns what seenBy reads: three texts, of which the last two are lists.
func (v Viewer) Value() (driver.Value, error) {
	ids := make(pq.Int64Array, len(v.Clusters))
	for i, id := range v.Clusters {
		ids[i] = int64(id)
	}
	clusters, err := ids.Value()
	if err != nil {
		return nil, err
	}
	templates, err := pq.StringArray(v.Templates).Value()
	if err != nil {
		return nil, err
	}
	text := func(list driver.Value) string {
		if list == nil {
			return "{}"
		}
		return list.(string)
	}
	return pq.StringArray{string(v.User), text(clusters), text(templates)}.Value()
}

// SeenBy is the viewer that lists of an actor are read for.
func SeenBy(actor loom.Actor) Viewer {
	if actor.May(loom.See, actor.InTenant()) == nil {
		return Viewer{}
	}
	return grantedTo(actor, func(g loom.Grant) bool {
		return actor.May(loom.See, loom.Object{Tenant: actor.Tenant, Template: g.Template, Cluster: g.Cluster}) == nil
	})
}

// SharedWith is SeenBy without what an actor sees because he sees all of the tenant.
func SharedWith(actor loom.Actor) Viewer { return grantedTo(actor, loom.Grant.Shares) }

func grantedTo(actor loom.Actor, shows func(g loom.Grant) bool) Viewer {
	v := Viewer{User: actor.User}
	for _, g := range actor.Grants {
		switch {
		case !shows(g):
		case g.Cluster != 0:
			v.Clusters = append(v.Clusters, g.Cluster)
		default:
			v.Templates = append(v.Templates, g.Template)
		}
	}
	return v
}

// viewing is the user of a viewer whose placeholder is named, "" for somebody who sees all.
func viewing(viewer string) string { return "(" + viewer + "::text[])[1]" }

// seenBy is the condition that a viewer, whose placeholder is named, may see a cluster,
// which the statement calls c. Nothing else compares owners with viewers.
func seenBy(viewer string) string {
	return "(" + viewing(viewer) + " = '' OR " + ownedOrShared(viewer) + ")"
}

func ownedOrShared(viewer string) string {
	return "c.owner_id = " + viewing(viewer) + " OR " + granted(viewer)
}

// granted is the condition that a grant of a viewer shows a cluster.
func granted(viewer string) string {
	list := "(" + viewer + "::text[])"
	return "c.id = ANY (" + list + "[2]::bigint[]) OR c.template_name = ANY (" + list + "[3]::text[])"
}

// seen adds the condition of seenBy, none for somebody who sees all of the tenant, and the owner
// alone where nothing is shared: then the planner may walk other indexes.
func (b *binder) seen(v Viewer) []string {
	switch {
	case v.SeesAll():
		return nil
	case !v.shared():
		return []string{"c.owner_id = " + b.add(v.User)}
	}
	return []string{"(" + ownedOrShared(b.add(v)) + ")"}
}

// shared reports whether anything is shared with a viewer.
func (v Viewer) shared() bool { return len(v.Clusters)+len(v.Templates) > 0 }

// ofOthers is the condition that a cluster of somebody else is shared with a viewer.
func (b *binder) ofOthers(v Viewer) string {
	if !v.shared() {
		return "false"
	}
	viewer := b.add(v)
	return "c.owner_id <> " + viewing(viewer) + " AND (" + granted(viewer) + ")"
}
