package store

import "loom/app/loom"

// SeenBy is the viewer that lists of an actor are read for: the owner to whose clusters
// they are limited, "" for somebody who sees all of the tenant.
func SeenBy(actor loom.Actor) loom.UserID {
	if actor.May(loom.See, actor.InTenant()) == nil {
		return ""
	}
	return actor.User
}

// seenBy is the condition that a viewer, whose placeholder is named, may see a cluster,
// which the statement calls c. Nothing else compares owners with viewers.
func seenBy(viewer string) string { return "(" + viewer + " = '' OR c.owner_id = " + viewer + ")" }

// seen adds the condition of seenBy, none for somebody who sees all of the tenant: then
// the planner may walk other indexes.
func (b *binder) seen(viewer loom.UserID) []string {
	if viewer == "" {
		return nil
	}
	return []string{"c.owner_id = " + b.add(viewer)}
}
